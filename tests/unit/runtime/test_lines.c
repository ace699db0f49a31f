// SPDX-License-Identifier: Apache-2.0
// Kernels over lines of floats: every level gives the portable one's bits, which are right.
#include "support/test.h"

#include <math.h>

#include "runtime/kernels/lines.h"

enum { MOST = 131 };

static void fill(float *x, size_t count, uint64_t seed, float range) {
    for (size_t i = 0; i < count; i++) {
        seed = seed * 6364136223846793005U + 1442695040888963407U;
        x[i] = ((float)(seed >> 40) / 8388608.0F - 1.0F) * range;
    }
}

static const line_kernels *scalar(void) {
    return &tare__line_kernels[tare__line_kernel_count - 1];
}

typedef void (*line_function)(const line_kernels *k, const float *x, size_t count, float *y);

static void add(const line_kernels *k, const float *x, size_t count, float *y) {
    k->add(x, count, y);
}
static void raise_to(const line_kernels *k, const float *x, size_t count, float *y) {
    k->raise(x, count, y);
}
static void softmax(const line_kernels *k, const float *x, size_t count, float *y) {
    k->softmax(x, count, y);
}
static void normalize(const line_kernels *k, const float *x, size_t count, float *y) {
    float weight[MOST], bias[MOST];
    fill(weight, MOST, 5, 2);
    fill(bias, MOST, 6, 2);
    k->normalize(x, count, count % 3 != 0 ? weight : NULL, count % 2 != 0 ? bias : NULL, 1e-5F, y);
}

static void check_levels(line_function f, float range) {
    float x[MOST + 1], expected[MOST + 1], found[MOST + 1];
    for (size_t k = 0; k < tare__line_kernel_count; k++) {
        const line_kernels *level = &tare__line_kernels[k];
        if (level->needs > tare__isa_detect()) continue;
        for (size_t count = 1; count <= MOST; count++) {
            fill(x, MOST, count, range);
            fill(expected, MOST + 1, count + 1, range);
            memcpy(found, expected, sizeof found);
            f(scalar(), x, count, expected);
            f(level, x, count, found);
            assert_memory_equal(found, expected, sizeof found); // nothing beyond the line, too
        }
    }
}

static void every_level_gives_the_same_bits(void **state) {
    (void)state;
    check_levels(add, 3);
    check_levels(raise_to, 3);
    check_levels(softmax, 2);
    check_levels(softmax, 60); // most elements end below the smallest float
    check_levels(normalize, 3);
}

static void softmax_follows_its_definition(void **state) {
    (void)state;
    float x[MOST], y[MOST];
    for (size_t count = 1; count <= MOST; count++) {
        double sum = 0;
        fill(x, count, count, count % 2 != 0 ? 1.0F : 30.0F);
        if (count > 3) x[count / 2] = -INFINITY;
        for (size_t i = 0; i < count; i++) sum += exp((double)x[i] - (double)x[0]);
        scalar()->softmax(x, count, y);
        for (size_t i = 0; i < count; i++) {
            // A difference of 60 is rounded by 2e-6 before its exponential is taken.
            const double expected = exp((double)x[i] - (double)x[0]) / sum;
            assert_true(fabs((double)y[i] - expected) <= 4e-6 * expected + 1e-37);
        }
        if (count > 3) assert_true(y[count / 2] == 0);
        x[count - 1] = NAN;
        scalar()->softmax(x, count, y);
        assert_true(isnan(y[count - 1]));
    }
}

static void normalized_lines_have_mean_0_and_variance_1(void **state) {
    (void)state;
    float x[MOST], y[MOST];
    for (size_t count = 2; count <= MOST; count++) {
        double sum = 0, squares = 0;
        fill(x, count, count, 7);
        scalar()->normalize(x, count, NULL, NULL, 0, y);
        for (size_t i = 0; i < count; i++) sum += (double)y[i];
        for (size_t i = 0; i < count; i++) squares += (double)y[i] * (double)y[i];
        assert_true(fabs(sum / (double)count) < 1e-5);
        assert_true(fabs(squares / (double)count - 1) < 1e-5);
    }
}

static void the_greatest_is_nan_if_one_is(void **state) {
    (void)state;
    const float x[] = {1, NAN, 3}, top = 2;
    float y[] = {top, top, NAN};
    scalar()->raise(x, 3, y);
    assert_true(y[0] == top);
    assert_true(isnan(y[1]));
    assert_true(isnan(y[2]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_gives_the_same_bits),
        cmocka_unit_test(softmax_follows_its_definition),
        cmocka_unit_test(normalized_lines_have_mean_0_and_variance_1),
        cmocka_unit_test(the_greatest_is_nan_if_one_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
