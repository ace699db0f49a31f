// SPDX-License-Identifier: Apache-2.0
// Checks the shapes of modules' tensors against a table of expected shapes.
#include "ops/classes/module_check.h"

#include <stdio.h>
#include <string.h>

// A tensor of an operator family. sizes: config keys, outermost dimension first, separated by '|'.
// "a/b" is the value of a divided by that of b. A key whose value is a sequence stands for as many
// dimensions.
typedef struct tensor_rule {
    const char *op, *name, *sizes;
    bool is_required;
} tensor_rule;

static const tensor_rule rules[] = {
#define TENSOR(...) {__VA_ARGS__},
#include "ops/rows/rows.def"
};

// --- expected shapes ---

enum { ANY_SIZE = -1 };

typedef struct expected_shape {
    int ndim;
    int64_t size[TARE_MAX_DIMS]; // or ANY_SIZE
} expected_shape;

static tare_status bad_value(const module *m, const char *key, tare_error *err) {
    return tare__fail(err, TARE_INVALID_ARGUMENT, "%s: '%s' is not a size", m->class->name, key);
}

static bool add_size(expected_shape *e, int64_t size) {
    if (e->ndim == TARE_MAX_DIMS || size < ANY_SIZE) return false;
    e->size[e->ndim++] = size;
    return true;
}

// The value of a key: an int, or a sequence of ints. An int kernel applies to all dimensions.
static tare_status add_value(const module *m, const char *key, expected_shape *e, tare_error *err) {
    const value *v = tare__module_config(m, key);
    const bool is_list = v != NULL && (v->kind == VALUE_LIST || v->kind == VALUE_TUPLE);
    const bool repeats = !is_list && strcmp(key, "kernel_size") == 0;
    const uint32_t count = is_list ? v->count : repeats ? (uint32_t)m->class->dims : 1;
    for (uint32_t i = 0; i < count; i++) {
        const value *item = is_list ? &v->as.items[i] : v;
        if (item != NULL && item->kind != VALUE_INT) return bad_value(m, key, err);
        if (!add_size(e, item != NULL ? item->as.integer : ANY_SIZE)) return bad_value(m, key, err);
    }
    return TARE_OK;
}

static tare_status divide(const module *m, const char *key, expected_shape *e, tare_error *err) {
    const int64_t divisor = tare__module_int(m, key, 1);
    int64_t *size = &e->size[e->ndim - 1];
    if (divisor < 1 || (*size > 0 && *size % divisor != 0)) return bad_value(m, key, err);
    if (*size > 0) *size /= divisor;
    return TARE_OK;
}

static tare_status expect(const module *m, const char *sizes, expected_shape *e, tare_error *err) {
    *e = (expected_shape){0};
    for (const char *at = sizes; *at != '\0';) {
        const int length = (int)strcspn(at, "|"), whole = (int)strcspn(at, "|/");
        char key[32];
        snprintf(key, sizeof key, "%.*s", whole, at);
        TARE_TRY(add_value(m, key, e, err));
        if (whole < length) {
            snprintf(key, sizeof key, "%.*s", length - whole - 1, at + whole + 1);
            if (e->ndim > 0) TARE_TRY(divide(m, key, e, err));
        }
        at += length + (at[length] == '|' ? 1 : 0);
    }
    return TARE_OK;
}

// --- tensors ---

static bool fits(const tare_tensor *t, const expected_shape *e) {
    if (t->ndim != e->ndim) return false;
    for (int d = 0; d < e->ndim; d++)
        if (e->size[d] != ANY_SIZE && t->shape[d] != e->size[d]) return false;
    return true;
}

// Unknown sizes appear as -1 in messages.
static tare_status check_tensor(const module *m, const char *name, const expected_shape *e,
                                bool is_required, tare_error *err) {
    const tare_tensor *t = tare__module_tensor(m, name);
    char wanted[200], found[200];
    tare__shape_text(e->ndim, e->size, wanted, sizeof wanted);
    if (t == NULL && !is_required) return TARE_OK;
    if (t == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "%s: expected a tensor '%s' of shape %s",
                          m->class->name, name, wanted);
    if (!tare__dtype(t->dtype)->is_float)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "%s: expected floats as '%s', found %s",
                          m->class->name, name, tare_dtype_name(t->dtype));
    if (fits(t, e)) return TARE_OK;
    tare__shape_text(t->ndim, t->shape, found, sizeof found);
    return tare__fail(err, TARE_INVALID_ARGUMENT, "%s: expected '%s' of shape %s, found %s",
                      m->class->name, name, wanted, found);
}

