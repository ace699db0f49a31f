// SPDX-License-Identifier: Apache-2.0
// Layers with their weights and biases, in each form that a graph can have: a module, the first
// child of a fused module, or a function that reads tensors by get_attr.
#ifndef FLOW_LAYER_BIAS_H
#define FLOW_LAYER_BIAS_H

#include "model/pass.h"

/// A convolution, transposed convolution or linear layer. Lent by the model.
typedef struct biased_layer {
    node *node;
    module *module;            // the module with weight and bias; NULL: the node calls a function
    node *weight, *bias;       // of functions: the arguments; bias NULL: none
    const tare_tensor *tensor; // the weight, looking through observers; NULL: it is computed
} biased_layer;

/// If `n` is no such layer, node is NULL in *out.
void tare__layer_find(const tare_model *model, node *n, biased_layer *out);
/// True if the layer computes with a quantized weight, in a converted model.
bool tare__layer_is_quantized(const biased_layer *layer);
/// Why the bias cannot be set for this layer alone, as a sentence; NULL: it can.
const char *tare__layer_bias_fault(const tare_model *model, const biased_layer *layer);
/// Lent; NULL: the layer has no bias, or computes it.
tare_tensor *tare__layer_bias(const tare_model *model, const biased_layer *layer);

/// Makes `path`, a tensor of the root, the bias of the node; it is read right before the node.
tare_status tare__layer_read_bias(graph *g, node *layer, const char *path, arena *memory,
                                  tare_error *err);
/// Sets the bias in its present place. If there is none (and for functions, if is_apart) it gets a
/// new name.
tare_status tare__layer_set_bias(pass *p, const biased_layer *layer, tare_tensor *bias,
                                 bool is_apart);

/// Why the weight cannot be changed for this layer alone, as a sentence; NULL: it can.
const char *tare__layer_weight_fault(const tare_model *model, const biased_layer *layer);
/// Replaces the weight by a tensor of the same shape, which layer->tensor is afterwards.
tare_status tare__layer_set_weight(pass *p, biased_layer *layer, tare_tensor *weight);

#endif
