// SPDX-License-Identifier: Apache-2.0
// Operators against values that PyTorch 2.15 computed.
#include "support/run.h"
#include "support/test.h"

#include <math.h>

#include "ops/op.h"

static tare_tensor *floats(size_t count, const float *data) {
    tare_tensor *t = NULL;
    const int64_t shape[] = {(int64_t)count};
    CHECK_OK(tare_tensor_from_data(TARE_FLOAT32, 1, shape, data, &t, NULL));
    return t;
}
#define FLOATS(...)                                                                                \
    floats(sizeof((const float[]){__VA_ARGS__}) / sizeof(float), (const float[]){__VA_ARGS__})

static tare_tensor *image(void) {
    return COUNTING(-1.5, 0.25, 1, 2, 3, 4);
}

static tare_tensor *grouped(const char *expression) {
    return run_expression("x, w, b", expression,
                          INPUTS(COUNTING(-1.5, 0.25, 1, 2, 2, 4),
                                 COUNTING(-0.75, 0.125, 4, 1, 2, 2),
                                 FLOATS(0.5f, -0.25f, 0.0f, 1.0f)));
}

static void convolutions_pad_stride_and_group(void **state) {
    (void)state;
    CHECK(grouped("torch.conv2d(x, w, b, stride = (1, 2), padding = (1, 0), groups = 2)"), 1.71875,
          1.28125, 2.75, 1.625, 1.03125, 0.34375, -0.40625, -0.34375, 0.25, 0.125, -0.09375,
          -0.28125, 0.71875, 1.28125, 2.25, 3.125, 1.03125, 1.34375, 2.34375, 3.40625, 5.5, 7.375,
          3.65625, 4.46875);
    CHECK(grouped("torch.conv2d(x, w, b, padding = 'same', groups = 2)"), 2.75, 2.1875, 1.625,
          0.9375, 1.03125, 0.6875, 0.34375, 0.3125, 0.25, 0.1875, 0.125, -0.0625, -0.09375, -0.1875,
          -0.28125, -0.3125, 2.25, 2.6875, 3.125, 1.4375, 1.03125, 1.1875, 1.34375, 0.5625, 5.5,
          6.4375, 7.375, 4.1875, 3.65625, 4.0625, 4.46875, 2.6875);
}

static void convolutions_dilate(void **state) {
    (void)state;
    CHECK(run_expression("x, w", "torch.conv1d(x, w, dilation = 2)",
                         INPUTS(COUNTING(-1.5, 0.25, 2, 2, 4), COUNTING(1, 1, 1, 2, 2))),
          -5.0, -2.5, 15.0, 17.5);
}

// In ceil mode a window may be larger than the input: torch's average is of what there is.
static void pools_may_hang_over(void **state) {
    (void)state;
    CHECK(run_expression("x", "torch._C._nn.avg_pool2d(x, 9, ceil_mode = True)",
                         INPUTS(COUNTING(1, 1, 1, 2, 2, 2))),
          2.5, 6.5);
}

static void transposed_convolutions_scatter(void **state) {
    (void)state;
    CHECK(
        run_expression(
            "x, w, b",
            "torch.conv_transpose2d(x, w, b, stride = 2, padding = 1, output_padding = 1)",
            INPUTS(COUNTING(-1.5, 0.25, 1, 2, 2, 4), COUNTING(-1, 0.5, 2, 1, 2, 2), FLOATS(0.5f))),
        1.0, 2.0, 1.75, 2.5, 2.5, 3.0, 3.25, 3.0, 2.5, 3.25, 2.5, 3.5, 2.5, 3.75, 4.0, 4.0, 4.75,
        4.5, 5.5, 5.0, 6.25);
}

