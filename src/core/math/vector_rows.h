// SPDX-License-Identifier: Apache-2.0
// Functions of rows of floats for all kinds of vectors, documented in core/math/rows.h. The
// including file must include a kind of vectors first, and define ROWS(name).
#include <math.h>

#include "core/math/f32.h"
#include "core/math/rows.h"
#include "core/math/vector_functions.h"

enum { SUMS = ROW_LANES / WIDTH, FEW_SUMS = ROW_FEW_LANES / WIDTH };

// The next elements of a row with `left` remaining ones, padded with zeros.
static inline vec take(const float *x, size_t left) {
    return left >= WIDTH ? v_load(x) : v_load_first(x, left);
}
static inline void give(float *y, vec a, size_t left) {
    if (left >= WIDTH)
        v_store(y, a);
    else
        v_store_first(y, a, left);
}
static inline vec keep(vec a, size_t left) {
    return left >= WIDTH ? a : v_keep(a, left);
}

void ROWS(f32_add)(const float *x, size_t count, float *y) {
    for (size_t i = 0; i < count; i += WIDTH)
        give(y + i, v_add(take(y + i, count - i), take(x + i, count - i)), count - i);
}

void ROWS(f32_sum)(const float *a, const float *b, size_t count, float *y) {
    for (size_t i = 0; i < count; i += WIDTH)
        give(y + i, v_add(take(a + i, count - i), take(b + i, count - i)), count - i);
}

void ROWS(f32_max_into)(const float *x, size_t count, float *y) {
    for (size_t i = 0; i < count; i += WIDTH) {
        const vec a = take(x + i, count - i), b = take(y + i, count - i);
        give(y + i, v_blend(v_is_nan(a), a, v_max(a, b)), count - i);
    }
}

// --- sums in the order that core/math/rows.h states ---

static inline void clear(vec *sums, size_t count) {
    for (size_t k = 0; k < count; k++) sums[k] = v_set(0.0F);
}

static inline float fold(vec *sums, size_t count) {
    for (size_t half = count / 2; half > 0; half /= 2)
        for (size_t k = 0; k < half; k++) sums[k] = v_add(sums[k], sums[k + half]);
    return v_fold(sums[0]);
}

static float sum_of(const float *x, size_t count) {
    vec sums[SUMS];
    size_t i = 0;
    clear(sums, SUMS);
    for (; i + ROW_LANES <= count; i += ROW_LANES)
        for (size_t k = 0; k < SUMS; k++) sums[k] = v_add(sums[k], v_load(x + i + k * WIDTH));
    for (size_t k = 0; i < count; i += WIDTH, k++) sums[k] = v_add(sums[k], take(x + i, count - i));
    return fold(sums, SUMS);
}

static inline vec add_square(vec sum, vec distance) {
    return v_fma(distance, distance, sum);
}

// The sum of squared distances from `mean`.
static float squares_of(const float *x, size_t count, float mean) {
    const vec zero = v_set(mean);
    vec sums[SUMS];
    size_t i = 0;
    clear(sums, SUMS);
    for (; i + ROW_LANES <= count; i += ROW_LANES)
        for (size_t k = 0; k < SUMS; k++)
            sums[k] = add_square(sums[k], v_sub(v_load(x + i + k * WIDTH), zero));
    for (size_t k = 0; i < count; i += WIDTH, k++)
        sums[k] = add_square(sums[k], keep(v_sub(take(x + i, count - i), zero), count - i));
    return fold(sums, SUMS);
}

void ROWS(f32_dots)(const float *x, const float *w, size_t count, size_t rows, size_t stride,
                    float *y) {
    for (size_t r = 0; r < rows; r++, w += stride) {
        vec sums[SUMS];
        size_t i = 0;
        clear(sums, SUMS);
        for (; i + ROW_LANES <= count; i += ROW_LANES)
            for (size_t k = 0; k < SUMS; k++)
                sums[k] = v_fma(v_load(x + i + k * WIDTH), v_load(w + i + k * WIDTH), sums[k]);
        for (size_t k = 0; i < count; i += WIDTH, k++)
            sums[k] = v_fma(take(x + i, count - i), take(w + i, count - i), sums[k]);
        y[r] = fold(sums, SUMS);
    }
}

// --- exponentials ---

