// SPDX-License-Identifier: Apache-2.0
// What a brief analysis does with its time: the verdict on one sample in any case, then the error
// of each layer by itself, then more samples. Private to debug/analyze.
#ifndef DEBUG_ANALYZE_BRIEF_H
#define DEBUG_ANALYZE_BRIEF_H

#include <math.h>
#include <stdbool.h>

#define BRIEF_LAYERS_SHARE 0.75 // of what is left, for the layers
/// Below it the model is broken: its layers are all looked at, however long that takes.
#define BRIEF_BROKEN_DB 10.0

/// Seconds since the analysis began.
typedef struct brief_time {
    double limit;
    double layers_until; // begin no layer after it
} brief_time;

/// The verdict on the first batch, `sqnr_db`, was there after `spent`.
static inline void tare__brief_begin_layers(brief_time *t, double spent, double sqnr_db) {
    const double left = t->limit - spent;
    t->layers_until = left > 0 ? spent + BRIEF_LAYERS_SHARE * left : spent;
    if (sqnr_db < BRIEF_BROKEN_DB) t->layers_until = HUGE_VAL;
}

static inline bool tare__brief_has_time_for_layer(const brief_time *t, double spent) {
    return spent < t->layers_until;
}

/// A sample is expected to take as long as the one before.
static inline bool tare__brief_has_time_for_sample(const brief_time *t, double spent, double last) {
    return spent + last <= t->limit;
}

#endif