static void pools_round_sizes_and_count_padding(void **state) {
    (void)state;
    CHECK(run_expression("x", "torch.nn.functional.max_pool2d(x, 2, stride = 2, ceil_mode = True)",
                         INPUTS(image())),
          -0.25, 0.25, 0.75, 1.25, 2.75, 3.25, 3.75, 4.25);
    CHECK(run_expression("x", "torch._C._nn.avg_pool2d(x, 3, 2, 1, True, True)", INPUTS(image())),
          -0.388888896, -0.333333343, -0.0833333358, 0.055555556, 0.333333343, 0.25, 0.944444418,
          1.66666663, 0.916666687, 1.38888884, 2.33333325, 1.25);
    CHECK(run_expression("x", "torch._C._nn.avg_pool2d(x, 3, 2, 1, count_include_pad = False)",
                         INPUTS(image())),
          -0.875, -0.5, 0.125, 0.5, 2.125, 2.5, 3.125, 3.5);
    CHECK(
        run_expression("x", "torch.nn.functional.adaptive_avg_pool2d(x, (2, 3))", INPUTS(image())),
        -0.875, -0.625, -0.375, 0.125, 0.375, 0.625, 2.125, 2.375, 2.625, 3.125, 3.375, 3.625);
}

static void activations_follow_torch(void **state) {
    (void)state;
    CHECK(run_expression("x", "torch._C._nn.gelu(x)", INPUTS(FLOATS(-2, -0.5f, 0, 1.5f))),
          -0.0455002785, -0.154268771, 0.0, 1.39978909);
    CHECK(
        run_expression("x", "torch.nn.functional.elu(x, 0.5)", INPUTS(FLOATS(-2, -0.5f, 0, 1.5f))),
        -0.432332367, -0.196734667, 0.0, 1.5);
    CHECK(run_expression("x", "torch.nn.functional.hardswish(x)", INPUTS(FLOATS(-4, -1, 0.5f, 4))),
          0.0, -0.333333343, 0.291666657, 4.0);
    CHECK(run_expression("x", "torch.softmax(x, dim = 1)", INPUTS(COUNTING(0, 0.25, 1, 4))),
          0.165296182, 0.212244496, 0.272527337, 0.349932015);
}

static void norms_follow_torch(void **state) {
    (void)state;
    CHECK(run_expression("x, m, v, w, b",
                         "torch.nn.functional.batch_norm(x, m, v, weight = w, bias = b)",
                         INPUTS(COUNTING(-1.5, 3, 1, 2, 1), FLOATS(0.5f, 1), FLOATS(2, 0.5f),
                                FLOATS(1, 2), FLOATS(0, 1))),
          -1.41420996, 2.41419935);
    CHECK(run_expression("x", "torch.nn.functional.group_norm(x, 1)", INPUTS(COUNTING(0, 1, 1, 4))),
          -1.34163547, -0.44721183, 0.44721183, 1.34163547);
}

static void channels_are_normalized_by_their_neighbours(void **state) {
    (void)state;
    CHECK(run_expression("x", "torch.nn.functional.local_response_norm(x, 3, 0.5, 1.0, 1.0)",
                         INPUTS(COUNTING(1, 1, 1, 4, 1))),
          0.545454545, 0.6, 0.514285714, 0.774193548);
}

static void elements_move(void **state) {
    (void)state;
    CHECK(run_expression("x", "torch.pixel_shuffle(x, 2)", INPUTS(COUNTING(0, 1, 1, 4, 1, 2))), 0,
          2, 1, 3, 4, 6, 5, 7);
    CHECK(run_expression("x", "torch.repeat_interleave(x, 2, 1)", INPUTS(COUNTING(1, 1, 2, 2))), 1,
          1, 2, 2, 3, 3, 4, 4);
    CHECK(run_expression("x, y", "torch.stack([x, y], 1)", INPUTS(FLOATS(1, 2), FLOATS(3, 4))), 1,
          3, 2, 4);
    CHECK(run_expression("x", "x[(slice(None, None, None), None, slice(1, None, 2), -1)]",
                         INPUTS(COUNTING(0, 1, 2, 4, 3))),
          5, 11, 17, 23);
    CHECK(run_expression("x", "x.permute(2, 0, 1)", INPUTS(COUNTING(0, 1, 1, 2, 3))), 0, 3, 1, 4, 2,
          5);
}

static void operands_broadcast(void **state) {
    (void)state;
    CHECK(run_expression("x, y", "torch.add(x, y, alpha = 2)",
                         INPUTS(COUNTING(0, 1, 2, 1, 2), COUNTING(10, 10, 3, 1))),
          20, 21, 40, 41, 60, 61, 22, 23, 42, 43, 62, 63);
    CHECK(run_expression("x", "1 - x", INPUTS(FLOATS(1, 2))), 0, -1);
    CHECK(run_expression("x, y", "torch.matmul(x, y)",
                         INPUTS(COUNTING(0, 1, 2, 3), COUNTING(0, 1, 3, 4))),
          20, 23, 26, 29, 56, 68, 80, 92);
}

