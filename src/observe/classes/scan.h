// SPDX-License-Identifier: Apache-2.0
// Passes over floats for observers: minimum, maximum, and counts per histogram bin. Implementations
// for several instruction sets and any number of threads give the same result.
#ifndef OBSERVE_CLASSES_SCAN_H
#define OBSERVE_CLASSES_SCAN_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/threads/threads.h"

/// Bins of equal width. Products are in torch's order, left to right.
///   bin = clamp((int)((x - min) * count / width), 0, count - 1)
typedef struct range_bins {
    float min, width;
    float count, last; // of bins; the last one's index
} range_bins;

/// Bins of equal width about zero: bin = (int)(|x| * per_width) of those above `middle`, and
/// mirrored below for x < 0.
typedef struct centred_bins {
    float per_width;
    int32_t middle;
} centred_bins;

/// Clamping handles index `count` at the upper end and, if the width overflowed, invalid indices.
static inline int32_t tare__bin_in_range(const range_bins *m, float x) {
    float position = (x - m->min) * m->count / m->width;
    position = position < m->last ? position : m->last;
    return (int32_t)(position > 0 ? position : 0);
}

/// The quotient by a power of two is exact, but where it is far below 1, and is then cut to 0 as it
/// should be. Negative values mirror positive ones: ~m is -1 - m.
static inline int32_t tare__bin_about_zero(const centred_bins *c, float x) {
    const int32_t m = (int32_t)(fabsf(x) * c->per_width);
    return (m ^ -(int32_t)(x < 0)) + c->middle;
}

/// Sets of counters, so that runs of equal values do not wait for each other.
enum { SCAN_SETS = 4 };

/// The loops, of one thread.
typedef struct scan_kernels {
    const char *name;
    /// Of count > 0 values; `*has_nan` if one is NaN, in which case min and max are undefined.
    void (*extremes)(const float *x, size_t count, float *min, float *max, bool *has_nan);
    /// Adds one to counters[set * stride + bin] for each value, in any of the sets. No value is
    /// NaN; those for centered bins are in the range.
    void (*count_range)(const range_bins *m, const float *x, size_t count, size_t stride,
                        uint32_t *counters);
    void (*count_centred)(const centred_bins *m, const float *x, size_t count, size_t stride,
                          uint32_t *counters);
} scan_kernels;

/// Plain C.
extern const scan_kernels tare__scan_plain;

/// The loops and threads of a scan (pool NULL: the caller alone).
typedef struct float_scan {
    const scan_kernels *kernels;
    thread_pool *pool; // lent
} float_scan;
extern const float_scan tare__scan_alone; // plain C, the caller

/// Minimum and maximum of count > 0 values; a NaN makes both NaN, as in torch.aminmax. A zero is
/// +0, so that the result does not depend on the order of zeros.
void tare__scan_extremes(const float_scan *scan, const float *x, int64_t count, float *min,
                         float *max);
/// Counts by bins into out[bins], which need not be set.
tare_status tare__scan_range(const float_scan *scan, const range_bins *m, const float *x,
                             int64_t count, int64_t bins, uint64_t *out, tare_error *err);

#define SCAN_KERNELS(suffix)                                                                       \
    void f32_extremes__##suffix(const float *x, size_t count, float *min, float *max,              \
                                bool *has_nan);                                                    \
    void f32_count_range__##suffix(const range_bins *m, const float *x, size_t count,              \
                                   size_t stride, uint32_t *counters);                             \
    void f32_count_centred__##suffix(const centred_bins *m, const float *x, size_t count,          \
                                     size_t stride, uint32_t *counters);
SCAN_KERNELS(plain)

#endif
