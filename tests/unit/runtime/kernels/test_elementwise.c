// SPDX-License-Identifier: Apache-2.0
// Every row of elementwise kernels gives the bits of core/math/requant.h, for every count and odd
// values.
#include "support/test.h"

#include <math.h>

#include "runtime/kernels/elementwise.h"

enum { MOST = 75 };

static const quantized_scheme schemes[] = {
    {.scale = 0.05F, .inverse = 1.0F / 0.05F, .zero_point = 117, .least = 0, .most = 255},
    {.scale = 3e-4F, .inverse = 1.0F / 3e-4F, .zero_point = 0, .least = 0, .most = 255},
    {.scale = 0.5F,
     .inverse = 2.0F,
     .zero_point = -3,
     .least = -128,
     .most = 127,
     .is_signed = true},
};
enum { SCHEME_COUNT = sizeof schemes / sizeof *schemes };

static uint32_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static float odd_value(uint64_t *state) {
    static const float odd[] = {NAN,   INFINITY, -INFINITY, 0.25F, -0.25F,
                                0.75F, 3e38F,    -3e38F,    0.0F};
    const uint32_t kind = next(state) % 16;
    if (kind < sizeof odd / sizeof *odd) return odd[kind];
    return (float)(int32_t)(next(state) % 4001 - 2000) / 100.0F;
}

static void each_kernel(void (*check)(const elementwise_kernels *k)) {
    for (size_t i = 0; i < tare__elementwise_kernel_count; i++)
        if (tare__kernel_suits(&tare__elementwise_kernels[i].needs, tare__isa_detect()))
            check(&tare__elementwise_kernels[i]);
}

static int32_t quantized_value_of(const quantized_scheme *s, uint8_t byte) {
    return s->is_signed ? (int8_t)byte : byte;
}

static void check_quantize(const elementwise_kernels *k) {
    uint64_t state = 1;
    float x[MOST];
    uint8_t y[MOST + 1];
    for (size_t count = 0; count <= MOST; count++) {
        const quantized_scheme *s = &schemes[count % SCHEME_COUNT];
        for (size_t i = 0; i < count; i++) x[i] = odd_value(&state);
        y[count] = 0xA5;
        k->quantize(s, x, count, y);
        assert_int_equal(y[count], 0xA5);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(quantized_value_of(s, y[i]),
                             tare__quantize(x[i], s->inverse, s->zero_point, s->least, s->most));
    }
}

static void check_dequantize(const elementwise_kernels *k) {
    uint8_t x[256];
    float y[256];
    for (size_t i = 0; i < 256; i++) x[i] = (uint8_t)i;
    for (size_t n = 0; n < SCHEME_COUNT; n++) {
        const quantized_scheme *s = &schemes[n];
        for (size_t count = 200; count <= 256; count++) {
            k->dequantize(s, x, count, y);
            for (size_t i = 0; i < count; i++) {
                const float expected =
                    tare__dequantize(quantized_value_of(s, x[i]), s->zero_point, s->scale);
                assert_memory_equal(&expected, &y[i], sizeof expected);
            }
        }
    }
}

static void check_add(const elementwise_kernels *k) {
    uint64_t state = 7;
    uint8_t a[MOST], b[MOST], y[MOST + 1];
    for (size_t count = 0; count <= MOST; count++)
        for (int relu = 0; relu < 2; relu++) {
            const quantized_scheme *s = &schemes[count % SCHEME_COUNT];
            const native_add op = tare__native_add(
                (quantized_range){s->scale, s->zero_point},
                (quantized_range){0.07F, s->zero_point + 5},
                (quantized_range){s->scale * 2, s->zero_point + 1}, s->least, s->most, relu != 0);
            for (size_t i = 0; i < count; i++) {
                a[i] = (uint8_t)next(&state);
                b[i] = (uint8_t)next(&state);
            }
            y[count] = 0xA5;
            k->add(&op, s->is_signed, a, b, count, y);
            assert_int_equal(y[count], 0xA5);
            for (size_t i = 0; i < count; i++)
                assert_int_equal(quantized_value_of(s, y[i]),
                                 tare__native_add_quantized(&op, quantized_value_of(s, a[i]),
                                                            quantized_value_of(s, b[i])));
        }
}

