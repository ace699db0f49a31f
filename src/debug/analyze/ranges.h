// SPDX-License-Identifier: Apache-2.0
// What is seen of each tensor that is quantized: its range, by channel and by sample, and what of
// it is lost. Private to debug.
#ifndef DEBUG_ANALYZE_RANGES_H
#define DEBUG_ANALYZE_RANGES_H

#include "debug/analyze/probe.h"
#include "tare/analyze.h"
#include "tare/handoff.h"

typedef struct range_entry {
    const node *node; // the quantize node; of a module's weight, the layer's
    size_t layer;
    tare_tensor_range shown;
    int channel_axis;
    double signal, noise;                   // of rounding and cutting off
    double *channel_low, *channel_high;     // [channel_count], finite values
    double *channel_signal, *channel_noise; // of weights
    float *sample_peaks;                    // largest magnitude of each sample, in their order
    size_t sample_count, sample_capacity;
    uint64_t histogram[TARE_HISTOGRAM_BINS];
    bool has_histogram;
} range_entry;

/// An entry of a tensor that `n` quantizes; names are lent.
void tare__range_begin(range_entry *e, const node *n, const char *layer);
void tare__range_set_qparams(range_entry *e, const tare_node_qparams *q);
/// Adds the values of a run, float32. batch_size: samples are dimension 0 where it has this size.
tare_status tare__range_add(range_entry *e, const tare_tensor *x, int64_t batch_size, bool is_brief,
                            tare_error *err);
void tare__range_end(range_entry *e);

typedef struct range_table {
    const probe *probe;
    bool is_brief; // without histograms
    range_entry *items;
    size_t count, capacity;
    size_t *by_id; // of a quantize node: index + 1
} range_table;

/// Entries for all quantize nodes, and for the weights of modules, which are measured at once.
tare_status tare__ranges_begin(range_table *t, const probe *p, bool is_brief, tare_error *err);
void tare__ranges_end(range_table *t);

/// Adds what a quantize node reads. batch_size: samples are dimension 0 where it has this size.
tare_status tare__ranges_add(range_table *t, const node *quantize, const tare_tensor *x,
                             int64_t batch_size, tare_error *err);
/// The weight of a function, in floats and rounded; it counts once.
tare_status tare__ranges_add_weight(range_table *t, const node *quantize, const tare_tensor *x,
                                    const tare_tensor *rounded, tare_error *err);
void tare__range_show(const range_entry *e, tare_tensor_range *out);

/// |x| of what counts as infinite: masks of attention.
#define MASK_MAGNITUDE 1e30

#endif
