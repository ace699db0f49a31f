// SPDX-License-Identifier: Apache-2.0
// Requantization against integers recorded from torch's engines, and its rules at ties.
#include "support/test.h"

#include "core/math/requant.h"
#include "unit/core/math/requant_vectors.h"

enum { ROWS = 3, INNER = 8, CHANNELS = 4, OUTPUTS = ROWS * CHANNELS };

static int32_t dot(const int32_t *x, int32_t x_zero_point, int64_t row, int64_t channel) {
    int32_t acc = 0;
    for (int64_t k = 0; k < INNER; k++)
        acc += (x[row * INNER + k] - x_zero_point) * w_integers[channel * INNER + k];
    return acc;
}

static requant_spec recorded_layer(requant_rule rule, bool relu) {
    return (requant_spec){
        .rule = rule,
        .channel_count = CHANNELS,
        .input_scale = x_scale,
        .weight_scale = w_scales,
        .weight_scale_count = CHANNELS,
        .bias = biases,
        .output_scale = out_scale,
        .output_zero_point = OUT_ZERO_POINT,
        .quant_min = 0,
        .quant_max = 255,
        .relu = relu,
    };
}

static void check_layer(requant_rule rule, bool relu, const int32_t *expected) {
    requant *r = NULL;
    const requant_spec spec = recorded_layer(rule, relu);
    CHECK_OK(tare__requant_create(&spec, &r, NULL));
    for (int64_t i = 0; i < OUTPUTS; i++) {
        const int64_t c = i % CHANNELS;
        const int32_t acc = dot(x_integers, X_ZERO_POINT, i / CHANNELS, c);
        assert_int_equal(tare__requantize(r, c, acc), expected[i]);
    }
    tare__requant_destroy(r);
}

static void rules_give_the_engines_integers(void **state) {
    (void)state;
    check_layer(REQUANT_F, false, fbgemm_linear);
    check_layer(REQUANT_F, true, fbgemm_linear_relu);
    check_layer(REQUANT_O, false, onednn_linear);
    // The three engines agree on this layer, so that fbgemm's ReLU is what O's must be.
    check_layer(REQUANT_O, true, fbgemm_linear_relu);
    check_layer(REQUANT_Q, false, qnnpack_linear);
    check_layer(REQUANT_Q, true, qnnpack_linear_relu);
}

static void check_dynamic(requant_rule rule, bool reduce_range, float ulps, const float *expected) {
    float min = 0, max = 0;
    for (int i = 0; i < ROWS * INNER; i++) {
        min = fminf(min, x_floats[i]);
        max = fmaxf(max, x_floats[i]);
    }
    const dynamic_range range = {
        .min = min, .max = max, .quant_max = 255, .reduce_range = reduce_range};
    const dynamic_qparams q = tare__choose_dynamic_qparams(&range);
    int32_t quantized[ROWS * INNER];
    for (int i = 0; i < ROWS * INNER; i++)
        quantized[i] = (int32_t)tare__quantize(x_floats[i], tare__inverse_scale(q.scale),
                                               q.zero_point, 0, 255);
    for (int64_t i = 0; i < OUTPUTS; i++) {
        const int64_t c = i % CHANNELS;
        const float aw = (float)q.scale * (float)w_scales[c];
        const float y = tare__dynamic_output(rule, dot(quantized, q.zero_point, i / CHANNELS, c),
                                             aw, biases[c]);
        assert_true(fabsf(y - expected[i]) <= ulps * fabsf(expected[i]) * FLT_EPSILON);
    }
}

static void dynamic_layers_give_the_engines_floats(void **state) {
    (void)state;
    check_dynamic(REQUANT_F, true, 0, fbgemm_dynamic);
    check_dynamic(REQUANT_Q, false, 0, qnnpack_dynamic);
    check_dynamic(REQUANT_O, true, 1, onednn_dynamic);
}

// One channel, input and weight scale 1, output scale 2: quantized values are acc / 2, so that odd
// sums are ties.
static requant *halves(requant_rule rule, int64_t zero_point, const float *bias) {
    static const double one = 1;
    const requant_spec spec = {.rule = rule,
                               .channel_count = 1,
                               .input_scale = 1,
                               .weight_scale = &one,
                               .weight_scale_count = 1,
                               .bias = bias,
                               .output_scale = 2,
                               .output_zero_point = zero_point,
                               .quant_min = 0,
                               .quant_max = 255};
    requant *r = NULL;
    CHECK_OK(tare__requant_create(&spec, &r, NULL));
    return r;
}

