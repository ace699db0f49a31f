// SPDX-License-Identifier: Apache-2.0
// torch.ops.quantized_decomposed to the last bit, and in torch's words. Expected: PyTorch 2.15.
#include "support/models.h"
#include "support/run.h"
#include "support/test.h"

#define QD "torch.ops.quantized_decomposed."
#define SHAPE(...)                                                                                 \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) {                       \
        __VA_ARGS__                                                                                \
    }
#define NUMBERS(...)                                                                               \
    sizeof((const double[]){__VA_ARGS__}) / sizeof(double), (const double[]) {                     \
        __VA_ARGS__                                                                                \
    }

static tare_tensor *numbers(tare_dtype dtype, int ndim, const int64_t *shape, size_t count,
                            const double *from) {
    tare_tensor *t = NULL;
    CHECK_DONE(tare_tensor_create(dtype, ndim, shape, &t, job_error()));
    assert_int_equal(t->count, count);
    for (size_t i = 0; i < count; i++) tare__tensor_set(t, (int64_t)i, from[i]);
    return t;
}

// [2][8] of all kinds of numbers between -0.9 and 2.1.
static tare_tensor *sixteen(tare_dtype dtype) {
    tare_tensor *t = NULL;
    CHECK_DONE(tare_tensor_create(dtype, SHAPE(2, 8), &t, job_error()));
    for (int64_t i = 0; i < t->count; i++)
        tare__tensor_set(t, i, (double)(((float)((i * 7919 + 13) % 1000) / 999.0F - 0.3F) * 3.0F));
    return t;
}

static void check_equal(tare_tensor *t, tare_dtype dtype, size_t count, const double *expected) {
    assert_int_equal(t->dtype, dtype);
    assert_int_equal(t->count, count);
    for (size_t i = 0; i < count; i++)
        if (tare__tensor_get(t, (int64_t)i) != expected[i])
            fail_msg("element %zu: expected %a, found %a", i, expected[i],
                     tare__tensor_get(t, (int64_t)i));
    tare_tensor_release(t);
}

// Item `i` of what a choice gives for x.
static tare_tensor *chosen(const char *call, tare_dtype dtype, int i) {
    char code[256];
    (void)snprintf(code, sizeof code, "c = " QD "%s; c[%d]", call, i);
    return run_expression("x", code, INPUTS(sixteen(dtype)));
}

static void tokens_choose_their_parameters(void **state) {
    (void)state;
    static const char symmetric[] = "choose_qparams_per_token.default(x, torch.int8)";
    static const char asymmetric[] = "choose_qparams_per_token_asymmetric.default(x, torch.int8)";
    static const char inner[] = "_choose_qparams_per_token_asymmetric_impl.default(x, torch.int8)";
    check_equal(chosen(symmetric, TARE_FLOAT32, 0), TARE_FLOAT32,
                NUMBERS(0x1.e9eb84p-7, 0x1.ff9d72p-7));
    check_equal(chosen(symmetric, TARE_FLOAT32, 1), TARE_FLOAT32, NUMBERS(0, 0));
    check_equal(chosen(symmetric, TARE_BFLOAT16, 0), TARE_BFLOAT16, NUMBERS(0x1.eap-7, 0x1p-6));
    check_equal(chosen(asymmetric, TARE_FLOAT32, 0), TARE_FLOAT64,
                NUMBERS(0x1.62a27p-7, 0x1.62a272p-7));
    check_equal(chosen(asymmetric, TARE_FLOAT32, 1), TARE_INT64, NUMBERS(-48, -56));
    check_equal(chosen(inner, TARE_FLOAT32, 1), TARE_INT64, NUMBERS(-48, -56));
    check_equal(chosen(asymmetric, TARE_BFLOAT16, 0), TARE_FLOAT64, NUMBERS(0x1.62p-7, 0x1.64p-7));
}

