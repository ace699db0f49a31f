// SPDX-License-Identifier: Apache-2.0
// Searches the best clipping range of a histogram, with the same roundings as torch.
#include "observe/classes/histogram_search.h"

#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"

// --- torch's sum ---

enum { LANES = 8, ROWS = 4, LEVELS = 4 };

typedef struct cascade {
    float sum[LEVELS][ROWS][LANES];
} cascade;

static void add_rows(float (*into)[LANES], const float *values) {
    for (int k = 0; k < ROWS; k++)
        for (int lane = 0; lane < LANES; lane++) into[k][lane] += values[k * LANES + lane];
}

// After a full run of blocks adds the sums of the lowest level to the next level, and continues
// upwards while the level's own run is full.
static void carry(cascade *c, int64_t blocks_done, int64_t step, int step_bits) {
    for (int level = 1; level < LEVELS; level++) {
        add_rows(c->sum[level], c->sum[level - 1][0]);
        memset(c->sum[level - 1], 0, sizeof c->sum[level - 1]);
        if ((blocks_done & ((step - 1) << (level * step_bits))) != 0) return;
    }
}

static int ceil_log2(int64_t n) {
    int bits = 0;
    while (((int64_t)1 << bits) < n) bits++;
    return bits;
}

float tare__torch_sum(const float *values, int64_t count) {
    cascade c = {0};
    const int64_t rows = count / LANES, blocks = rows / ROWS;
    const int quarter = ceil_log2(blocks) / LEVELS, step_bits = quarter > 4 ? quarter : 4;
    const int64_t step = (int64_t)1 << step_bits;
    for (int64_t block = 0; block < blocks; block++) {
        add_rows(c.sum[0], values + block * ROWS * LANES);
        if ((block + 1) % step == 0) carry(&c, block + 1, step, step_bits);
    }
    for (int level = 1; level < LEVELS; level++) add_rows(c.sum[0], c.sum[level][0]);
    float(*first)[LANES] = c.sum[0];
    for (int64_t row = blocks * ROWS; row < rows; row++)
        for (int lane = 0; lane < LANES; lane++) first[0][lane] += values[row * LANES + lane];
    for (int k = 1; k < ROWS; k++)
        for (int lane = 0; lane < LANES; lane++) first[0][lane] += first[k][lane];
    float sum = 0;
    for (int64_t i = rows * LANES; i < count; i++) sum += values[i];
    for (int lane = 0; lane < LANES; lane++) sum += first[0][lane];
    return sum;
}

// --- the error of a range ---

typedef struct search {
    const histogram_view *h;
    float *scratch; // [bins]: errors of the bins
    float *sums;    // [bins]: cumulated counts
} search;

// floor(a / b) clamped to [0, last]. The double quotient of two floats is exact enough that its
// floor equals the result of torch's floor division, which uses fmod.
static float level_of(float a, float b, double last) {
    const double quotient = (double)a / (double)b;
    if (!(quotient > 0)) return 0.0F;
    if (quotient >= last) return (float)last;
    return quotient < 0x1p31 ? (float)(int32_t)quotient : (float)floor(quotient);
}

// The integral of density * x^2 from a to b.
static float squared_error(float density, float a, float b) {
    return density * ((b * b * b - a * a * a) / 3.0F);
}

// The squared quantization error when the levels of the quantized type cover the bins [start, end].
static double range_error(const search *s, int64_t start, int64_t end) {
    const histogram_view *h = s->h;
    const double bin_width = ((double)h->max - (double)h->min) / (double)h->bins;
    const double level_width = bin_width * (double)(end - start + 1) / h->levels;
    if (level_width == 0.0) return 0.0;
    const float bin = (float)bin_width, level = (float)level_width, half = (float)(level_width / 2);
    const double last = h->levels - 1;
    for (int64_t i = 0; i < h->bins; i++) {
        const float from = (float)(i - start) * bin, to = from + bin;
        const float first_level = level_of(from, level, last),
                    last_level = level_of(to, level, last);
        const float density = h->counts[i] / bin;
        const float first_center = (first_level + 0.5F) * level;
        const float last_center = last_level * level + half;
        float error = 0.0F + squared_error(density, from - first_center, half);
        error += (last_level - first_level - 1.0F) * squared_error(density, -half, half);
        error += squared_error(density, -half, to - last_center);
        s->scratch[i] = error;
    }
    return (double)tare__torch_sum(s->scratch, h->bins);
}

// --- the search ---

typedef struct bin_range {
    int64_t start, end;
} bin_range;

static bin_range best_range(const search *s) {
    const histogram_view *h = s->h;
    const double total = (double)tare__torch_sum(h->counts, h->bins), stepsize = 1e-5;
    double alpha = 0.0, beta = 1.0, best = INFINITY;
    bin_range range = {0, h->bins - 1};
    while (alpha < beta) {
        const double next_alpha = alpha + stepsize, next_beta = beta - stepsize;
        int64_t left = range.start, right = range.end;
        while (left < range.end && s->sums[left] < (float)(next_alpha * total)) left++;
        while (right > range.start && s->sums[right] > (float)(next_beta * total)) right--;
        bin_range candidate = range;
        if (left - range.start > range.end - right) {
            candidate.start = left;
            alpha = next_alpha;
        } else {
            candidate.end = right;
            beta = next_beta;
        }
        if (candidate.start == range.start && candidate.end == range.end) continue;
        const double error = range_error(s, candidate.start, candidate.end);
        if (error > best) break;
        best = error;
        range = candidate;
    }
    return range;
}

tare_status tare__histogram_search(const histogram_view *h, float *out_min, float *out_max,
                                   tare_error *err) {
    float *memory = tare__alloc_zeroed((size_t)h->bins, 2 * sizeof *memory);
    if (memory == NULL) return tare__out_of_memory(err);
    const search s = {.h = h, .scratch = memory, .sums = memory + h->bins};
    double sum = 0; // each prefix is rounded to float, the running sum is not
    for (int64_t i = 0; i < h->bins; i++) {
        sum += (double)h->counts[i];
        s.sums[i] = (float)sum;
    }
    const bin_range range = best_range(&s);
    const float bin = (h->max - h->min) / (float)h->bins;
    *out_min = h->min + bin * (float)range.start;
    *out_max = h->min + bin * (float)(range.end + 1);
    tare__free(memory);
    return TARE_OK;
}
