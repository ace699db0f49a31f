// SPDX-License-Identifier: Apache-2.0
// Functions of rows of floats. Every kind of vectors gives the same bits, because sums have a fixed
// order: element i is added to partial sum i mod 64, in the order of elements; then sum j + 32 is
// added to sum j for j < 32, and so on by halves. Exponentials have 16 partial sums instead, and
// one if the row has fewer than 16 elements.
#ifndef CORE_MATH_ROWS_H
#define CORE_MATH_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ROW_LANES = 64, ROW_FEW_LANES = 16 };
/// Columns of a panel of weights; a narrower panel has a multiple of PANEL_STEP columns.
enum { PANEL_COLUMNS = 64, PANEL_STEP = 16 };

/// A part of a matrix product: y[r][i] = (x[r][0] * w[0][i] + x[r][1] * w[1][i]) + .., two
/// roundings each, in this order, from 0, or from what y holds if `adds`. x [rows][inner], y
/// [rows][columns]; w [inner][columns], of which columns up to a multiple of PANEL_STEP must be
/// readable. Rows are
/// `*_step` floats apart. columns: 1 to PANEL_COLUMNS. inner may be 0. y must not overlap the
/// others. These are the sums of the portable kernels (dnnl/float_kernels.c), hence the same bits.
typedef struct float_tile {
    const float *x, *w;
    float *y;
    size_t rows, inner, columns;
    size_t x_step, w_step, y_step;
    bool adds;
} float_tile;

/// ROW_FUNCTIONS declares them for one kind of vectors. y may be x. count > 0.
///   add            y[i] += x[i]
///   sum            y[i] = a[i] + b[i]
///   max_into       y[i] = max(y[i], x[i]); NaN is greater than all
///   greatest       max(x), where 0 and -0 count as equal; NaN is ignored, -infinity if all are NaN
///   exponentials   y[i] = exp(x[i] - top), 0 where that is below exp(-87.3); and their sum, which
///                  is NaN if a difference x[i] - top is NaN
///   dots           y[r] = the sum of x[i] * w[r * stride + i] over i < count, by fma; y must not
///                  overlap the others
///   divide         y[i] = x[i] / by
///   subtract       y[i] = (x[i] - a) - b
///   moments        the mean, and the mean square of the distances to it
///   scale_shift    y[i] = fma(x[i], scale, shift)
///   from_int8      y[i] = x[i] * scale, of int8
///   affine         y[i] = x[i] * scale[i] + shift[i], two roundings
///   blend          y[i] = ((0 + share[0] * x[0][i]) + share[1] * x[1][i]) + .. of `rows` rows
///   tile           see float_tile
///   normalize      y[i] = (x[i] - mean) * (1 / sqrt(variance + eps)) * weight[i] + bias[i], the
///                  last two in one rounding; weight and bias may be NULL
///   rms_normalize  y[i] = x[i] * (1 / sqrt(mean square + eps)) * weight[i]; weight may be NULL
///   columns        y[c] = the sum of x[i * stride + c] over i < count, for c < width; y is not x.
///                  A column is summed in the order of torch's sum over count contiguous floats, so
///                  that averages near a rounding boundary round as in torch (PyTorch 2.15, on any
///                  processor: four rows of eight lanes, carried over every sixteen rows).
///                  Source: aten/src/ATen/native/cpu/SumKernel.cpp, vectorized_inner_sum and
///                  scalar_inner_sum. count: >= 0
///   total          the sum of x, equal to `columns` with one column of stride 1. count: >= 0
///   square_total   as total, for x[i] * x[i], where each product is rounded
/// ROW_FUNCTION_LIST expands X(suffix, name, parameters) for each.
#define ROW_FUNCTION_LIST(X, suffix)                                                               \
    X(suffix, add, (const float *x, size_t count, float *y))                                       \
    X(suffix, sum, (const float *a, const float *b, size_t count, float *y))                       \
    X(suffix, max_into, (const float *x, size_t count, float *y))                                  \
    X(suffix, greatest, (const float *x, size_t count, float *top))                                \
    X(suffix, exponentials, (const float *x, size_t count, float top, float *y, float *sum))       \
    X(suffix, dots,                                                                                \
      (const float *x, const float *w, size_t count, size_t rows, size_t stride, float *y))        \
    X(suffix, divide, (const float *x, size_t count, float by, float *y))                          \
    X(suffix, subtract, (const float *x, size_t count, float a, float b, float *y))                \
    X(suffix, moments, (const float *x, size_t count, float *mean, float *variance))               \
    X(suffix, scale_shift, (const float *x, size_t count, float scale, float shift, float *y))     \
    X(suffix, from_int8, (const int8_t *x, size_t count, float scale, float *y))                   \
    X(suffix, affine,                                                                              \
      (const float *x, size_t count, const float *scale, const float *shift, float *y))            \
    X(suffix, blend,                                                                               \
      (const float *const x[], const float *share, size_t rows, size_t count, float *y))           \
    X(suffix, tile, (const float_tile *t))                                                         \
    X(suffix, normalize,                                                                           \
      (const float *x, size_t count, const float *weight, const float *bias, float eps, float *y)) \
    X(suffix, rms_normalize,                                                                       \
      (const float *x, size_t count, const float *weight, float eps, float *y))                    \
    X(suffix, columns, (const float *x, size_t count, size_t stride, size_t width, float *y))      \
    X(suffix, total, (const float *x, size_t count, float *y))                                     \
    X(suffix, square_total, (const float *x, size_t count, float *y))
#define ROW_DECLARATION(suffix, name, parameters) void f32_##name##__##suffix parameters;
#define ROW_FUNCTIONS(suffix)                     ROW_FUNCTION_LIST(ROW_DECLARATION, suffix)

/// All of them for one kind of vectors.
#define ROW_MEMBER(suffix, name, parameters) void(*name) parameters;
typedef struct row_functions {
    ROW_FUNCTION_LIST(ROW_MEMBER, )
} row_functions;
#define ROW_VALUE(suffix, name, parameters) .name = f32_##name##__##suffix,
#define ROW_FUNCTIONS_OF(suffix)                                                                   \
    { ROW_FUNCTION_LIST(ROW_VALUE, suffix) }

ROW_FUNCTIONS(scalar)
extern const row_functions tare__scalar_rows;

#endif
