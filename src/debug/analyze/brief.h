// SPDX-License-Identifier: Apache-2.0
// What a brief analysis does with its time: the verdict on one sample in any case, then the error
// of each layer by itself, then more samples. Private to debug/analyze.
#ifndef DEBUG_ANALYZE_BRIEF_H
#define DEBUG_ANALYZE_BRIEF_H

#include <stdbool.h>

#define BRIEF_LAYERS_SHARE 0.75 // of what is left, for the layers

/// Seconds since the analysis began.
typedef struct brief_time {
    double limit;
    double layers_until; // begin no layer after it
} brief_time;

/// The verdict on the first sample was there after `spent`.
static inline void tare__brief_begin_layers(brief_time *t, double spent) {
    const double left = t->limit - spent;
    t->layers_until = left > 0 ? spent + BRIEF_LAYERS_SHARE * left : spent;
}

static inline bool tare__brief_has_time_for_layer(const brief_time *t, double spent) {
    return spent < t->layers_until;
}

/// A sample is expected to take as long as the one before.
static inline bool tare__brief_has_time_for_sample(const brief_time *t, double spent, double last) {
    return spent + last <= t->limit;
}

#endif
