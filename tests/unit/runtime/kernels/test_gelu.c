// SPDX-License-Identifier: Apache-2.0
// GELU and its quantized values in one pass are what one after the other gives: for floats of all
// sizes, for those around every float where a quantized value ends, for every count.
#include "support/test.h"

#include <math.h>

#include "core/math/elements.h"
#include "runtime/kernels/elementwise.h"

#define SCHEME(of, zero, low, high)                                                                \
    {                                                                                              \
        .scale = (of), .inverse = 1.0F / (of), .zero_point = (zero), .least = (low),               \
        .most = (high), .is_signed = (low) < 0                                                     \
    }

// Where quantized values are too fine, a cubic cannot tell them: 2.2e-6 are the finest that one
// does.
static const quantized_scheme schemes[] = {
    SCHEME(0.0099F, 17, 0, 255),
    SCHEME(0.05F, 4, 0, 127),
    SCHEME(0.03F, -120, -128, 127),
    SCHEME(0.31F, 0, -127, 127),
    SCHEME(1e-3F, 170, 0, 255),
    SCHEME(3e-6F, 128, 0, 255),
    SCHEME(2.2e-6F, 128, 0, 255),
    SCHEME(2.1e-6F, 128, 0, 255),
    SCHEME(2.2e-6F, 127, -128, 127),
    SCHEME(1e-20F, 0, -128, 127),
    SCHEME(1e-38F, 255, 0, 255),
    SCHEME(0.004F, 0, 0, 255),
    SCHEME(0.02F, 255, 0, 255),
    SCHEME(0.001F, -128, -128, 127),
    SCHEME(0.7F, 127, -128, 127),
    SCHEME(20.0F, 128, 0, 255),
    SCHEME(1e6F, 3, 0, 255),
    SCHEME(1e36F, 128, 0, 255),
    // Bounds apart from the zero point, at the ends of those that have a cubic and beyond.
    SCHEME(0.01F, -128, 0, 255),
    SCHEME(0.01F, 255, -128, 127),
    SCHEME(0.01F, -129, -128, 127),
    SCHEME(0.01F, 256, 0, 255),
    SCHEME(0.01F, 65500, 0, 255),
};
enum { SCHEME_COUNT = sizeof schemes / sizeof *schemes, BATCH = 4096 };

typedef void (*kernel)(const quantized_scheme *s, const float *x, size_t count, uint8_t *y);

static int64_t quantized_value_of(const quantized_scheme *s, float x) {
    float value;
    f32_elements__scalar[ELEMENT_GELU](&x, &value, 1, NULL);
    return tare__quantize(value, s->inverse, s->zero_point, s->least, s->most);
}

static void check_quantized(kernel k, const quantized_scheme *s, const float *x, size_t count) {
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

static void each_kernel(void (*check)(kernel k, const quantized_scheme *s)) {
    size_t count = 0;
    for (size_t i = 0; i < tare__elementwise_kernel_count; i++) {
        const elementwise_kernels *k = &tare__elementwise_kernels[i];
        if (!tare__kernel_suits(&k->needs, tare__isa_detect()) || k->quantize_gelu == NULL)
            continue;
        for (size_t n = 0; n < SCHEME_COUNT; n++) check(k->quantize_gelu, &schemes[n]);
        count++;
    }
    if (count == 0) skip(); // no level of this machine has one
}

// Infinities and NaN are among them.
static void check_all_sizes(kernel k, const quantized_scheme *s) {
    enum { STEP = 9973 };
    static float x[BATCH];
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += (uint64_t)STEP * BATCH) {
        for (size_t i = 0; i < BATCH; i++) {
            const uint32_t word = (uint32_t)(bits + i * STEP);
            memcpy(&x[i], &word, sizeof word);
        }
        check_quantized(k, s, x, BATCH);
    }
    for (size_t i = 0; i < BATCH; i++)
        x[i] = (const float[]){INFINITY, -INFINITY, NAN, 0.0F, -0.0F, 3e38F, -3e38F}[i % 7];
    check_quantized(k, s, x, BATCH);
}

