// SPDX-License-Identifier: Apache-2.0
// The list of known differences.
#include "replay/known.h"

#include <fnmatch.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/file.h"

static tare_status add(known_differences *out, const char *line, size_t length, tare_error *err) {
    while (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\r')) length--;
    if (length == 0 || line[0] == '#') return TARE_OK;
    const char *colon = memchr(line, ':', length);
    if (colon == NULL)
        return tare__fail(err, TARE_MALFORMED_FILE, "expected 'NAME: reason', found '%.*s'",
                          (int)length, line);
    const char *reason = colon + 1;
    while (reason < line + length && *reason == ' ') reason++;
    if (reason == line + length)
        return tare__fail(err, TARE_MALFORMED_FILE, "'%.*s' gives no reason", (int)length, line);
    if (!tare__grow((void **)&out->items, &out->capacity, out->count, sizeof *out->items))
        return tare__out_of_memory(err);
    const known_difference item = {
        .pattern = tare__arena_strndup(&out->memory, line, (size_t)(colon - line)),
        .reason = tare__arena_strndup(&out->memory, reason, (size_t)(line + length - reason))};
    if (item.pattern == NULL || item.reason == NULL) return tare__out_of_memory(err);
    out->items[out->count++] = item;
    return TARE_OK;
}

tare_status known_read(const char *path, known_differences *out, tare_error *err) {
    storage *store = NULL;
    const unsigned char *data = NULL;
    size_t size = 0;
    TARE_TRY(tare__file_map(path, &store, &data, &size, err));
    tare_status status = TARE_OK;
    size_t line = 1;
    for (size_t at = 0; at < size && status == TARE_OK; line++) {
        const unsigned char *end = memchr(data + at, '\n', size - at);
        const size_t length = end != NULL ? (size_t)(end - (data + at)) : size - at;
        status = add(out, (const char *)data + at, length, err);
        if (status != TARE_OK) status = tare__at(err, status, "%s: line %zu", path, line);
        at += length + 1;
    }
    tare__storage_release(store);
    return status;
}

const char *known_reason(const known_differences *known, const char *name) {
    for (size_t i = 0; i < known->count; i++)
        if (fnmatch(known->items[i].pattern, name, 0) == 0) return known->items[i].reason;
    return NULL;
}

void known_release(known_differences *known) {
    tare__free(known->items);
    tare__arena_release(&known->memory);
    *known = (known_differences){0};
}
