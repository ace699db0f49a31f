// SPDX-License-Identifier: Apache-2.0
// Lowering of converted programs, step by step. First every pair of quantize and dequantize that
// holds bytes becomes one of quantized tensors (torch.quantize_per_tensor, dequantize); then the
// operators between them take the quantized values themselves.
// Private to flow/lower/export.
#ifndef FLOW_LOWER_EXPORT_LOWER_H
#define FLOW_LOWER_EXPORT_LOWER_H

#include "flow/export/steps.h"
#include "flow/lower/rewrite.h"
#include "flow/pack.h"

/// What the quantized values that a node gives stand for.
typedef struct quantized_params {
    tare_dtype dtype; // qint8 or quint8; unset: the node gives no quantized values
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

/// What a node's quantized values stand for; NULL: it gives none.
const quantized_params *tare__quantized_given(const lowering *l, const node *n);
/// What a node reads as floats that were quantized values: the parameters of what it dequantizes;
/// NULL: it is no dequantize of quantized values.
const quantized_params *tare__quantized_behind(const lowering *l, const node *dequantize);
tare_status tare__note_quantized(lowering *l, const node *n, const quantized_params *params);
bool tare__quantized_params_equal(const quantized_params *a, const quantized_params *b);

/// What becomes of a float value that one operator gives.
typedef struct ending {
    node *relu; // the only reader, a ReLU or what is one for these quantized values; NULL: there is
                // none
    node *clamp;    // likewise an operator that only bounds values (relu6, hardtanh, clamp)
    node *quantize; // what reads it, or the relu or clamp after it, and nothing else does; NULL: it
                    // is read as floats
} ending;
ending tare__ending_of(lowering *l, const node *n);
/// The least and the greatest quantized value that an operator that bounds values (relu, relu6,
/// hardtanh, clamp) lets through; false: it is none, or its bounds are computed.
bool tare__quantized_bounds(lowering *l, node *bound, const quantized_params *params,
                            int64_t *least, int64_t *most);
/// The operator n, whose target is an integer function now, gives the quantized values of
/// e->quantize, which goes. The relu goes too if `has_relu`; else it, or the clamp, works on the
/// quantized values.
tare_status tare__end_in_quantized(lowering *l, node *n, const ending *e, bool has_relu);
/// An operator that writes its first input in place is called by the name that does not.
tare_status tare__write_nothing(lowering *l, node *n);
/// The packed weights of a call: *out stays NULL unless its weight is a constant of 8 bits that an
/// integer layer can have, and its bias a constant. x: what the input's quantized values stand for;
/// NULL: it is quantized on the fly. They round as quantize does, or as the engine that was asked
/// for.
tare_status tare__lower_pack(lowering *l, const function_call *w, const quantized_params *x,
                             module **out);
/// A dequantize of a constant tensor of bytes, which one operator reads, becomes that of a
/// quantized constant. No effect on other nodes.
tare_status tare__lower_constant(lowering *l, node *dequantize);
/// Binds a tensor to the root under a free name {base}{N}, which lives as long as the graph.
tare_status tare__own_buffer(lowering *l, const char *base, tare_tensor *t, const char **name);
/// Replaces every dequantize of quantized values that n reads by the quantized values.
tare_status tare__read_quantized(lowering *l, node *n);

/// Step: quantization with parameters that are found in a run, written as arithmetic, becomes
/// quantize operators.
tare_status tare__pt2e_join_chosen(lowering *l);
/// Step: calls of modules and methods become those of their functions, and reference modules'
/// weights constants that are dequantized. Programs of torch.export have neither.
tare_status tare__pt2e_lower_modules(lowering *l);
/// Step: linear layers whose weights alone are quantized, as torchao's quantize_ writes them, become
/// modules of weights in groups.
tare_status tare__pt2e_lower_grouped(lowering *l);
/// Step: scales of channels between a convolution and depthwise ones become scales of their
/// weights.
tare_status tare__pt2e_lower_channels(lowering *l);
/// Step: what quantized tensors stand for that a file's own quantize nodes and constants give. All
/// are of one dtype then: qint8 values are quint8 ones less 128.
tare_status tare__pt2e_lower_tensors(lowering *l);
/// Step: pairs of quantized_decomposed operators on bytes become those of quantized tensors.
tare_status tare__pt2e_lower_borders(lowering *l);
/// Step: quantize operators of one value with equal parameters become one.
tare_status tare__pt2e_merge_quantize(lowering *l);
/// Step: quantize operators move in front of what only moves values.
tare_status tare__pt2e_lift_quantize(lowering *l);
/// Step: dequantize operators move behind what only moves values, where something behind it takes
/// quantized values.
tare_status tare__pt2e_sink_dequantize(lowering *l);
/// Step: convolutions and linear functions with a constant weight.
tare_status tare__pt2e_lower_layers(lowering *l);
/// Step: linear functions whose input is quantized on the fly, and quantized tables.
tare_status tare__pt2e_lower_dynamic(lowering *l);
/// Step: attention of quantized values, and products of two tensors of quantized values that stay
/// float.
tare_status tare__pt2e_lower_products(lowering *l);
/// Step: all other operators between dequantize and quantize.
tare_status tare__pt2e_lower_operators(lowering *l);
/// Step: writes over tensors of the model go that nobody could see.
tare_status tare__pt2e_drop_dead_counters(lowering *l);
/// Step: what bounds the quantized values of a layer becomes bounds of the layer.
tare_status tare__pt2e_bound_layers(lowering *l);
/// Step: a decision with the reason for every operator that stays float.
tare_status tare__pt2e_explain_floats(lowering *l);

#endif
