// SPDX-License-Identifier: Apache-2.0
// AdaRound (M. Nagel et al., "Up or down? Adaptive rounding for post-training quantization", 2020):
// each weight becomes floor(w / scale) + h(v), with h a stretched sigmoid. v goes down the gradient
// of the layer's squared error and of a term that drives h to 0 or 1 as it is annealed. The error
// over the samples is a quadratic form of the inputs' products, so that no sample is run again.
#include <math.h>

#include "core/math/f64.h"
#include "core/memory/alloc.h"
#include "debug/improve/round_weights.h"
#include "dnnl/float_kernels.h"

enum { STEPS = 120, WARM_UP = 24 };
// Stretching, and the range of the regularizer's exponent, as in the paper; its weight and the
// learning rate are adapted to fewer steps.
#define ZETA       1.1
#define GAMMA      (-0.1)
#define WEIGHT     0.1
#define FIRST_BETA 20.0
#define LAST_BETA  2.0
#define RATE       0.1 // Adam (D. Kingma, J. Ba, 2014)

typedef struct descent {
    const rounding *r;
    float_kernels *kernels;
    float *gram;          // [inner][inner], scaled so that the mean weight counts as 1
    float *lost, *pulled; // [count][inner]: error in levels times scale; and its product with gram
    double *v, *mean, *square; // [count][inner]: the learnt variable, and Adam's moments
    size_t size;
} descent;

static double clamp01(double x) {
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

static double sigmoid(double v) {
    return 1 / (1 + tare__exp(-v));
}

static double rectified_sigmoid(double v) {
    return clamp01(sigmoid(v) * (ZETA - GAMMA) + GAMMA);
}

// The level of a weight, clamped to the range.
static double level(const rounding *r, size_t at, double up) {
    const double quantized = floor(r->weights[at] / r->scales[at]) + up;
    return fmin(fmax(quantized, r->least[at]), r->most[at]);
}

static tare_status begin(descent *d) {
    const rounding *r = d->r;
    const size_t inner = (size_t)r->inner;
    d->size = (size_t)(r->count * r->inner);
    d->gram = tare__alloc_zeroed(inner * inner + 1, sizeof *d->gram);
    d->lost = tare__alloc_zeroed(d->size + 1, sizeof *d->lost);
    d->pulled = tare__alloc_zeroed(d->size + 1, sizeof *d->pulled);
    d->v = tare__alloc_zeroed(d->size + 1, sizeof *d->v);
    d->mean = tare__alloc_zeroed(d->size + 1, sizeof *d->mean);
    d->square = tare__alloc_zeroed(d->size + 1, sizeof *d->square);
    if (d->gram == NULL || d->lost == NULL || d->pulled == NULL || d->v == NULL ||
        d->mean == NULL || d->square == NULL)
        return tare__out_of_memory(r->err);
    double trace = 1e-30;
    for (size_t i = 0; i < inner; i++) trace += r->gram[i * inner + i] / (double)inner;
    for (size_t i = 0; i < inner * inner; i++) d->gram[i] = (float)(r->gram[i] / trace);
    for (size_t at = 0; at < d->size; at++) { // h(v) starts at the fraction that floor removes
        const double x = r->weights[at] / r->scales[at];
        const double fraction = (x - floor(x) - GAMMA) / (ZETA - GAMMA);
        d->v[at] = tare__log(fraction / (1 - fraction));
    }
    return tare__float_kernels_create(NULL, &d->kernels, r->err);
}

static void end(descent *d) {
    tare__float_kernels_destroy(d->kernels);
    tare__free(d->gram);
    tare__free(d->lost);
    tare__free(d->pulled);
    tare__free(d->v);
    tare__free(d->mean);
    tare__free(d->square);
}

// Rows have their own scales; normalizing by the mean one gives all the same learning rate.
static tare_status pull(descent *d) {
    const rounding *r = d->r;
    for (size_t at = 0; at < d->size; at++) {
        const double quantized = level(r, at, rectified_sigmoid(d->v[at]));
        d->lost[at] = (float)(quantized - r->weights[at] / r->scales[at]);
    }
    const float_product product = {r->count, r->inner, r->inner, false};
    return tare__float_multiply(d->kernels, &product, d->lost, d->gram, NULL, d->pulled, r->err);
}

// The derivative of weight * (1 - |2 h - 1|^beta) with respect to h.
static double drive(double h, double beta) {
    const double x = 2 * h - 1, size = fabs(x);
    if (size == 0) return 0;
    const double slope = 2 * beta * tare__pow(size, beta - 1);
    return WEIGHT * (x > 0 ? -slope : slope);
}

static void descend(descent *d, int step) {
    const double first = 1 - tare__pow(0.9, step + 1), second = 1 - tare__pow(0.999, step + 1);
    const double done = (double)(step - WARM_UP) / (STEPS - WARM_UP);
    const double beta = FIRST_BETA + (LAST_BETA - FIRST_BETA) * done;
    for (size_t at = 0; at < d->size; at++) {
        const double s = sigmoid(d->v[at]), h = s * (ZETA - GAMMA) + GAMMA;
        double slope = 2 * (double)d->pulled[at];
        if (step >= WARM_UP) slope += drive(clamp01(h), beta);
        if (h > 0 && h < 1)
            slope *= s * (1 - s) * (ZETA - GAMMA);
        else
            slope = 0;
        d->mean[at] = 0.9 * d->mean[at] + 0.1 * slope;
        d->square[at] = 0.999 * d->square[at] + 0.001 * slope * slope;
        d->v[at] -= RATE * (d->mean[at] / first) / (sqrt(d->square[at] / second) + 1e-8);
    }
}

static void finish(const descent *d) {
    for (size_t at = 0; at < d->size; at++)
        d->r->quantized[at] = level(d->r, at, rectified_sigmoid(d->v[at]) > 0.5 ? 1 : 0);
}

tare_status tare__round_adaround(const rounding *r) {
    descent d = {.r = r};
    tare_status status = begin(&d);
    for (int step = 0; step < STEPS && status == TARE_OK; step++) {
        status = pull(&d);
        if (status == TARE_OK) descend(&d, step);
    }
    if (status == TARE_OK) finish(&d);
    end(&d);
    return status;
}
