// SPDX-License-Identifier: Apache-2.0
// Kernels over rows of floats: every level gives the portable one's bits, which are right.
#include "support/test.h"

#include <math.h>

#include "core/math/f32.h"
#include "runtime/kernels/rows.h"

enum { MOST = 2 * ROW_LANES + 35 };

static float next_float(uint64_t *seed, float range) {
    *seed = *seed * 6364136223846793005U + 1442695040888963407U;
    return ((float)(*seed >> 40) / 8388608.0F - 1.0F) * range;
}

static void fill(float *x, size_t count, uint64_t seed, float range) {
    for (size_t i = 0; i < count; i++) x[i] = next_float(&seed, range);
}

// Where functions turn, and what is no ordinary number.
static const float extremes[] = {
    0.0F,    -0.0F,    INFINITY, -INFINITY, NAN,     0x1p-149F, -0x1p-149F, 0x1p-127F, -0x1p-126F,
    3.4e38F, -3.4e38F, 88.3F,    88.7F,     88.8F,   -87.3F,    -87.4F,     -103.9F,   -104.1F,
    0.9F,    -0.9F,    6.0F,     -6.0F,     -6.001F, 1e-20F,    -1e-20F,    20.5F,     -17.5F,
};
enum { EXTREMES = sizeof extremes / sizeof *extremes };

static void add_extremes(float *x, size_t count, uint64_t seed) {
    for (size_t i = seed % 7; i < count; i += 5) x[i] = extremes[(i + seed) % EXTREMES];
}

static const row_kernels *scalar(void) {
    return &tare__row_kernels[tare__row_kernel_count - 1];
}

// NaN are equal whichever they are.
static void assert_same_bits(const float *a, const float *b, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (isnan(a[i]) && isnan(b[i])) continue;
        assert_memory_equal(a + i, b + i, sizeof *a);
    }
}

typedef void (*line_function)(const row_kernels *k, const float *x, size_t count, float *y);

static void add(const row_kernels *k, const float *x, size_t count, float *y) {
    k->functions.add(x, count, y);
}
static void sum(const row_kernels *k, const float *x, size_t count, float *y) {
    k->functions.sum(x, y, count, y);
}
static void raise_to(const row_kernels *k, const float *x, size_t count, float *y) {
    k->functions.max_into(x, count, y);
}
// Of two halves, which may overlap by one.
static void dots(const row_kernels *k, const float *x, size_t count, float *y) {
    k->functions.dots(x, x, (count + 1) / 2, count > 1 ? 2 : 1, count / 2, y);
}
static void softmax(const row_kernels *k, const float *x, size_t count, float *y) {
    float top, sum;
    k->functions.greatest(x, count, &top);
    k->functions.exponentials(x, count, top, y, &sum);
    k->functions.divide(y, count, sum, y);
}
static void softmax_in_place(const row_kernels *k, const float *x, size_t count, float *y) {
    memcpy(y, x, count * sizeof *x);
    softmax(k, y, count, y);
}
static void log_softmax(const row_kernels *k, const float *x, size_t count, float *y) {
    float top, sum;
    k->functions.greatest(x, count, &top);
    k->functions.exponentials(x, count, top, y, &sum);
    k->functions.subtract(x, count, top, tare__logf(sum), y);
}
static void moments(const row_kernels *k, const float *x, size_t count, float *y) {
    k->functions.moments(x, count, &y[0], &y[1]);
}
static void scale_shift(const row_kernels *k, const float *x, size_t count, float *y) {
    k->functions.scale_shift(x, count, 1.7F, -0.3F, y);
}
// The bytes of a row of floats.
static void from_int8(const row_kernels *k, const float *x, size_t count, float *y) {
    int8_t numbers[MOST];
    memcpy(numbers, x, count);
    k->functions.from_int8(numbers, count, 0.37F, y);
}
static void normalize(const row_kernels *k, const float *x, size_t count, float *y) {
    float weight[MOST], bias[MOST];
    fill(weight, MOST, 5, 2);
    fill(bias, MOST, 6, 2);
    k->functions.normalize(x, count, count % 3 != 0 ? weight : NULL, count % 2 != 0 ? bias : NULL,
                           1e-5F, y);
}

static void rms_normalize(const row_kernels *k, const float *x, size_t count, float *y) {
    float weight[MOST];
    fill(weight, MOST, 5, 2);
    k->functions.rms_normalize(x, count, count % 3 != 0 ? weight : NULL, 1e-5F, y);
}

