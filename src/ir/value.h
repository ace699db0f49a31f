// SPDX-License-Identifier: Apache-2.0
// Values in argument lists: constants, nodes, and containers of them. At run time the same type is
// used for results (VALUE_TENSOR instead of VALUE_NODE).
#ifndef IR_VALUE_H
#define IR_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/memory/arena.h"
#include "core/tensor/tensor.h"

typedef struct node node;
struct module;

typedef enum value_kind {
    VALUE_NONE = 0,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_FLOAT,
    VALUE_STRING,
    VALUE_NODE,
    VALUE_LIST,  // items
    VALUE_TUPLE, // items
    VALUE_DICT,  // items: key, value, key, value, ..
    VALUE_SLICE, // items: start, stop, step
    VALUE_ELLIPSIS,
    VALUE_DTYPE,
    VALUE_QSCHEME,
    VALUE_LAYOUT, // text: "torch.channels_last"
    VALUE_DEVICE, // text: "cpu"
    VALUE_SYMBOL, // text: "s0"
    VALUE_TYPE,   // text: "torch.nn.Linear"
    VALUE_SCALAR, // a one-element tensor constant: items[0] is the number, items[1] its dtype
    VALUE_TENSOR, // run time only
    VALUE_MODULE, // run time only: a get_attr of packed weights
} value_kind;

typedef struct value {
    value_kind kind;
    uint32_t count; // of items
    union {
        bool boolean;
        int64_t integer;
        double real;
        const char *text; // NUL-terminated, in the owner's arena
        node *node;
        struct value *items; // in the owner's arena
        tare_dtype dtype;
        tare_qscheme qscheme;
        tare_tensor *tensor;         // not reference-counted unless stated otherwise
        const struct module *module; // lent by the module tree that is run
    } as;
} value;

static inline value tare__none(void) {
    return (value){.kind = VALUE_NONE};
}
static inline value tare__bool(bool b) {
    return (value){.kind = VALUE_BOOL, .as.boolean = b};
}
static inline value tare__int(int64_t i) {
    return (value){.kind = VALUE_INT, .as.integer = i};
}
static inline value tare__float(double d) {
    return (value){.kind = VALUE_FLOAT, .as.real = d};
}
static inline value tare__string(const char *s) {
    return (value){.kind = VALUE_STRING, .as.text = s};
}
static inline value tare__node_value(node *n) {
    return (value){.kind = VALUE_NODE, .as.node = n};
}
static inline value tare__dtype_value(tare_dtype d) {
    return (value){.kind = VALUE_DTYPE, .as.dtype = d};
}

/// True for kinds whose `items` are values.
bool tare__value_has_items(const value *v);
static inline bool tare__value_is_list(const value *v) { // or a tuple
    return v->kind == VALUE_LIST || v->kind == VALUE_TUPLE;
}
/// True for kinds that use `text`.
bool tare__value_has_text(const value *v);
bool tare__value_equal(const value *a, const value *b); // 1 != 1.0 != True; nodes by identity
/// The number in a bool, int, float or scalar; false for other kinds.
bool tare__value_number(const value *v, double *out);

/// A deep copy into `a`; map(user, n) replaces every node n, unless map is NULL.
tare_status tare__value_copy(arena *a, const value *v, node *(*map)(void *user, node *n),
                             void *user, value *out, tare_error *err);
/// Calls visit for every node inside v, from left to right, including those in containers.
void tare__value_each_node(const value *v, void (*visit)(void *user, node *n), void *user);
/// A list or tuple of `count` items in `a`; items is NULL if out of memory.
value tare__value_sequence(arena *a, value_kind kind, uint32_t count);

#endif
