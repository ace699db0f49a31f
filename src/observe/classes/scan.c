// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Scan kernels in plain C, and scans divided among threads.
#include "observe/classes/scan.h"

#include "core/memory/alloc.h"
#include "observe/classes/extremes.h"

#define SCAN(name) name##__plain
#include "observe/classes/scan_loops.h"

static int drop_common(int32_t found[SCAN_BLOCK], int32_t common) {
    (void)found, (void)common;
    return SCAN_BLOCK;
}

const scan_kernels tare__scan_plain = {"plain", f32_extremes__plain, f32_count_range__plain,
                                       f32_count_centred__plain};
const float_scan tare__scan_alone = {&tare__scan_plain, NULL};

// --- threads ---

// LEAST_GRAIN: with fewer values per thread, waking a thread costs more than it saves. MOST_RANGES:
// the capacity of scan_run.
enum { LEAST_GRAIN = 1 << 14, MOST_RANGES = 64 };

typedef struct scan_run {
    const scan_kernels *kernels;
    const range_bins *bins;
    const float *x;
    size_t grain; // number of floats in a range
    size_t stride;
    uint32_t *counters; // [ranges][SCAN_SETS][stride]
    float min[MOST_RANGES], max[MOST_RANGES];
} scan_run;

static size_t grain_of(const float_scan *scan, size_t count) {
    const size_t threads = tare__thread_count(scan->pool), most = count / LEAST_GRAIN;
    const size_t wanted = threads < most ? threads : most;
    const size_t ranges = wanted < 1 ? 1 : wanted < MOST_RANGES ? wanted : MOST_RANGES;
    return count / ranges + (count % ranges != 0);
}

static void find_extremes(void *user, size_t first, size_t end, size_t worker) {
    scan_run *run = user;
    const size_t range = first / run->grain;
    bool has_nan = false;
    (void)worker;
    run->kernels->extremes(run->x + first, end - first, &run->min[range], &run->max[range],
                           &has_nan);
    if (has_nan) run->min[range] = run->max[range] = NAN;
}

void tare__scan_extremes(const float_scan *scan, const float *x, int64_t count, float *min,
                         float *max) {
    scan_run run = {.kernels = scan->kernels, .x = x, .grain = grain_of(scan, (size_t)count)};
    tare__parallel(scan->pool, (size_t)count, run.grain, find_extremes, &run);
    for (size_t i = 1; i < tare__range_count((size_t)count, run.grain); i++) {
        run.min[0] = tare__least(run.min[i], run.min[0]);
        run.max[0] = tare__most(run.max[i], run.max[0]);
    }
    *min = run.min[0] + 0.0F;
    *max = run.max[0] + 0.0F;
}

static void count_some(void *user, size_t first, size_t end, size_t worker) {
    const scan_run *run = user;
    (void)worker;
    run->kernels->count_range(run->bins, run->x + first, end - first, run->stride,
                              run->counters + first / run->grain * SCAN_SETS * run->stride);
}

tare_status tare__scan_range(const float_scan *scan, const range_bins *m, const float *x,
                             int64_t count, int64_t bins, uint64_t *out, tare_error *err) {
    scan_run run = {.kernels = scan->kernels,
                    .bins = m,
                    .x = x,
                    .grain = grain_of(scan, (size_t)count),
                    .stride = (size_t)bins};
    const size_t sets = tare__range_count((size_t)count, run.grain) * SCAN_SETS;
    run.counters = tare__alloc_zeroed(run.stride, sets * sizeof *run.counters);
    if (run.counters == NULL) return tare__out_of_memory(err);
    tare__parallel(scan->pool, (size_t)count, run.grain, count_some, &run);
    for (size_t b = 0; b < run.stride; b++) {
        out[b] = 0;
        for (size_t k = 0; k < sets; k++) out[b] += run.counters[k * run.stride + b];
    }
    tare__free(run.counters);
    return TARE_OK;
}