static void rules_differ_in_their_ties(void **state) {
    (void)state;
    requant *f = halves(REQUANT_F, 11, NULL), *o = halves(REQUANT_O, 11, NULL);
    requant *q = halves(REQUANT_Q, 11, NULL), *x = halves(REQUANT_FIXED_POINT, 11, NULL);
    // 2.5 is rounded to 2 and moved to 13; 13.5 goes to 14; fixed point always goes up.
    assert_int_equal(tare__requantize(f, 0, 5), 13);
    assert_int_equal(tare__requantize(q, 0, 5), 13);
    assert_int_equal(tare__requantize(o, 0, 5), 14);
    assert_int_equal(tare__requantize(x, 0, 5), 14);
    assert_int_equal(tare__requantize(f, 0, -5), 9);
    assert_int_equal(tare__requantize(o, 0, -5), 8);
    assert_int_equal(tare__requantize(x, 0, -5), 9);
    tare__requant_destroy(f);
    tare__requant_destroy(o);
    tare__requant_destroy(q);
    tare__requant_destroy(x);
}

static void only_q_and_fixed_point_round_the_bias(void **state) {
    (void)state;
    const float bias = 0.75F; // acc 4 makes 4.75 / 2 = 2.375, or with a bias of 1 the tie 2.5
    requant *rules[] = {halves(REQUANT_F, 0, &bias), halves(REQUANT_O, 0, &bias),
                        halves(REQUANT_Q, 0, &bias), halves(REQUANT_FIXED_POINT, 0, &bias)};
    const int32_t at_5[] = {3, 3, 3, 3}, at_4[] = {2, 2, 2, 3}, at_6[] = {3, 3, 4, 4};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tare__requantize(rules[i], 0, 5), at_5[i]);
        assert_int_equal(tare__requantize(rules[i], 0, 4), at_4[i]);
        assert_int_equal(tare__requantize(rules[i], 0, 6), at_6[i]);
        tare__requant_destroy(rules[i]);
    }
}

static void addends_join_before_rounding(void **state) {
    (void)state;
    requant *f = halves(REQUANT_F, 11, NULL), *o = halves(REQUANT_O, 11, NULL);
    requant *q = halves(REQUANT_Q, 11, NULL);
    requant *all[] = {f, o, q};
    for (int i = 0; i < 3; i++) {
        const float factor = tare__addend_factor(all[i], 0.5F);
        assert_true(factor == (all[i] == o ? 0.5F : 0.25F));
        // 0.5 + 0.25 * 2 = 1: neither term is rounded on its own.
        assert_int_equal(tare__requantize_sum(all[i], 0, 1, 2, factor), 12);
        assert_int_equal(tare__requantize_sum(all[i], 0, 1, 0, factor),
                         tare__requantize(all[i], 0, 1));
        assert_int_equal(tare__requantize_sum(all[i], 0, 0, 3000, factor), 255);
        assert_int_equal(tare__requantize_sum(all[i], 0, 0, -3000, factor), 0);
        // The tie 2.5: as without an addend.
        assert_int_equal(tare__requantize_sum(all[i], 0, 4, 2, factor), all[i] == o ? 14 : 13);
    }
    for (int i = 0; i < 3; i++) tare__requant_destroy(all[i]);
}

// A sum in double, rounded once, is the quantized value wherever float arithmetic can tell.
static void addends_are_added_exactly(void **state) {
    (void)state;
    for (requant_rule rule = REQUANT_F; rule <= REQUANT_Q; rule++) {
        const requant_spec spec = recorded_layer(rule, false);
        requant *r = NULL;
        CHECK_OK(tare__requant_create(&spec, &r, NULL));
        int told = 0;
        for (int32_t i = 0; i < 40000; i++) {
            const int64_t c = i % CHANNELS;
            const int32_t acc = i * 7919 % 30011 - 15000, other = i * 31 % 256 - 77;
            const double aw = x_scale * w_scales[c];
            // Rule Q's bias is a whole number of steps.
            const double bias = rule == REQUANT_Q ? (double)r->bias_int[c] * aw : (double)biases[c];
            const double exact = (acc * aw + bias + other * 0.013) / out_scale;
            if (fabs(exact - floor(exact) - 0.5) < 1e-3) continue;
            const double code = fmin(fmax(rint(exact) + OUT_ZERO_POINT, 0), 255);
            const float factor = tare__addend_factor(r, 0.013F);
            assert_int_equal(tare__requantize_sum(r, c, acc, (float)other, factor), (int32_t)code);
            told += code > 0 && code < 255;
        }
        assert_true(told > 1000);
        tare__requant_destroy(r);
    }
}

