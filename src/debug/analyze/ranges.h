// SPDX-License-Identifier: Apache-2.0
// The range of each quantized tensor, by channel and by sample, and its quantization error.
// Private to debug.
#ifndef DEBUG_ANALYZE_RANGES_H
#define DEBUG_ANALYZE_RANGES_H

#include "debug/analyze/probe.h"
#include "tare/analyze.h"
#include "tare/handoff.h"

typedef struct range_entry {
    const node *node; // the quantize node; for a module's weight, the layer
    size_t layer;
    tare_tensor_range shown;
    int channel_axis;
    double signal, noise;                   // of rounding and saturation
    double *channel_low, *channel_high;     // [channel_count], finite values
    double *channel_signal, *channel_noise; // of weights
    float *sample_peaks;                    // largest magnitude of each sample, in order
    size_t sample_count, sample_capacity;
    uint64_t histogram[TARE_HISTOGRAM_BINS];
    bool has_histogram;
} range_entry;

/// Begins the entry of a tensor that `n` quantizes; names are lent.
void tare__range_begin(range_entry *e, const node *n, const char *layer);
void tare__range_set_qparams(range_entry *e, const tare_node_qparams *q);
/// Adds the float32 values of a run. If dimension 0 has the size batch_size, it is the samples.
tare_status tare__range_add(range_entry *e, const tare_tensor *x, int64_t batch_size, bool is_brief,
                            tare_error *err);
void tare__range_end(range_entry *e);

typedef struct range_table {
    const probe *probe;
    bool is_brief; // without histograms
    range_entry *items;
    size_t count, capacity;
    size_t *by_id; // by id of a quantize node: index + 1
} range_table;

/// Creates entries for all quantize nodes, and for the weights of modules, which are measured
/// immediately.
tare_status tare__ranges_begin(range_table *t, const probe *p, bool is_brief, tare_error *err);
void tare__ranges_end(range_table *t);

/// Adds the input of a quantize node. batch_size: as in tare__range_add.
tare_status tare__ranges_add(range_table *t, const node *quantize, const tare_tensor *x,
                             int64_t batch_size, tare_error *err);
/// Adds the weight of a function, in float and rounded; later calls have no effect.
tare_status tare__ranges_add_weight(range_table *t, const node *quantize, const tare_tensor *x,
                                    const tare_tensor *rounded, tare_error *err);
void tare__range_show(const range_entry *e, tare_tensor_range *out);

/// Larger magnitudes count as infinite: masks of attention.
#define MASK_MAGNITUDE 1e30

#endif
