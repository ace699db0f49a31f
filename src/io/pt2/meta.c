// SPDX-License-Identifier: Apache-2.0
// Reads nodes' metadata, which are strings: entries are separated by ';', fields by ','.
#include "io/pt2/meta.h"

#include <inttypes.h>
#include <string.h>

#include "core/json/write.h"
#include "io/native/debug_handle.h"
#include "io/pt2/payload.h"
#include "ops/classes/classes.h"

// --- values ---

static tare_status write_sizes(const json_at *sizes, text *out, tare_error *err) {
    TARE_TRY(tare__json_expect(sizes, JSON_ARRAY, err));
    for (size_t i = 0; i < json_array_size(sizes->value); i++) {
        const json_at size = tare__json_item(sizes, i), number = tare__json_get(&size, "as_int");
        int64_t n;
        if (i > 0) tare__text_append(out, ", ");
        TARE_TRY(tare__json_expect(&size, JSON_OBJECT, err));
        if (!tare__json_has(&size, "as_int")) {
            tare__text_append(out, "null");
            continue;
        }
        TARE_TRY(tare__json_int(&number, &n, err));
        tare__text_printf(out, "%" PRId64, n);
    }
    return TARE_OK;
}

static bool has_int(const json_t *object, json_int_t *out) {
    const json_t *number = json_object_get(object, "as_int");
    *out = json_integer_value(number);
    return json_is_integer(number);
}

// Row-major, without gaps.
static bool is_contiguous(const json_t *sizes, const json_t *strides) {
    json_int_t expected = 1, size, stride;
    if (json_array_size(strides) != json_array_size(sizes)) return false;
    for (size_t d = json_array_size(sizes); d-- > 0;) {
        if (!has_int(json_array_get(sizes, d), &size) ||
            !has_int(json_array_get(strides, d), &stride) || stride != expected ||
            size > INT64_MAX / expected)
            return false;
        expected *= size > 0 ? size : 1;
    }
    return true;
}

// True if a tensor's shape and dtype describe it completely: contiguous, on the CPU, strided, and
// without gradients unless it is a parameter.
static bool is_plain(const json_t *meta, bool is_attribute) {
    json_int_t offset;
    const json_t *device = json_object_get(meta, "device"), *type = json_object_get(device, "type");
    const json_t *layout = json_object_get(meta, "layout");
    const char *layout_name = tare__pt2_layout(json_integer_value(layout));
    return is_contiguous(json_object_get(meta, "sizes"), json_object_get(meta, "strides")) &&
           has_int(json_object_get(meta, "storage_offset"), &offset) && offset == 0 &&
           (is_attribute || json_is_false(json_object_get(meta, "requires_grad"))) &&
           json_is_string(type) && strcmp(json_string_value(type), "cpu") == 0 &&
           !json_is_integer(json_object_get(device, "index")) && json_is_integer(layout) &&
           layout_name != NULL && strcmp(layout_name, "torch.strided") == 0;
}

static tare_status write_value(const node *n, const json_at *tensors, const char *name, text *out,
                               tare_error *err) {
    const json_at meta = tare__json_get(tensors, name), sizes = tare__json_get(&meta, "sizes");
    const json_at dtype = tare__json_get(&meta, "dtype");
    int64_t code;
    TARE_TRY(tare__json_int(&dtype, &code, err));
    tare__text_append(out, "{\"shape\": [");
    TARE_TRY(write_sizes(&sizes, out, err));
    const tare_dtype known = tare__pt2_dtype(code);
    tare__text_printf(out, "], \"dtype\": \"%s\"",
                      known != TARE_DTYPE_UNSET ? tare_dtype_name(known) : "");
    if (!is_plain(meta.value, n->op == NODE_GET_ATTR)) {
        tare__text_append(out, ", \"tensor\": ");
        tare__json_write(meta.value, out);
    }
    tare__text_char(out, '}');
    return TARE_OK;
}