static void check_line(line_function f, const row_kernels *level, const float *x, size_t count) {
    float expected[MOST + 2], found[MOST + 2];
    fill(expected, MOST + 2, count + 1, 3);
    memcpy(found, expected, sizeof found);
    f(scalar(), x, count, expected);
    f(level, x, count, found);
    assert_same_bits(found, expected, MOST + 2); // nothing beyond the line, too
}

static void check_levels(line_function f, float range) {
    float x[MOST];
    for (size_t k = 0; k < tare__row_kernel_count; k++) {
        const row_kernels *level = &tare__row_kernels[k];
        if (!tare__kernel_suits(&level->needs, tare__isa_detect())) continue;
        for (size_t count = 1; count <= MOST; count++) {
            fill(x, MOST, count, range);
            check_line(f, level, x, count);
            add_extremes(x, MOST, count);
            check_line(f, level, x, count);
            x[count / 2] = extremes[count % EXTREMES];
            fill(x, count / 2, count, range);
            check_line(f, level, x, count);
        }
    }
}

static void every_level_gives_the_same_bits(void **state) {
    (void)state;
    check_levels(add, 3);
    check_levels(sum, 3);
    check_levels(raise_to, 3);
    check_levels(dots, 3);
    check_levels(softmax, 2);
    check_levels(softmax, 60); // most elements end below the smallest float
    check_levels(softmax_in_place, 9);
    check_levels(log_softmax, 9);
    check_levels(moments, 3);
    check_levels(scale_shift, 3);
    check_levels(from_int8, 3);
    check_levels(normalize, 3);
    check_levels(rms_normalize, 3);
}

static void check_loop(element_loop loop, element_loop expected_loop, const float *x,
                       size_t count) {
    static const float p[] = {0.7F, 1.3F, 0.9F};
    float expected[MOST + 1] = {0}, found[MOST + 1] = {0};
    expected_loop(x, expected, (int64_t)count, p);
    loop(x, found, (int64_t)count, p);
    assert_same_bits(found, expected, MOST + 1);
    memcpy(found, x, count * sizeof *x);
    loop(found, found, (int64_t)count, p);
    assert_same_bits(found, expected, MOST + 1); // in place
}

static void every_level_computes_the_same_functions(void **state) {
    (void)state;
    float x[MOST];
    for (size_t k = 0; k < tare__row_kernel_count; k++) {
        const row_kernels *level = &tare__row_kernels[k];
        if (!tare__kernel_suits(&level->needs, tare__isa_detect())) continue;
        for (size_t e = ELEMENT_OTHER + 1; e < ELEMENT_COUNT; e++)
            for (size_t count = 0; count <= MOST; count++) {
                const element_loop plain = f32_elements__scalar[e];
                fill(x, MOST, count * ELEMENT_COUNT + e, count % 2 != 0 ? 5.0F : 110.0F);
                check_loop(level->elements[e], plain, x, count);
                add_extremes(x, MOST, count);
                check_loop(level->elements[e], plain, x, count);
            }
    }
}

static float pair_by_definition(binary_kind kind, float a, float b) {
    switch (kind) {
    case BINARY_ADD:
        return a + b;
    case BINARY_SUB:
        return a - b;
    case BINARY_RSUB:
        return b - a;
    case BINARY_MUL:
        return a * b;
    case BINARY_DIV:
        return a / b;
    default:
        fail_msg("no definition of binary function %d", (int)kind);
        return NAN;
    }
}

// Steps of 0 and 1, and y in place of either operand.
static void check_binary(binary_loop loop, binary_kind kind, size_t count, uint64_t seed) {
    float a[MOST], b[MOST], expected[MOST + 1], found[MOST + 1];
    fill(a, MOST, seed, 100);
    fill(b, MOST, seed + 1, 3);
    if (seed % 2 != 0) add_extremes(a, MOST, seed);
    if (seed % 3 != 0) add_extremes(b, MOST, seed + 4);
    for (int64_t steps = 0; steps < 4; steps++) {
        const int64_t a_step = steps % 2, b_step = steps / 2;
        for (size_t i = 0; i < count; i++)
            expected[i] = pair_by_definition(kind, a[i * (size_t)a_step], b[i * (size_t)b_step]);
        expected[count] = found[count] = 7;
        loop(a, a_step, b, b_step, found, (int64_t)count);
        assert_same_bits(found, expected, count + 1);
        memcpy(found, a, count * sizeof *a);
        if (a_step != 0) loop(found, 1, b, b_step, found, (int64_t)count);
        if (a_step != 0) assert_same_bits(found, expected, count + 1);
        memcpy(found, b, count * sizeof *b);
        if (b_step != 0) loop(a, a_step, found, 1, found, (int64_t)count);
        if (b_step != 0) assert_same_bits(found, expected, count + 1);
    }
}