static void any_float_has_its_integer(void **state) {
    (void)state;
    each_kernel(check_all_sizes);
}

// As many floats above this one as up to it.
static void check_around(kernel k, const quantized_scheme *s, float middle) {
    enum { AROUND = 256, COUNT = 2 * AROUND };
    float x[COUNT], low = middle, high = nextafterf(middle, INFINITY);
    for (size_t i = 0; i < AROUND; i++) {
        x[AROUND + i] = high;
        x[AROUND - 1 - i] = low;
        high = nextafterf(high, INFINITY);
        low = nextafterf(low, -INFINITY);
    }
    check_quantized(k, s, x, COUNT);
}

// Of the floats between one that has this quantized value or a lower one and one that has a higher
// one.
static void check_boundary(kernel k, const quantized_scheme *s, int64_t code, float low,
                           float high) {
    if (quantized_value_of(s, low) > code || quantized_value_of(s, high) <= code) return;
    for (float middle = (low + high) / 2; middle != low && middle != high;
         middle = (low + high) / 2) {
        if (quantized_value_of(s, middle) > code)
            high = middle;
        else
            low = middle;
    }
    check_around(k, s, low < high ? low : high);
}

// GELU falls to its least value and rises from there on.
static void check_boundaries(kernel k, const quantized_scheme *s) {
    const float least_at = -0.75179F;
    for (int64_t code = s->least; code < s->most; code++) {
        check_boundary(k, s, code, least_at, 3e38F);
        check_boundary(k, s, code, least_at, -30.0F);
    }
}

static void floats_beside_each_boundary_have_their_integers(void **state) {
    (void)state;
    each_kernel(check_boundaries);
}

// A cubic is one of 32, and holds for a sixth; the last one ends at 5.24.
static void check_ends(kernel k, const quantized_scheme *s) {
    enum { CUBICS = 32 };
    for (int i = 0; i <= CUBICS; i++) {
        const float end = i < CUBICS ? ((float)i + 0.5F) / 6.0F : 5.24F;
        check_around(k, s, end);
        check_around(k, s, -end);
    }
    check_around(k, s, 0.0F);
}

static void cubics_end_in_the_same_integers(void **state) {
    (void)state;
    each_kernel(check_ends);
}

// One float that is computed in full, among others that are not.
static void check_places(kernel k, const quantized_scheme *s) {
    enum { COUNT = 128 };
    static const float rare[] = {INFINITY, -INFINITY, NAN, -NAN, 3.4e38F, -3.4e38F, 1e-45F};
    for (size_t at = 0; at < COUNT; at++)
        for (size_t i = 0; i < sizeof rare / sizeof *rare; i++) {
            float x[COUNT];
            for (size_t n = 0; n < COUNT; n++) x[n] = 100.0F * s->scale;
            x[at] = rare[i];
            check_quantized(k, s, x, COUNT);
        }
}

static void one_rare_float_changes_no_other_integer(void **state) {
    (void)state;
    each_kernel(check_places);
}

static void check_counts(kernel k, const quantized_scheme *s) {
    enum { MOST = 200 };
    float x[MOST];
    for (size_t i = 0; i < MOST; i++) x[i] = (float)((i * 37) % MOST) / 20.0F - 4.0F;
    for (size_t count = 0; count <= MOST; count++) check_quantized(k, s, x, count);
}

static void any_count_has_as_many_integers(void **state) {
    (void)state;
    each_kernel(check_counts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_float_has_its_integer),
        cmocka_unit_test(floats_beside_each_boundary_have_their_integers),
        cmocka_unit_test(cubics_end_in_the_same_integers),
        cmocka_unit_test(one_rare_float_changes_no_other_integer),
        cmocka_unit_test(any_count_has_as_many_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
