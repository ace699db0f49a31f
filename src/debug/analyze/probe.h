// SPDX-License-Identifier: Apache-2.0
// A reference model whose layers can be quantized or not, one by one, in each run: dequantize nodes
// can return the original floats, and reference modules can compute with float or rounded weights.
// One graph thus represents the float model, the quantized model, and everything between.
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
    PROBE_QUANTIZE,   // read by a dequantize node
    PROBE_DEQUANTIZE, // of an activation or weight, for one layer
    PROBE_FIXED,      // of a value that was quantized before the graph: it has no floats
} probe_kind;

/// An operator that reads dequantized values, or a module with a quantized weight.
typedef struct probe_layer {
    const node *node;
    const char *float_node, *op;   // lent by the model
    module *with_floats, *rounded; // for a call of a module with a quantized weight; else NULL
    const tare_tensor *weight, *rounded_weight; // lent; NULL: none, or computed in a run
    // rounded, rounded_weight: made when a run first needs them
    bool is_last; // its result is an output of the model
} probe_layer;

/// Facts about a node, by its id.
typedef struct probe_fact {
    probe_kind kind;
    size_t layer;   // for a layer and the nodes that dequantize for it; else PROBE_NONE
    size_t source;  // for PROBE_DEQUANTIZE: id of the node whose floats were quantized
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
    bool lends_kernels; // `kernels` is another probe's
    int thread_count;
} probe;

/// kernels: those of a probe that ends later and runs at other times; NULL: its own.
tare_status tare__probe_begin(probe *p, const tare_model *reference, float_kernels *kernels,
                              int thread_count, tare_error *err);
void tare__probe_end(probe *p);
/// Creates the layer's `rounded`, if it has one and that does not exist yet.
tare_status tare__probe_round(const probe *p, size_t layer, tare_error *err);

/// The layers that a run quantizes.
typedef enum probe_mode {
    PROBE_FLOATS, // none
    PROBE_ALL,
    PROBE_ONLY, // only `layer`
    PROBE_BUT,  // all except `layer`
} probe_mode;

typedef struct probe_run {
    const probe *probe;
    probe_mode mode;
    size_t layer;
    bool no_weights, no_activations; // keep the weights or activations of quantized layers float
    /// Values of earlier runs. With `isolates`, every layer reads the floats of `base`. Otherwise
    /// values that do not depend on `layer` are taken from `base` (for PROBE_ONLY and PROBE_BUT).
    const value_cache *base;
    bool isolates;
    /// Called before each node of a run that isolates. If it returns false, all further layers stay
    /// float and are not reported. NULL: all are quantized.
    bool (*goes_on)(const void *user);
    value_cache *keep; // stores results; NULL: not stored
    bool keeps_layers; // stores the results and inputs of layers in any case
    /// Called with every float32 result of a call, or, in a run that isolates, with those of
    /// layers; may be NULL.
    tare_status (*result)(void *user, const node *n, const tare_tensor *t, tare_error *err);
    /// Called with the input of a quantize node; may be NULL.
    tare_status (*quantizes)(void *user, const node *n, const tare_tensor *x, tare_error *err);
    /// Called with a quantized weight in float and rounded, and with the quantize node, or the
    /// layer that calls a module; may be NULL.
    tare_status (*weight)(void *user, const node *n, const tare_tensor *x, const tare_tensor *y,
                          tare_error *err);
    void *user;
    // State of the run.
    tare_tensor **sources; // by id of a quantize node: its input
    bool *is_computed;     // by id; NULL: all are
    bool is_over;          // goes_on returned false
    tare_error *err;
} probe_run;

enum { PROBE_MOST_OUTPUTS = 64 };
/// Float32 tensors in the order of the model's outputs; others are left out.
typedef struct probe_outputs {
    tare_tensor *tensors[PROBE_MOST_OUTPUTS];
    size_t count;
} probe_outputs;
void tare__probe_outputs_release(probe_outputs *out);

/// out NULL: the outputs are not needed.
tare_status tare__probe_run(probe_run *r, const tare_tensor *const *inputs, size_t input_count,
                            probe_outputs *out, tare_error *err);

#endif
