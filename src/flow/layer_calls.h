// SPDX-License-Identifier: Apache-2.0
// What passes ask of the functions that exported programs call: which are layers, which normalize,
// which write or check something.
#ifndef FLOW_LAYER_CALLS_H
#define FLOW_LAYER_CALLS_H

#include "model/pass.h"

/// A convolution or linear function of exported programs, from the table in layer_calls.c.
typedef struct layer_call {
    const char *target;     // "torch.ops.aten.conv2d.default"
    const char *class_name; // of the module that computes the same
    int dims;               // spatial dimensions; 0: linear
    bool is_transposed;
} layer_call;
/// NULL: the node is none.
const layer_call *tare__layer_call(const node *n);
/// The batch norm functions. *eps_index: where the argument stands; *is_plain: one output, and a
/// `training` argument.
bool tare__is_batch_norm_call(const node *n, size_t *eps_index, bool *is_plain);
/// Does the graph hold a batch norm?
bool tare__has_batch_norm(const pass *p);
/// The first node after n that reads it; NULL: none.
node *tare__first_user(const node *n);

/// Erases nodes without users, but those with effects: writes in place, guards.
tare_status tare__pt2e_eliminate_dead(pass *p);
/// "torch.ops.aten.add_.Tensor": an operator that writes its first argument.
bool tare__writes_first_argument(const node *n);
/// Does it write, or check something? Such a call stays though nobody reads its result.
bool tare__has_effect(const node *n);
/// The node's value is several tensors.
tare_status tare__has_many_values(const node *n, bool *out, tare_error *err);

#endif
