// SPDX-License-Identifier: Apache-2.0
// The reference representation. Codes and results: torchao 0.18's reference_representation_rewrite
// on the same graphs.
#include "flow/export/convert.h"
#include "support/models.h"
#include "support/run.h"
#include "support/test.h"

#define ATEN "torch.ops.aten."
#define QD   "torch.ops.quantized_decomposed."
#define LINE "\n    "
#define DEQUANTIZED_PAIR                                                                           \
    LINE "dx = " QD "dequantize_per_tensor.default(x, 0.05, -3, -128, 127, torch.int8)" LINE       \
         "dw = " QD "dequantize_per_tensor.default(w, 0.02, 0, -127, 127, torch.int8)"
#define QUANTIZED(scale)                                                                           \
    LINE "q = " QD "quantize_per_tensor.default(y, " scale ", 5, -128, 127, torch.int8)" LINE      \
         "return q\n"

static tare_model *rewritten(const char *code) {
    tare_model *m = new_model(NULL, new_tree(), code), *out = NULL;
    pass p;
    tare_status status = tare__pass_begin(&p, "convert", m, NULL, job_error());
    if (status == TARE_OK) status = tare__pt2e_reference_representation(&p);
    CHECK_DONE(tare__pass_end(&p, status, &out));
    tare_model_destroy(m);
    return out;
}

static tare_tensor *numbers(tare_dtype dtype, int ndim, const int64_t *shape, size_t count,
                            const double *from) {
    tare_tensor *t = NULL;
    CHECK_DONE(tare_tensor_create(dtype, ndim, shape, &t, job_error()));
    assert_int_equal(t->count, count);
    for (size_t i = 0; i < count; i++) tare__tensor_set(t, (int64_t)i, from[i]);
    return t;
}
#define SHAPE(...)                                                                                 \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) {                       \
        __VA_ARGS__                                                                                \
    }
#define NUMBERS(...)                                                                               \
    sizeof((const double[]){__VA_ARGS__}) / sizeof(double), (const double[]) {                     \
        __VA_ARGS__                                                                                \
    }

// Gives the inputs back.
static tare_tensor *outcome(const tare_model *m, tare_tensor **inputs, size_t count) {
    tare_tensor *y = result_of(m, (const tare_tensor *const *)inputs, count);
    for (size_t i = 0; i < count; i++) tare_tensor_release(inputs[i]);
    return y;
}

static void check_numbers(tare_tensor *t, tare_dtype dtype, size_t count, const double *expected) {
    assert_int_equal(t->dtype, dtype);
    assert_int_equal(t->count, count);
    for (size_t i = 0; i < count; i++) assert_true(tare__tensor_get(t, (int64_t)i) == expected[i]);
    tare_tensor_release(t);
}

static void dynamic_linear_adds_its_bias_as_an_integer(void **state) {
    (void)state;
    tare_model *m = rewritten(
        "def forward(self, x, w, b):" LINE "c = " QD
        "choose_qparams.tensor(x, -128, 127, 1.1920928955078125e-07, torch.int8)" LINE
        "getitem = c[0]" LINE "getitem_1 = c[1]" LINE "q = " QD
        "quantize_per_tensor.tensor(x, getitem, getitem_1, -128, 127, torch.int8)" LINE "dq = " QD
        "dequantize_per_tensor.tensor(q, getitem, getitem_1, -128, 127, torch.int8)" LINE "dw = " QD
        "dequantize_per_tensor.default(w, 0.02, 0, -127, 127, torch.int8)" LINE
        "linear_default = " ATEN "linear.default(dq, dw, b)" LINE "return linear_default\n");
    CHECK_HOLDS(printed(m), "    getitem_2 = choose_qparams[0]\n");
    CHECK_HOLDS(printed(m), "    add = torch.ops.aten.add.Tensor(to, getitem_3);  to = None\n"
                            "    clamp = torch.ops.aten.clamp.default(add, -128, 127);");
    CHECK_HOLDS(printed(m),
                "    out_dtype_1 = torch.ops.higher_order.out_dtype(torch.ops.aten.div.Tensor, "
                "torch.int32, b, mul);  b = mul = None\n");
    tare_tensor *inputs[] = {
        numbers(TARE_FLOAT32, SHAPE(2, 3), NUMBERS(-1.5, 0.25, 2, 0.7, -0.3, 1.1)),
        numbers(TARE_INT8, SHAPE(2, 3), NUMBERS(10, -20, 30, -40, 50, 127)),
        numbers(TARE_FLOAT32, SHAPE(2), NUMBERS(0.5, -0.25))};
    check_numbers(outcome(m, inputs, 3), TARE_FLOAT64,
                  NUMBERS(0x1.4ddfcb7ea3d71p+0, 0x1.922e5784b8520p+2, 0x1.6b63b5d370a3ep+0,
                          0x1.ad60940266667p+0));
    tare_model_destroy(m);
}