static void sums_beyond_any_integer_are_clamped(void **state) {
    (void)state;
    static const double scales[] = {1e-30, 1e-5, 1, 1e5, 1e30};
    for (int rule = 1; rule < REQUANT_RULE_COUNT; rule++)
        for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
            requant_spec spec = recorded_layer((requant_rule)rule, s % 2);
            spec.weight_scale = &scales[s];
            spec.weight_scale_count = 1;
            spec.bias = NULL;
            requant *r = NULL;
            CHECK_OK(tare__requant_create(&spec, &r, NULL));
            const int32_t top = tare__requantize(r, 3, INT32_MAX);
            const int32_t bottom = tare__requantize(r, 0, INT32_MIN);
            assert_int_equal(top, s == 0 ? OUT_ZERO_POINT : 255);
            assert_int_equal(bottom, s == 0 || s % 2 ? OUT_ZERO_POINT : 0);
            assert_int_equal(tare__requantize(r, 1, 0), OUT_ZERO_POINT);
            tare__requant_destroy(r);
        }
}

static void fixed_point_is_the_float_rule_but_for_ties(void **state) {
    (void)state;
    requant_spec spec = recorded_layer(REQUANT_Q, false);
    requant *q = NULL, *x = NULL;
    CHECK_OK(tare__requant_create(&spec, &q, NULL));
    spec.rule = REQUANT_FIXED_POINT;
    CHECK_OK(tare__requant_create(&spec, &x, NULL));
    int differ = 0;
    for (int32_t acc = -200000; acc <= 200000; acc += 7)
        for (int64_t c = 0; c < CHANNELS; c++) {
            const double exact = ((double)acc + q->bias_int[c]) * (double)q->multiplier[c];
            const int32_t code = tare__requantize(x, c, acc);
            const double nearest = fmin(fmax(floor(exact + 0.5) + OUT_ZERO_POINT, 0), 255);
            assert_int_equal(code, (int32_t)nearest);
            differ += code != tare__requantize(q, c, acc);
        }
    assert_true(differ < 20); // the float product is rounded once more
    tare__requant_destroy(q);
    tare__requant_destroy(x);
}

static void impossible_layers_are_refused(void **state) {
    (void)state;
    requant *r = NULL;
    const double bad_scales[] = {1, 1, NAN, 1};
    requant_spec specs[6];
    for (int i = 0; i < 6; i++) specs[i] = recorded_layer(REQUANT_F, false);
    specs[0].rule = REQUANT_UNSET;
    specs[1].weight_scale_count = 3;
    specs[2].output_scale = 0;
    specs[3].weight_scale = bad_scales;
    specs[4].output_zero_point = 256;
    specs[5].input_scale = 1e-60; // 0 as a float
    tare_error *err = tare_error_create();
    for (int i = 0; i < 6; i++)
        assert_int_equal(tare__requant_create(&specs[i], &r, err), TARE_INVALID_ARGUMENT);
    assert_null(r);
    tare__alloc_fail_at(1);
    const requant_spec good = recorded_layer(REQUANT_F, false);
    assert_int_equal(tare__requant_create(&good, &r, err), TARE_OUT_OF_MEMORY);
    tare__alloc_fail_at(0);
    tare__requant_destroy(NULL);
    tare_error_destroy(err);
}

static void arrays_are_padded_for_tiles(void **state) {
    (void)state;
    requant *r = NULL;
    const requant_spec spec = recorded_layer(REQUANT_Q, false);
    CHECK_OK(tare__requant_create(&spec, &r, NULL));
    assert_int_equal((uintptr_t)r->multiplier % 64, 0);
    assert_int_equal((uintptr_t)r->bias_int % 64, 0);
    for (int c = CHANNELS; c < REQUANT_PADDING; c++)
        assert_true(r->multiplier[c] == 0 && r->bias[c] == 0 && r->bias_int[c] == 0);
    tare__requant_destroy(r);
}