static void whole_tensors_choose_in_the_inputs_precision(void **state) {
    (void)state;
    static const char affine[] = "choose_qparams.tensor(x, -128, 127, 1e-06, torch.int8)";
    static const char symmetric[] =
        "choose_qparams_symmetric.tensor(x, -128, 127, 1e-06, torch.int8)";
    static const char half[] = "choose_qparams.tensor(x, 0, 255, 1e-06, torch.uint8)";
    static const char narrow[] = "choose_qparams_symmetric.tensor(x, 0, 127, 1e-06, torch.uint8)";
    check_equal(chosen(affine, TARE_BFLOAT16, 0), TARE_FLOAT64, NUMBERS(0x1.6ep-7));
    check_equal(chosen(affine, TARE_BFLOAT16, 1), TARE_INT64, NUMBERS(-51));
    check_equal(chosen(symmetric, TARE_BFLOAT16, 0), TARE_FLOAT64, NUMBERS(0x1.fep-7));
    check_equal(chosen(half, TARE_FLOAT16, 0), TARE_FLOAT64, NUMBERS(0x1.6d8p-7));
    check_equal(chosen(half, TARE_FLOAT16, 1), TARE_INT64, NUMBERS(77));
    check_equal(chosen(narrow, TARE_FLOAT32, 0), TARE_FLOAT64, NUMBERS(0x1.ff9d72p-6));
    check_equal(chosen(narrow, TARE_FLOAT32, 1), TARE_INT64, NUMBERS(128));
}

static void tokens_add_their_zero_point_before_rounding(void **state) {
    (void)state;
    check_equal(run_expression("x, s, z",
                               QD "quantize_per_token.default(x, s, z, -128, 127, torch.int8)",
                               INPUTS(numbers(TARE_FLOAT32, SHAPE(2, 4),
                                              NUMBERS(0.5, 1.5, 2.5, -0.5, 0.26, -0.7, 0.1, 9)),
                                      numbers(TARE_FLOAT32, SHAPE(2, 1), NUMBERS(1, 0.02)),
                                      numbers(TARE_FLOAT32, SHAPE(2, 1), NUMBERS(1, 3)))),
                TARE_INT8, NUMBERS(2, 2, 4, 0, 16, -32, 8, 127));
    static const char chain[] =
        "c = " QD "choose_qparams_per_token_asymmetric.default(x, torch.int8); s = c[0]; "
        "z = c[1]; q = " QD "quantize_per_token.default(x, s, z, -128, 127, torch.int8); " QD
        "dequantize_per_token.default(q, s, z, -128, 127, torch.int8, torch.float32)";
    check_equal(run_expression("x", chain, INPUTS(sixteen(TARE_FLOAT32))), TARE_FLOAT32,
                NUMBERS(-0x1.bb4b0cp-1, 0x1.e4da16p+0, 0x1.a7e62ap+0, 0x1.682cfap+0, 0x1.2b390ep+0,
                        0x1.dc8a46p-1, 0x1.5d17e6p-1, 0x1.c6602p-2, 0x1.8ef6cp-3, -0x1.62a272p-5,
                        -0x1.2b391p-2, -0x1.0f846p-1, -0x1.8ef6cp-1, 0x1.fb043ep+0, 0x1.be1054p+0,
                        0x1.7e5722p+0));
}

#define GROUP_INTEGERS QD "quantize_per_channel_group.default(x, s, z, -8, 7, torch.int8, 4)"

static tare_tensor *grouped(const char *code) {
    return run_expression("x, s, z", code,
                          INPUTS(sixteen(TARE_FLOAT32),
                                 numbers(TARE_FLOAT32, SHAPE(2, 2), NUMBERS(.5, .7, .3, .4)),
                                 numbers(TARE_INT64, SHAPE(2, 2), NUMBERS(0, 1, 2, -1))));
}