// --- recurrent modules: a set of four tensors per layer and direction ---

static tare_status check_gates(const module *m, const char *suffix, int64_t gates, int64_t inner,
                               tare_error *err) {
    static const char *const kinds[] = {"ih", "hh"};
    const int64_t hidden = tare__module_int(m, "hidden_size", ANY_SIZE);
    const int64_t width = hidden == ANY_SIZE ? ANY_SIZE : gates * hidden;
    for (int i = 0; i < 2; i++) {
        char name[64];
        const expected_shape weight = {2, {width, i == 0 ? inner : hidden}}, bias = {1, {width}};
        snprintf(name, sizeof name, "weight_%s%s", kinds[i], suffix);
        TARE_TRY(check_tensor(m, name, &weight, true, err));
        snprintf(name, sizeof name, "bias_%s%s", kinds[i], suffix);
        TARE_TRY(check_tensor(m, name, &bias, false, err));
    }
    return TARE_OK;
}

static tare_status check_recurrent(const module *m, int64_t gates, bool is_cell, tare_error *err) {
    const int64_t hidden = tare__module_int(m, "hidden_size", ANY_SIZE);
    const int64_t inner = tare__module_int(m, "input_size", ANY_SIZE);
    const int64_t layers = is_cell ? 1 : tare__module_int(m, "num_layers", 1);
    const int directions = !is_cell && tare__module_bool(m, "bidirectional", false) ? 2 : 1;
    if (hidden < ANY_SIZE || hidden > INT32_MAX || inner < ANY_SIZE || layers < 1)
        return bad_value(m, "hidden_size, input_size or num_layers", err);
    if (tare__module_int(m, "proj_size", 0) != 0) return TARE_OK; // refused where it runs
    for (int64_t i = 0; i < layers * directions; i++) { // ends with the first missing tensor
        char suffix[40] = "";
        const int64_t layer = i / directions;
        if (!is_cell)
            snprintf(suffix, sizeof suffix, "_l%lld%s", (long long)layer,
                     i % directions != 0 ? "_reverse" : "");
        const int64_t before = layer == 0           ? inner
                               : hidden == ANY_SIZE ? ANY_SIZE
                                                    : hidden * directions;
        TARE_TRY(check_gates(m, suffix, gates, before, err));
    }
    return TARE_OK;
}

static const struct {
    const char *op;
    int64_t gates;
    bool is_cell;
} recurrent[] = {
    {"lstm", 4, false},    {"gru", 3, false},     {"lstm_cell", 4, true},
    {"gru_cell", 3, true}, {"rnn_cell", 1, true}, {"rnn", 1, false},
};

// --- what torch's constructors refuse ---

// The reference of transposed convolutions always pads with zeros, whereas kernels would apply
// another mode.
static tare_status check_padding_mode(const module *m, tare_error *err) {
    const value *mode = tare__module_config(m, "padding_mode");
    if (mode == NULL || (mode->kind == VALUE_STRING && strcmp(mode->as.text, "zeros") == 0))
        return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT, "%s: expected padding_mode 'zeros', found %s",
                      m->class->name, mode->kind == VALUE_STRING ? mode->as.text : "no text");
}

// --- entry points ---

tare_status tare__operator_module_check(const module *m, tare_error *err) {
    const char *op = m->class->op != NULL ? m->class->op : "";
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const tensor_rule *rule = &rules[i];
        expected_shape e;
        if (strcmp(rule->op, op) != 0) continue;
        TARE_TRY(expect(m, rule->sizes, &e, err));
        TARE_TRY(check_tensor(m, rule->name, &e, rule->is_required, err));
    }
    if (strcmp(op, "conv_transpose") == 0) TARE_TRY(check_padding_mode(m, err));
    for (size_t i = 0; i < sizeof recurrent / sizeof *recurrent; i++)
        if (strcmp(recurrent[i].op, op) == 0)
            return check_recurrent(m, recurrent[i].gates, recurrent[i].is_cell, err);
    return TARE_OK;
}

tare_status tare__sequence_module_check(const module *m, tare_error *err) {
    if (m->class->role != ROLE_FUSED || m->child_count > 0) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT, "%s: expected the fused modules as children",
                      m->class->name);
}
