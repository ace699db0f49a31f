// SPDX-License-Identifier: Apache-2.0
// Values with a JSON equivalent are written as such. All others are objects with a tag as the only
// key: {"tuple": [..]}, {"dtype": ".."}. A table of tags is used for reading and writing.
#include "io/native/value_json.h"

#include <inttypes.h>
#include <string.h>

#include "ir/graph.h"

typedef struct reader {
    arena *memory;
    const map *nodes;
    tare_error *err;
} reader;

static tare_status read_value(const reader *r, const json_at *at, value *out);

static tare_status copy_string(const reader *r, const json_at *at, const char **out) {
    const char *chars = NULL;
    TARE_TRY(tare__json_string(at, &chars, r->err));
    *out = tare__arena_strdup(r->memory, chars);
    return *out != NULL ? TARE_OK : tare__out_of_memory(r->err);
}

static tare_status make_items(const reader *r, value_kind kind, size_t count, value *out) {
    *out = (value){.kind = kind, .count = (uint32_t)count};
    if (count > UINT32_MAX) return tare__out_of_memory(r->err);
    if (count == 0) return TARE_OK;
    out->as.items = tare__arena_array(r->memory, count, sizeof *out->as.items);
    return out->as.items != NULL ? TARE_OK : tare__out_of_memory(r->err);
}

static tare_status read_sequence(const reader *r, const json_at *at, value_kind kind, value *out) {
    TARE_TRY(tare__json_expect(at, JSON_ARRAY, r->err));
    TARE_TRY(make_items(r, kind, json_array_size(at->value), out));
    for (size_t i = 0; i < out->count; i++) {
        const json_at item = tare__json_item(at, i);
        TARE_TRY(read_value(r, &item, &out->as.items[i]));
    }
    return TARE_OK;
}

static tare_status read_node(const reader *r, const json_at *at, value_kind kind, value *out) {
    const char *name = NULL;
    TARE_TRY(tare__json_string(at, &name, r->err));
    if (r->nodes == NULL) return tare__json_fail(at, r->err, "a node cannot stand here");
    node *found = tare__map_get(r->nodes, name);
    if (found == NULL)
        return tare__json_fail(at, r->err, "node '%s' is not defined before its use", name);
    *out = (value){.kind = kind, .as.node = found};
    return TARE_OK;
}

static tare_status read_float(const reader *r, const json_at *at, value_kind kind, value *out) {
    const char *name = NULL;
    TARE_TRY(tare__json_string(at, &name, r->err));
    *out = (value){.kind = kind};
    if (tare__json_float_named(name, &out->as.real)) return TARE_OK;
    return tare__json_fail(at, r->err, "expected \"inf\", \"-inf\" or \"nan\", found \"%s\"", name);
}

static tare_status read_dict(const reader *r, const json_at *at, value_kind kind, value *out) {
    TARE_TRY(tare__json_expect(at, JSON_ARRAY, r->err));
    const size_t count = json_array_size(at->value);
    TARE_TRY(make_items(r, kind, 2 * count, out));
    for (size_t i = 0; i < count; i++) {
        const json_at pair = tare__json_item(at, i);
        TARE_TRY(tare__json_expect(&pair, JSON_ARRAY, r->err));
        if (json_array_size(pair.value) != 2)
            return tare__json_fail(&pair, r->err, "expected [key, value]");
        const json_at key = tare__json_item(&pair, 0), item = tare__json_item(&pair, 1);
        TARE_TRY(read_value(r, &key, &out->as.items[2 * i]));
        TARE_TRY(read_value(r, &item, &out->as.items[2 * i + 1]));
    }
    return TARE_OK;
}

static tare_status read_slice(const reader *r, const json_at *at, value_kind kind, value *out) {
    TARE_TRY(read_sequence(r, at, kind, out));
    return out->count == 3 ? TARE_OK : tare__json_fail(at, r->err, "expected [start, stop, step]");
}

static tare_status read_ellipsis(const reader *r, const json_at *at, value_kind kind, value *out) {
    *out = (value){.kind = kind};
    return json_is_true(at->value) ? TARE_OK : tare__json_fail(at, r->err, "expected true");
}