// --- quantized inputs ---

#define QUANTIZED "q = torch.quantize_per_tensor(x, 0.05, 30, torch.quint8); "

static void check_quantized(const char *expression, double scale, double zero_point,
                            const int *quantized) {
    tare_tensor *t = run_expression("x", expression, INPUTS(FLOATS(-2, -0.5f, 0, 1.5f)));
    assert_int_equal(t->dtype, TARE_QUINT8);
    assert_true((float)tare_tensor_scale(t, 0) == (float)scale);
    assert_true(tare_tensor_zero_point(t, 0) == zero_point);
    for (int i = 0; i < 4; i++) assert_int_equal(((const uint8_t *)t->data)[i], quantized[i]);
    tare_tensor_release(t);
}

static void quantized_inputs_follow_the_general_rule(void **state) {
    (void)state;
    check_quantized(QUANTIZED "q.contiguous()", 0.05, 30, (const int[]){0, 20, 30, 60});
    check_quantized(QUANTIZED "torch.sigmoid(q)", 1.0 / 256, 0, (const int[]){47, 97, 128, 209});
    check_quantized(QUANTIZED "torch.tanh(q)", 2.0 / 256, 128, (const int[]){12, 69, 128, 244});
    check_quantized(QUANTIZED "torch.nn.functional.relu6(q)", 0.05, 30,
                    (const int[]){30, 30, 30, 60});
    check_quantized(QUANTIZED "q.view(2, 2)", 0.05, 30, (const int[]){0, 20, 30, 60});
}

// --- errors ---

static void check_refused(const char *expression, tare_tensor *x, const char *message) {
    module *m = model_of("x", expression);
    tare_tensor *out = NULL;
    tare_error *err = tare_error_create();
    assert_int_not_equal(run_model(m, &x, x != NULL ? 1 : 0, NULL, &out, err), TARE_OK);
    if (strstr(tare_error_message(err), message) == NULL)
        fail_msg("expected '%s' in '%s'", message, tare_error_message(err));
    tare_error_destroy(err);
    tare_tensor_release(x);
    tare__module_release(m);
}

static void wrong_calls_say_what_is_wrong(void **state) {
    (void)state;
    check_refused("torch.relu(x, y = 1)", image(), "relu: unknown argument 'y'");
    check_refused("torch.relu(x, input = x)", image(), "argument 'input' is given twice");
    check_refused("torch.relu(x, 1, 2)", image(), "takes at most 2 arguments, found 3");
    check_refused("torch.no_such_function(x)", image(), "'torch.no_such_function' is not known");
    check_refused("torch.ops.aten.fft_rfft.default(x)", image(),
                  "'torch.ops.aten.fft_rfft.default': complex numbers are not supported");
    check_refused("torch._C._fft.fft_rfft(x)", image(),
                  "'torch._C._fft.fft_rfft': complex numbers are not supported");
    check_refused("x.view(5, 5)", image(), "shape [1, 2, 3, 4] cannot become [5, 5]");
    check_refused("torch.cat([x, 1])", image(), "must be a list of tensors");
    check_refused(QUANTIZED "torch._C._nn.gelu(q)", image(), "has no quantized form");
    check_refused("torch.relu(x)", NULL, "input 'x' is missing");
    check_refused("torch.softmax(x, dim = 4)", image(), "dimension 4 is outside of [-4, 3]");
}

#define GREATEST "9223372036854775807"

