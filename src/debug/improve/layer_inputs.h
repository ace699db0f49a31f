// SPDX-License-Identifier: Apache-2.0
// The layers of a prepared model whose weights will be quantized, and statistics of their inputs
// over samples.
// Private to debug/improve.
#ifndef DEBUG_IMPROVE_LAYER_INPUTS_H
#define DEBUG_IMPROVE_LAYER_INPUTS_H

#include "flow/layer_bias.h"
#include "tare/data.h"

/// Statistics of a node's float value that layers read.
typedef struct input_stats {
    int64_t channels, rows;      // rows: of matrices that the layer multiplies with its weight
    float *min, *max;            // [channels]
    double *absolutes, *squares; // [channels]: sums, over `count` values each
    int64_t count;
    double *gram; // [groups][inner][inner]: sums of x x^T over `gram_rows` rows; NULL: not
                  // requested, or too large
    int64_t groups, inner, gram_rows;
} input_stats;

typedef struct observed_layer {
    biased_layer layer;
    const tare_observer_spec *weight_spec; // for modules: observes the weight; else NULL
    node *weight_observer;                 // for functions
    size_t stats;                          // index; layers with the same input share them
} observed_layer;

typedef struct layer_inputs {
    pass *p; // the model
    observed_layer *layers;
    size_t count, capacity;
    input_stats *stats;
    size_t stats_count, stats_capacity;
    bool wants_gram;
    uint64_t end_ns; // when the time of the step is up, by tare__job_now_ns; 0: never
} layer_inputs;

/// Finds the layers, in the order of the graph, with empty statistics. Release in any case.
tare_status tare__layer_inputs_find(pass *p, layer_inputs *out);
/// From now on; 0: no limit.
void tare__layer_inputs_set_limit(layer_inputs *x, double seconds);
bool tare__layer_inputs_is_over(const layer_inputs *x);
/// Runs the model on up to `sample_limit` samples (0: 32) of data, from its beginning. Observers
/// see nothing. It takes at most half of the time that is left, but at least one batch.
tare_status tare__layer_inputs_run(layer_inputs *x, tare_data *data, bool wants_gram,
                                   int64_t sample_limit, int thread_count);
void tare__layer_inputs_release(layer_inputs *x);

/// The parameters for `weight` as the layer's weight; by_error: from an observer of least squared
/// error instead of the layer's own. The caller releases *out.
tare_status tare__layer_qparams(const layer_inputs *x, const observed_layer *l,
                                const tare_tensor *weight, bool by_error, const qparams **out);
/// Quantizes and dequantizes weight into out[weight->count].
void tare__round_weight(const tare_tensor *weight, const qparams *q, double *out);
/// The index of an element's scale and zero point.
int64_t tare__qparams_index(const tare_tensor *weight, const qparams *q, int64_t element);

#endif