static void check_mul(const elementwise_kernels *k) {
    uint64_t state = 8;
    uint8_t a[MOST], b[MOST], y[MOST + 1];
    for (size_t count = 0; count <= MOST; count++)
        for (int relu = 0; relu < 2; relu++) {
            const quantized_scheme *s = &schemes[count % SCHEME_COUNT];
            const quantized_mul op = tare__quantized_mul(
                (quantized_range){s->scale, s->zero_point},
                (quantized_range){0.07F, s->zero_point + 5},
                (quantized_range){s->scale * 2, s->zero_point + 1}, s->least, s->most, relu != 0);
            for (size_t i = 0; i < count; i++) {
                a[i] = (uint8_t)next(&state);
                b[i] = (uint8_t)next(&state);
            }
            y[count] = 0xA5;
            k->mul(&op, s->is_signed, a, b, count, y);
            assert_int_equal(y[count], 0xA5);
            for (size_t i = 0; i < count; i++)
                assert_int_equal(quantized_value_of(s, y[i]),
                                 tare__quantized_mul_quantized(&op, quantized_value_of(s, a[i]),
                                                               quantized_value_of(s, b[i])));
        }
}

static void check_sum(const elementwise_kernels *k) {
    uint64_t state = 10;
    uint8_t x[MOST];
    int32_t sums[MOST + 1];
    for (size_t count = 0; count <= MOST; count++) {
        const quantized_scheme *s = &schemes[count % SCHEME_COUNT];
        for (size_t i = 0; i < count; i++) {
            x[i] = (uint8_t)next(&state);
            sums[i] = (int32_t)i * 1000003;
        }
        sums[count] = 77;
        k->sum(s->is_signed, x, count, sums);
        assert_int_equal(sums[count], 77);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(sums[i], (int32_t)i * 1000003 + quantized_value_of(s, x[i]));
    }
}

static void check_look_up(const elementwise_kernels *k) {
    uint64_t state = 11;
    uint8_t table[256], x[300], y[301];
    for (size_t i = 0; i < 256; i++) table[i] = (uint8_t)next(&state);
    for (size_t i = 0; i < 300; i++) x[i] = (uint8_t)i;
    for (size_t count = 0; count <= 300; count++) {
        y[count] = 0xA5;
        k->look_up(table, x, count, y);
        assert_int_equal(y[count], 0xA5);
        for (size_t i = 0; i < count; i++) assert_int_equal(y[i], table[x[i]]);
    }
}

// The definition for one quantized value.
static uint8_t greatest_of(const quantized_windows *w, const uint8_t *x) {
    const quantized_scheme s = {.is_signed = w->is_signed};
    uint8_t best = *x;
    for (size_t a = 0; a < w->taps[0]; a++)
        for (size_t b = 0; b < w->taps[1]; b++) {
            const uint8_t code = x[a * w->tap_stride[0] + b * w->tap_stride[1]];
            if (quantized_value_of(&s, code) > quantized_value_of(&s, best)) best = code;
        }
    return best;
}

static void check_windows(const elementwise_kernels *k, const quantized_windows *w,
                          const uint8_t *x) {
    enum { SPARE = 0xA5 };
    static uint8_t y[8192];
    const size_t end = w->windows * w->y_step;
    assert_true(end < sizeof y);
    memset(y, SPARE, end + 1);
    k->greatest(w, x, y);
    assert_int_equal(y[end], SPARE);
    for (size_t n = 0; n < w->windows; n++)
        for (size_t c = 0; c < w->y_step; c++)
            assert_int_equal(y[n * w->y_step + c],
                             c < w->count ? greatest_of(w, x + n * w->x_step + c) : SPARE);
}

