// SPDX-License-Identifier: Apache-2.0
// A reference model whose layers are quantized or not, one by one, while it runs: its dequantize
// nodes can return the floats that were quantized, and its reference modules can compute with float
// or with rounded weights. So one graph gives the float model, the quantized one, and all between.
// Private to debug.
#ifndef DEBUG_ANALYZE_PROBE_H
#define DEBUG_ANALYZE_PROBE_H

#include "debug/analyze/value_cache.h"
#include "dnnl/float_kernels.h"
#include "model/model.h"
#include "ops/interpret.h"
#include "tare/handoff.h"

#define PROBE_NONE SIZE_MAX

typedef enum probe_kind {
    PROBE_PLAIN,
    PROBE_QUANTIZE,   // what a dequantize node reads
    PROBE_DEQUANTIZE, // of an activation or a weight, for one layer
    PROBE_FIXED,      // dequantizes what was quantized before the graph: it has no floats
} probe_kind;

/// An operator that reads dequantized values, or whose module has a quantized weight.
typedef struct probe_layer {
    const node *node;
    const char *float_node, *op;   // lent by the model
    module *with_floats, *rounded; // of a call of a module with a quantized weight; else NULL
    const tare_tensor *weight, *rounded_weight; // lent; NULL: none, or only known in a run
    // rounded, rounded_weight: made when a run first needs them
    bool is_last; // stands for the outputs of the model
} probe_layer;

/// What is known of a node, by its id.
typedef struct probe_fact {
    probe_kind kind;
    size_t layer;   // of a layer, and of what dequantizes for it; else PROBE_NONE
    size_t source;  // of PROBE_DEQUANTIZE: the id of the node whose floats were quantized
    bool is_weight; // dequantizes a constant
    bool varies;    // depends on an input of the graph
} probe_fact;

typedef struct probe {
    const tare_model *model;
    const graph *g;
    probe_fact *facts; // [id_count]
    size_t id_count;
    probe_layer *layers; // in the order of the graph
    size_t layer_count, layer_capacity;
    float_kernels *kernels;
    int thread_count;
} probe;

tare_status tare__probe_begin(probe *p, const tare_model *reference, int thread_count,
                              tare_error *err);
void tare__probe_end(probe *p);
/// Makes the layer's `rounded`, if it has one and that is not made yet.
tare_status tare__probe_round(const probe *p, size_t layer, tare_error *err);

/// Which layers are quantized in a run.
typedef enum probe_mode {
    PROBE_FLOATS, // none
    PROBE_ALL,
    PROBE_ONLY, // `layer`
    PROBE_BUT,  // all but `layer`
} probe_mode;

typedef struct probe_run {
    const probe *probe;
    probe_mode mode;
    size_t layer;
    bool no_weights, no_activations; // of the quantized layers, leave that float
    /// Values of earlier runs. Where `isolates`, every layer reads the floats of `base`, whatever
    /// came before it. Else what does not depend on `layer` is taken from `base` (for PROBE_ONLY
    /// and PROBE_BUT).
    const value_cache *base;
    bool isolates;
    /// Asked before each node of a run that isolates; false: the layers from there on stay float,
    /// and nobody is told of them. NULL: all are quantized.
    bool (*goes_on)(const void *user);
    value_cache *keep; // where results go; NULL: nowhere
    bool keeps_layers; // those of layers, and what layers read, in any case
    /// Called with every float32 result of a call; may be NULL. In a run that isolates: of layers.
    tare_status (*result)(void *user, const node *n, const tare_tensor *t, tare_error *err);
    /// Called with the floats that a quantize node reads; may be NULL.
    tare_status (*quantizes)(void *user, const node *n, const tare_tensor *x, tare_error *err);
    /// Called with a weight's floats and what they are rounded to, where it is quantized: with the
    /// quantize node, or the layer that calls a module; may be NULL.
    tare_status (*weight)(void *user, const node *n, const tare_tensor *x, const tare_tensor *y,
                          tare_error *err);
    void *user;
    // Of the run itself.
    tare_tensor **sources; // by id of a quantize node: what it reads
    bool *is_computed;     // by id; NULL: all are
    bool is_over;          // goes_on said no
    tare_error *err;
} probe_run;

enum { PROBE_MOST_OUTPUTS = 64 };
/// Float32 tensors in the order of the model's outputs; others are left out.
typedef struct probe_outputs {
    tare_tensor *tensors[PROBE_MOST_OUTPUTS];
    size_t count;
} probe_outputs;
void tare__probe_outputs_release(probe_outputs *out);

/// out NULL: nobody wants the outputs.
tare_status tare__probe_run(probe_run *r, const tare_tensor *const *inputs, size_t input_count,
                            probe_outputs *out, tare_error *err);

#endif