void ROWS(f32_greatest)(const float *x, size_t count, float *top) {
    vec tops[SUMS];
    size_t i = 0;
    for (size_t k = 0; k < SUMS; k++) tops[k] = v_set(-INFINITY);
    for (; i + ROW_LANES <= count; i += ROW_LANES)
        for (size_t k = 0; k < SUMS; k++) tops[k] = v_max(v_load(x + i + k * WIDTH), tops[k]);
    for (; i + WIDTH <= count; i += WIDTH) tops[0] = v_max(v_load(x + i), tops[0]);
    for (size_t k = 1; k < SUMS; k++) tops[0] = v_max(tops[0], tops[k]);
    float best = v_fold_max(tops[0]);
    for (; i < count; i++) best = x[i] > best ? x[i] : best;
    *top = best;
}

// The sum is in torch's order (PyTorch 2.15 with AVX-512).
void ROWS(f32_exponentials)(const float *x, size_t count, float top, float *y, float *sum) {
    const vec zero = v_set(top);
    vec sums[FEW_SUMS];
    size_t i = 0;
    clear(sums, FEW_SUMS);
    for (; i + ROW_FEW_LANES <= count; i += ROW_FEW_LANES)
        for (size_t k = 0; k < FEW_SUMS; k++) {
            const vec e = v_exp_down(v_sub(v_load(x + i + k * WIDTH), zero));
            sums[k] = v_add(sums[k], e);
            v_store(y + i + k * WIDTH, e);
        }
    for (size_t k = 0; i < count; i += WIDTH, k++) {
        const vec e = v_exp_down(v_sub(take(x + i, count - i), zero));
        sums[k] = v_add(sums[k], keep(e, count - i));
        give(y + i, e, count - i);
    }
    *sum = count >= ROW_FEW_LANES ? fold(sums, FEW_SUMS) : y[0];
    for (i = 1; i < count && count < ROW_FEW_LANES; i++) *sum += y[i];
}

void ROWS(f32_divide)(const float *x, size_t count, float by, float *y) {
    const vec whole = v_set(by);
    for (size_t i = 0; i < count; i += WIDTH)
        give(y + i, v_div(take(x + i, count - i), whole), count - i);
}

void ROWS(f32_subtract)(const float *x, size_t count, float a, float b, float *y) {
    const vec first = v_set(a), second = v_set(b);
    for (size_t i = 0; i < count; i += WIDTH)
        give(y + i, v_sub(v_sub(take(x + i, count - i), first), second), count - i);
}

// --- norms ---

void ROWS(f32_moments)(const float *x, size_t count, float *mean, float *variance) {
    *mean = sum_of(x, count) / (float)count;
    *variance = squares_of(x, count, *mean) / (float)count;
}

void ROWS(f32_scale_shift)(const float *x, size_t count, float scale, float shift, float *y) {
    const vec a = v_set(scale), b = v_set(shift);
    for (size_t i = 0; i < count; i += WIDTH)
        give(y + i, v_fma(take(x + i, count - i), a, b), count - i);
}

// Compilers have vectors for this.
void ROWS(f32_from_int8)(const int8_t *x, size_t count, float scale, float *y) {
    for (size_t i = 0; i < count; i++) y[i] = (float)x[i] * scale;
}

void ROWS(f32_affine)(const float *x, size_t count, const float *scale, const float *shift,
                      float *y) {
    for (size_t i = 0; i < count; i += WIDTH) {
        const size_t left = count - i;
        const vec product = v_mul(take(x + i, left), take(scale + i, left));
        give(y + i, v_add(product, take(shift + i, left)), left);
    }
}

void ROWS(f32_blend)(const float *const x[], const float *share, size_t rows, size_t count,
                     float *y) {
    for (size_t i = 0; i < count; i += WIDTH) {
        vec sum = v_set(0.0F);
        for (size_t k = 0; k < rows; k++)
            sum = v_add(sum, v_mul(v_set(share[k]), take(x[k] + i, count - i)));
        give(y + i, sum, count - i);
    }
}

// --- parts of matrix products ---

// A tile has as many vectors as leave registers for weights: four rows of 64 columns with AVX-512,
// of 16 with others.
enum {
    TILE_ROWS = 4,
    TILE_VECTORS = ((int)WIDTH >= (int)PANEL_STEP ? PANEL_COLUMNS : PANEL_STEP) / (int)WIDTH,
};

static inline vec load_part(const float *y, size_t left) {
    return left >= WIDTH ? v_load(y) : v_load_first(y, left);
}

