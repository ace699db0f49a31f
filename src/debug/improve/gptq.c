// SPDX-License-Identifier: Apache-2.0
// GPTQ (E. Frantar et al., "GPTQ: accurate post-training quantization for generative pre-trained
// transformers", 2022), computed as LDLQ (J. Chee et al., "QuIP", 2023, which proves that both are
// the same): with the inputs' second moments H = (U + I) D (U + I)^T, U strictly upper triangular,
//   q[k] = round(w[k] + sum of (w[j] - q[j]) U[j][k] over j < k)
// for the columns k in order. The columns of the greatest inputs come first.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "debug/improve/round_weights.h"

enum { SWEEPS = 8 };
#define DAMPING 0.01 // relative to the mean of H's diagonal, as in GPTQ

typedef struct factor {
    int64_t inner;
    int64_t *order;  // [inner]: columns by descending input
    double *columns; // [inner][inner]: columns[k][j] is U[j][k], j < k
} factor;

typedef struct ranked {
    double size;
    int64_t index;
} ranked;

static int by_size(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->size != y->size) return x->size < y->size ? 1 : -1;
    return x->index < y->index ? -1 : 1;
}

static tare_status rank(const rounding *r, factor *f) {
    ranked *all = tare__alloc_zeroed((size_t)r->inner, sizeof *all);
    if (all == NULL) return tare__out_of_memory(r->err);
    for (int64_t i = 0; i < r->inner; i++) all[i] = (ranked){r->gram[i * r->inner + i], i};
    qsort(all, (size_t)r->inner, sizeof *all, by_size);
    for (int64_t i = 0; i < r->inner; i++) f->order[i] = all[i].index;
    tare__free(all);
    return TARE_OK;
}

static double damping_of(const rounding *r) {
    double mean = 0;
    for (int64_t i = 0; i < r->inner; i++) mean += r->gram[i * r->inner + i] / (double)r->inner;
    return DAMPING * mean + 1e-30;
}

// Copies the lower triangle of the damped matrix, in order, to where the factor is computed.
static void take_matrix(const rounding *r, factor *f) {
    const int64_t n = r->inner;
    const double damping = damping_of(r);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++)
            f->columns[i * n + j] = r->gram[f->order[i] * n + f->order[j]];
        f->columns[i * n + i] += damping;
    }
}

// From the last column to the first: column k of U is row k of the lower triangle divided by its
// pivot; its outer product is subtracted from the rest.
static void factorize(factor *f) {
    const int64_t n = f->inner;
    for (int64_t k = n - 1; k >= 0; k--) {
        double *row = f->columns + k * n;
        const double pivot = row[k] > 0 ? row[k] : 1e-30;
        for (int64_t i = 0; i < k; i++) {
            const double ratio = row[i] / pivot;
            double *target = f->columns + i * n;
            for (int64_t j = 0; j <= i; j++) target[j] -= ratio * row[j];
        }
        for (int64_t i = 0; i < k; i++) row[i] /= pivot;
    }
}

static double level(const rounding *r, int64_t at, double x) {
    return fmin(fmax(rint(x), r->least[at]), r->most[at]);
}

// Coordinate descent, as in QuantEase (K. Behdin et al., 2023): each weight in turn gets the level
// that is best given all others. pull: H times the error, updated with every change.
static bool improve_row(const rounding *r, double damping, int64_t row, double *lost,
                        double *pull) {
    bool has_changed = false;
    for (int64_t k = 0; k < r->inner; k++) {
        const int64_t at = row * r->inner + k;
        const double *column = r->gram + k * r->inner;
        const double diagonal = column[k] + damping;
        const double best = lost[k] - (pull[k] + damping * lost[k]) / diagonal;
        const double quantized = level(r, at, (r->weights[at] - best) / r->scales[at]);
        if (quantized == r->quantized[at]) continue;
        const double change = (r->quantized[at] - quantized) * r->scales[at];
        for (int64_t i = 0; i < r->inner; i++) pull[i] += change * column[i];
        lost[k] += change;
        r->quantized[at] = quantized;
        has_changed = true;
    }
    return has_changed;
}

static void descend_row(const rounding *r, double damping, int64_t row, double *lost,
                        double *pull) {
    for (int64_t k = 0; k < r->inner; k++) {
        const int64_t at = row * r->inner + k;
        lost[k] = r->weights[at] - r->quantized[at] * r->scales[at];
    }
    for (int64_t k = 0; k < r->inner; k++)
        pull[k] = tare__dot8(lost, r->gram + k * r->inner, r->inner);
    for (int i = 0; i < SWEEPS; i++)
        if (!improve_row(r, damping, row, lost, pull)) return;
}

static void round_row(const rounding *r, const factor *f, int64_t row, double *lost) {
    for (int64_t k = 0; k < r->inner; k++) {
        const int64_t at = row * r->inner + f->order[k];
        const double wanted = r->weights[at] + tare__dot8(lost, f->columns + k * r->inner, k);
        r->quantized[at] = level(r, at, wanted / r->scales[at]);
        lost[k] = r->weights[at] - r->quantized[at] * r->scales[at];
    }
}

tare_status tare__round_gptq(const rounding *r) {
    const size_t n = (size_t)r->inner;
    factor f = {.inner = r->inner,
                .order = tare__alloc_zeroed(n + 1, sizeof *f.order),
                .columns = tare__alloc_zeroed(n * n + 1, sizeof *f.columns)};
    double *lost = tare__alloc_zeroed(n + 1, 2 * sizeof *lost);
    tare_status status = f.order == NULL || f.columns == NULL || lost == NULL
                             ? tare__out_of_memory(r->err)
                             : rank(r, &f);
    if (status == TARE_OK) {
        take_matrix(r, &f);
        factorize(&f);
        const double damping = damping_of(r);
        for (int64_t row = 0; row < r->count; row++) {
            round_row(r, &f, row, lost);
            descend_row(r, damping, row, lost, lost + n);
        }
    }
    tare__free(f.order);
    tare__free(f.columns);
    tare__free(lost);
    return status;
}

void tare__round_nearest(const rounding *r) {
    for (int64_t at = 0; at < r->count * r->inner; at++)
        r->quantized[at] = level(r, at, r->weights[at] / r->scales[at]);
}