static void check_quantize(double scale, int64_t zero_point, int64_t min, int64_t max,
                           const float *in, const int32_t *quantized, const float *back) {
    for (int i = 0; i < 12; i++) {
        const float inverse = tare__inverse_scale(scale);
        assert_int_equal(tare__quantize(in[i], inverse, zero_point, min, max), quantized[i]);
        assert_int_equal(tare__quantize_channel(in[i], inverse, zero_point, min, max),
                         quantized[i]);
        assert_true(tare__dequantize(quantized[i], zero_point, (float)scale) == back[i]);
    }
}

static void quantizing_matches_the_recorded_ties(void **state) {
    (void)state;
    check_quantize(1.0, 3, 0, 255, quantize_in_0, quantize_integers_0, quantize_back_0);
    check_quantize(0.1, 77, 0, 255, quantize_in_1, quantize_integers_1, quantize_back_1);
    check_quantize(0.0173, 0, -128, 127, quantize_in_2, quantize_integers_2, quantize_back_2);
}

static void values_without_a_integer_are_clamped(void **state) {
    (void)state;
    assert_int_equal(tare__quantize(NAN, 1, 3, 0, 255), 255);
    assert_int_equal(tare__quantize(INFINITY, 1, 3, 0, 255), 255);
    assert_int_equal(tare__quantize(-INFINITY, 1, 3, 0, 255), 0);
    assert_int_equal(tare__quantize_channel(NAN, 1, 0, -128, 127), 0);
    assert_int_equal(tare__quantize(3e9F, 1, 0, INT32_MIN, INT32_MAX), INT32_MAX);
    assert_int_equal(tare__quantize(-3e9F, 1, 0, INT32_MIN, INT32_MAX), INT32_MIN);
    assert_int_equal(tare__quantize_float_qparams(1.0F, 2.0F, 0.5F, 0, 255), 2); // rint(2.5)
    assert_true(tare__dequantize_float_qparams(2, 0.5F, 0.5F) == 0.75F);
    assert_true(tare__dequantize_embedding(3, 0.5F, -0.25F) == 1.25F);
}

static void fake_quantizing_masks_what_it_clamps(void **state) {
    (void)state;
    static const struct {
        float x, value;
        bool inside;
    } rows[] = {{-0.6F, 0, false}, {-0.5F, 0, true},    {127.5F, 127, false}, {126.5F, 126, true},
                {NAN, 0, false},   {1e30F, 127, false}, {-INFINITY, 0, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const fake_quantized y = tare__fake_quantize(rows[i].x, 1, 0, 0, 127);
        assert_true(y.value == rows[i].value && y.inside == rows[i].inside);
        const fake_quantized z = tare__fake_quantize_float_qparams(rows[i].x, 1, 0, 0, 127);
        assert_true(z.value == rows[i].value && z.inside == rows[i].inside);
    }
}

// clang-format off
static const struct { float min, max; bool reduce, symmetric; int32_t least, most; double scale; int32_t zero_point; } ranges[] = {
    {0, 0, false, false, 0, 255, 0.1, 0},           {0, 0, true, false, 0, 255, 0.1, 0},
    {-1, 2, false, false, 0, 255, 0.011764705882352941, 85}, {-1, 2, true, false, 0, 255, 0.023622047244094488, 42},
    {1, 2, false, false, 0, 255, 0.00784313725490196, 0},    {1, 2, true, false, 0, 255, 0.015748031496062992, 0},
    {-3e-06F, 1e-06F, false, false, 0, 255, 6.0999998822808266e-05, 191}, {-3e-06F, 1e-06F, true, false, 0, 255, 6.0999998822808266e-05, 95},
    {-1e-06F, 0, false, false, 0, 255, 6.0999998822808266e-05, 255},      {-1e-06F, 0, true, false, 0, 255, 6.0999998822808266e-05, 127},
    {0, 5e-05F, false, false, 0, 255, 6.0999998822808266e-05, 0},         {0, 5e-05F, true, false, 0, 255, 6.0999998822808266e-05, 0},
    {-1e-30F, 1e-30F, false, false, 0, 255, 6.0999998822808266e-05, 128}, {-1e-30F, 1e-30F, true, false, 0, 255, 6.0999998822808266e-05, 63},
};
// clang-format on

static void dynamic_parameters_match_the_recorded_ones(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const dynamic_range range = {ranges[i].min,  ranges[i].max,    ranges[i].least,
                                     ranges[i].most, ranges[i].reduce, ranges[i].symmetric};
        const dynamic_qparams q = tare__choose_dynamic_qparams(&range);
        assert_true(q.scale == ranges[i].scale);
        assert_int_equal(q.zero_point, ranges[i].zero_point);
    }
    // From a recorded symmetric fake quantizer, which keeps its scale as a float.
    const dynamic_range weight = {
        -1.6299017667770386F, 2.1299197673797607F, -128, 127, false, true};
    const dynamic_qparams q = tare__choose_dynamic_qparams(&weight);
    assert_true((float)q.scale == 0.016771022230386734F);
    assert_int_equal(q.zero_point, 0);
    // Quantized values without an integer in the middle: torch rounds 127.5 to the even neighbour.
    const dynamic_range unsigned_weight = {-0.25F, 0.125F, 0, 255, false, true};
    assert_int_equal(tare__choose_dynamic_qparams(&unsigned_weight).zero_point, 128);
}

