// SPDX-License-Identifier: Apache-2.0
// From the draft to the model: which function a call was by its scope (lift/spelling.c), which
// calls were modules (lift/choose.c), what such a module holds (lift/module.c), and the graph with
// torch's names (lift.c).
// Private to io/onnx/lift.
#ifndef IO_ONNX_LIFT_LIFT_H
#define IO_ONNX_LIFT_LIFT_H

#include "io/onnx/read/state.h"

typedef struct lift {
    onnx_import *in;
    module *root; // of the model
    graph *g;
    node **mapped; // by id of the draft; NULL: not there yet, or inside of a module
    map calls;     // path as written -> how many calls stand in that scope and below
    size_t constant_count;
    arena scratch;
    tare_error *err;
} lift;

/// The module that a call of the draft was.
typedef struct lift_choice {
    const module_class *class; // NULL: it was a function
    const char *path;
} lift_choice;

/// The row that computes n; NULL for calls of modules.
const op_info *tare__lift_row(const node *n);
/// The argument of n for parameter i of its row; NULL where it is not given.
const value *tare__lift_param(const node *n, const op_info *op, size_t i);
/// The constant that an argument reads; NULL where it is none. *c says which.
tare_tensor *tare__lift_constant(const lift *l, const value *v);

tare_status tare__lift_count_calls(lift *l);
/// Does nothing else stand in the scope, nor below it? After tare__lift_count_calls.
bool tare__lift_is_alone(const lift *l, const onnx_scope *scope);
/// Gives calls that ONNX has one operator for the function that torch called.
tare_status tare__lift_respell(lift *l);
tare_status tare__lift_choose(lift *l, const node *n, lift_choice *out);
/// Finds or makes the module, and binds it: *path becomes where it stands. A module with the same
/// content that stands there already is the same one, called again.
tare_status tare__lift_bind(lift *l, const node *n, const lift_choice *choice, const char **path);

#endif