static void sizes_beyond_reason_are_refused(void **state) {
    (void)state;
    check_refused("y = torch.chunk(x, " GREATEST ", 1); y[2]", image(),
                  "no such element in a sequence of 2");
    check_refused("y = x[slice(0, 0, None)]; torch.chunk(y, " GREATEST ", 0)", image(),
                  "parts are too many");
    check_refused("x[(Ellipsis, Ellipsis)]", image(), "at most one Ellipsis");
    check_refused("torch.pixel_shuffle(x, 4294967296)", image(), "cannot be shuffled");
    check_refused("x.repeat(2147483647, 2147483647, 2147483647, 2147483647)", image(),
                  "whose product in bytes does not overflow");
    check_refused("torch.nn.functional.pad(x, (" GREATEST ", 1))", image(), "out of range");
    check_refused("torch.conv_transpose2d(x, x, None, 1, 0, 0, " GREATEST ")", image(),
                  "is out of range");
    check_refused("torch.neg(-" GREATEST ")", image(), "the int is out of range");
    check_refused("torch.quantize_per_tensor(x, 0.1, " GREATEST ", torch.quint8)", image(),
                  "expected a zero point of torch.quint8");
    check_refused("torch.quantize_per_tensor(x, nan, 0, torch.quint8)", image(),
                  "expected a positive, finite scale");
    check_refused("x.to(torch.quint8)", image(), "needs a scale and a zero point");
}

// Each step doubles a list; the tensor inside is one.
static void results_cannot_outgrow_memory(void **state) {
    (void)state;
    check_refused("a = [x, x] + []; b = [a, a] + []; [b, b] * 30000", image(),
                  "a result has more than");
}

static void empty_results_are_not_computed(void **state) {
    (void)state;
    // 2^62 rows of nothing: a loop over them would not end.
    tare_tensor *t =
        run_expression("x", "y = x.expand(2147483648, 2147483648, 1, 0); torch.sqrt(y)",
                       INPUTS(COUNTING(0, 1, 1, 0)));
    assert_int_equal(t->count, 0);
    tare_tensor_release(t);
}

static void conversions_take_device_and_dtype_by_name(void **state) {
    (void)state;
    CHECK(run_expression("x",
                         "y = x.to(device = device(type='cpu'), dtype = torch.bool); y.float()",
                         INPUTS(FLOATS(-2, 0))),
          1, 0);
}

// What a cache holds before its first token has one dimension.
static void cat_passes_over_empty_tensors(void **state) {
    (void)state;
    CHECK(run_expression("x", "y = torch.full((0,), 1.0); torch.cat([y, x, x], -2)",
                         INPUTS(COUNTING(1, 1, 1, 2))),
          1, 2, 1, 2);
    tare_tensor *none = run_expression("x", "y = torch.full((0,), 1.0); torch.cat([y, y])",
                                       INPUTS(COUNTING(1, 1, 1, 2)));
    assert_int_equal(none->count, 0);
    tare_tensor_release(none);
}

static void tensors_are_made_of_numbers(void **state) {
    (void)state;
    CHECK(run_expression("x", "y = torch.tensor(2.5, dtype = torch.float32); torch.mul(y, x)",
                         INPUTS(FLOATS(2))),
          5);
    CHECK(run_expression("x", "y = x.size(0); t = torch.tensor(y); torch.add(t, x)",
                         INPUTS(FLOATS(2, 4))),
          4, 6);
}

static void in_place_results_are_seen_later(void **state) {
    (void)state;
    CHECK(run_expression("x", "y = torch.relu_(x); torch.add(y, x)", INPUTS(FLOATS(-1, 2))), 0, 4);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    module *m =
        model_of("x", QUANTIZED "s = torch.sigmoid(q); t = torch.tanh(q); c = torch.cat([s, t]); "
                                "c.dequantize()");
    tare_tensor *x = FLOATS(-2, -0.5f, 0, 1.5f), *out = NULL;
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = run_model(m, &x, 1, NULL, &out, NULL),
                           tare_tensor_release(out));
    tare_tensor_release(x);
    tare__module_release(m);
}

// --- tables and kernels ---

static void call_with_few(const op_info *op, const value *args, size_t count) {
    arena memory = {0};
    tare_error *err = tare_error_create();
    op_call call = {.args = args, .arg_count = count, .memory = &memory, .err = err};
    tare_status status = tare__call_bind(&call, op);
    if (status == TARE_OK) status = tare__op_run(&call, false);
    if (status == TARE_OK)
        tare__value_release_tensors(&call.result);
    else if (*tare_error_message(err) == '\0')
        fail_msg("%s refuses %zu arguments without a word", op->id, count);
    tare_error_destroy(err);
    tare__arena_release(&memory);
}