// torch adds the zero point in float32, whose steps are 64 there.
static void large_zero_points_cost_bits(void **state) {
    (void)state;
    const fake_quantized f = tare__fake_quantize(6.1e-4F, 6.1e-5F, 798796506, 0, INT32_MAX);
    assert_true(f.inside);
    assert_true(f.value == (float)(798796480 - 798796506) * 6.1e-5F);
}

static void sums_of_integers_match_the_recorded_ties(void **state) {
    (void)state;
    const quantized_range a = {0.03F, 100}, b = {0.05F, 60}, out = {0.06F, 70};
    const native_add add = tare__native_add(a, b, out, 0, 255, false);
    // Recorded with fbgemm; a fused multiply-add would give 73, 69, 114.
    assert_int_equal(tare__native_add_quantized(&add, 112, 57), 74);
    assert_int_equal(tare__native_add_quantized(&add, 89, 66), 70);
    assert_int_equal(tare__native_add_quantized(&add, 164, 75), 115);
    const native_add relu = tare__native_add(a, b, out, 0, 255, true);
    assert_int_equal(tare__native_add_quantized(&relu, 113, 84), 97);
    assert_int_equal(tare__native_add_quantized(&relu, 0, 0), 70);
    assert_int_equal(tare__native_add_quantized(&relu, 255, 255), 255);
}

static void qnnpack_adds_in_fixed_point(void **state) {
    (void)state;
    const quantized_range a = {0.5F, 10}, b = {0.25F, 20}, out = {1.0F, 30};
    const qnnpack_add add = tare__qnnpack_add(a, b, out, 0, 255, false);
    assert_int_equal(add.shift, 22);
    assert_int_equal(add.multiplier_a, 1 << 21);
    for (int32_t x = 0; x < 256; x++)
        for (int32_t y = 0; y < 256; y += 3) {
            const double exact = 0.5 * (x - 10) + 0.25 * (y - 20);
            const double code = fmin(fmax(round(exact) + 30, 0), 255); // ties away from zero
            assert_int_equal(tare__qnnpack_add_quantized(&add, x, y), (int32_t)code);
        }
    const qnnpack_add relu = tare__qnnpack_add(a, b, out, 0, 255, true);
    assert_int_equal(tare__qnnpack_add_quantized(&relu, 0, 0), 30);
    // Ratios far outside of QNNPACK's own limits stay defined.
    const qnnpack_add tiny = tare__qnnpack_add((quantized_range){1e-30F, 0},
                                               (quantized_range){1e-35F, 0}, out, 0, 255, false);
    assert_int_equal(tare__qnnpack_add_quantized(&tiny, 255, 255), 30);
    const qnnpack_add huge = tare__qnnpack_add((quantized_range){1e30F, 0}, b, out, 0, 255, false);
    assert_int_equal(tare__qnnpack_add_quantized(&huge, 255, 20), 255);
}

static void products_of_integers(void **state) {
    (void)state;
    const quantized_range a = {0.5F, 10}, b = {0.25F, 20}, out = {2.0F, 30};
    const quantized_mul mul = tare__quantized_mul(a, b, out, 0, 255, false);
    assert_int_equal(tare__quantized_mul_quantized(&mul, 18, 22), 31); // 16 / 16
    assert_int_equal(tare__quantized_mul_quantized(&mul, 18, 23), 32); // 1.5 goes to 2
    assert_int_equal(tare__quantized_mul_quantized(&mul, 18, 25), 32); // 2.5 goes to 2
    assert_int_equal(tare__quantized_mul_quantized(&mul, 0, 255), 0);
    const quantized_mul relu = tare__quantized_mul(a, b, out, 0, 255, true);
    assert_int_equal(tare__quantized_mul_quantized(&relu, 0, 255), 30);
}

