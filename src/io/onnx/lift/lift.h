// SPDX-License-Identifier: Apache-2.0
// Turns the draft into a model: which function a call was by its scope (lift/spelling.c), which
// calls were modules (lift/choose.c), what such a module holds (lift/module.c), and the graph with
// torch's names (lift.c).
// Private to io/onnx/lift.
#ifndef IO_ONNX_LIFT_LIFT_H
#define IO_ONNX_LIFT_LIFT_H

#include "io/onnx/read/state.h"

typedef struct lift {
    onnx_import *in;
    module *root; // root of the model
    graph *g;
    node **mapped; // by node id of the draft; NULL: not created yet, or inside a module
    map calls;     // path as written -> number of calls in that scope and below
    size_t constant_count;
    arena scratch;
    tare_error *err;
} lift;

/// The module of a call of the draft.
typedef struct lift_choice {
    const module_class *class; // NULL: it is a function
    const char *path;
} lift_choice;

/// The operator row of n; NULL for calls of modules.
const op_info *tare__lift_row(const node *n);
/// The argument of n for parameter i of its row; NULL if it is not given.
const value *tare__lift_param(const node *n, const op_info *op, size_t i);
/// The constant that an argument reads; NULL if it is none. *c describes it.
tare_tensor *tare__lift_constant(const lift *l, const value *v);

tare_status tare__lift_count_calls(lift *l);
/// True if no other call is in the scope or below it. Requires tare__lift_count_calls.
bool tare__lift_is_alone(const lift *l, const onnx_scope *scope);
/// Where ONNX has one operator for several functions of torch, restores the function that was
/// called.
tare_status tare__lift_respell(lift *l);
tare_status tare__lift_choose(lift *l, const node *n, lift_choice *out);
/// Finds or creates the module and adds it to the tree; *path is where. A module with equal content
/// at that path is the same module, called again.
tare_status tare__lift_bind(lift *l, const node *n, const lift_choice *choice, const char **path);

#endif