static tare_status read_dtype_at(const reader *r, const json_at *at, tare_dtype *out) {
    const char *name = NULL;
    TARE_TRY(tare__json_string(at, &name, r->err));
    *out = tare_dtype_from_name(name);
    if (*out == TARE_DTYPE_UNSET) return tare__json_fail(at, r->err, "unknown dtype '%s'", name);
    return TARE_OK;
}

static tare_status read_dtype(const reader *r, const json_at *at, value_kind kind, value *out) {
    *out = (value){.kind = kind};
    return read_dtype_at(r, at, &out->as.dtype);
}

static tare_status read_qscheme(const reader *r, const json_at *at, value_kind kind, value *out) {
    const char *name = NULL;
    TARE_TRY(tare__json_string(at, &name, r->err));
    *out = (value){.kind = kind, .as.qscheme = tare_qscheme_from_name(name)};
    if (out->as.qscheme == TARE_QSCHEME_UNSET)
        return tare__json_fail(at, r->err, "unknown qscheme '%s'", name);
    return TARE_OK;
}

static tare_status read_name(const reader *r, const json_at *at, value_kind kind, value *out) {
    *out = (value){.kind = kind};
    return copy_string(r, at, &out->as.text);
}

// {"scalar": 1.0, "dtype": "torch.float32"}: the only object of two keys.
static tare_status read_scalar(const reader *r, const json_at *at, value_kind kind, value *out) {
    const json_at dtype = tare__json_get(at->parent, "dtype");
    TARE_TRY(make_items(r, kind, 2, out));
    TARE_TRY(read_value(r, at, &out->as.items[0]));
    double number = 0;
    if (!tare__value_number(&out->as.items[0], &number))
        return tare__json_fail(at, r->err, "expected a number");
    out->as.items[1].kind = VALUE_DTYPE;
    return read_dtype_at(r, &dtype, &out->as.items[1].as.dtype);
}

static tare_status read_tuple(const reader *r, const json_at *at, value_kind kind, value *out) {
    return read_sequence(r, at, kind, out);
}

static const struct tag {
    const char *key;
    value_kind kind;
    tare_status (*read)(const reader *r, const json_at *at, value_kind kind, value *out);
} tags[] = {
    {"node", VALUE_NODE, read_node},          {"tuple", VALUE_TUPLE, read_tuple},
    {"float", VALUE_FLOAT, read_float},       {"dict", VALUE_DICT, read_dict},
    {"slice", VALUE_SLICE, read_slice},       {"ellipsis", VALUE_ELLIPSIS, read_ellipsis},
    {"scalar", VALUE_SCALAR, read_scalar},    {"dtype", VALUE_DTYPE, read_dtype},
    {"qscheme", VALUE_QSCHEME, read_qscheme}, {"layout", VALUE_LAYOUT, read_name},
    {"device", VALUE_DEVICE, read_name},      {"sym", VALUE_SYMBOL, read_name},
    {"type", VALUE_TYPE, read_name},
};
#define TAG_COUNT (sizeof tags / sizeof *tags)

static tare_status read_tagged(const reader *r, const json_at *at, value *out) {
    for (size_t i = 0; i < TAG_COUNT; i++) {
        if (!tare__json_has(at, tags[i].key)) continue;
        const size_t keys = tags[i].kind == VALUE_SCALAR ? 2 : 1;
        if (json_object_size(at->value) != keys)
            return tare__json_fail(at, r->err, "unexpected keys next to '%s'", tags[i].key);
        const json_at inside = tare__json_get(at, tags[i].key);
        return tags[i].read(r, &inside, tags[i].kind, out);
    }
    return tare__json_fail(at, r->err,
                           "an object of an unknown form: expected {\"node\": ..}, "
                           "{\"tuple\": ..} or the like");
}

static tare_status read_value(const reader *r, const json_at *at, value *out) {
    if (at->value == NULL) return tare__json_fail(at, r->err, "a value is missing");
    switch (json_typeof(at->value)) {
    case JSON_NULL:
        *out = tare__none();
        return TARE_OK;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = tare__bool(json_is_true(at->value));
        return TARE_OK;
    case JSON_INTEGER:
        *out = tare__int(json_integer_value(at->value));
        return TARE_OK;
    case JSON_REAL:
        *out = tare__float(json_real_value(at->value));
        return TARE_OK;
    case JSON_STRING:
        *out = (value){.kind = VALUE_STRING};
        return copy_string(r, at, &out->as.text);
    case JSON_ARRAY:
        return read_sequence(r, at, VALUE_LIST, out);
    case JSON_OBJECT:
        return read_tagged(r, at, out);
    }
    return tare__json_fail(at, r->err, "not a value");
}

