// SPDX-License-Identifier: Apache-2.0
// GELU and its codes in one pass are what one after the other gives: for floats of all sizes, for
// those around every float where a code ends, for every count.
#include "support/test.h"

#include <math.h>

#include "core/elements.h"
#include "runtime/kernels/elementwise.h"

#define SCHEME(of, zero, low, high)                                                                \
    {                                                                                              \
        .scale = (of), .inverse = 1.0F / (of), .zero_point = (zero), .least = (low),               \
        .most = (high), .is_signed = (low) < 0                                                     \
    }

// The last ones: codes too fine to be told from a cubic, and a zero point that is no code.
static const code_scheme schemes[] = {
    SCHEME(0.0099F, 17, 0, 255),  SCHEME(0.05F, 4, 0, 127),   SCHEME(0.03F, -120, -128, 127),
    SCHEME(0.31F, 0, -127, 127),  SCHEME(1e-3F, 170, 0, 255), SCHEME(3e-6F, 128, 0, 255),
    SCHEME(0.01F, 70000, 0, 255),
};
enum { SCHEME_COUNT = sizeof schemes / sizeof *schemes, BATCH = 4096 };

typedef void (*kernel)(const code_scheme *s, const float *x, size_t count, uint8_t *y);

static uint8_t code_of(const code_scheme *s, float x) {
    float value;
    f32_elements__scalar[ELEMENT_GELU](&x, &value, 1, NULL);
    return (uint8_t)tare__quantize(value, s->inverse, s->zero_point, s->least, s->most);
}

static void check_codes(kernel k, const code_scheme *s, const float *x, size_t count) {
    static float values[BATCH];
    static uint8_t y[BATCH + 1];
    assert_true(count <= BATCH);
    y[count] = 0xA5;
    k(s, x, count, y);
    assert_int_equal(y[count], 0xA5);
    f32_elements__scalar[ELEMENT_GELU](x, values, (int64_t)count, NULL);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(
            y[i], (uint8_t)tare__quantize(values[i], s->inverse, s->zero_point, s->least, s->most));
}

static void each_kernel(void (*check)(kernel k, const code_scheme *s)) {
    size_t count = 0;
    for (size_t i = 0; i < tare__elementwise_kernel_count; i++) {
        const elementwise_kernels *k = &tare__elementwise_kernels[i];
        if (!tare__elementwise_suits(k, tare__isa_detect()) || k->quantize_gelu == NULL) continue;
        for (size_t n = 0; n < SCHEME_COUNT; n++) check(k->quantize_gelu, &schemes[n]);
        count++;
    }
    if (count == 0) skip(); // no level of this machine has one
}

// Infinities and NaN are among them.
static void check_all_sizes(kernel k, const code_scheme *s) {
    enum { STEP = 9973 };
    static float x[BATCH];
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += (uint64_t)STEP * BATCH) {
        for (size_t i = 0; i < BATCH; i++) {
            const uint32_t word = (uint32_t)(bits + i * STEP);
            memcpy(&x[i], &word, sizeof word);
        }
        check_codes(k, s, x, BATCH);
    }
    for (size_t i = 0; i < BATCH; i++)
        x[i] = (const float[]){INFINITY, -INFINITY, NAN, 0.0F, -0.0F, 3e38F, -3e38F}[i % 7];
    check_codes(k, s, x, BATCH);
}

static void any_float_has_its_code(void **state) {
    (void)state;
    each_kernel(check_all_sizes);
}

// Around the float between `low` and `high` where the code of one of them ends.
static void check_border(kernel k, const code_scheme *s, float low, float high) {
    enum { AROUND = 512, COUNT = 2 * AROUND };
    float x[COUNT];
    const uint8_t first = code_of(s, low);
    for (float middle = (low + high) / 2; middle != low && middle != high;
         middle = (low + high) / 2) {
        if (code_of(s, middle) == first)
            low = middle;
        else
            high = middle;
    }
    for (size_t i = 0; i < AROUND; i++) {
        x[AROUND + i] = high;
        x[AROUND - 1 - i] = low;
        high = nextafterf(high, INFINITY);
        low = nextafterf(low, -INFINITY);
    }
    check_codes(k, s, x, COUNT);
}

static void check_borders(kernel k, const code_scheme *s) {
    enum { STEPS = 5000 };
    for (size_t i = 0; i < STEPS; i++) {
        const float low = -8.0F + 20.0F * (float)i / STEPS;
        const float high = -8.0F + 20.0F * (float)(i + 1) / STEPS;
        if (code_of(s, low) != code_of(s, high)) check_border(k, s, low, high);
    }
}

static void floats_beside_each_border_have_their_codes(void **state) {
    (void)state;
    each_kernel(check_borders);
}

static void check_counts(kernel k, const code_scheme *s) {
    enum { MOST = 200 };
    float x[MOST];
    for (size_t i = 0; i < MOST; i++) x[i] = (float)((i * 37) % MOST) / 20.0F - 4.0F;
    for (size_t count = 0; count <= MOST; count++) check_codes(k, s, x, count);
}

static void any_count_has_as_many_codes(void **state) {
    (void)state;
    each_kernel(check_counts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_float_has_its_code),
        cmocka_unit_test(floats_beside_each_border_have_their_codes),
        cmocka_unit_test(any_count_has_as_many_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
