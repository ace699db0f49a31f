// SPDX-License-Identifier: Apache-2.0
// Products by the chosen provider and by the portable kernels.
#include "dnnl/float_kernels.h"

#include <math.h>
#include <stdlib.h>

#include "support/test.h"

static float *numbers(int64_t count) {
    float *made = malloc((size_t)count * sizeof *made);
    assert_non_null(made);
    for (int64_t i = 0; i < count; i++) made[i] = (float)(i * 37 % 101) * 0.02F - 1;
    return made;
}

// Returns the largest difference between the two, relative to the largest sum that is possible.
static double difference(float_kernels *kernels, const float_product *p) {
    float *a = numbers(p->rows * p->inner), *b = numbers(p->inner * p->columns);
    float *bias = numbers(p->columns);
    float *x = numbers(p->rows * p->columns), *y = numbers(p->rows * p->columns);
    CHECK_OK(tare__float_multiply(NULL, p, a, b, bias, x, NULL));
    CHECK_OK(tare__float_multiply(kernels, p, a, b, bias, y, NULL));
    double most = 0;
    for (int64_t i = 0; i < p->rows * p->columns; i++)
        most = fmax(most, fabs((double)x[i] - (double)y[i]));
    free(y);
    free(x);
    free(bias);
    free(b);
    free(a);
    return most / (double)p->inner;
}

// A library is not started for small products: its first product takes 30 ms. Larger ones are its
// own.
static void small_products_have_the_portable_bits(void **state) {
    (void)state;
    float_kernels *kernels = NULL;
    CHECK_OK(tare__float_kernels_create(NULL, &kernels, NULL));
    for (int transposed = 0; transposed < 2; transposed++) {
        const float_product small = {32, 64, 64, transposed == 1};
        const float_product large = {64, 256, 256, transposed == 1};
        assert_true(tare__float_product_is_small(small.rows, small.inner, small.columns));
        assert_false(tare__float_product_is_small(large.rows, large.inner, large.columns));
        assert_true(difference(kernels, &small) == 0);
        assert_true(difference(kernels, &large) < 1e-6);
    }
    tare__float_kernels_destroy(kernels);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(small_products_have_the_portable_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
