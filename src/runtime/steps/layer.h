// SPDX-License-Identifier: Apache-2.0
// Shared by the steps of float layers: the chain that a step computes, and its buffers.
// Private to runtime/steps.
#ifndef RUNTIME_STEPS_LAYER_H
#define RUNTIME_STEPS_LAYER_H

#include "dnnl/float_layers.h"
#include "ops/layer_call.h"
#include "runtime/plan/records.h"

typedef struct layer_kind layer_kind;

/// A layer with its batch norm, activations and residual addition.
typedef struct layer_chain {
    const layer_kind *kind;
    const plan_record *norm; // NULL: none
    float_epilogue epilogue;
    size_t addend, result; // values; addend NOTHING: none
    size_t next;           // the record of a second layer in the same step; NOTHING: none
} layer_chain;
/// Reads the layer of a record and the chain up to the next layer; false if it cannot be planned.
bool tare__layer_read(const plan_builder *b, size_t head, layer_chain *out);

/// Weights with a batch norm folded in; NULLs: there is none. The caller releases them.
typedef struct folded_norm {
    tare_tensor *weight, *bias;
} folded_norm;
/// Folds the batch norm of a chain into the weights of this call.
tare_status tare__layer_fold(const plan_builder *b, const op_call *layer, const layer_chain *chain,
                             folded_norm *out);
void tare__folded_norm_release(folded_norm *folded);

/// Buffers of the step; addend NOTHING: none. addend may equal y.
typedef struct layer_buffers {
    size_t x, y, addend;
    size_t bytes; // of y
} layer_buffers;
tare_status tare__layer_assign_buffers(plan_builder *b, size_t head, const layer_chain *chain,
                                       layer_buffers *out);

float_weights tare__layer_weights(const tare_tensor *w, const tare_tensor *bias,
                                  const folded_norm *folded);

/// Adds the step of a compiled layer, and takes the layer over, also on failure. chain: the last
/// one. links: the number of layers in the step.
tare_status tare__layer_add_step(plan_builder *b, size_t head, const layer_chain *chain,
                                 size_t links, float_layer *layer);
/// How layers of this operator are compiled; NULL: it is no layer, or its weights are not constant.
const layer_kind *tare__layer_kind_of(const plan_record *r);
/// True for a transposed convolution with constant weights, which has no residual addition.
bool tare__layer_is_transposed(const plan_record *r);
/// Adds the records that follow the layer `*last` to its chain. Returns the reader of the chain's
/// result; *adds: the chain has a residual addition.
size_t tare__layer_extend(plan_builder *b, size_t head, size_t *last, bool *adds);

#endif
