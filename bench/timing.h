// SPDX-License-Identifier: Apache-2.0
// What benchmarks share: a clock, and the order of times.
#ifndef BENCH_TIMING_H
#define BENCH_TIMING_H

#include <time.h>

static inline double now_ms(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static inline int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#endif
