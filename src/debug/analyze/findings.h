// SPDX-License-Identifier: Apache-2.0
// Detectors: causes that reduce accuracy, as sentences with a remedy.
// Private to debug.
#ifndef DEBUG_ANALYZE_FINDINGS_H
#define DEBUG_ANALYZE_FINDINGS_H

#include "core/memory/arena.h"
#include "debug/analyze/ranges.h"

/// The measures of a layer, by its index in the probe.
typedef struct layer_measure {
    double signal, reference, noise, product; // cumulative sums of y^2, x^2, (x - y)^2, x * y
    double local_signal[3], local_noise[3];   // alone: both, weights only, activations only
    double alone_signal, alone_noise, without_signal, without_noise;
    bool is_alone_measured;
} layer_measure;
enum { LOCAL_BOTH, LOCAL_WEIGHTS, LOCAL_ACTIVATIONS, LOCAL_SCOPES };

/// Signal-to-noise ratio in dB; NaN without a signal.
double tare__measure_db(double signal, double noise);
double tare__measure_alone_db(const layer_measure *m);
double tare__measure_local_db(const layer_measure *m, int scope); // LOCAL_..

typedef struct finding_list {
    const probe *probe;
    const range_table *ranges;
    const layer_measure *measures; // [probe->layer_count]
    arena *memory;                 // for sentences
    tare_finding *items;
    size_t count, capacity;
    tare_error *err;
} finding_list;

/// Runs every detector; findings are sorted by descending cost.
tare_status tare__findings_collect(finding_list *f);

#endif