static void check_greatest(const elementwise_kernels *k) {
    enum { MOST_QUANTIZED = 340 };
    static uint8_t x[16 * MOST_QUANTIZED];
    uint64_t state = 16;
    for (size_t i = 0; i < sizeof x; i++) x[i] = (uint8_t)next(&state);
    for (size_t count = 1; count <= MOST_QUANTIZED; count++)
        for (size_t taps = 1; taps <= 6; taps++) {
            const quantized_windows w = {.is_signed = (count + taps) % 2 == 0,
                                         .taps = {1 + taps % 2, taps},
                                         .tap_stride = {2 * count + 1, count + taps % 3},
                                         .windows = 1 + count % 4,
                                         .x_step = count + taps,
                                         .y_step = count + count % 3,
                                         .count = count};
            check_windows(k, &w, x);
        }
}

static void check_interleave(const elementwise_kernels *k) {
    enum { MOST_PIXELS = 140, MOST_PLANES = 5, SPARE = 0xA5 };
    static uint8_t x[MOST_PLANES * (MOST_PIXELS + 3)], y[MOST_PLANES * MOST_PIXELS + 1];
    uint64_t state = 17;
    for (size_t i = 0; i < sizeof x; i++) x[i] = (uint8_t)next(&state);
    for (size_t count = 0; count <= MOST_PIXELS; count++)
        for (size_t planes = 1; planes <= MOST_PLANES; planes++) {
            const size_t stride = count + count % 4;
            y[planes * count] = SPARE;
            k->interleave(x, stride, planes, count, y);
            assert_int_equal(y[planes * count], SPARE);
            for (size_t i = 0; i < planes * count; i++)
                assert_int_equal(y[i], x[i % planes * stride + i / planes]);
        }
}

static void check_affine(const elementwise_kernels *k) {
    uint64_t state = 12;
    float scale[MOST], shift[MOST];
    uint8_t x[MOST], y[MOST + 1];
    for (size_t count = 0; count <= MOST; count++)
        for (int relu = 0; relu < 2; relu++) {
            const quantized_scheme *from = &schemes[count % SCHEME_COUNT];
            quantized_scheme to = schemes[(count + (size_t)relu) % SCHEME_COUNT];
            if (relu) to.least = to.zero_point;
            for (size_t i = 0; i < count; i++) {
                x[i] = (uint8_t)next(&state);
                scale[i] = odd_value(&state);
                shift[i] = odd_value(&state);
            }
            y[count] = 0xA5;
            k->affine(from, &to, x, scale, shift, count, y);
            assert_int_equal(y[count], 0xA5);
            for (size_t i = 0; i < count; i++) {
                const float real =
                    tare__dequantize(quantized_value_of(from, x[i]), from->zero_point, from->scale);
                const float product = real * scale[i];
                assert_int_equal(quantized_value_of(&to, y[i]),
                                 tare__quantize(product + shift[i], to.inverse, to.zero_point,
                                                to.least, to.most));
            }
        }
}

// Sums with ties, and such as no window has.
static void check_average(const elementwise_kernels *k) {
    static const float divisors[] = {1, 2, 9, -4, 49};
    uint64_t state = 13;
    int32_t sums[MOST];
    uint8_t y[MOST + 1];
    for (size_t count = 0; count <= MOST; count++)
        for (int before = 0; before < 2; before++) {
            const quantized_scheme *s = &schemes[count % SCHEME_COUNT];
            const quantized_average a = {.divisor = divisors[count % 5],
                                         .before = before ? (float)s->zero_point : 0,
                                         .less = (int32_t)(count % 7) * s->zero_point,
                                         .after = before ? 0 : s->zero_point,
                                         .least = s->least,
                                         .most = s->most};
            for (size_t i = 0; i < count; i++)
                sums[i] = (int32_t)(next(&state) % (i % 5 == 0 ? 16000000 : 3000)) - 1000;
            y[count] = 0xA5;
            k->average(&a, sums, count, y);
            assert_int_equal(y[count], 0xA5);
            for (size_t i = 0; i < count; i++) {
                const float mean = (float)(sums[i] - a.less) / a.divisor;
                assert_int_equal(quantized_value_of(s, y[i]),
                                 tare__quantize(mean + a.before, 1.0F, a.after, s->least, s->most));
            }
        }
}