static void groups_of_a_row_have_their_own_parameters(void **state) {
    (void)state;
    check_equal(grouped(GROUP_INTEGERS), TARE_INT8,
                NUMBERS(-2, 4, 3, 3, 3, 2, 2, 2, 3, 2, 1, 0, -3, 4, 3, 3));
    check_equal(grouped("q = " GROUP_INTEGERS "; " QD
                        "dequantize_per_channel_group.default(q, s, z, -8, 7, torch.int8, 4, "
                        "torch.float32)"),
                TARE_FLOAT32,
                NUMBERS(-1, 2, 1.5, 1.5, 0x1.666666p+0, 0x1.666666p-1, 0x1.666666p-1, 0x1.666666p-1,
                        0x1.333334p-2, 0, -0x1.333334p-2, -0x1.333334p-1, -0x1.99999ap-1, 2,
                        0x1.99999ap+0, 0x1.99999ap+0));
    check_equal(grouped("q = " GROUP_INTEGERS "; " QD
                        "dequantize_per_channel_group.default(q, s, None, -8, 7, torch.int8, 4, "
                        "torch.float16)"),
                TARE_FLOAT16,
                NUMBERS(-1, 2, 1.5, 1.5, 0x1.0ccp+1, 0x1.668p+0, 0x1.668p+0, 0x1.668p+0, 0x1.cccp-1,
                        0x1.334p-1, 0x1.334p-2, 0, -0x1.334p+0, 0x1.998p+0, 0x1.334p+0,
                        0x1.334p+0));
}

static void channels_are_quantized_and_back(void **state) {
    (void)state;
    check_equal(run_expression("x, s, z", QD "fake_quant_per_channel.default(x, s, z, 0, -4, 7)",
                               INPUTS(sixteen(TARE_FLOAT32),
                                      numbers(TARE_FLOAT32, SHAPE(2), NUMBERS(.5, .03)),
                                      numbers(TARE_INT64, SHAPE(2), NUMBERS(0, 2)))),
                TARE_FLOAT32,
                NUMBERS(-1, 2, 1.5, 1.5, 1, 1, .5, .5, 0x1.333332p-3, -0x1.eb851ep-5,
                        -0x1.70a3d6p-3, -0x1.70a3d6p-3, -0x1.70a3d6p-3, 0x1.333332p-3,
                        0x1.333332p-3, 0x1.333332p-3));
}

static tare_tensor *half_values(const char *dtype) {
    char code[256];
    (void)snprintf(code, sizeof code,
                   QD "dequantize_per_tensor.default(x, 0.0123, 5, -128, 127, torch.int8, "
                      "out_dtype = %s)",
                   dtype);
    return run_expression("x", code,
                          INPUTS(numbers(TARE_INT8, SHAPE(4), NUMBERS(3, 100, -77, 127))));
}

static void half_precision_rounds_every_step(void **state) {
    (void)state;
    check_equal(half_values("torch.bfloat16"), TARE_BFLOAT16,
                NUMBERS(-0x1.94p-6, 0x1.2cp+0, -0x1.02p+0, 1.5));
    check_equal(half_values("torch.float16"), TARE_FLOAT16,
                NUMBERS(-0x1.93p-6, 0x1.2b4p+0, -0x1.024p+0, 0x1.804p+0));
}

static void bytes_wrap_around_their_zero_points(void **state) {
    (void)state;
    check_equal(run_expression("x, s, z",
                               QD "dequantize_per_channel.default(x, s, z, 0, 0, 255, torch.uint8)",
                               INPUTS(numbers(TARE_UINT8, SHAPE(2, 2), NUMBERS(1, 2, 200, 3)),
                                      numbers(TARE_FLOAT32, SHAPE(2), NUMBERS(1, .5)),
                                      numbers(TARE_UINT8, SHAPE(2), NUMBERS(3, 4)))),
                TARE_FLOAT32, NUMBERS(254, 255, 98, 127.5));
}

static void what_has_no_integer_is_clamped(void **state) {
    (void)state;
    check_equal(
        run_expression("x", QD "quantize_per_tensor.default(x, 1.0, 5, -100, 100, torch.int8)",
                       INPUTS(numbers(TARE_FLOAT32, SHAPE(3), NUMBERS(NAN, HUGE_VAL, -HUGE_VAL)))),
        TARE_INT8, NUMBERS(0, 100, -100));
    check_equal(
        run_expression("x",
                       "q = " QD "quantize_per_tensor.default(x, 1.0, 0, -448, 448, "
                       "torch.float8_e4m3fn); q.to(torch.float32)",
                       INPUTS(numbers(TARE_FLOAT32, SHAPE(4), NUMBERS(.3, 1.49, -500, 3.5)))),
        TARE_FLOAT32, NUMBERS(0, 1, -448, 4));
}