static void scalars_choose_their_own_range(void **state) {
    (void)state;
    scalar_op op = tare__add_scalar(0.031, 120, 0.5, 0, 255, false);
    assert_int_equal(op.zero_point, 104);
    assert_true(op.scale == 0.031 && tare__scalar_op_quantized(&op, 7) == 7);
    op = tare__add_scalar(0.031, 120, 50, 0, 255, false);
    assert_true(op.scale == 0.21250196078431371 && op.zero_point == 0);
    assert_int_equal(tare__scalar_op_quantized(&op, 120), 235); // 50 / 0.2125
    // The addend counts in whole steps of the input: 77 of them, not 2 / 0.0259 = 77.16.
    op = tare__add_scalar(0.025920063257217407, 23, 2, 0, 255, true);
    assert_int_equal(tare__scalar_op_quantized(&op, 29), 68);
    op = tare__add_scalar(0.031, 120, -50, 0, 255, true);
    assert_true(op.scale == 0.21067843137254902 && op.zero_point == 255);
    assert_int_equal(tare__scalar_op_quantized(&op, 120), 255); // ReLU of what is below zero
    op = tare__add_scalar(0.031, 120, 0.5, 0, 255, true);
    assert_int_equal(tare__scalar_op_quantized(&op, 7), 104);
    op = tare__mul_scalar(0.5, 100, -2, 0, 255, false);
    assert_true(op.scale == 1.0 && op.zero_point == 155 &&
                tare__scalar_op_quantized(&op, 255) == 0);
    op = tare__mul_scalar(0.5, 100, 3, 0, 255, false);
    assert_true(op.scale == 1.5 && op.zero_point == 100 &&
                tare__scalar_op_quantized(&op, 255) == 255);
    op = tare__mul_scalar(0.5, 100, 0, 0, 255, false);
    assert_true(op.scale == 1.0 && op.zero_point == 0 && tare__scalar_op_quantized(&op, 255) == 0);
}

static void helpers_are_defined_at_their_ends(void **state) {
    (void)state;
    assert_int_equal(tare__add_wrapping(INT32_MAX, 1), INT32_MIN);
    assert_int_equal(tare__add_wrapping(INT32_MIN, -1), INT32_MAX);
    assert_int_equal(tare__add_wrapping(-5, 3), -2);
    assert_int_equal(tare__shift_right(-1, 5), -1);
    assert_int_equal(tare__shift_right(-33, 5), -2);
    assert_int_equal(tare__round_between(NAN, -3, 9), -3);
    assert_int_equal(tare__round_between(2.5F, -3, 9), 2);
    for (int i = 1; i < REQUANT_RULE_COUNT; i++)
        assert_int_equal(tare__requant_rule_from_name(tare__requant_rule_name((requant_rule)i)), i);
    assert_int_equal(tare__requant_rule_from_name("f"), REQUANT_UNSET);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_give_the_engines_integers),
        cmocka_unit_test(dynamic_layers_give_the_engines_floats),
        cmocka_unit_test(rules_differ_in_their_ties),
        cmocka_unit_test(only_q_and_fixed_point_round_the_bias),
        cmocka_unit_test(addends_join_before_rounding),
        cmocka_unit_test(addends_are_added_exactly),
        cmocka_unit_test(sums_beyond_any_integer_are_clamped),
        cmocka_unit_test(fixed_point_is_the_float_rule_but_for_ties),
        cmocka_unit_test(impossible_layers_are_refused),
        cmocka_unit_test(arrays_are_padded_for_tiles),
        cmocka_unit_test(quantizing_matches_the_recorded_ties),
        cmocka_unit_test(values_without_a_integer_are_clamped),
        cmocka_unit_test(fake_quantizing_masks_what_it_clamps),
        cmocka_unit_test(dynamic_parameters_match_the_recorded_ones),
        cmocka_unit_test(large_zero_points_cost_bits),
        cmocka_unit_test(sums_of_integers_match_the_recorded_ties),
        cmocka_unit_test(qnnpack_adds_in_fixed_point),
        cmocka_unit_test(products_of_integers),
        cmocka_unit_test(scalars_choose_their_own_range),
        cmocka_unit_test(helpers_are_defined_at_their_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