static void a_convolution_sums_in_integers(void **state) {
    (void)state;
    tare_model *m = rewritten(
        "def forward(self, x, w, b):" DEQUANTIZED_PAIR LINE "y = " ATEN
        "convolution.default(dx, dw, b, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)" QUANTIZED(
            "0.1"));
    CHECK_HOLDS(printed(m), "out_dtype(torch.ops.aten.convolution.default, torch.int32, sub, "
                            "sub_1, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1);");
    CHECK_HOLDS(printed(m), "    unsqueeze_1 = torch.ops.aten.unsqueeze.default(unsqueeze, -1);");
    tare_tensor *inputs[] = {
        numbers(TARE_INT8, SHAPE(1, 1, 3, 3), NUMBERS(1, -20, 3, 40, 5, -6, 70, 8, 90)),
        numbers(TARE_INT8, SHAPE(2, 1, 2, 2), NUMBERS(1, 2, 3, -4, -50, 6, 7, 80)),
        numbers(TARE_FLOAT32, SHAPE(2), NUMBERS(0.123, -0.456))};
    check_numbers(outcome(m, inputs, 3), TARE_INT8,
                  NUMBERS(6, 7, 5, 6, 5, 6, 6, 6, 5, 8, 3, 8, 7, 7, 8, 7, 4, -12, 5, 1, 35, 6, 7,
                          -2, 61, -6, 71, 8, 5, -35, 1, -46));
    tare_model_destroy(m);
}

static void a_layer_without_a_bias_stays_between_arithmetic(void **state) {
    (void)state;
    tare_model *m = rewritten("def forward(self, x, w):" DEQUANTIZED_PAIR LINE "y = " ATEN
                              "linear.default(dx, dw)" QUANTIZED("0.1"));
    CHECK_HOLDS(printed(m), "    y = torch.ops.aten.linear.default(to_3, to_5);");
    CHECK_HOLDS(printed(m), "    round_1 = torch.ops.aten.round.default(div);");
    CHECK_LACKS(printed(m), "out_dtype");
    CHECK_LACKS(printed(m), "quantized_decomposed");
    tare_model_destroy(m);
}

static void a_pool_compares_integers(void **state) {
    (void)state;
    tare_model *m = rewritten(
        "def forward(self, x):" LINE "dx = " QD
        "dequantize_per_tensor.default(x, 0.05, -3, -128, 127, torch.int8)" LINE "pool = " ATEN
        "max_pool2d_with_indices.default(dx, [2, 2], [2, 2])" LINE "y = pool[0]" QUANTIZED("0.04"));
    CHECK_HOLDS(printed(m), "    getitem = max_pool2d_with_indices[0];");
    tare_tensor *inputs[] = {
        numbers(TARE_INT8, SHAPE(1, 1, 4, 4),
                NUMBERS(1, -20, 3, 100, 40, 5, -6, -7, 70, 8, 90, -128, 0, 1, 2, 3))};
    check_numbers(outcome(m, inputs, 1), TARE_INT8, NUMBERS(58, 127, 96, 121));
    tare_model_destroy(m);
}