// {"as_sym_int": {"as_expr": ..}}
static void write_symbolic(const json_at *tables, const char *name, text *out) {
    static const struct {
        const char *table, *key;
    } kinds[] = {{"sym_int_values", "as_sym_int"},
                 {"sym_float_values", "as_sym_float"},
                 {"sym_bool_values", "as_sym_bool"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const json_t *number =
            json_object_get(json_object_get(tables->value, kinds[i].table), name);
        if (number == NULL) continue;
        tare__text_printf(out, "\"symbolic\": {\"%s\": ", kinds[i].key);
        tare__json_write(number, out);
        tare__text_char(out, '}');
        return;
    }
}

// Writes nothing for results without an entry: numbers other than symbolic ones, unused results.
static tare_status write_values(const node *n, const json_at *tables, const char *const *names,
                                size_t count, text *out, tare_error *err) {
    const json_at tensors = tare__json_get(tables, "tensor_values");
    bool all = count > 0 && json_is_object(tensors.value);
    for (size_t i = 0; i < count; i++) all = all && tare__json_has(&tensors, names[i]);
    if (!all) {
        if (count == 1) write_symbolic(tables, names[0], out);
        return TARE_OK;
    }
    tare__text_append(out, count > 1 ? "\"val\": [" : "\"val\": ");
    for (size_t i = 0; i < count; i++) {
        if (i > 0) tare__text_append(out, ", ");
        TARE_TRY(write_value(n, &tensors, names[i], out, err));
    }
    if (count > 1) tare__text_char(out, ']');
    return TARE_OK;
}

// --- strings of entries ---

// The first occurrence of the character outside brackets, or `end`.
static const char *find_outside(const char *at, const char *end, char wanted) {
    int depth = 0;
    for (; at < end; at++) {
        if (*at == '[' || *at == '(') depth++;
        if ((*at == ']' || *at == ')') && depth > 0) depth--;
        if (*at == wanted && depth == 0) break;
    }
    return at;
}

static void write_field(const char *at, const char *end, text *out) {
    text field = {0};
    tare__text_append_n(&field, at, (size_t)(end - at));
    tare__text_json_string(out, tare__text_chars(&field));
    out->failed = out->failed || field.failed;
    tare__text_release(&field);
}

typedef struct entry {
    const char *field[3], *end[3];
} entry;

// Splits "a,b,c" into `count` fields; the last one is the rest.
static bool split_entry(const char *at, const char *end, char separator, size_t count, entry *out) {
    for (size_t i = 0; i < count; i++) {
        out->field[i] = at;
        out->end[i] = i + 1 < count ? find_outside(at, end, separator) : end;
        if (i + 1 < count && out->end[i] == end) return false;
        at = out->end[i] + 1;
    }
    return true;
}

// "a,b;c,d" -> [["a", "b"], ["c", "d"]]; *last: the last entry.
static bool write_stack(const char *chars, size_t fields, text *out, entry *last) {
    const char *end = chars + strlen(chars);
    tare__text_char(out, '[');
    for (const char *at = chars; at < end;) {
        const char *stop = find_outside(at, end, ';');
        if (!split_entry(at, stop, ',', fields, last)) return false;
        tare__text_append(out, at == chars ? "[" : ", [");
        for (size_t i = 0; i < fields; i++) {
            if (i > 0) tare__text_append(out, ", ");
            write_field(last->field[i], last->end[i], out);
        }
        tare__text_char(out, ']');
        at = stop + (stop < end ? 1 : 0);
    }
    tare__text_char(out, ']');
    return true;
}

static tare_status keep(graph *g, const char *chars, size_t length, const char **out,
                        tare_error *err) {
    *out = tare__arena_strndup(&g->memory, chars, length);
    return *out != NULL ? TARE_OK : tare__out_of_memory(err);
}

// Sets the node's scope to the innermost module.
static tare_status set_scope(node *n, const json_at *at, const entry *last, tare_error *err) {
    char class[512], public_name[512];
    const size_t length = (size_t)(last->end[2] - last->field[2]);
    if (length >= sizeof class)
        return tare__json_fail(at, err, "a class name of more than %zu bytes", sizeof class - 1);
    memcpy(class, last->field[2], length);
    class[length] = '\0';
    tare__class_public_name(class, public_name, sizeof public_name);
    TARE_TRY(keep(n->owner, last->field[1], (size_t)(last->end[1] - last->field[1]), &n->scope_path,
                  err));
    return keep(n->owner, public_name, strlen(public_name), &n->scope_type, err);
}

static tare_status write_entry(node *n, const json_at *at, const char *key, const char *chars,
                               text *out, tare_error *err) {
    entry last = {0};
    const bool is_modules = strcmp(key, "nn_module_stack") == 0;
    if (out->length > 1) tare__text_append(out, ", ");
    tare__text_json_string(out, key);
    tare__text_append(out, ": ");
    if (is_modules || strcmp(key, "source_fn_stack") == 0) {
        if (!write_stack(chars, is_modules ? 3 : 2, out, &last))
            return tare__json_fail(at, err, "'%s' has entries with too few fields", chars);
        return is_modules && last.field[0] != NULL ? set_scope(n, at, &last, err) : TARE_OK;
    }
    if (strcmp(key, "torch_fn") == 0 && split_entry(chars, chars + strlen(chars), ';', 2, &last)) {
        tare__text_char(out, '[');
        write_field(last.field[0], last.end[0], out);
        tare__text_append(out, ", ");
        write_field(last.field[1], last.end[1], out);
        tare__text_char(out, ']');
        return TARE_OK;
    }
    tare__text_json_string(out, chars);
    return TARE_OK;
}

static tare_status write_metadata(node *n, const json_at *metadata, text *out, tare_error *err) {
    const char *key = NULL;
    json_t *item = NULL;
    if (metadata->value == NULL || json_is_null(metadata->value)) return TARE_OK;
    TARE_TRY(tare__json_expect(metadata, JSON_OBJECT, err));
    json_object_foreach((json_t *)metadata->value, key, item) {
        const json_at at = tare__json_get(metadata, key);
        const char *chars = NULL;
        TARE_TRY(tare__json_string(&at, &chars, err));
        TARE_TRY(write_entry(n, &at, key, chars, out, err));
        if (strcmp(key, "custom") == 0)
            TARE_TRY(tare__debug_handle_read(item, &n->debug_handle, err));
    }
    return TARE_OK;
}

tare_status tare__pt2_set_meta(node *n, const json_at *tables, const char *const *names,
                               size_t count, const json_at *metadata, tare_error *err) {
    text meta = {0};
    tare__text_char(&meta, '{');
    tare_status status = write_values(n, tables, names, count, &meta, err);
    if (status == TARE_OK) status = write_metadata(n, metadata, &meta, err);
    tare__text_char(&meta, '}');
    if (status == TARE_OK) status = tare__text_status(&meta, err);
    if (status == TARE_OK && meta.length > 2)
        status = keep(n->owner, tare__text_chars(&meta), meta.length, &n->meta_json, err);
    tare__text_release(&meta);
    return status;
}
