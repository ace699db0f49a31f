// SPDX-License-Identifier: Apache-2.0
// Ranges chosen on a histogram of power-of-two bins: by squared error, by relative entropy, or
// by shares of the values.
// Private to observe/classes.
#ifndef OBSERVE_CLASSES_RANGE_SEARCH_H
#define OBSERVE_CLASSES_RANGE_SEARCH_H

#include "observe/classes/uniform.h"

/// Values x with m * width <= |x| < (m + 1) * width, m in [0, bins / 2), are counted in
/// counts[bins / 2 + m], those below zero in counts[bins / 2 - 1 - m].
typedef struct centred_histogram {
    const int64_t *counts; // [bins]
    int64_t bins;          // even
    double width;
    float min, max; // of the values counted, min <= max
} centred_histogram;

/// The range within [min, max] whose parameters, as `u` makes them of it, give the least squared
/// error: the values of a bin are taken as spread evenly over it (within min and max), and every
/// level, clipping too, counts as it is. Deterministic: double arithmetic in a fixed order.
tare_status tare__search_least_error(const centred_histogram *h, const uniform *u, float *out_min,
                                     float *out_max, tare_error *err);
/// The range of whole bins, cut to [min, max], that leaves at most (100 - percent) % of the values
/// above and as many below. percent: in (50, 100].
void tare__search_percentile(const centred_histogram *h, double percent, float *out_min,
                             float *out_max);
/// The range within [min, max], cut off at one magnitude for both signs, that loses the least
/// information: the relative entropy of the histogram and of its quantized form is least.
tare_status tare__search_entropy(const centred_histogram *h, const uniform *u, float *out_min,
                                 float *out_max, tare_error *err);

#endif
