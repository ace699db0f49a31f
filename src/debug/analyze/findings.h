// SPDX-License-Identifier: Apache-2.0
// Detectors: what costs accuracy, in words, with a remedy.
// Private to debug.
#ifndef DEBUG_ANALYZE_FINDINGS_H
#define DEBUG_ANALYZE_FINDINGS_H

#include "core/memory/arena.h"
#include "debug/analyze/ranges.h"

/// What was measured of a layer, by its index in the probe.
typedef struct layer_measure {
    double signal, reference, noise, product; // cumulative: of y, x, (x - y), x * y
    double local_signal[3], local_noise[3];   // both, weights, activations
    double alone_signal, alone_noise, without_signal, without_noise;
    bool is_alone_measured;
} layer_measure;
enum { LOCAL_BOTH, LOCAL_WEIGHTS, LOCAL_ACTIVATIONS, LOCAL_SCOPES };

/// Of noise against signal, in dB; NaN where there is no signal.
double tare__measure_db(double signal, double noise);
double tare__measure_alone_db(const layer_measure *m);
double tare__measure_local_db(const layer_measure *m, int scope); // LOCAL_..

typedef struct finding_list {
    const probe *probe;
    const range_table *ranges;
    const layer_measure *measures; // [probe->layer_count]
    arena *memory;                 // of the sentences
    tare_finding *items;
    size_t count, capacity;
    tare_error *err;
} finding_list;

/// Runs every detector; the costliest finding first.
tare_status tare__findings_collect(finding_list *f);

#endif
