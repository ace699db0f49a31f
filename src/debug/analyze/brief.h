// SPDX-License-Identifier: Apache-2.0
// How a brief analysis uses its time: first the verdict on one sample, in any case; then the error
// of each layer alone; then more samples.
// Private to debug/analyze.
#ifndef DEBUG_ANALYZE_BRIEF_H
#define DEBUG_ANALYZE_BRIEF_H

#include <math.h>
#include <stdbool.h>

#define BRIEF_LAYERS_SHARE 0.75 // of the remaining time
/// Below this the model is broken: then all layers are measured, however long that takes.
#define BRIEF_BROKEN_DB 10.0

/// Seconds since the analysis began.
typedef struct brief_time {
    double limit;
    double layers_until; // no layer is started after it
} brief_time;

/// Called when the verdict on the first batch, `sqnr_db`, is known, after `spent` seconds.
static inline void tare__brief_begin_layers(brief_time *t, double spent, double sqnr_db) {
    const double left = t->limit - spent;
    t->layers_until = left > 0 ? spent + BRIEF_LAYERS_SHARE * left : spent;
    if (sqnr_db < BRIEF_BROKEN_DB) t->layers_until = HUGE_VAL;
}

static inline bool tare__brief_has_time_for_layer(const brief_time *t, double spent) {
    return spent < t->layers_until;
}

/// True if another sample is expected to fit, at the duration of the last one.
static inline bool tare__brief_has_time_for_sample(const brief_time *t, double spent, double last) {
    return spent + last <= t->limit;
}

#endif
