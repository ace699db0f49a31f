// SPDX-License-Identifier: Apache-2.0
// Clipping ranges chosen on a histogram with symmetric bins: by least squared error, by least
// relative entropy, or by percentile.
// Private to observe/classes.
#ifndef OBSERVE_CLASSES_RANGE_SEARCH_H
#define OBSERVE_CLASSES_RANGE_SEARCH_H

#include "observe/classes/uniform.h"

/// Bins of equal width, symmetric about zero. Values x with m * width <= |x| < (m + 1) * width, m
/// in [0, bins / 2), are counted in counts[bins / 2 + m] if x >= 0, else in counts[bins / 2 - 1 -
/// m].
typedef struct centred_histogram {
    const int64_t *counts; // [bins]
    int64_t bins;          // even
    double width;
    float min, max; // of the values counted, min <= max
} centred_histogram;

/// The range within [min, max] with the least squared error when `u` computes its parameters. The
/// values of a bin are assumed to be uniform over the bin (within min and max); rounding to each
/// level and clipping are computed exactly. Deterministic: double arithmetic in a fixed order.
tare_status tare__search_least_error(const centred_histogram *h, const uniform *u, float *out_min,
                                     float *out_max, tare_error *err);
/// The range of whole bins, limited to [min, max], that clips at most (100 - percent) % of the
/// values at each end. percent: in (50, 100].
void tare__search_percentile(const centred_histogram *h, double percent, float *out_min,
                             float *out_max);
/// The range within [min, max], clipped at the same magnitude for both signs, with the least
/// relative entropy between the histogram and its quantized form.
tare_status tare__search_entropy(const centred_histogram *h, const uniform *u, float *out_min,
                                 float *out_max, tare_error *err);

#endif
