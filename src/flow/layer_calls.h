// SPDX-License-Identifier: Apache-2.0
// What passes ask of the functions that exported programs call: which are layers, which normalize,
// which write or check something.
#ifndef FLOW_LAYER_CALLS_H
#define FLOW_LAYER_CALLS_H

#include "model/pass.h"
#include "ops/op.h"

/// The row of a convolution or linear function that an exported program calls; NULL: the node is
/// none.
const op_info *tare__layer_call(const node *n);
/// The module class that computes the same.
const module_class *tare__layer_class(const pass *p, const op_info *layer);
/// The convolutions that torch trains with their batch norm, in its order.
enum { TRAINED_LAYER_COUNT = 4 };
extern const op_id tare__trained_layers[TRAINED_LAYER_COUNT];
/// Is it a call of this one of them? One that pads by a word is none.
bool tare__is_trained_layer(const node *n, op_id layer);
/// "conv2d" of "torch.ops.aten.conv2d.default": what torch's rewriter calls its nodes by. NULL: out
/// of memory.
const char *tare__packet_name(arena *memory, const char *function);
/// A copy of a convolution's call before a node, under that name, which reads this weight and bias
/// (NULL: none).
tare_status tare__copy_layer(pass *p, const node *layer, node *weight, node *bias, node *before,
                             node **out);
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
