// SPDX-License-Identifier: Apache-2.0
// The kinds of steps that a plan may have beside calls, and what chains they are made of.
#ifndef RUNTIME_PLAN_STEPS_H
#define RUNTIME_PLAN_STEPS_H

#include "dnnl/float_layers.h"
#include "ops/families/element.h"
#include "ops/quantized/dynamic.h"
#include "runtime/plan/build.h"

/// What a chain of bands has behind its layer, at most (plan/chain.c joins no more).
enum { MOST_BAND_OPS = 8 };

/// The planner of a record that computes on floats alone; NULL: it is a call.
chain_planner tare__plan_float_planner(const plan_record *r);

/// One loop of one operand, or of two, with nothing else to be told (plan/chain.c).
bool tare__plan_is_element(const plan_record *r);
bool tare__plan_is_binary(const plan_record *r);
/// The sum of two different values of one shape.
bool tare__plan_is_sum(const plan_builder *b, const plan_record *r);

/// Moves a tensor from the other layout to `to` (steps/reorder.c).
extern const step_class tare__reorder_class;
tare_status tare__reorder_state(plan_builder *b, const tare_tensor *t, plan_layout to, size_t from,
                                size_t place, void **out);

/// Tensors joined in the plain layout (steps/cat.c).
tare_status tare__plan_plain_cat(plan_builder *b, size_t head, bool *done);

/// What only moves elements by a box of steps (steps/copy.c).
bool tare__plan_is_copy(const plan_record *r);
tare_status tare__plan_copy(plan_builder *b, size_t head, bool *done);

/// Does it make floats of byte codes (steps/quantized_elements.c)?
bool tare__plan_is_dequantize(const plan_builder *b, const plan_record *r);
/// A step from floats to codes or back, `x` to `y`, in the layout at hand
/// (steps/quantized_elements.c). n NULL: the step behind it says for which node.
tare_status tare__plan_convert(plan_builder *b, size_t x, size_t y, const node *n);
/// What is computed through floats: their steps, between such conversions (steps/through_float.c).
tare_status tare__plan_through_float(plan_builder *b, size_t head, bool *done);

/// Rows of a table, of floats and of codes, and bags of them (steps/embedding.c).
tare_status tare__plan_embedding(plan_builder *b, size_t head, bool *done);
tare_status tare__plan_embedding_bag(plan_builder *b, size_t head, bool *done);

/// An observer that hands its input on (steps/observe.c).
tare_status tare__plan_observe(plan_builder *b, size_t head, bool *done);

/// Convolution or linear with what follows it, by a library's kernels (steps/layer.c).
tare_status tare__plan_layer(plan_builder *b, size_t head, bool *done);
/// How layers of this operator are compiled; NULL: it is none, or its weights are not constant.
struct layer_kind;
const struct layer_kind *tare__plan_layer_kind(const plan_record *r);
/// Is it a transposed convolution with constant weights? It adds no residual.
bool tare__plan_layer_is_transposed(const plan_record *r);
/// Is the convolution `next`, which reads record `last`, better computed in bands with the one that
/// `last` belongs to (steps/links.c)?
bool tare__plan_is_link(const plan_builder *b, size_t layer, size_t last, size_t next);
/// Can a layer apply it to its result?
bool tare__plan_has_epilogue(const plan_record *r);

/// The loop of an operator that tare__plan_is_element accepts, and its parameters; false: none
/// (steps/elements.c).
bool tare__plan_element_loop(const plan_builder *b, const plan_record *r, element_loop *loop,
                             float p[ELEMENT_MAX_PARAMETERS]);
/// Elements of floats, or a number, where a mask says so, and others elsewhere (steps/elements.c).
bool tare__plan_is_choice(const plan_builder *b, const plan_record *r);
/// Elementwise operators in a row (steps/elements.c).
tare_status tare__plan_elements(plan_builder *b, size_t head, bool *done);

