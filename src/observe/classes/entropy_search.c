// SPDX-License-Identifier: Apache-2.0
// Chooses the clipping range with the least relative entropy between the histogram, clipped at a
// bound, and its quantized form. Source: S. Migacz, "8-bit inference with TensorRT" (GTC 2017);
// MXNet and ONNX Runtime have the same search.
#include "observe/classes/range_search.h"

#include <math.h>

#include "core/math/f64.h"
#include "core/memory/alloc.h"

typedef struct entropy_search {
    double *sizes; // [count]: number of values per magnitude bin; bin 0 begins at zero
    int64_t count;
    int64_t levels; // quantization levels of one sign
} entropy_search;

// The relative entropy of the bins [from, to), which one level represents: the level's count is
// spread evenly over those of its bins that are not empty.
static double level_entropy(const entropy_search *s, int64_t from, int64_t to, double extra) {
    double sum = 0, used = 0, loss = 0;
    for (int64_t i = from; i < to; i++) {
        sum += s->sizes[i];
        used += s->sizes[i] > 0;
    }
    // Values beyond the bound are added to the last bin of the reference, but not to the quantized
    // form.
    for (int64_t i = from; i < to; i++) {
        const double p = s->sizes[i] + (i == to - 1 ? extra : 0);
        const double q = s->sizes[i] > 0 && used > 0 ? sum / used : 0;
        if (p > 0) loss += p * (tare__log(p) - tare__log(q > 0 ? q : 1e-4));
    }
    return loss;
}

// The relative entropy when the first `bins` bins are kept and the rest is clipped.
static double entropy_of(const entropy_search *s, int64_t bins, double total) {
    double inside = 0, loss = 0;
    for (int64_t i = 0; i < bins; i++) inside += s->sizes[i];
    for (int64_t level = 0; level < s->levels; level++) {
        const int64_t from = level * bins / s->levels, to = (level + 1) * bins / s->levels;
        const bool is_last = level == s->levels - 1;
        loss += level_entropy(s, from, to, is_last ? total - inside : 0);
    }
    // Normalizes: the quantized counts sum to `inside`, the reference's to `total`.
    return loss / total - (inside > 0 ? tare__log(total) - tare__log(inside) : 0);
}

static int64_t best_bins(const entropy_search *s) {
    double total = 0, best = INFINITY;
    int64_t found = s->count, last = s->count;
    for (int64_t i = 0; i < s->count; i++) total += s->sizes[i];
    while (last > 1 && s->sizes[last - 1] == 0) last--;
    if (last <= s->levels || !(total > 0)) return last;
    const int64_t step = (last - s->levels) / 256 + 1; // at most 257 bounds
    for (int64_t bins = last; bins >= s->levels; bins -= step) {
        const double loss = entropy_of(s, bins, total);
        if (!(loss < best)) continue;
        best = loss;
        found = bins;
    }
    return found;
}

tare_status tare__search_entropy(const centred_histogram *h, const uniform *u, float *out_min,
                                 float *out_max, tare_error *err) {
    const int64_t middle = h->bins / 2, steps = u->quant_max - u->quant_min;
    const bool has_one_sign =
        u->qscheme != TARE_PER_TENSOR_SYMMETRIC && (h->min >= 0 || h->max <= 0);
    entropy_search s = {.sizes = tare__alloc_zeroed((size_t)middle, sizeof(double)),
                        .count = middle,
                        .levels = has_one_sign ? steps : steps / 2};
    if (s.sizes == NULL) return tare__out_of_memory(err);
    if (s.levels < 1) s.levels = 1;
    for (int64_t m = 0; m < middle; m++)
        s.sizes[m] = (double)h->counts[middle + m] + (double)h->counts[middle - 1 - m];
    // ReLU and padding produce many zeros, which any bound represents exactly. If they were
    // counted, the search would keep the first level narrow and clip large values too early.
    // (NVIDIA's pytorch-quantization replaces the first bin, too.)
    if (middle > 1) s.sizes[0] = s.sizes[1];
    const double bound = (double)best_bins(&s) * h->width;
    tare__free(s.sizes);
    *out_min = -bound > (double)h->min ? (float)-bound : h->min;
    *out_max = bound < (double)h->max ? (float)bound : h->max;
    return TARE_OK;
}