// Of the `most` rows of a tile, and its columns, `rows` and `columns` exist. Missing rows repeat
// the last one, and are not stored. `most` and vectors are constants, so that sums stay in
// registers.
static inline __attribute__((always_inline)) void tile_of(const float_tile *t, size_t row,
                                                          size_t column, const size_t most,
                                                          const size_t vectors, size_t rows,
                                                          size_t columns) {
    const float *x[TILE_ROWS], *w = t->w + column;
    float *y = t->y + row * t->y_step + column;
    vec sums[TILE_ROWS][TILE_VECTORS];
    for (size_t r = 0; r < most; r++) x[r] = t->x + (row + (r < rows ? r : rows - 1)) * t->x_step;
    for (size_t r = 0; r < most; r++)
        for (size_t k = 0; k < vectors; k++)
            sums[r][k] = t->adds && r < rows && k * WIDTH < columns
                             ? load_part(y + r * t->y_step + k * WIDTH, columns - k * WIDTH)
                             : v_set(0.0F);
    for (size_t i = 0; i < t->inner; i++, w += t->w_step) {
        vec weights[TILE_VECTORS];
        for (size_t k = 0; k < vectors; k++) weights[k] = v_load(w + k * WIDTH);
        for (size_t r = 0; r < most; r++) {
            const vec a = v_set(x[r][i]);
            for (size_t k = 0; k < vectors; k++)
                sums[r][k] = v_add(sums[r][k], v_mul(a, weights[k]));
        }
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < vectors && k * WIDTH < columns; k++)
            give(y + r * t->y_step + k * WIDTH, sums[r][k], columns - k * WIDTH);
}

// Full tiles are compiled on their own, and single rows, which are limited by reading the weights.
static inline __attribute__((always_inline)) void tiles_of(const float_tile *t, size_t column,
                                                           const size_t vectors) {
    const size_t columns = t->columns - column;
    const bool is_full = columns >= vectors * WIDTH;
    size_t row = 0;
    if (t->rows == 1 && is_full) {
        tile_of(t, 0, column, 1, vectors, 1, vectors * WIDTH);
        return;
    }
    if (is_full)
        for (; row + TILE_ROWS <= t->rows; row += TILE_ROWS)
            tile_of(t, row, column, TILE_ROWS, vectors, TILE_ROWS, vectors * WIDTH);
    for (; row < t->rows; row += TILE_ROWS)
        tile_of(t, row, column, TILE_ROWS, vectors,
                t->rows - row < TILE_ROWS ? t->rows - row : TILE_ROWS, columns);
}

void ROWS(f32_tile)(const float_tile *t) {
    const size_t step = (size_t)TILE_VECTORS * WIDTH;
    for (size_t column = 0; column < t->columns; column += step) {
        const size_t vectors = (t->columns - column + WIDTH - 1) / WIDTH;
        if (TILE_VECTORS > 1 && vectors == 1)
            tiles_of(t, column, 1);
        else if (TILE_VECTORS > 2 && vectors == 2)
            tiles_of(t, column, 2);
        else if (TILE_VECTORS > 3 && vectors == 3)
            tiles_of(t, column, 3);
        else
            tiles_of(t, column, TILE_VECTORS);
    }
}

static inline vec unit_of(vec x, vec mean, vec scale) {
    return v_mul(v_sub(x, mean), scale);
}

// The common case, with weight and bias.
static void affine_row(const float *x, size_t count, vec mean, vec scale, const float *weight,
                       const float *bias, float *y) {
    for (size_t i = 0; i < count; i += WIDTH) {
        const size_t left = count - i;
        const vec unit = unit_of(take(x + i, left), mean, scale);
        give(y + i, v_fma(unit, take(weight + i, left), take(bias + i, left)), left);
    }
}

void ROWS(f32_normalize)(const float *x, size_t count, const float *weight, const float *bias,
                         float eps, float *y) {
    float mean, variance;
    ROWS(f32_moments)(x, count, &mean, &variance);
    const vec zero = v_set(mean), scale = v_set(1.0F / sqrtf(variance + eps));
    if (weight != NULL && bias != NULL) {
        affine_row(x, count, zero, scale, weight, bias, y);
        return;
    }
    for (size_t i = 0; i < count; i += WIDTH) {
        const size_t left = count - i;
        vec a = unit_of(take(x + i, left), zero, scale);
        if (weight != NULL) a = v_mul(a, take(weight + i, left));
        if (bias != NULL) a = v_add(a, take(bias + i, left));
        give(y + i, a, left);
    }
}

void ROWS(f32_rms_normalize)(const float *x, size_t count, const float *weight, float eps,
                             float *y) {
    const float mean = squares_of(x, count, 0.0F) / (float)count;
    const vec scale = v_set(1.0F / sqrtf(mean + eps));
    for (size_t i = 0; i < count; i += WIDTH) {
        const size_t left = count - i;
        const vec a = v_mul(take(x + i, left), scale);
        give(y + i, weight != NULL ? v_mul(a, take(weight + i, left)) : a, left);
    }
}