static void every_level_computes_the_same_pairs(void **state) {
    (void)state;
    for (size_t k = 0; k < tare__row_kernel_count; k++) {
        const row_kernels *level = &tare__row_kernels[k];
        if (!tare__kernel_suits(&level->needs, tare__isa_detect())) continue;
        for (size_t kind = BINARY_OTHER + 1; kind < BINARY_COUNT; kind++)
            for (size_t count = 1; count <= MOST; count++)
                check_binary(level->binary[kind], (binary_kind)kind, count,
                             count * BINARY_COUNT + kind);
    }
}

// The order that core/math/rows.h states, in its own words.
static float sum_by_definition(const float *x, size_t count) {
    float sums[ROW_LANES] = {0};
    for (size_t i = 0; i < count; i++) sums[i % ROW_LANES] += x[i];
    for (size_t half = ROW_LANES / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++) sums[j] += sums[j + half];
    return sums[0];
}

static void sums_have_the_stated_order(void **state) {
    (void)state;
    float x[MOST], y[MOST], mean, variance;
    for (size_t count = 1; count <= MOST; count++) {
        fill(x, count, count, 1000);
        scalar()->functions.moments(x, count, &mean, &variance);
        assert_true(mean == sum_by_definition(x, count) / (float)count);
        for (size_t i = 0; i < count; i++) y[i] = (x[i] - mean) * (x[i] - mean);
        const float squares = sum_by_definition(y, count) / (float)count;
        assert_true(fabsf(variance - squares) <= 1e-5F * squares);
    }
}

static void softmax_follows_its_definition(void **state) {
    (void)state;
    float x[MOST], y[MOST], logs[MOST];
    for (size_t count = 1; count <= MOST; count++) {
        double total = 0;
        fill(x, count, count, count % 2 != 0 ? 1.0F : 30.0F);
        if (count > 3) x[count / 2] = -INFINITY;
        for (size_t i = 0; i < count; i++) total += exp((double)x[i] - (double)x[0]);
        softmax(scalar(), x, count, y);
        log_softmax(scalar(), x, count, logs);
        for (size_t i = 0; i < count; i++) {
            // A difference of 60 is rounded by 2e-6 before its exponential is taken.
            const double expected = exp((double)x[i] - (double)x[0]) / total;
            assert_true(fabs((double)y[i] - expected) <= 4e-6 * expected + 1e-37);
            if (expected > 1e-37) assert_true(fabs((double)logs[i] - log(expected)) <= 1e-5);
        }
        if (count > 3) assert_true(y[count / 2] == 0);
        x[count - 1] = NAN;
        softmax(scalar(), x, count, y);
        assert_true(isnan(y[count - 1]) && isnan(y[0]));
    }
}

static void normalized_lines_have_mean_0_and_variance_1(void **state) {
    (void)state;
    float x[MOST], y[MOST];
    for (size_t count = 2; count <= MOST; count++) {
        double total = 0, squares = 0;
        fill(x, count, count, 7);
        scalar()->functions.normalize(x, count, NULL, NULL, 0, y);
        for (size_t i = 0; i < count; i++) total += (double)y[i];
        for (size_t i = 0; i < count; i++) squares += (double)y[i] * (double)y[i];
        assert_true(fabs(total / (double)count) < 1e-5);
        assert_true(fabs(squares / (double)count - 1) < 1e-5);
    }
}

static void the_greatest_is_nan_if_one_is(void **state) {
    (void)state;
    const float x[] = {1, NAN, 3}, top = 2;
    float y[] = {top, top, NAN};
    scalar()->functions.max_into(x, 3, y);
    assert_true(y[0] == top);
    assert_true(isnan(y[1]));
    assert_true(isnan(y[2]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_gives_the_same_bits),
        cmocka_unit_test(every_level_computes_the_same_functions),
        cmocka_unit_test(every_level_computes_the_same_pairs),
        cmocka_unit_test(sums_have_the_stated_order),
        cmocka_unit_test(softmax_follows_its_definition),
        cmocka_unit_test(normalized_lines_have_mean_0_and_variance_1),
        cmocka_unit_test(the_greatest_is_nan_if_one_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
