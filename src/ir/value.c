// SPDX-License-Identifier: Apache-2.0
// Operations on values of any kind.
#include "ir/value.h"

#include <string.h>

bool tare__value_has_items(const value *v) {
    switch (v->kind) {
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_DICT:
    case VALUE_SLICE:
    case VALUE_SCALAR:
        return true;
    default:
        return false;
    }
}

bool tare__value_has_text(const value *v) {
    switch (v->kind) {
    case VALUE_STRING:
    case VALUE_LAYOUT:
    case VALUE_DEVICE:
    case VALUE_SYMBOL:
    case VALUE_TYPE:
        return true;
    default:
        return false;
    }
}

static bool items_equal(const value *a, const value *b) {
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (!tare__value_equal(&a->as.items[i], &b->as.items[i])) return false;
    return true;
}

bool tare__value_equal(const value *a, const value *b) {
    if (a->kind != b->kind) return false;
    if (tare__value_has_items(a)) return items_equal(a, b);
    if (tare__value_has_text(a)) return strcmp(a->as.text, b->as.text) == 0;
    switch (a->kind) {
    case VALUE_BOOL:
        return a->as.boolean == b->as.boolean;
    case VALUE_INT:
        return a->as.integer == b->as.integer;
    // Bitwise, so a NaN in an argument list equals itself, and 0.0 is not -0.0.
    case VALUE_FLOAT:
        // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
        return memcmp(&a->as.real, &b->as.real, sizeof a->as.real) == 0;
    case VALUE_NODE:
        return a->as.node == b->as.node;
    case VALUE_DTYPE:
        return a->as.dtype == b->as.dtype;
    case VALUE_QSCHEME:
        return a->as.qscheme == b->as.qscheme;
    case VALUE_TENSOR:
        return a->as.tensor == b->as.tensor;
    case VALUE_MODULE:
        return a->as.module == b->as.module;
    default:
        return true; // None, Ellipsis
    }
}

bool tare__value_number(const value *v, double *out) {
    switch (v->kind) {
    case VALUE_BOOL:
        *out = v->as.boolean;
        return true;
    case VALUE_INT:
        *out = (double)v->as.integer;
        return true;
    case VALUE_FLOAT:
        *out = v->as.real;
        return true;
    case VALUE_SCALAR:
        return v->count > 0 && tare__value_number(&v->as.items[0], out);
    default:
        return false;
    }
}

value tare__value_sequence(arena *a, value_kind kind, uint32_t count) {
    return (value){
        .kind = kind, .count = count, .as.items = tare__arena_array(a, count, sizeof(value))};
}

tare_status tare__value_copy(arena *a, const value *v, node *(*map)(void *user, node *n),
                             void *user, value *out, tare_error *err) {
    value copy = *v;
    if (tare__value_has_items(v)) {
        copy = tare__value_sequence(a, v->kind, v->count);
        if (!copy.as.items) return tare__out_of_memory(err);
        for (uint32_t i = 0; i < v->count; i++)
            TARE_TRY(tare__value_copy(a, &v->as.items[i], map, user, &copy.as.items[i], err));
    } else if (tare__value_has_text(v)) {
        copy.as.text = tare__arena_strdup(a, v->as.text);
        if (!copy.as.text) return tare__out_of_memory(err);
    } else if (v->kind == VALUE_NODE && map) {
        copy.as.node = map(user, v->as.node);
    }
    *out = copy;
    return TARE_OK;
}

void tare__value_each_node(const value *v, void (*visit)(void *user, node *n), void *user) {
    if (v->kind == VALUE_NODE) visit(user, v->as.node);
    if (!tare__value_has_items(v)) return;
    for (uint32_t i = 0; i < v->count; i++) tare__value_each_node(&v->as.items[i], visit, user);
}
