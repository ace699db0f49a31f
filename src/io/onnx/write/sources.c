// SPDX-License-Identifier: Apache-2.0
// Records where the tensors of the model are in the file, so that reading it gives the same model.
#include <inttypes.h>
#include <string.h>

#include "core/json/write.h"
#include "io/onnx/schema.h"
#include "io/onnx/write/model.h"

enum { MOST_VALUES = 64 }; // elements of a tensor that is stored in the metadata

static bool same_elements(const tare_tensor *a, const tare_tensor *b) {
    for (int64_t i = 0; a->count == b->count && i < a->count; i++)
        if (tare__tensor_get(a, i) != tare__tensor_get(b, i)) return false;
    return a->count == b->count;
}

static void write_form(const tare_tensor *t, text *out) {
    tare__text_append(out, "\"dtype\":");
    tare__text_json_string(out, tare_dtype_name(t->dtype));
    tare__text_append(out, ",\"shape\":[");
    for (int d = 0; d < t->ndim; d++)
        tare__text_printf(out, "%s%" PRId64, d > 0 ? "," : "", t->shape[d]);
    tare__text_char(out, ']');
}

static void write_name(const char *key, const char *name, text *out) {
    tare__text_printf(out, "\"%s\":", key);
    tare__text_json_string(out, name);
}

static void begin(const char *name, text *out) {
    if (out->length > 0) tare__text_char(out, ',');
    tare__text_json_string(out, name);
    tare__text_append(out, ":{");
}

static void write_values(const char *name, const tare_tensor *t, text *out) {
    const bool is_float = tare__dtype(t->dtype)->is_float;
    begin(name, out);
    write_form(t, out);
    tare__text_append(out, ",\"values\":[");
    for (int64_t i = 0; i < t->count; i++) {
        if (i > 0) tare__text_char(out, ',');
        if (is_float)
            tare__text_json_double(out, tare__tensor_get(t, i));
        else
            tare__text_printf(out, "%" PRId64, tare__tensor_get_int(t, i));
    }
    tare__text_append(out, "]}");
}

// The names of initializers that are tensors of the model unchanged, and the records of all other
// tensors.
typedef struct source_lists {
    text plain, made;
} source_lists;

// Records a tensor that is one initializer, possibly with another dtype or shape. False if it is
// not.
static bool write_initializer(const onnx_writer *w, const onnx_source *s, const char *name,
                              const tare_tensor *t, source_lists *lists) {
    text *out = &lists->made;
    const out_tensor *from = tare__out_find_tensor(w, s->initializer);
    if (from == NULL || (from->t != t && !same_elements(from->t, t))) return false;
    const bool is_same =
        tare__dtype(from->t->dtype)->storage == t->dtype && tare__same_shape(from->t, t);
    if (is_same && strcmp(from->name, name) == 0) {
        if (lists->plain.length > 0) tare__text_char(&lists->plain, ',');
        tare__text_json_string(&lists->plain, name);
        return true;
    }
    begin(name, out);
    write_name("initializer", from->name, out);
    if (!is_same) {
        tare__text_char(out, ',');
        write_form(t, out);
    }
    tare__text_char(out, '}');
    return true;
}

// Records quantized values that the file stores as the transposed matrix.
static bool write_turned(const onnx_writer *w, const onnx_source *s, const char *name,
                         const tare_tensor *t, text *out) {
    if (tare__out_find_tensor(w, s->initializer) == NULL) return false;
    begin(name, out);
    write_name("turned", s->initializer, out);
    tare__text_printf(out, ",\"bits\":%d,", s->turned_bits);
    write_form(t, out);
    tare__text_char(out, '}');
    return true;
}

static bool write_dequantized(const onnx_writer *w, const onnx_source *s, const char *name,
                              text *out) {
    const bool is_there = tare__out_find_tensor(w, s->initializer) != NULL &&
                          tare__out_find_tensor(w, s->scale) != NULL;
    if (!is_there) return false;
    begin(name, out);
    write_name("codes", s->initializer, out);
    tare__text_char(out, ',');
    write_name("scale", s->scale, out);
    if (s->zero_point != NULL) {
        tare__text_char(out, ',');
        write_name("zero_point", s->zero_point, out);
    }
    if (s->axis >= 0) tare__text_printf(out, ",\"axis\":%d", s->axis);
    tare__text_char(out, '}');
    return true;
}

// Adds a tensor that no node reads.
static tare_status add_unread(onnx_writer *w, const char *name, const tare_tensor *t,
                              source_lists *lists) {
    if (t->count <= MOST_VALUES) {
        write_values(name, t, &lists->made);
        return TARE_OK;
    }
    const int type = tare__onnx_type_of_dtype(t->dtype);
    if (type == 0)
        return tare__fail(w->err, TARE_UNSUPPORTED, "tensor '%s': ONNX has no element type for %s",
                          name, tare_dtype_name(t->dtype));
    const onnx_source made = {.initializer = tare__out_add_tensor(w, name, t, type), .axis = -1};
    if (made.initializer == NULL) return tare__out_of_memory(w->err);
    write_initializer(w, &made, name, t, lists);
    return TARE_OK;
}

static tare_status list_all(onnx_writer *w, source_lists *lists) {
    for (size_t i = 0; i < w->spec->tensors->count; i++) {
        const char *name = w->spec->tensors->entries[i].key;
        const tare_tensor *t = w->spec->tensors->entries[i].value;
        const onnx_source *s = tare__map_get(&w->sources, name);
        bool done = false;
        if (s != NULL && s->turned_bits != 0)
            done = write_turned(w, s, name, t, &lists->made);
        else if (s != NULL)
            done = s->scale != NULL ? write_dequantized(w, s, name, &lists->made)
                                    : write_initializer(w, s, name, t, lists);
        if (!done) TARE_TRY(add_unread(w, name, t, lists));
    }
    return TARE_OK;
}

tare_status tare__onnx_sources(onnx_writer *w, text *out) {
    source_lists lists = {0};
    tare_status status = list_all(w, &lists);
    if (status == TARE_OK) status = tare__text_status(&lists.plain, w->err);
    if (status == TARE_OK) status = tare__text_status(&lists.made, w->err);
    tare__text_printf(out, "{\"plain\":[%s],\"made\":{%s}}", tare__text_chars(&lists.plain),
                      tare__text_chars(&lists.made));
    tare__text_release(&lists.plain);
    tare__text_release(&lists.made);
    return status == TARE_OK ? tare__text_status(out, w->err) : status;
}