// x: [2][3] float32; w: the same numbers in int8; t: two floats; n: two integers.
static const struct {
    const char *call, *message;
} refusals[] = {
    {"quantize_per_tensor.default(x, 1.0, 0, 0, 255, torch.quint8)",
     "Unsupported dtype: torch.quint8"},
    {"quantize_per_tensor.default(w, 1.0, 0, 0, 255, torch.uint8)",
     "Expecting input to have dtype torch.float32, but got dtype: torch.int8"},
    {"quantize_per_tensor.default(x, 1.0, 0, -1, 255, torch.uint8)",
     "quant_min out of bounds for dtype, quant_min_lower_bound: 0 quant_min: -1"},
    {"quantize_per_tensor.default(x, 1.0, 0, 0, 256, torch.uint8)",
     "quant_max out of bounds for dtype, quant_max_upper_bound: 255 quant_max: 256"},
    {"quantize_per_tensor.tensor(x, t, n, 0, 255, torch.uint8)",
     "Expecting zero_point tensor to be one element, but received : 2"},
    {"quantize_per_tensor.tensor(x, t, 0, 0, 255, torch.uint8)",
     "Expecting scale tensor to be one element, but received : 2"},
    {"dequantize_per_tensor.default(w, 1.0, 0, 0, 255, torch.uint8)",
     "Expecting input to have dtype: torch.uint8, but got torch.int8"},
    {"dequantize_per_tensor.default(x, 1.0, 0, 0, 255, torch.float32)",
     "Unsupported dtype in dequantize_per_tensor: torch.float32"},
    {"quantize_per_channel.default(x, t, n, 2, 0, 255, torch.uint8)", "Expecting axis to be < 2"},
    {"quantize_per_channel.default(x, t, n, 0, -1, 255, torch.uint8)",
     "quant_min out of bounds for dtype, quant_min_lower_bound: 0 quant_min: -1"},
    {"dequantize_per_channel.default(w, t, n, 0, 0, 255, torch.uint8)",
     "Expecting input to have dtype: torch.uint8, but got dtype: torch.int8"},
    {"dequantize_per_channel.default(w, t, n, 3, -128, 127, torch.int8)",
     "Expecting axis to be < 2"},
    {"dequantize_per_channel.default(w, t, n, 0, -129, 127, torch.int8)",
     "quant_min out of bounds for dtype, quant_min_lower_bound: -128 quant_min: -129"},
    {"choose_qparams.tensor(w, 0, 255, 1e-05, torch.uint8)",
     "Expecting input to have dtype torch.float32/16/b16, but got dtype: torch.int8"},
    {"choose_qparams.tensor(x, 0, 255, 1e-05, torch.int64)",
     "Expecting target dtype to be one of dict_keys([torch.uint8, torch.int8, torch.uint16, "
     "torch.int16, torch.int32, torch.float8_e5m2, torch.float8_e4m3fn]), but got: torch.int64"},
    {"choose_qparams_symmetric.tensor(x, 1, 255, 1e-05, torch.uint8)",
     "Used-specified quantization range must include 0."},
    {"choose_qparams.tensor(x, 0, 0, 1e-05, torch.uint8)",
     "qmin must be strictly less than qmax for user-specified quantization range."},
    {"choose_qparams_per_token.default(x, torch.uint8)",
     "unsupported dtype in choose_qparams_per_token: torch.uint8"},
    {"quantize_per_token.default(x, x, n, -128, 127, torch.int8)",
     "num_tokens: 2 scales: torch.Size([2, 3])"},
    {"quantize_per_token.default(x, t, x, -128, 127, torch.int8)",
     "num_tokens: 2 zero_points: torch.Size([2, 3])"},
    {"quantize_per_token.default(x, t, n, -129, 127, torch.int8)",
     "quant_min out of bounds for dtype, quant_min_lower_bound: -128 quant_min: -129"},
    {"quantize_per_channel_group.default(x, t, n, -8, 7, torch.int8, 1)", "group_size must be > 1"},
    {"quantize_per_channel_group.default(x, t, n, -8, 7, torch.int8, 2)",
     "input.shape[-1] must be divisible by group_size"},
    {"dequantize_per_channel_group.default(w, t, None, -8, 7, torch.int8, 2, torch.float32)",
     "w_int8.shape[-1] must be divisible by group_size"},
    {"dequantize_per_channel_group.default(n, t, None, -8, 7, torch.int8, 2, torch.float32)",
     "w_int8 must be 2-dimensional"},
    {"fake_quant_per_channel.default(x, t, n, 2, -4, 7)", "Expecting axis to be < 2"},
    {"fake_quant_per_channel.default(w, t, n, 0, -4, 7)",
     "Expecting input to have dtype torch.float32, but got dtype: torch.int8"},
};