/// Pooling, means over pixels and joined channels of tensors that lie channels last
/// (steps/pixels.c).
tare_status tare__plan_pool(plan_builder *b, size_t head, bool *done);
tare_status tare__plan_mean(plan_builder *b, size_t head, bool *done);
/// Is it a mean over all dimensions but the first two of x, in the dtype of x?
bool tare__plan_is_over_pixels(const plan_record *r, const tare_tensor *x);
tare_status tare__plan_cat(plan_builder *b, size_t head, bool *done);
/// Norms and softmax over the last dimension (steps/rows.c).
tare_status tare__plan_layer_norm(plan_builder *b, size_t head, bool *done);
tare_status tare__plan_softmax(plan_builder *b, size_t head, bool *done);
tare_status tare__plan_log_softmax(plan_builder *b, size_t head, bool *done);
tare_status tare__plan_rms_norm(plan_builder *b, size_t head, bool *done);
/// Batch norms outside of layers, of floats and of codes (steps/batch_norm.c).
tare_status tare__plan_batch_norm(plan_builder *b, size_t head, bool *done);
tare_status tare__plan_code_batch_norm(plan_builder *b, size_t head, bool *done);
/// Resizing, of floats and of codes (steps/resize.c).
tare_status tare__plan_resize(plan_builder *b, size_t head, bool *done);
tare_status tare__plan_code_resize(plan_builder *b, size_t head, bool *done);
/// Norms over groups of channels (steps/group_norm.c).
tare_status tare__plan_group_norm(plan_builder *b, size_t head, bool *done);
tare_status tare__plan_instance_norm(plan_builder *b, size_t head, bool *done);
/// Attention, with the transpositions around it (steps/attention.c).
tare_status tare__plan_attention(plan_builder *b, size_t head, bool *done);
/// The same where it is written out, from the product of queries and keys on (steps/scores.c).
tare_status tare__plan_scores(plan_builder *b, size_t head, bool *done);
/// The same, or a product that stands alone (steps/matmul.c).
tare_status tare__plan_matmul(plan_builder *b, size_t head, bool *done);
/// The records that follow such a product, in order; 0: it begins no attention.
size_t tare__plan_written_attention(const plan_builder *b, size_t head, size_t chain[5]);
/// The record that alone reads what this one makes, if it computes on floats alone and is in no
/// chain; else NOTHING (plan/chain.c).
size_t tare__plan_only_reader(const plan_builder *b, size_t record);
/// Is it a transposition that swaps heads and length: dimensions 1 and 2 of 4?
bool tare__plan_swaps_heads(const plan_builder *b, const plan_record *r);

// --- codes ---

/// The planner of a record that reads or gives byte codes; NULL: it is a call.
chain_planner tare__plan_code_planner(const plan_builder *b, const plan_record *r);
/// The tensor that such a record reads first; NULL: none.
const tare_tensor *tare__plan_code_input(const plan_record *r);
/// The table of a function of one code; *known false: it is none.
tare_status tare__plan_code_table(plan_builder *b, const plan_record *r, uint8_t table[],
                                  bool *known);
/// Is it a quantized linear layer or convolution?
bool tare__plan_is_code_layer(const plan_record *r);
/// A sum of two tensors of codes and of its own shape; where one is a constant that is repeated, it
/// is a function of the other's codes.
bool tare__plan_is_sum_of_codes(const plan_builder *b, const plan_record *r);
/// Such layers, with a sum that follows (steps/quantized_layer.c).
tare_status tare__plan_code_layer(plan_builder *b, size_t head, bool *done);
/// Codes of floats whose range is found in the run, and the numbers that it gives them: unsigned
/// ones, 128 higher where the layer's are signed. Layers that ask for the same share them
/// (steps/dynamic.c).
typedef struct dynamic_input {
    double scale;
    int32_t zero_point;
} dynamic_input;
tare_status tare__plan_dynamic_codes(plan_builder *b, const plan_record *layer,
                                     const dynamic_weights *w, size_t x, size_t *codes,
                                     size_t *input);
/// Is it a linear layer that quantizes its input on the fly, by weights that kernels take?
bool tare__plan_is_dynamic_layer(const plan_record *r);
/// Linear layers whose floats go on in bands of rows, as far as `next` is what a band can do
/// (steps/quantized_band.c).
bool tare__plan_begins_bands(const plan_builder *b, const plan_record *r);
bool tare__plan_goes_on_in_bands(const plan_builder *b, size_t before, size_t next);
tare_status tare__plan_code_bands(plan_builder *b, size_t head, bool *done);
/// Between floats and codes, sums and products of codes, and functions of one code
/// (steps/quantized_elements.c).
tare_status tare__plan_codes(plan_builder *b, size_t head, bool *done);
/// Softmax of lines of codes (steps/quantized_softmax.c).
tare_status tare__plan_code_softmax(plan_builder *b, size_t head, bool *done);
/// Products of two tensors of codes (steps/quantized_matmul.c).
tare_status tare__plan_code_matmul(plan_builder *b, size_t head, bool *done);
/// Greatest codes and averages of windows, and of all pixels (steps/quantized_pool.c).
tare_status tare__plan_code_pool(plan_builder *b, size_t head, bool *done);
tare_status tare__plan_code_mean(plan_builder *b, size_t head, bool *done);
/// Joined channels of codes (steps/quantized_cat.c).
tare_status tare__plan_code_cat(plan_builder *b, size_t head, bool *done);

#endif