static void channels_are_divided_along_the_last_dimension(void **state) {
    (void)state;
    tare_model *m = rewritten("def forward(self, x, s, z):" LINE "q = " QD
                              "quantize_per_channel.default(x, s, z, 0, -128, 127, torch.int8)" LINE
                              "return q\n");
    CHECK_HOLDS(printed(m), "    transpose_1 = torch.ops.aten.transpose.int(clamp, 0, -1);");
    tare_tensor *inputs[] = {
        numbers(TARE_FLOAT32, SHAPE(2, 3), NUMBERS(0.5, -1.25, 3, 0.07, 0.14, -9.9)),
        numbers(TARE_FLOAT32, SHAPE(2), NUMBERS(0.1, 0.02)),
        numbers(TARE_INT32, SHAPE(2), NUMBERS(3, -4))};
    check_numbers(outcome(m, inputs, 3), TARE_INT8, NUMBERS(8, -9, 33, 0, 3, -128));
    tare_model_destroy(m);
}

static void matches_that_follow_each_other_are_all_replaced(void **state) {
    (void)state;
    tare_model *m = rewritten(
        "def forward(self, x):" LINE "q = " QD
        "quantize_per_tensor.default(x, 0.5, 0, -128, 127, torch.int8)" LINE "dq = " QD
        "dequantize_per_tensor.default(q, 0.5, 0, -128, 127, torch.int8)" LINE "q_1 = " QD
        "quantize_per_tensor.default(dq, 0.25, 0, -128, 127, torch.int8)" LINE "return q_1\n");
    CHECK_HOLDS(printed(m), "    clamp_2 = torch.ops.aten.clamp(to_1, -128, 127);  to_1 = None\n");
    CHECK_HOLDS(printed(m), "    div_1 = torch.ops.aten.div.Tensor(to_5, 0.25);  to_5 = None\n");
    CHECK_HOLDS(decided(m, "to_1"), "rewritten: int8 quantize_per_tensor");
    tare_model_destroy(m);
}

static void out_dtype_refuses_other_operators(void **state) {
    (void)state;
    tare_tensor *x = COUNTING(1, 1, 2), *y = NULL;
    module *m = model_of("x", "torch.ops.higher_order.out_dtype(torch.ops.aten.add.Tensor, "
                              "torch.int32, x, x)");
    CHECK_REFUSED(run_model(m, &x, 1, NULL, &y, job_error()), TARE_INVALID_ARGUMENT,
                  "out_dtype only allows linear, mm, conv2d, convolution, mul and div");
    tare__module_release(m);
    tare_tensor_release(x);
}

static void out_dtype_truncates_what_the_promoted_dtype_gives(void **state) {
    (void)state;
    // 7 / 2 and -7 / 2 in float32; a product of int16 in int32.
    tare_tensor *x = COUNTING(-7, 14, 2);
    CHECK(run_expression("x",
                         "w = x.to(torch.int32); torch.ops.higher_order.out_dtype("
                         "torch.ops.aten.div.Tensor, torch.int32, w, 2)",
                         INPUTS(x)),
          -3, 3);
    x = COUNTING(200, 55, 2, 1);
    CHECK(run_expression("x",
                         "w = x.to(torch.int16); v = torch.transpose(w, 0, 1); "
                         "torch.ops.higher_order.out_dtype(torch.ops.aten.mm.default, torch.int32, "
                         "w, v)",
                         INPUTS(x)),
          40000, 51000, 51000, 65025);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dynamic_linear_adds_its_bias_as_an_integer),
        cmocka_unit_test(a_convolution_sums_in_integers),
        cmocka_unit_test(a_layer_without_a_bias_stays_between_arithmetic),
        cmocka_unit_test(a_pool_compares_integers),
        cmocka_unit_test(channels_are_divided_along_the_last_dimension),
        cmocka_unit_test(matches_that_follow_each_other_are_all_replaced),
        cmocka_unit_test(out_dtype_refuses_other_operators),
        cmocka_unit_test(out_dtype_truncates_what_the_promoted_dtype_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