tare_status tare__value_from_json(const json_at *at, arena *memory, const map *nodes, value *out,
                                  tare_error *err) {
    const reader r = {.memory = memory, .nodes = nodes, .err = err};
    value made = {0};
    TARE_TRY(read_value(&r, at, &made));
    *out = made;
    return TARE_OK;
}

static const char *tag_key(value_kind kind) {
    for (size_t i = 0; i < TAG_COUNT; i++)
        if (tags[i].kind == kind) return tags[i].key;
    return "";
}

static tare_status write_items(const value *v, text *out, tare_error *err) {
    tare__text_char(out, '[');
    for (uint32_t i = 0; i < v->count; i++) {
        if (i > 0) tare__text_append(out, ", ");
        TARE_TRY(tare__value_to_json(&v->as.items[i], out, err));
    }
    tare__text_char(out, ']');
    return TARE_OK;
}

static tare_status write_pairs(const value *v, text *out, tare_error *err) {
    tare__text_char(out, '[');
    for (uint32_t i = 0; i + 1 < v->count; i += 2) {
        tare__text_append(out, i > 0 ? ", [" : "[");
        TARE_TRY(tare__value_to_json(&v->as.items[i], out, err));
        tare__text_append(out, ", ");
        TARE_TRY(tare__value_to_json(&v->as.items[i + 1], out, err));
        tare__text_char(out, ']');
    }
    tare__text_char(out, ']');
    return TARE_OK;
}

// Writes the value after the tag's colon.
static tare_status write_inside(const value *v, text *out, tare_error *err) {
    switch (v->kind) {
    case VALUE_NODE:
        tare__text_json_string(out, v->as.node->name);
        return TARE_OK;
    case VALUE_DTYPE:
        tare__text_json_string(out, tare_dtype_name(v->as.dtype));
        return TARE_OK;
    case VALUE_QSCHEME:
        tare__text_json_string(out, tare_qscheme_name(v->as.qscheme));
        return TARE_OK;
    case VALUE_LAYOUT:
    case VALUE_DEVICE:
    case VALUE_SYMBOL:
    case VALUE_TYPE:
        tare__text_json_string(out, v->as.text);
        return TARE_OK;
    case VALUE_ELLIPSIS:
        tare__text_append(out, "true");
        return TARE_OK;
    case VALUE_TUPLE:
    case VALUE_SLICE:
        return write_items(v, out, err);
    case VALUE_DICT:
        return write_pairs(v, out, err);
    case VALUE_SCALAR:
        TARE_TRY(tare__value_to_json(&v->as.items[0], out, err));
        tare__text_printf(out, ", \"dtype\": \"%s\"", tare_dtype_name(v->as.items[1].as.dtype));
        return TARE_OK;
    default:
        return tare__fail(err, TARE_INTERNAL, "value kind %d has no form in JSON", v->kind);
    }
}

tare_status tare__value_to_json(const value *v, text *out, tare_error *err) {
    switch (v->kind) {
    case VALUE_NONE:
        tare__text_append(out, "null");
        return TARE_OK;
    case VALUE_BOOL:
        tare__text_append(out, v->as.boolean ? "true" : "false");
        return TARE_OK;
    case VALUE_INT:
        tare__text_printf(out, "%" PRId64, v->as.integer);
        return TARE_OK;
    case VALUE_FLOAT:
        tare__text_json_double(out, v->as.real);
        return TARE_OK;
    case VALUE_STRING:
        tare__text_json_string(out, v->as.text);
        return TARE_OK;
    case VALUE_LIST:
        return write_items(v, out, err);
    default:
        break;
    }
    tare__text_printf(out, "{\"%s\": ", tag_key(v->kind));
    TARE_TRY(write_inside(v, out, err));
    tare__text_char(out, '}');
    return TARE_OK;
}
