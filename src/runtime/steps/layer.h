// SPDX-License-Identifier: Apache-2.0
// Shared by the steps of float layers: the chain that a step computes, and its buffers.
// Private to runtime/steps.
#ifndef RUNTIME_STEPS_LAYER_H
#define RUNTIME_STEPS_LAYER_H

#include "dnnl/float_layers.h"
#include "ops/layer_call.h"
#include "runtime/plan/records.h"

typedef struct layer_kind layer_kind;

/// A layer with its batch norm, functions and a residual addition.
typedef struct layer_chain {
    const layer_kind *kind;
    const plan_record *norm; // NULL: none
    float_epilogue epilogue;
    size_t addend, result; // values; addend NOTHING: none
    size_t next;           // the record of a layer that is computed with it; NOTHING: none
} layer_chain;
/// The layer of a record, and what follows it up to the next layer; false: it cannot be planned.
bool tare__layer_read(const plan_builder *b, size_t head, layer_chain *out);

/// A batch norm folded into a layer's weights; NULLs: there is none. The caller releases it.
typedef struct folded_norm {
    tare_tensor *weight, *bias;
} folded_norm;
/// Of a chain that has one, behind the layer of this call.
tare_status tare__layer_fold(const plan_builder *b, const op_call *layer, const layer_chain *chain,
                             folded_norm *out);
void tare__folded_norm_release(folded_norm *folded);

/// Buffers; addend NOTHING: none. It may be y.
typedef struct layer_buffers {
    size_t x, y, addend;
    size_t bytes; // of y
} layer_buffers;
tare_status tare__layer_assign_buffers(plan_builder *b, size_t head, const layer_chain *chain,
                                       layer_buffers *out);

float_weights tare__layer_weights(const tare_tensor *w, const tare_tensor *bias,
                                  const folded_norm *folded);

/// Adds the step of a compiled layer, which is taken over, also by a failure. chain: its end's.
/// links: how many layers it computes.
tare_status tare__layer_add_step(plan_builder *b, size_t head, const layer_chain *chain,
                                 size_t links, float_layer *layer);
/// How layers of this operator are compiled; NULL: it is none, or its weights are not constant.
const layer_kind *tare__layer_kind_of(const plan_record *r);
/// Is it a transposed convolution with constant weights? It adds no residual.
bool tare__layer_is_transposed(const plan_record *r);
/// Joins what follows the layer `*last` of a chain. The record that reads its end; *adds: it has a
/// residual.
size_t tare__layer_extend(plan_builder *b, size_t head, size_t *last, bool *adds);

#endif
