// SPDX-License-Identifier: Apache-2.0
// What the steps of float layers share: the chain that a step computes, and where it lies.
// Private to runtime/steps.
#ifndef RUNTIME_STEPS_LAYER_H
#define RUNTIME_STEPS_LAYER_H

#include "ops/layer_call.h"
#include "runtime/plan/steps.h"

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

/// Places; addend NOTHING: none. It may be y.
typedef struct layer_places {
    size_t x, y, addend;
    size_t bytes; // of y
} layer_places;
tare_status tare__layer_place(plan_builder *b, size_t head, const layer_chain *chain,
                              layer_places *out);

float_weights tare__layer_weights(const tare_tensor *w, const tare_tensor *bias,
                                  const folded_norm *folded);

/// Adds the step of a compiled layer, which is taken over, also by a failure. chain: its end's.
/// links: how many layers it computes.
tare_status tare__layer_add_step(plan_builder *b, size_t head, const layer_chain *chain,
                                 size_t links, float_layer *layer);
/// One layer without those that are computed with it.
tare_status tare__plan_single_layer(plan_builder *b, size_t head, const layer_chain *chain,
                                    bool *done);
/// Layers that are computed in bands together (steps/links.c).
tare_status tare__plan_links(plan_builder *b, size_t head, bool *done);

/// Layers of a single row or pixel, by kernels of ours (steps/single_row.c). *done false: it is
/// none.
tare_status tare__plan_row(plan_builder *b, size_t head, const layer_chain *chain, bool *done);

/// Transposed convolutions, as several ordinary ones (steps/transposed.c).
tare_status tare__plan_transposed(plan_builder *b, size_t head, const layer_chain *chain,
                                  bool *done);

#endif
