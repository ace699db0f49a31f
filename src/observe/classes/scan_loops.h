// SPDX-License-Identifier: Apache-2.0
// Kernels of observers over floats, for all instruction sets; the compiler vectorizes them. The
// file of an instruction set defines SCAN(name) and drop_common, and includes this file.
#include <math.h>

#include "observe/classes/scan.h"

enum { SCAN_LANES = 64, SCAN_BLOCK = 256 };

/// Removes the bins that equal `common`; returns the number that remain at the beginning of
/// `found`. May do nothing: an instruction set where this does not pay returns SCAN_BLOCK.
static int drop_common(int32_t found[SCAN_BLOCK], int32_t common);

void SCAN(f32_extremes)(const float *x, size_t count, float *min, float *max, bool *has_nan) {
    float low[SCAN_LANES], high[SCAN_LANES], least = INFINITY, most = -INFINITY;
    uint32_t nan[SCAN_LANES] = {0}, any = 0; // comparisons ignore NaN, so it is recorded separately
    size_t i = 0;
    for (int k = 0; k < SCAN_LANES; k++) {
        low[k] = INFINITY;
        high[k] = -INFINITY;
    }
    for (; i + SCAN_LANES <= count; i += SCAN_LANES)
        for (int k = 0; k < SCAN_LANES; k++) {
            const float v = x[i + (size_t)k];
            low[k] = v < low[k] ? v : low[k];
            high[k] = v > high[k] ? v : high[k];
            nan[k] |= v != v;
        }
    for (; i < count; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
        any |= x[i] != x[i];
    }
    for (int k = 0; k < SCAN_LANES; k++) {
        least = low[k] < least ? low[k] : least;
        most = high[k] > most ? high[k] : most;
        any |= nan[k];
    }
    *min = least;
    *max = most;
    *has_nan = any != 0;
}

// --- bins ---

// Most tensors contain one value much more often than all others, such as the zeros after a ReLU.
// Its bin gets the number of removed values at once.
static void count_block(int32_t found[SCAN_BLOCK], int32_t common, size_t stride,
                        uint32_t *counters) {
    const int left = drop_common(found, common);
    int i = 0;
    counters[common] += (uint32_t)(SCAN_BLOCK - left);
    for (; i + SCAN_SETS <= left; i += SCAN_SETS)
        for (int k = 0; k < SCAN_SETS; k++) counters[(size_t)k * stride + (size_t)found[i + k]]++;
    for (; i < left; i++) counters[found[i]]++;
}

// Prefetches, because counting keeps out-of-order execution from loading far ahead.
static inline void fetch_ahead(const float *x) {
    enum { AHEAD = 4 * SCAN_BLOCK, LINE = 16 };
    for (size_t k = 0; k < SCAN_BLOCK; k += LINE) __builtin_prefetch(x + AHEAD + k);
}

// Bins are computed in blocks of constant length before they are counted, so that the computation
// vectorizes.
void SCAN(f32_count_range)(const range_bins *m, const float *x, size_t count, size_t stride,
                           uint32_t *counters) {
    const range_bins bins = *m;
    const int32_t common = tare__bin_in_range(&bins, 0);
    size_t i = 0;
    for (; i + SCAN_BLOCK <= count; i += SCAN_BLOCK) {
        int32_t found[SCAN_BLOCK];
        fetch_ahead(x + i);
        for (size_t k = 0; k < SCAN_BLOCK; k++) found[k] = tare__bin_in_range(&bins, x[i + k]);
        count_block(found, common, stride, counters);
    }
    for (; i < count; i++) counters[tare__bin_in_range(&bins, x[i])]++;
}

void SCAN(f32_count_centred)(const centred_bins *m, const float *x, size_t count, size_t stride,
                             uint32_t *counters) {
    const centred_bins bins = *m;
    size_t i = 0;
    for (; i + SCAN_BLOCK <= count; i += SCAN_BLOCK) {
        int32_t found[SCAN_BLOCK];
        fetch_ahead(x + i);
        for (size_t k = 0; k < SCAN_BLOCK; k++) found[k] = tare__bin_about_zero(&bins, x[i + k]);
        count_block(found, bins.middle, stride, counters);
    }
    for (; i < count; i++) counters[tare__bin_about_zero(&bins, x[i])]++;
}
