// SPDX-License-Identifier: Apache-2.0
// Reads arguments. A table has for every kind the reader of one element and the number of nested
// lists around it.
#include "io/pt2/argument.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "io/pt2/payload.h"

typedef tare_status (*element_reader)(const pt2_names *names, const json_at *at, value *out);

tare_status tare__pt2_union(const json_at *at, const char **key, json_at *body, tare_error *err) {
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, err));
    if (json_object_size(at->value) != 1)
        return tare__json_fail(at, err, "expected an object with one key, found %zu",
                               json_object_size(at->value));
    *key = json_object_iter_key(json_object_iter((json_t *)at->value));
    *body = tare__json_get(at, *key);
    return TARE_OK;
}

// --- elements ---

static tare_status named(const pt2_names *names, const json_at *at, value *out) {
    const char *name = NULL;
    TARE_TRY(tare__json_string(at, &name, names->err));
    node *n = tare__map_get(names->values, name);
    if (n == NULL) return tare__json_fail(at, names->err, "no earlier node gives '%s'", name);
    *out = tare__node_value(n);
    return TARE_OK;
}

tare_status tare__pt2_value_named(const pt2_names *names, const json_at *at, value *out) {
    const json_at name = tare__json_get(at, "name");
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, names->err));
    return named(names, &name, out);
}

static tare_status read_none(const pt2_names *names, const json_at *at, value *out) {
    (void)names, (void)at;
    *out = tare__none();
    return TARE_OK;
}

static tare_status read_bool(const pt2_names *names, const json_at *at, value *out) {
    bool b;
    TARE_TRY(tare__json_bool(at, &b, names->err));
    *out = tare__bool(b);
    return TARE_OK;
}

static tare_status read_int(const pt2_names *names, const json_at *at, value *out) {
    int64_t i;
    TARE_TRY(tare__json_int(at, &i, names->err));
    *out = tare__int(i);
    return TARE_OK;
}

// JSON has no infinity and no NaN; they are three strings.
static tare_status read_float(const pt2_names *names, const json_at *at, value *out) {
    static const struct {
        const char *name;
        double number;
    } special[] = {{"Infinity", HUGE_VAL}, {"-Infinity", -HUGE_VAL}, {"NaN", (double)NAN}};
    const char *chars = json_string_value(at->value);
    double number;
    for (size_t i = 0; chars != NULL && i < sizeof special / sizeof *special; i++)
        if (strcmp(special[i].name, chars) == 0) {
            *out = tare__float(special[i].number);
            return TARE_OK;
        }
    TARE_TRY(tare__json_double(at, &number, names->err));
    *out = tare__float(number);
    return TARE_OK;
}

static tare_status read_string(const pt2_names *names, const json_at *at, value *out) {
    const char *chars = NULL;
    TARE_TRY(tare__json_string(at, &chars, names->err));
    *out = tare__string(chars);
    return TARE_OK;
}

// {"as_name": "sym_size"}: a node; {"as_int": 3}: a number.
static tare_status read_symbolic(const pt2_names *names, const json_at *at, value *out) {
    const char *key = "";
    json_at body;
    TARE_TRY(tare__pt2_union(at, &key, &body, names->err));
    if (strcmp(key, "as_name") == 0) return named(names, &body, out);
    if (strcmp(key, "as_int") == 0) return read_int(names, &body, out);
    if (strcmp(key, "as_bool") == 0) return read_bool(names, &body, out);
    if (strcmp(key, "as_float") == 0) return read_float(names, &body, out);
    return tare__json_fail(at, names->err, "'%s' is no symbolic number", key);
}

static tare_status read_dtype(const pt2_names *names, const json_at *at, value *out) {
    int64_t code;
    TARE_TRY(tare__json_int(at, &code, names->err));
    const tare_dtype dtype = tare__pt2_dtype(code);
    if (dtype == TARE_DTYPE_UNSET)
        return tare__json_fail(at, names->err, "the dtype with code %" PRId64 " is not supported",
                               code);
    *out = tare__dtype_value(dtype);
    return TARE_OK;
}

static tare_status read_code(const pt2_names *names, const json_at *at,
                             const char *(*name_of)(int64_t code), const char *what, value *out) {
    int64_t code;
    TARE_TRY(tare__json_int(at, &code, names->err));
    const char *name = name_of(code);
    if (name == NULL) return tare__json_fail(at, names->err, "unknown %s %" PRId64, what, code);
    *out = (value){.kind = VALUE_LAYOUT, .as.text = name};
    return TARE_OK;
}