static void check_blend(const elementwise_kernels *k) {
    uint64_t state = 14;
    static uint8_t x[8][MOST];
    uint8_t y[MOST + 1];
    for (size_t count = 0; count <= MOST; count++) {
        const quantized_scheme *s = &schemes[count % SCHEME_COUNT];
        quantized_blend b = {.zero_point = s->zero_point,
                             .least = s->least,
                             .most = s->most,
                             .is_signed = s->is_signed,
                             .rows = 1 + count % 8};
        for (size_t n = 0; n < b.rows; n++) {
            b.x[n] = x[n];
            b.weight[n] = (float)(next(&state) % 65) / 64.0F - (n % 3 == 2 ? 0.3F : 0.0F);
            for (size_t i = 0; i < count; i++) x[n][i] = (uint8_t)next(&state);
        }
        y[count] = 0xA5;
        k->blend(&b, count, y);
        assert_int_equal(y[count], 0xA5);
        for (size_t i = 0; i < count; i++) {
            float sum = 0;
            for (size_t n = 0; n < b.rows; n++) {
                const float term =
                    b.weight[n] * (float)(quantized_value_of(s, x[n][i]) - s->zero_point);
                sum += term;
            }
            assert_int_equal(quantized_value_of(s, y[i]),
                             tare__quantize(sum, 1.0F, s->zero_point, s->least, s->most));
        }
    }
}

static void check_expand(const elementwise_kernels *k) {
    uint64_t state = 15;
    uint8_t x[MOST];
    float y[MOST + 1];
    for (size_t count = 0; count <= MOST; count++)
        for (int is_signed = 0; is_signed < 2; is_signed++) {
            const float scale = odd_value(&state), bias = odd_value(&state) / 3;
            for (size_t i = 0; i < count; i++) x[i] = (uint8_t)next(&state);
            y[count] = 77;
            k->expand(is_signed != 0, scale, bias, x, count, y);
            assert_true(y[count] == 77);
            for (size_t i = 0; i < count; i++) {
                const int64_t code = is_signed ? (int8_t)x[i] : x[i];
                const float expected = tare__dequantize_embedding(code, scale, bias);
                if (isnan(expected))
                    assert_true(isnan(y[i]));
                else
                    assert_memory_equal(&expected, &y[i], sizeof expected);
            }
        }
}

static void quantize_equals_the_definition(void **state) {
    (void)state;
    each_kernel(check_quantize);
}

static void dequantize_equals_the_definition(void **state) {
    (void)state;
    each_kernel(check_dequantize);
}

static void add_equals_the_definition(void **state) {
    (void)state;
    each_kernel(check_add);
}

static void mul_equals_the_definition(void **state) {
    (void)state;
    each_kernel(check_mul);
}

static void sum_adds_every_integer(void **state) {
    (void)state;
    each_kernel(check_sum);
}

static void look_up_finds_every_integer(void **state) {
    (void)state;
    each_kernel(check_look_up);
}

static void greatest_equals_the_definition(void **state) {
    (void)state;
    each_kernel(check_greatest);
}

static void interleave_equals_the_definition(void **state) {
    (void)state;
    each_kernel(check_interleave);
}

static void affine_equals_the_definition(void **state) {
    (void)state;
    each_kernel(check_affine);
}

static void average_equals_the_definition(void **state) {
    (void)state;
    each_kernel(check_average);
}

static void blend_equals_the_definition(void **state) {
    (void)state;
    each_kernel(check_blend);
}

static void expand_equals_the_definition(void **state) {
    (void)state;
    each_kernel(check_expand);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantize_equals_the_definition),
        cmocka_unit_test(dequantize_equals_the_definition),
        cmocka_unit_test(add_equals_the_definition),
        cmocka_unit_test(mul_equals_the_definition),
        cmocka_unit_test(sum_adds_every_integer),
        cmocka_unit_test(look_up_finds_every_integer),
        cmocka_unit_test(greatest_equals_the_definition),
        cmocka_unit_test(interleave_equals_the_definition),
        cmocka_unit_test(affine_equals_the_definition),
        cmocka_unit_test(average_equals_the_definition),
        cmocka_unit_test(blend_equals_the_definition),
        cmocka_unit_test(expand_equals_the_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
