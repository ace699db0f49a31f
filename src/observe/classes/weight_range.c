// SPDX-License-Identifier: Apache-2.0
// Clipping of weights by squared error: each candidate range is evaluated by quantizing every
// value. Idea: R. Banner et al., "Post training 4-bit quantization of convolutional networks for
// rapid-deployment" (2019), section 2; here by search, as in OMSE (Y. Choukroun et al., "Low-bit
// quantization of neural networks for efficient inference", 2019).
#include "observe/classes/weight_range.h"

#include <math.h>

typedef struct grid {
    float per_scale;
    double scale, zero_point, least, most; // least, most: quantized values
} grid;

// False if the range gives no valid scale.
static bool make_grid(const uniform *u, double min, double max, grid *out) {
    double scale = 0, zero_point = 0;
    tare__uniform_range(u, (float)min, (float)max, &scale, &zero_point);
    *out =
        (grid){(float)(1 / scale), scale, zero_point, (double)u->quant_min, (double)u->quant_max};
    return scale > 0 && isfinite(scale) && isfinite(out->per_scale);
}

static double rounded(const grid *g, float x) {
    double q = (double)rintf(x * g->per_scale) + g->zero_point;
    if (q < g->least) q = g->least;
    if (q > g->most) q = g->most;
    return (q - g->zero_point) * g->scale;
}

// --- weights on a grid ---

static bool is_on(const grid *g, const float *values, int64_t count, double slack) {
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)values[i] - rounded(g, values[i])) <= slack)) return false;
    return true;
}

static bool is_symmetric(const uniform *u) {
    return u->qscheme == TARE_PER_TENSOR_SYMMETRIC || u->qscheme == TARE_PER_CHANNEL_SYMMETRIC ||
           u->qscheme == TARE_PER_GROUP_SYMMETRIC;
}

// The greatest possible number of steps from zero to the greatest magnitude (symmetric schemes), or
// between the two ends.
static int64_t most_steps(const uniform *u) {
    const int64_t levels = u->quant_max - u->quant_min;
    return is_symmetric(u) ? (levels + 1) / 2 : levels;
}

// The factor for [min, max] with which the extremes are `steps` quantization steps apart
// (symmetric: the greatest magnitude is `steps` steps from zero). Symmetric schemes map the
// greatest magnitude to half of all steps, which is not an integer.
static double factor_of_steps(const uniform *u, int64_t steps) {
    const double all = (double)u->quant_max - (double)u->quant_min;
    return (is_symmetric(u) ? all / 2 : all) / (double)steps;
}

static bool find_grid(const uniform *u, const float *values, int64_t count, float *min,
                      float *max) {
    const double low = *min < 0 ? (double)*min : 0, high = *max > 0 ? (double)*max : 0;
    const double slack = 1e-5 * (high - low);
    for (int64_t steps = most_steps(u); steps > 0; steps--) {
        const double factor = factor_of_steps(u, steps);
        grid g;
        if (!make_grid(u, low * factor, high * factor, &g) || !is_on(&g, values, count, slack))
            continue;
        *min = (float)(low * factor);
        *max = (float)(high * factor);
        return true;
    }
    return false;
}

// --- the search ---

typedef struct search {
    const uniform *u;
    const float *values;
    int64_t count;
    double min, max;           // extremes of the values
    double min_factor, max_factor; // of the best range so far
    double error;
} search;

static double error_of(const search *s, const grid *g) {
    double error = 0;
    for (int64_t i = 0; i < s->count && error < s->error; i++) {
        const double rest = (double)s->values[i] - rounded(g, s->values[i]);
        error += rest * rest;
    }
    return error;
}

static void try_factors(search *s, double min_factor, double max_factor) {
    grid g;
    if (!make_grid(s->u, s->min * min_factor, s->max * max_factor, &g)) return;
    const double error = error_of(s, &g);
    if (!(error < s->error)) return;
    s->error = error;
    s->min_factor = min_factor;
    s->max_factor = max_factor;
}

// Tries factors for both ends: from no clipping down to about a fifth of the range.
static void search_both(search *s) {
    const int64_t most = s->u->quant_max - s->u->quant_min;
    double factor = is_symmetric(s->u) && most > 1 ? factor_of_steps(s->u, most / 2) : 1;
    try_factors(s, 1, 1);
    for (int i = 0; i < 80; i++, factor *= 0.98) try_factors(s, factor, factor);
}

// Tries factors for each end alone, which only affine schemes distinguish.
static void search_ends(search *s) {
    const double min_factor = s->min_factor;
    for (int i = -8; i <= 8; i++) try_factors(s, min_factor * (1 + 0.02 * i), s->max_factor);
    const double max_factor = s->max_factor;
    for (int i = -8; i <= 8; i++) try_factors(s, s->min_factor, max_factor * (1 + 0.02 * i));
}

void tare__search_weight_range(const uniform *u, const float *values, int64_t count, float *min,
                               float *max) {
    if (!isfinite(*min) || !isfinite(*max) || *min > *max || count == 0 ||
        u->qscheme == TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS ||
        find_grid(u, values, count, min, max))
        return;
    search s = {.u = u,
                .values = values,
                .count = count,
                .min = *min < 0 ? (double)*min : 0,
                .max = *max > 0 ? (double)*max : 0,
                .min_factor = 1,
                .max_factor = 1,
                .error = INFINITY};
    search_both(&s);
    if (!is_symmetric(u) && s.min < 0 && s.max > 0) search_ends(&s);
    *min = (float)(s.min * s.min_factor);
    *max = (float)(s.max * s.max_factor);
}