static tare_status read_layout(const pt2_names *names, const json_at *at, value *out) {
    return read_code(names, at, tare__pt2_layout, "layout", out);
}
static tare_status read_memory_format(const pt2_names *names, const json_at *at, value *out) {
    return read_code(names, at, tare__pt2_memory_format, "memory format", out);
}

static tare_status read_device(const pt2_names *names, const json_at *at, value *out) {
    const json_at type = tare__json_get(at, "type"), index = tare__json_get(at, "index");
    const char *name = NULL;
    int64_t number;
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, names->err));
    TARE_TRY(tare__json_string(&type, &name, names->err));
    if (index.value != NULL && !json_is_null(index.value)) {
        TARE_TRY(tare__json_int(&index, &number, names->err));
        name = tare__arena_printf(names->memory, "%s:%" PRId64, name, number);
        if (name == NULL) return tare__out_of_memory(names->err);
    }
    *out = (value){.kind = VALUE_DEVICE, .as.text = name};
    return TARE_OK;
}

static tare_status read_operator(const pt2_names *names, const json_at *at, value *out) {
    const char *name = NULL;
    TARE_TRY(tare__json_string(at, &name, names->err));
    *out = (value){.kind = VALUE_TYPE, .as.text = name};
    return TARE_OK;
}

static tare_status read_graph(const pt2_names *names, const json_at *at, value *out) {
    if (names->read_graph != NULL) return names->read_graph(names->user, at, out);
    return tare__json_fail(at, names->err, "a graph cannot be an argument here");
}

// --- kinds ---

static const struct {
    const char *key;
    element_reader read;
    int lists; // around an element
} kinds[] = {
    {"as_none", read_none, 0},
    {"as_tensor", tare__pt2_value_named, 0},
    {"as_tensors", tare__pt2_value_named, 1},
    {"as_nested_tensors", tare__pt2_value_named, 2},
    {"as_optional_tensor", tare__pt2_argument, 0},
    {"as_optional_tensors", tare__pt2_argument, 1},
    {"as_int", read_int, 0},
    {"as_ints", read_int, 1},
    {"as_int_lists", read_int, 2},
    {"as_float", read_float, 0},
    {"as_floats", read_float, 1},
    {"as_float_lists", read_float, 2},
    {"as_bool", read_bool, 0},
    {"as_bools", read_bool, 1},
    {"as_string", read_string, 0},
    {"as_strings", read_string, 1},
    {"as_sym_int", read_symbolic, 0},
    {"as_sym_ints", read_symbolic, 1},
    {"as_sym_float", read_symbolic, 0},
    {"as_sym_floats", read_symbolic, 1},
    {"as_sym_bool", read_symbolic, 0},
    {"as_sym_bools", read_symbolic, 1},
    {"as_scalar_type", read_dtype, 0},
    {"as_layout", read_layout, 0},
    {"as_memory_format", read_memory_format, 0},
    {"as_device", read_device, 0},
    {"as_operator", read_operator, 0},
    {"as_graph", read_graph, 0},
};

static tare_status read_lists(const pt2_names *names, const json_at *at, element_reader read,
                              int lists, value *out) {
    if (lists == 0) return read(names, at, out);
    TARE_TRY(tare__json_expect(at, JSON_ARRAY, names->err));
    const size_t count = json_array_size(at->value);
    const value list = tare__value_sequence(names->memory, VALUE_LIST, (uint32_t)count);
    if (list.as.items == NULL && count > 0) return tare__out_of_memory(names->err);
    *out = list;
    for (size_t i = 0; i < count; i++) {
        const json_at item = tare__json_item(at, i);
        TARE_TRY(read_lists(names, &item, read, lists - 1, &list.as.items[i]));
    }
    return TARE_OK;
}

tare_status tare__pt2_argument(const pt2_names *names, const json_at *at, value *out) {
    const char *key = "";
    json_at body;
    TARE_TRY(tare__pt2_union(at, &key, &body, names->err));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].key, key) == 0)
            return read_lists(names, &body, kinds[i].read, kinds[i].lists, out);
    tare__json_fail(at, names->err, "arguments of the kind '%s' are not supported", key);
    return tare__hint(names->err, TARE_MALFORMED_FILE,
                      "custom objects and complex numbers are not read");
}
