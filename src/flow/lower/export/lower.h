// SPDX-License-Identifier: Apache-2.0
// Lowering of converted programs, step by step. First every 8-bit quantize/dequantize pair becomes
// one of quantized tensors (torch.quantize_per_tensor, dequantize); then the operators between them
// take the quantized values directly.
// Private to flow/lower/export.
#ifndef FLOW_LOWER_EXPORT_LOWER_H
#define FLOW_LOWER_EXPORT_LOWER_H

#include "flow/export/steps.h"
#include "flow/lower/rewrite.h"
#include "flow/pack.h"

/// The parameters of the quantized values that a node returns.
typedef struct quantized_params {
    tare_dtype dtype; // qint8 or quint8; unset: the node returns no quantized values
    double scale;
    int64_t zero_point;
} quantized_params;

typedef struct lowering {
    pass *p;
    tare_engine engine;
    quantized_params *params; // by node id
    size_t capacity;
    bool has_tensors; // the file's own quantize nodes give quantized tensors; see
                      // tare__pt2e_lower_tensors
} lowering;

/// The parameters of a node's quantized values; NULL: it returns none.
const quantized_params *tare__quantized_given(const lowering *l, const node *n);
/// The parameters of the quantized values that a dequantize node reads; NULL: it is none.
const quantized_params *tare__quantized_behind(const lowering *l, const node *dequantize);
tare_status tare__note_quantized(lowering *l, const node *n, const quantized_params *params);
bool tare__quantized_params_equal(const quantized_params *a, const quantized_params *b);

/// The operators that follow a float result. A node is set only if it is the single reader.
typedef struct ending {
    node *relu;     // a ReLU, or an operator that is one for these quantized values; NULL: none
    node *clamp;    // an operator that only clamps (relu6, hardtanh, clamp); NULL: none
    node *quantize; // behind these; NULL: the value is read as floats
} ending;
ending tare__ending_of(lowering *l, const node *n);
/// The least and greatest quantized value within the bounds of a clamping operator (relu, relu6,
/// hardtanh, clamp); false if it is none, or its bounds are computed.
bool tare__quantized_bounds(lowering *l, node *bound, const quantized_params *params,
                            int64_t *least, int64_t *most);
/// Lets operator n, now an integer function, return the quantized values of e->quantize, which is
/// erased. So is the relu if `has_relu`; otherwise it, or the clamp, is applied to the quantized
/// values.
tare_status tare__end_in_quantized(lowering *l, node *n, const ending *e, bool has_relu);
/// Replaces an operator that writes its first input by the one that does not.
tare_status tare__write_nothing(lowering *l, node *n);
/// Packs the weights of a call. *out stays NULL unless the weight is an 8-bit constant that an
/// integer layer can have, and the bias a constant. x: the parameters of the quantized input; NULL:
/// it is dynamically quantized. Rounds as quantize does, or as the requested engine.
tare_status tare__lower_pack(lowering *l, const function_call *w, const quantized_params *x,
                             module **out);
/// Replaces a dequantize of an 8-bit constant with one reader by that of a quantized constant. No
/// effect on other nodes.
tare_status tare__lower_constant(lowering *l, node *dequantize);
/// Binds a tensor to the root under a free name {base}{N}, which lives as long as the graph.
tare_status tare__own_buffer(lowering *l, const char *base, tare_tensor *t, const char **name);
/// Makes n read the quantized values instead of their dequantize nodes.
tare_status tare__read_quantized(lowering *l, node *n);

/// Step: replaces dynamic quantization that is written as arithmetic by quantize operators.
tare_status tare__pt2e_join_chosen(lowering *l);
/// Step: replaces calls of modules and methods by calls of functions, and weights of reference
/// modules by dequantized constants. Programs of torch.export have neither.
tare_status tare__pt2e_lower_modules(lowering *l);
/// Step: replaces linear layers whose weights alone are quantized, as torchao's quantize_ writes
/// them, by modules with group-wise weights.
tare_status tare__pt2e_lower_grouped(lowering *l);
/// Step: moves per-channel scales between a convolution and depthwise convolutions into their
/// weights.
tare_status tare__pt2e_lower_channels(lowering *l);
/// Step: finds the parameters of quantized tensors from a file's own quantize nodes and constants,
/// and gives all of them one dtype: qint8 values are quint8 values minus 128.
tare_status tare__pt2e_lower_tensors(lowering *l);
/// Step: replaces 8-bit quantized_decomposed operators by those of quantized tensors.
tare_status tare__pt2e_lower_boundaries(lowering *l);
/// Step: merges quantize operators of a value with equal parameters.
tare_status tare__pt2e_merge_quantize(lowering *l);
/// Step: moves quantize operators before operators that only move values.
tare_status tare__pt2e_lift_quantize(lowering *l);
/// Step: moves dequantize operators behind operators that only move values if a reader takes
/// quantized values.
tare_status tare__pt2e_sink_dequantize(lowering *l);
/// Step: lowers convolutions and linear functions with a constant weight.
tare_status tare__pt2e_lower_layers(lowering *l);
/// Step: lowers linear functions with a dynamically quantized input, and quantized embeddings.
tare_status tare__pt2e_lower_dynamic(lowering *l);
/// Step: lowers quantized attention, and products of two quantized tensors with a float result.
tare_status tare__pt2e_lower_products(lowering *l);
/// Step: lowers all other operators between dequantize and quantize.
tare_status tare__pt2e_lower_operators(lowering *l);
/// Step: removes writes to tensors of the model without effect.
tare_status tare__pt2e_drop_dead_counters(lowering *l);
/// Step: turns clamps of a layer's quantized values into bounds of the layer.
tare_status tare__pt2e_bound_layers(lowering *l);
/// Step: records the reason for every operator that stays float.
tare_status tare__pt2e_explain_floats(lowering *l);

#endif