static void refusals_are_torchs(void **state) {
    (void)state;
    tare_tensor *inputs[] = {numbers(TARE_FLOAT32, SHAPE(2, 3), NUMBERS(.5, -1, 2, .1, .2, .3)),
                             numbers(TARE_INT8, SHAPE(2, 3), NUMBERS(1, 2, 3, 4, 5, 6)),
                             numbers(TARE_FLOAT32, SHAPE(2), NUMBERS(1, 2)),
                             numbers(TARE_INT64, SHAPE(2), NUMBERS(0, 1))};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        char code[256];
        tare_tensor *y = NULL;
        (void)snprintf(code, sizeof code, QD "%s", refusals[i].call);
        module *m = model_of("x, w, t, n", code);
        CHECK_REFUSED(run_model(m, inputs, 4, NULL, &y, job_error()), TARE_INVALID_ARGUMENT,
                      refusals[i].message);
        tare__module_release(m);
    }
    for (size_t i = 0; i < 4; i++) tare_tensor_release(inputs[i]);
}

static void groups_refuse_nan(void **state) {
    (void)state;
    tare_tensor *inputs[] = {numbers(TARE_FLOAT32, SHAPE(1, 2), NUMBERS(1, NAN)),
                             numbers(TARE_FLOAT32, SHAPE(1), NUMBERS(1))};
    tare_tensor *y = NULL;
    module *m =
        model_of("x, s", QD "quantize_per_channel_group.default(x, s, s, -8, 7, torch.int8, 2)");
    CHECK_REFUSED(run_model(m, inputs, 2, NULL, &y, job_error()), TARE_INVALID_ARGUMENT,
                  "to_quant must not contain NaNs");
    tare__module_release(m);
    tare_tensor_release(inputs[0]);
    tare_tensor_release(inputs[1]);
}

// torch.clamp: the upper bound holds. No bound makes a byte of what is none.
static void bounds_may_cross_and_lie_beyond_the_dtype(void **state) {
    (void)state;
    static const struct {
        const char *bounds;
        double expected;
    } cases[] = {{"4000000000000, 255", 255}, {"4000000000000, -4000000000000", 0}, {"9, 5", 5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char code[256];
        (void)snprintf(code, sizeof code,
                       QD "quantize_per_tensor.default(x, 1.0, 0, %s, torch.uint8)",
                       cases[i].bounds);
        tare_tensor *x = numbers(TARE_FLOAT32, SHAPE(2), NUMBERS(0, 7));
        check_equal(run_expression("x", code, INPUTS(x)), TARE_UINT8,
                    NUMBERS(cases[i].expected, cases[i].expected));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_choose_their_parameters),
        cmocka_unit_test(whole_tensors_choose_in_the_inputs_precision),
        cmocka_unit_test(tokens_add_their_zero_point_before_rounding),
        cmocka_unit_test(groups_of_a_row_have_their_own_parameters),
        cmocka_unit_test(channels_are_quantized_and_back),
        cmocka_unit_test(half_precision_rounds_every_step),
        cmocka_unit_test(bytes_wrap_around_their_zero_points),
        cmocka_unit_test(what_has_no_integer_is_clamped),
        cmocka_unit_test(refusals_are_torchs),
        cmocka_unit_test(groups_refuse_nan),
        cmocka_unit_test(bounds_may_cross_and_lie_beyond_the_dtype),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
