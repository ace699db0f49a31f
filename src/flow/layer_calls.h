// SPDX-License-Identifier: Apache-2.0
// Classifies the functions that exported programs call: which are layers, which normalize, which
// write or check something.
#ifndef FLOW_LAYER_CALLS_H
#define FLOW_LAYER_CALLS_H

#include "model/pass.h"
#include "ops/op.h"

/// The row of the convolution or linear function that the node calls; NULL: it calls neither.
const op_info *tare__layer_call(const node *n);
/// The module class that computes the same.
const module_class *tare__layer_class(const pass *p, const op_info *layer);
/// The convolutions that torch trains together with a batch norm, in its order.
enum { TRAINED_LAYER_COUNT = 4 };
extern const op_id tare__trained_layers[TRAINED_LAYER_COUNT];
/// True for a call of this one of them, unless it pads by a string.
bool tare__is_trained_layer(const node *n, op_id layer);
/// "conv2d" for "torch.ops.aten.conv2d.default": the prefix of node names in torch's rewriter.
/// NULL: out of memory.
const char *tare__packet_name(arena *memory, const char *function);
/// Copies a convolution's call before a node, under that name, with this weight and bias (NULL:
/// none).
tare_status tare__copy_layer(pass *p, const node *layer, node *weight, node *bias, node *before,
                             node **out);
/// Recognizes batch norm functions. *eps_index: index of the argument; *is_plain: it has one output
/// and a `training` argument.
bool tare__is_batch_norm_call(const node *n, size_t *eps_index, bool *is_plain);
/// True if the graph contains a batch norm.
bool tare__has_batch_norm(const pass *p);
/// The first user of n after it; NULL: none.
node *tare__first_user(const node *n);

/// Erases nodes without users, except those with effects: in-place writes, guards.
tare_status tare__pt2e_eliminate_dead(pass *p);
/// True for "torch.ops.aten.add_.Tensor": an operator that writes its first argument.
bool tare__writes_first_argument(const node *n);
/// True if the call writes or checks something, so that it stays even if its result is not used.
bool tare__has_effect(const node *n);
/// Whether the node returns several tensors.
tare_status tare__has_many_values(const node *n, bool *out, tare_error *err);

#endif
