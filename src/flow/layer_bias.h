// SPDX-License-Identifier: Apache-2.0
// Layers, their weights and their biases, in each form that a graph can have: a module, the first
// child of a fused module, or a function that reads tensors by get_attr.
#ifndef FLOW_LAYER_BIAS_H
#define FLOW_LAYER_BIAS_H

#include "model/pass.h"

/// A convolution, transposed convolution or linear layer. Lent by the model.
typedef struct biased_layer {
    node *node;
    module *module;            // that has weight and bias; NULL: the node calls a function
    node *weight, *bias;       // of functions: the arguments; bias NULL: none
    const tare_tensor *tensor; // the weight, behind observers; NULL: it is computed
} biased_layer;

/// *out with node NULL: `n` is no such layer.
void tare__layer_find(const tare_model *model, node *n, biased_layer *out);
/// Does the layer compute with a quantized weight? Of a model that was converted.
bool tare__layer_is_quantized(const biased_layer *layer);
/// Why a bias cannot be this layer's own, as a sentence; NULL: it can.
const char *tare__layer_bias_fault(const tare_model *model, const biased_layer *layer);
/// Lent; NULL: the layer has none, or computes it.
tare_tensor *tare__layer_bias(const tare_model *model, const biased_layer *layer);

/// The node's bias becomes `path`, a tensor of the root, read right before it.
tare_status tare__layer_read_bias(graph *g, node *layer, const char *path, arena *memory,
                                  tare_error *err);
/// The bias becomes this tensor: where it is now, or if there is none (and for functions, if
/// is_apart) under a name of its own.
tare_status tare__layer_set_bias(pass *p, const biased_layer *layer, tare_tensor *bias,
                                 bool is_apart);

/// Why a weight cannot be changed for this layer alone, as a sentence; NULL: it can.
const char *tare__layer_weight_fault(const tare_model *model, const biased_layer *layer);
/// The weight becomes this tensor of the same shape, where it is now. layer->tensor is then the new
/// one.
tare_status tare__layer_set_weight(pass *p, biased_layer *layer, tare_tensor *weight);

#endif
