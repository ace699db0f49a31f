// SPDX-License-Identifier: Apache-2.0
// Reads and writes a machine's peaks, so that they are measured once.
#include <stddef.h>
#include <string.h>

#include "core/json/emit.h"
#include "core/json/json.h"
#include "core/struct_size.h"
#include "runtime/tune/machine.h"
#include "tare/file.h"

#define FORMAT "tare-machine-1"

static const struct {
    const char *name;
    size_t offset;
    bool may_lack; // in files of older versions; 0 then
} figures[] = {
#define FIGURE(name, may_lack)                                                                     \
    { #name, offsetof(tare_machine_peak, name), may_lack }
    FIGURE(int8_gops, false), FIGURE(float_gflops, false), FIGURE(l2_gbs, false),
    FIGURE(l3_gbs, false),    FIGURE(memory_gbs, false),   FIGURE(int8_vector_gops, true),
#undef FIGURE
};
enum { FIGURES = sizeof figures / sizeof *figures };

tare_status tare_machine_write(const tare_machine_peak *peak, const char *path, tare_error *err) {
    tare_machine_peak own = {0};
    text out = {0};
    json_emitter e = {.out = &out};
    if (peak == NULL || path == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected peaks and a path, found NULL");
    tare__struct_copy(&own, sizeof own, peak);
    tare__emit_open(&e, '{');
    tare__emit_key(&e, "format");
    tare__emit_string(&e, FORMAT);
    for (size_t i = 0; i < FIGURES; i++) {
        const void *figure = (const char *)&own + figures[i].offset;
        if (figures[i].may_lack && *(const double *)figure == 0) continue;
        tare__emit_key(&e, figures[i].name);
        tare__emit_double(&e, *(const double *)figure);
    }
    tare__emit_close(&e, '}');
    tare__text_append(&out, "\n");
    const tare_status status = out.failed
                                   ? tare__out_of_memory(err)
                                   : tare_file_write(path, tare__text_chars(&out), out.length, err);
    tare__text_release(&out);
    return status;
}

static tare_status read_figure(const json_at *root, size_t i, tare_machine_peak *out,
                               tare_error *err) {
    double value = 0;
    if (figures[i].may_lack && !tare__json_has(root, figures[i].name)) return TARE_OK;
    const json_at at = tare__json_get(root, figures[i].name);
    TARE_TRY(tare__json_double(&at, &value, err));
    if (!tare__is_peak(value))
        return tare__json_fail(&at, err, "expected a number from 0.001 to 1e9, found %g", value);
    *(double *)(void *)((char *)out + figures[i].offset) = value;
    return TARE_OK;
}

static tare_status read_root(const json_t *json, tare_machine_peak *out, tare_error *err) {
    const char *format = NULL, *keys[FIGURES + 2] = {"format"};
    const json_at root = tare__json_root(json);
    for (size_t i = 0; i < FIGURES; i++) keys[i + 1] = figures[i].name;
    TARE_TRY(tare__json_expect(&root, JSON_OBJECT, err));
    TARE_TRY(tare__json_only_keys(&root, keys, err));
    const json_at format_at = tare__json_get(&root, "format");
    TARE_TRY(tare__json_string(&format_at, &format, err));
    if (strcmp(format, FORMAT) != 0)
        return tare__json_fail(&format_at, err, "expected '" FORMAT "', found '%s'", format);
    for (size_t i = 0; i < FIGURES; i++) TARE_TRY(read_figure(&root, i, out, err));
    return TARE_OK;
}

tare_status tare_machine_read(const char *path, tare_machine_peak *out, tare_error *err) {
    json_t *json = NULL;
    tare_machine_peak found = {.struct_size = sizeof found};
    if (path == NULL || out == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected a path and peaks, found NULL");
    TARE_TRY(tare__json_parse_file(path, &json, err));
    const tare_status status = tare__at(err, read_root(json, &found, err), "%s", path);
    json_decref(json);
    if (status == TARE_OK) *out = found;
    return status;
}