static void missing_arguments_are_no_crash(void **state) {
    (void)state;
    tare_tensor *x = COUNTING(-1.5, 0.25, 2, 2, 3, 3);
    const value first[] = {
        {.kind = VALUE_TENSOR, .as.tensor = x}, tare__int(1), tare__none(), tare__float(0.5)};
    const value dim = tare__int(1);
    value list = {.kind = VALUE_LIST, .count = 1, .as.items = (value *)&dim};
    const op_info *op;
    for (size_t i = 0; (op = tare__op_at(i)) != NULL; i++)
        for (size_t f = 0; f < sizeof first / sizeof *first; f++) {
            const value same[] = {first[f], first[f], first[f]};
            const value listed[] = {first[f], list, list};
            for (size_t count = 0; count <= 3; count++) {
                call_with_few(op, same, count);
                call_with_few(op, listed, count);
            }
        }
    tare_tensor_release(x);
}

static void rows_are_complete_and_found_by_their_names(void **state) {
    (void)state;
    const op_info *op;
    for (size_t i = 0; (op = tare__op_at(i)) != NULL; i++) {
        assert_non_null(op->id);
        assert_non_null(op->params);
        assert_true((op->forward != NULL) != (op->shape != NULL)); // composed of others, or not
        assert_true(tare__op_param_count(op) <= OP_MAX_PARAMS);
        assert_ptr_equal(tare__op_by_id(op->id, 0), op);
    }
    assert_ptr_equal(tare__op_function("torch.nn.functional.conv2d"),
                     tare__op_function("torch.conv2d"));
    assert_string_equal(tare__function_base_name("torch.nn.functional.linear"), "linear");
    assert_string_equal(tare__function_base_name("torch.ops.aten.add.Tensor"), "add.Tensor");
    assert_null(tare__op_method("no_such_method"));
}

static void providers_agree_with_the_portable_kernels(void **state) {
    (void)state;
    float_kernels *kernels = NULL;
    CHECK_OK(tare__float_kernels_create(NULL, &kernels, NULL));
    tare_tensor *inputs[] = {COUNTING(-1, 0.01, 2, 6, 9, 7), COUNTING(1, -0.02, 8, 3, 3, 2)};
    module *m = model_of("x, w", "torch.conv2d(x, w, None, (2, 1), (1, 2), (1, 2), 2)");
    tare_tensor *a = NULL, *b = NULL;
    CHECK_OK(run_model(m, inputs, 2, NULL, &a, NULL));
    CHECK_OK(run_model(m, inputs, 2, kernels, &b, NULL));
    for (int64_t i = 0; i < a->count; i++)
        assert_true(fabsf(tare__f32(a)[i] - tare__f32(b)[i]) <=
                    1e-5f * (1 + fabsf(tare__f32(a)[i])));
    tare_tensor_release(a);
    tare_tensor_release(b);
    tare_tensor_release(inputs[0]);
    tare_tensor_release(inputs[1]);
    tare__module_release(m);
    tare__float_kernels_destroy(kernels);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_pad_stride_and_group),
        cmocka_unit_test(convolutions_dilate),
        cmocka_unit_test(pools_may_hang_over),
        cmocka_unit_test(transposed_convolutions_scatter),
        cmocka_unit_test(pools_round_sizes_and_count_padding),
        cmocka_unit_test(activations_follow_torch),
        cmocka_unit_test(norms_follow_torch),
        cmocka_unit_test(channels_are_normalized_by_their_neighbours),
        cmocka_unit_test(elements_move),
        cmocka_unit_test(operands_broadcast),
        cmocka_unit_test(quantized_inputs_follow_the_general_rule),
        cmocka_unit_test(wrong_calls_say_what_is_wrong),
        cmocka_unit_test(sizes_beyond_reason_are_refused),
        cmocka_unit_test(results_cannot_outgrow_memory),
        cmocka_unit_test(empty_results_are_not_computed),
        cmocka_unit_test(conversions_take_device_and_dtype_by_name),
        cmocka_unit_test(cat_passes_over_empty_tensors),
        cmocka_unit_test(tensors_are_made_of_numbers),
        cmocka_unit_test(in_place_results_are_seen_later),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(rows_are_complete_and_found_by_their_names),
        cmocka_unit_test(missing_arguments_are_no_crash),
        cmocka_unit_test(providers_agree_with_the_portable_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
