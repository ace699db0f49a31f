// SPDX-License-Identifier: Apache-2.0
// Writes arguments. The kind of a list is the first in torch's order that fits all of its items.
#include "io/pt2/write/argument.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/pt2/payload.h"

void tare__pt2_write_float(text *out, double d) {
    if (isnan(d))
        tare__text_append(out, "\"NaN\"");
    else if (isinf(d))
        tare__text_append(out, d > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    else
        tare__text_json_double(out, d);
}

static void write_name(text *out, const char *key, const char *name) {
    tare__text_printf(out, "{\"%s\": ", key);
    tare__text_json_string(out, name);
    tare__text_char(out, '}');
}

void tare__pt2_write_named(text *out, pt2_given g) {
    static const struct {
        const char *argument, *key;
    } kinds[] = {[PT2_TENSOR] = {"as_tensor", "name"},
                 [PT2_INT] = {"as_sym_int", "as_name"},
                 [PT2_FLOAT] = {"as_sym_float", "as_name"},
                 [PT2_BOOL] = {"as_sym_bool", "as_name"}};
    tare__text_printf(out, "{\"%s\": ", kinds[g.kind].argument);
    write_name(out, kinds[g.kind].key, g.name);
    tare__text_char(out, '}');
}

// --- elements ---

static const pt2_given *given(const pt2_scribe *w, const value *v) {
    return &w->given[v->as.node->id];
}

static bool is_node_of(const pt2_scribe *w, const value *v, pt2_kind kind) {
    return v->kind == VALUE_NODE && given(w, v)->kind == kind && given(w, v)->name != NULL;
}

static bool is_int(const pt2_scribe *w, const value *v) {
    (void)w;
    return v->kind == VALUE_INT;
}
static bool is_float(const pt2_scribe *w, const value *v) {
    (void)w;
    return v->kind == VALUE_FLOAT;
}
static bool is_bool(const pt2_scribe *w, const value *v) {
    (void)w;
    return v->kind == VALUE_BOOL;
}
static bool is_string(const pt2_scribe *w, const value *v) {
    (void)w;
    return v->kind == VALUE_STRING;
}
static bool is_sym_int(const pt2_scribe *w, const value *v) {
    return v->kind == VALUE_INT || is_node_of(w, v, PT2_INT);
}
static bool is_sym_float(const pt2_scribe *w, const value *v) {
    return v->kind == VALUE_FLOAT || is_node_of(w, v, PT2_FLOAT);
}
static bool is_sym_bool(const pt2_scribe *w, const value *v) {
    return v->kind == VALUE_BOOL || is_node_of(w, v, PT2_BOOL);
}
static bool is_tensor(const pt2_scribe *w, const value *v) {
    return is_node_of(w, v, PT2_TENSOR);
}
static bool is_optional_tensor(const pt2_scribe *w, const value *v) {
    return v->kind == VALUE_NONE || is_tensor(w, v);
}

static void write_plain(const pt2_scribe *w, const value *v) {
    if (v->kind == VALUE_INT)
        tare__text_printf(w->out, "%" PRId64, v->as.integer);
    else if (v->kind == VALUE_FLOAT)
        tare__pt2_write_float(w->out, v->as.real);
    else if (v->kind == VALUE_BOOL)
        tare__text_append(w->out, v->as.boolean ? "true" : "false");
    else
        tare__text_json_string(w->out, v->as.text);
}

// {"as_name": "n"} or {"as_int": 3}
static void write_symbolic(const pt2_scribe *w, const value *v) {
    if (v->kind == VALUE_NODE) {
        write_name(w->out, "as_name", given(w, v)->name);
        return;
    }
    tare__text_append(w->out, v->kind == VALUE_INT     ? "{\"as_int\": "
                              : v->kind == VALUE_FLOAT ? "{\"as_float\": "
                                                       : "{\"as_bool\": ");
    write_plain(w, v);
    tare__text_char(w->out, '}');
}

static void write_tensor(const pt2_scribe *w, const value *v) {
    write_name(w->out, "name", given(w, v)->name);
}

static void write_optional_tensor(const pt2_scribe *w, const value *v) {
    if (v->kind == VALUE_NONE)
        tare__text_append(w->out, "{\"as_none\": true}");
    else
        tare__pt2_write_named(w->out, *given(w, v));
}

// --- lists ---

typedef struct list_kind {
    const char *key;
    bool (*fits)(const pt2_scribe *w, const value *v);
    void (*write)(const pt2_scribe *w, const value *v);
    int lists; // around an element
    char of;   // the letter of its elements in signatures; 0: none
} list_kind;

static const list_kind list_kinds[] = {
    {"as_bools", is_bool, write_plain, 1, 'b'},
    {"as_ints", is_int, write_plain, 1, 'i'},
    {"as_floats", is_float, write_plain, 1, 'f'},
    {"as_strings", is_string, write_plain, 1, 's'},
    {"as_sym_ints", is_sym_int, write_symbolic, 1, 0},
    {"as_sym_floats", is_sym_float, write_symbolic, 1, 0},
    {"as_sym_bools", is_sym_bool, write_symbolic, 1, 0},
    {"as_tensors", is_tensor, write_tensor, 1, 'T'},
    {"as_nested_tensors", is_tensor, write_tensor, 2, 0},
    {"as_optional_tensors", is_optional_tensor, write_optional_tensor, 1, 0},
    {"as_int_lists", is_int, write_plain, 2, 0},
    {"as_float_lists", is_float, write_plain, 2, 0},
};

static bool all_fit(const pt2_scribe *w, const list_kind *kind, const value *v, int lists) {
    if (lists == 0) return kind->fits(w, v);
    if (!tare__value_is_list(v)) return false;
    for (uint32_t i = 0; i < v->count; i++)
        if (!all_fit(w, kind, &v->as.items[i], lists - 1)) return false;
    return true;
}

static void write_items(const pt2_scribe *w, const list_kind *kind, const value *v, int lists) {
    if (lists == 0) {
        kind->write(w, v);
        return;
    }
    tare__text_char(w->out, '[');
    for (uint32_t i = 0; i < v->count; i++) {
        if (i > 0) tare__text_append(w->out, ", ");
        write_items(w, kind, &v->as.items[i], lists - 1);
    }
    tare__text_char(w->out, ']');
}

static bool write_list(const pt2_scribe *w, const value *v, char list_of) {
    const char of = list_of != 0 ? list_of : 'T'; // torch's default for an empty list
    for (size_t i = 0; i < sizeof list_kinds / sizeof *list_kinds; i++) {
        const list_kind *kind = &list_kinds[i];
        if (v->count == 0 ? kind->of != of : !all_fit(w, kind, v, kind->lists)) continue;
        tare__text_printf(w->out, "{\"%s\": ", kind->key);
        write_items(w, kind, v, kind->lists);
        tare__text_char(w->out, '}');
        return true;
    }
    return false;
}

// --- others ---

static bool write_dtype(const pt2_scribe *w, tare_dtype dtype) {
    const int code = tare__pt2_dtype_code(dtype);
    tare__text_printf(w->out, "{\"as_scalar_type\": %d}", code);
    return code != 0;
}

// Layouts and memory formats are distinguished only by their names.
static bool write_layout(const pt2_scribe *w, const char *name) {
    enum { MOST_QUANTIZED = 8 };
    for (int code = 1; code < MOST_QUANTIZED; code++) {
        const char *layout = tare__pt2_layout(code), *format = tare__pt2_memory_format(code);
        const bool is_layout = layout != NULL && strcmp(layout, name) == 0;
        if (!is_layout && (format == NULL || strcmp(format, name) != 0)) continue;
        tare__text_printf(w->out, "{\"%s\": %d}", is_layout ? "as_layout" : "as_memory_format",
                          code);
        return true;
    }
    return false;
}

// "cuda:1"
static void write_device(const pt2_scribe *w, const char *name) {
    const size_t length = strcspn(name, ":");
    text type = {0};
    tare__text_append_n(&type, name, length);
    tare__text_append(w->out, "{\"as_device\": {\"type\": ");
    tare__text_json_string(w->out, tare__text_chars(&type));
    if (name[length] == ':')
        tare__text_printf(w->out, ", \"index\": %ld}}", strtol(name + length + 1, NULL, 10));
    else
        tare__text_append(w->out, ", \"index\": null}}");
    w->out->failed = w->out->failed || type.failed;
    tare__text_release(&type);
}

static void write_constant(const pt2_scribe *w, const char *key, const value *v) {
    tare__text_printf(w->out, "{\"%s\": ", key);
    write_plain(w, v);
    tare__text_char(w->out, '}');
}

static bool write_value(const pt2_scribe *w, const value *v, char list_of) {
    switch (v->kind) {
    case VALUE_NONE:
        tare__text_append(w->out, "{\"as_none\": true}");
        return true;
    case VALUE_BOOL:
        write_constant(w, "as_bool", v);
        return true;
    case VALUE_INT:
        write_constant(w, "as_int", v);
        return true;
    case VALUE_FLOAT:
        write_constant(w, "as_float", v);
        return true;
    case VALUE_STRING:
        write_constant(w, "as_string", v);
        return true;
    case VALUE_SCALAR:
        return v->count > 0 && write_value(w, &v->as.items[0], 0);
    case VALUE_TYPE:
        if (!tare__starts_with(v->as.text, "torch.ops.")) return false;
        write_constant(w, "as_operator", v);
        return true;
    case VALUE_DTYPE:
        return write_dtype(w, v->as.dtype);
    case VALUE_LAYOUT:
        return write_layout(w, v->as.text);
    case VALUE_DEVICE:
        write_device(w, v->as.text);
        return true;
    case VALUE_LIST:
    case VALUE_TUPLE:
        return write_list(w, v, list_of);
    default:
        return false;
    }
}

tare_status tare__pt2_write_argument(const pt2_scribe *w, const node *user, const value *v,
                                     char list_of) {
    if (v->kind == VALUE_NODE) {
        const pt2_given *g = given(w, v);
        if (g->kind == PT2_GRAPH && w->write_graph != NULL)
            return w->write_graph(w->user, v->as.node, w->out);
        if (g->name == NULL || g->kind == PT2_GRAPH)
            return tare__fail(w->err, TARE_UNSUPPORTED,
                              "node '%s' takes '%s' as a whole, but programs only name its items",
                              user->name, v->as.node->name);
        tare__pt2_write_named(w->out, *g);
        return tare__text_status(w->out, w->err);
    }
    if (!write_value(w, v, list_of))
        return tare__fail(w->err, TARE_UNSUPPORTED,
                          "node '%s' has an argument that programs cannot hold", user->name);
    return tare__text_status(w->out, w->err);
}
