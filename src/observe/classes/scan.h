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

/// Bins of equal width, symmetric about zero: (int)(|x| * per_width) + middle for x >= 0, mirrored
/// below `middle` for x < 0.
typedef struct centred_bins {
    float per_width;
    int32_t middle;
} centred_bins;

/// The clamp handles x at the upper end, which would give index `count`, and invalid positions if
/// the width overflowed.
static inline int32_t tare__bin_in_range(const range_bins *m, float x) {
    float position = (x - m->min) * m->count / m->width;
    position = position < m->last ? position : m->last;
    return (int32_t)(position > 0 ? position : 0);
}

/// The product is exact, because per_width is a power of two, except far below 1, where it is
/// truncated to 0 anyway. Negative values mirror positive ones: ~m is -1 - m.
static inline int32_t tare__bin_about_zero(const centred_bins *c, float x) {
    const int32_t m = (int32_t)(fabsf(x) * c->per_width);
    return (m ^ -(int32_t)(x < 0)) + c->middle;
}

/// Number of independent sets of counters, so that increments for equal consecutive values do not
/// wait for each other.
enum { SCAN_SETS = 4 };

/// Kernels for one thread.
typedef struct scan_kernels {
    const char *name;
    /// Minimum and maximum of count > 0 values. *has_nan: one of them is NaN, and min and max are
    /// undefined.
    void (*extremes)(const float *x, size_t count, float *min, float *max, bool *has_nan);
    /// Adds one to counters[set * stride + bin] for each value, in any of the sets. No value is
    /// NaN; values for centered bins must be in the range.
    void (*count_range)(const range_bins *m, const float *x, size_t count, size_t stride,
                        uint32_t *counters);
    void (*count_centred)(const centred_bins *m, const float *x, size_t count, size_t stride,
                          uint32_t *counters);
} scan_kernels;

/// Plain C.
extern const scan_kernels tare__scan_plain;

/// The kernels and threads of a scan (pool NULL: only the calling thread).
typedef struct float_scan {
    const scan_kernels *kernels;
    thread_pool *pool; // lent
} float_scan;
extern const float_scan tare__scan_alone; // plain C, on the calling thread

/// Minimum and maximum of count > 0 values; a NaN makes both NaN, as in torch.aminmax. A zero is
/// returned as +0, so that the result does not depend on the order of zeros.
void tare__scan_extremes(const float_scan *scan, const float *x, int64_t count, float *min,
                         float *max);
/// Histogram of the values in out[bins], which need not be initialized.
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
