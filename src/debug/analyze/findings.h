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

#define GOOD_DB 30.0 // a layer with less noise gets no findings of its own

/// How a range fails to fit. What is computed from a tensor fails in the same way.
typedef enum finding_family {
    FAMILY_NONE,
    FAMILY_DATA,    // calibration saw other data; NARROW and WIDE follow from it
    FAMILY_NARROW,  // values lie beyond the range
    FAMILY_WIDE,    // values fill little of the range
    FAMILY_SAMPLE,  // one sample lies far from the others
    FAMILY_UNSEEN,  // no data in calibration
    FAMILY_CHANNEL, // a channel far larger than the others
} finding_family;

/// Order of findings without a cost.
typedef enum finding_note { NOTE_DATA, NOTE_NETWORK, NOTE_HARMLESS } finding_note;

#define NO_CAUSE SIZE_MAX
typedef struct noted_finding {
    tare_finding shown;
    const node *at, *value; // the layer; the float node that computes the tensor (NULL: none)
    finding_family family;
    finding_note note;
    bool has_local_remedy; // what follows from it needs a remedy of its own
    double stretch;  // how much larger the values are than the range, or the range than they; > 1
    int64_t channel; // FAMILY_CHANNEL: its index
    bool is_weight;  // nothing is in front of it
    double rank;     // dB: `shown`'s, or the least of what follows from it
    size_t cause;    // index of the finding that this one follows from
    size_t place;    // of the layer in the graph
} noted_finding;

typedef struct finding_list {
    const probe *probe;
    const range_table *ranges;
    const layer_measure *measures; // [probe->layer_count]
    arena *memory;                 // for sentences
    double verdict_db;             // of the model's outputs
    noted_finding *items;
    size_t count, capacity;
    tare_error *err;
} finding_list;

/// Runs every detector; findings are sorted as causes.h says.
tare_status tare__findings_collect(finding_list *f);

#endif
