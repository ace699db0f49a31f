// SPDX-License-Identifier: Apache-2.0
// Lowered programs give the quantized values of the converted ones: operators beside layers.
#include "support/test.h"

#include <inttypes.h>
#include <math.h>

#include "support/exported.h"
#include "support/models.h"
#include "support/programs.h"
#include "support/temp.h"

typedef struct operator_case {
    const char *call; // of a and b, quantized values of shape [2, 6, 5, 8]
    const char *lowered;
    bool keeps; // the output has a's parameters
    bool has_ties;
} operator_case;

static const operator_case operators[] = {
    {"add.Tensor(a, b)", "torch.ops.quantized.add(q_a, q_b, ", false},
    {"add_.Tensor(a, b)", "torch.ops.quantized.add(q_a, q_b, ", false},
    {"mul.Tensor(a, b)", "torch.ops.quantized.mul(q_a, q_b, ", false},
    {"mul.Tensor(a, s)", "torch.ops.quantized.mul(q_a, q_s, ", false},
    {"add.Tensor(s, a)", "torch.ops.quantized.add(q_s, q_a, ", false},
    {"add.Tensor(a, 0.3)", "torch.ops.tare.add(q_a, 0.3, output_scale = ", false},
    {"sub.Tensor(a, b)", "torch.ops.tare.sub(q_a, q_b, ", false},
    {"div.Tensor(a, 1.7)", "torch.ops.tare.div(q_a, 1.7, ", false},
    {"matmul.default(a, b)", "torch.ops.quantized.matmul(q_a, q_b, ", false},
    {"cat.default([a, b], 1)", "torch.ops.quantized.cat([q_a, q_b], 1, ", false},
    {"cat.default([a, a], 1)", "torch.ops.aten.cat.default([q_a, q_a], 1)", true},
    {"relu.default(a)", "torch.ops.aten.relu.default(q_a)", true},
    {"relu_.default(a)", "torch.ops.aten.relu.default(q_a)", true},
    {"relu.default(a)", "torch.ops.tare.identity(y, output_scale = ", false},
    {"hardtanh.default(a, -0.5, 0.5)", "torch.ops.aten.hardtanh.default(q_a, -0.5, 0.5)", true},
    {"hardtanh.default(a, -0.5, 0.5)", "torch.ops.tare.hardtanh(q_a, -0.5, 0.5, output", false},
    {"clamp.default(a, None, 0.5)", "torch.ops.tare.clamp(q_a, max = 0.5, output_scale", false},
    {"sigmoid.default(a)", "torch.ops.tare.sigmoid(q_a, output_scale = ", false},
    {"tanh.default(a)", "torch.ops.tare.tanh(q_a, ", false},
    {"hardswish.default(a)", "torch.ops.quantized.hardswish(q_a, ", false},
    {"gelu.default(a)", "torch.ops.tare.gelu(q_a, ", false},
    {"gelu.default(a, approximate = 'tanh')", "torch.ops.tare.gelu(q_a, 'tanh', ", false},
    {"silu.default(a)", "torch.ops.tare.silu(q_a, ", false},
    {"leaky_relu.default(a, 0.2)", "torch.ops.quantized.leaky_relu(q_a, 0.2, ", false},
    {"elu.default(a)", "torch.ops.quantized.elu(q_a, ", false},
    {"softmax.int(a, -1)", "torch.ops.quantized.softmax(q_a, -1, ", false},
    {"layer_norm.default(a, [8], norm, norm)",
     "torch.ops.quantized.layer_norm(q_a, [8], norm, norm, ", false},
    {"group_norm.default(a, 3)", "torch.ops.quantized.group_norm(q_a, 3, ", false},
    {"batch_norm.default(a, channel, channel, mean, var, False, 0.1, 1e-05, True)",
     "torch.ops.tare.batch_norm(q_a, channel, channel, mean, var, 1e-05, output_scale", false},
    {"mean.dim(a, [-1, -2])", "torch.ops.aten.mean.dim(q_a, [-1, -2])", true, true},
    {"mean.dim(a, [-1, -2], True)", "torch.ops.tare.mean(q_a, [-1, -2], True, ", false},
    {"max_pool2d.default(a, [2, 2])", "torch.ops.aten.max_pool2d.default(q_a, [2, 2])", true},
    {"max_pool2d.default(a, [2, 2])", "torch.ops.tare.identity(y, ", false},
    {"avg_pool2d.default(a, [2, 2])", "torch.ops.aten.avg_pool2d.default(q_a, [2, 2])", true, true},
    {"avg_pool2d.default(a, [2, 2])", "torch.ops.tare.avg_pool2d(q_a, [2, 2], ", false},
    {"adaptive_avg_pool2d.default(a, [1, 1])", "torch.ops.aten.adaptive_avg_pool2d.default(q_a",
     true, true},
    {"adaptive_avg_pool2d.default(a, [3, 3])", "torch.ops.tare.adaptive_avg_pool2d(q_a", false},
    {"upsample_nearest2d.vec(a, None, [2.0, 2.0])", "torch.ops.aten.upsample_nearest2d.vec(q_a",
     true},
    {"view.default(a, [2, -1])", "torch.ops.aten.view.default(q_a, [2, -1])", true},
    {"permute.default(a, [0, 2, 3, 1])", "torch.ops.aten.permute.default(q_a, ", true},
    {"transpose.int(a, 1, 2)", "torch.ops.aten.transpose.int(q_a, 1, 2)", true},
    {"slice.Tensor(a, 1, 1, 4)", "torch.ops.aten.slice.Tensor(q_a, 1, 1, 4)", true},
    {"flatten.using_ints(a, 1)", "torch.ops.tare.identity(y, output_scale = ", false},
    {"unsqueeze.default(a, 0)", "torch.ops.aten.unsqueeze.default(q_a, 0)", true},
    {"dropout.default(a, 0.5, False)", "result = q_a.dequantize()", true},
    {"dropout.default(a, 0.5, True)", "result = q_a.dequantize()", true},
    {"dropout.default(a, 0.5, False)", "torch.ops.tare.identity(y, output_scale", false},
};
enum { OPERATOR_COUNT = sizeof operators / sizeof *operators };

static program operator_program(const operator_case *c, bool is_signed, const char *activation) {
    program p = new_program("v, u");
    const grid a = random_grid(is_signed, 0.008), b = random_grid(is_signed, 0.006);
    const grid y = random_grid(is_signed, 0.011);
    put_floats(&p, "norm", 8, 1);
    put_floats(&p, "channel", 6, 1);
    put_floats(&p, "mean", 6, 0.3);
    put_floats(&p, "spread", 6, 1);
    line(&p, "var = torch.ops.aten.abs.default(spread)");
    quantized(&p, "a", "v", &a);
    quantized(&p, "b", "u", &b);
    if (strstr(c->call, "s)") != NULL || strstr(c->call, "(s,") != NULL) {
        line(&p, "m = torch.ops.aten.mean.dim(u, [2, 3], True)"); // [2, 6, 1, 1]
        quantized(&p, "s", "m", &b);
    }
    line(&p, "y = torch.ops.aten.%s", c->call);
    if (activation != NULL) line(&p, "z = torch.ops.aten.%s", activation);
    quantized(&p, "result", activation != NULL ? "z" : "y", c->keeps ? &a : &y);
    return p;
}

static void check_operator(const operator_case *c, bool is_signed, const char *activation) {
    program p = operator_program(c, is_signed, activation);
    p.has_ties = c->has_ties;
    const bool is_matmul = strstr(c->call, "matmul") != NULL;
    tare_tensor *inputs[] = {NEW_INPUT(2, 6, 5, 8),
                             is_matmul ? NEW_INPUT(2, 6, 8, 5) : NEW_INPUT(2, 6, 5, 8)};
    tare_model *m = checked(&p, "result", inputs, 2);
    CHECK_HOLDS(printed(m), c->lowered);
    CHECK_LACKS(printed(m), "quantized_decomposed");
    CHECK_HOLDS(decided(m, "y"), "lower: lowered: ");
    tare_model_destroy(m);
    for (size_t i = 0; i < 2; i++) tare_tensor_release(inputs[i]);
}

static void operators_give_the_integers_of_the_converted_program(void **state) {
    (void)state;
    for (size_t i = 0; i < OPERATOR_COUNT; i++)
        for (size_t k = 0; k < 4; k++) check_operator(&operators[i], k % 2 == 0, NULL);
}

static void relus_and_bounds_are_fused_or_follow(void **state) {
    (void)state;
    static const operator_case fused[] = {
        {"add.Tensor(a, b)", "torch.ops.quantized.add_relu(q_a, q_b, ", false},
        {"mul.Tensor(a, b)", "torch.ops.quantized.mul_relu(q_a, q_b, ", false},
        {"matmul.default(a, b)", "z = torch.ops.aten.relu.default(y)", false},
    };
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 4; k++) check_operator(&fused[i], k % 2 == 0, "relu_.default(y)");
    const operator_case bounded = {"add.Tensor(a, b)", "z = torch.ops.aten.hardtanh.default(y, 0.0",
                                   false};
    check_operator(&bounded, true, "hardtanh_.default(y, 0.0, 0.6)");
}

static void what_stays_float_says_why(void **state) {
    (void)state;
    static const struct {
        const char *call, *reason;
    } cases[] = {
        {"cat.default([a, u], 1)", "its input 'u' is float [inputs]"},
        {"erf.default(a)", "there is no integer function for torch.ops.aten.erf.default with "
                           "these arguments [operator]"},
        {"cumsum.default(a, 1)", "there is no integer function for torch.ops.aten.cumsum.default"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const operator_case c = {.call = cases[i].call};
        program p = operator_program(&c, true, NULL);
        tare_model *m = converted(&p, "result"), *l = NULL;
        CHECK_DONE(tare_lower_pt2e(m, NULL, &l, job_error()));
        CHECK_HOLDS(decided(l, "y"), "lower: left float: ");
        CHECK_HOLDS(decided(l, "y"), cases[i].reason);
        tare_model_destroy(l);
        tare_model_destroy(m);
    }
}

static void quantize_moves_in_front_of_what_only_moves(void **state) {
    (void)state;
    program p = new_program("v, u");
    const grid a = random_grid(true, 0.008), b = random_grid(true, 0.006);
    const grid y = random_grid(true, 0.011);
    quantized(&p, "a", "v", &a);
    quantized(&p, "b", "u", &b);
    line(&p, "y = torch.ops.aten.cat.default([a, b], 1)");
    line(&p, "z = torch.ops.aten.max_pool2d.default(y, [2, 2])");
    line(&p, "t = torch.ops.aten.flatten.using_ints(z, 1)");
    quantized(&p, "result", "t", &y);
    tare_tensor *inputs[] = {NEW_INPUT(2, 3, 4, 4), NEW_INPUT(2, 2, 4, 4)};
    tare_model *m = checked(&p, "result", inputs, 2);
    CHECK_HOLDS(printed(m), "y = torch.ops.quantized.cat([q_a, q_b], 1, ");
    CHECK_HOLDS(printed(m), "result = t.dequantize()");
    CHECK_HOLDS(decided(m, "z"), "lower: lowered: computed on the integers of 'y'");
    tare_model_destroy(m);
    for (size_t i = 0; i < 2; i++) tare_tensor_release(inputs[i]);
}

// The projections of attention: views of open sizes do not keep a layer from giving quantized
// values.
static program attention_program(bool has_mask) {
    program p = new_program("v, u");
    const grid x = random_grid(false, 0.01), w = {true, 0.01, 0, -127, 127};
    const int64_t weight[] = {8, 8};
    static const char *const names[] = {"q", "k", "w"};
    quantized(&p, "x", "v", &x);
    line(&p, "size = torch.ops.aten.sym_size.int(v, 0)");
    for (int i = 0; i < 3; i++) {
        char frozen[24], real[24], heads[24];
        const grid codes = random_grid(false, 0.02);
        (void)snprintf(frozen, sizeof frozen, "codes%d", i);
        (void)snprintf(real, sizeof real, "weight%d", i);
        (void)snprintf(heads, sizeof heads, "heads%d", i);
        put_integers(&p, frozen, TARE_INT8, 2, weight, -127, 127);
        dequantized(&p, real, frozen, &w);
        line(&p, "linear%d = torch.ops.aten.linear.default(x, %s)", i, real);
        line(&p, "view%d = torch.ops.aten.view.default(linear%d, [size, 5, 2, 4])", i, i);
        line(&p, "%s = torch.ops.aten.transpose.int(view%d, 1, 2)", heads, i);
        quantized(&p, names[i], heads, &codes);
    }
    line(&p, "y = torch.ops.aten.scaled_dot_product_attention.default(q, k, w%s)",
         has_mask ? ", u, scale = 0.25" : "");
    return p;
}

static void attention_of_integers_is_computed_in_integers(void **state) {
    (void)state;
    for (int has_mask = 0; has_mask < 2; has_mask++) {
        program p = attention_program(has_mask != 0);
        tare_tensor *inputs[] = {NEW_INPUT(2, 5, 8), NEW_INPUT(5, 5)}, *y[2];
        tare_model *m = converted(&p, "y"), *l = NULL;
        CHECK_DONE(tare_lower_pt2e(m, NULL, &l, job_error()));
        CHECK_HOLDS(printed(l), "y = torch.ops.tare.scaled_dot_product_attention(heads0, heads1, "
                                "heads2");
        CHECK_HOLDS(printed(l), "linear0 = torch.ops.quantized.linear(");
        CHECK_HOLDS(decided(l, "y"), "lower: lowered: computed in integers by "
                                     "torch.ops.tare.scaled_dot_product_attention");
        y[0] = result_of(m, (const tare_tensor *const *)inputs, 2);
        y[1] = result_of(l, (const tare_tensor *const *)inputs, 2);
        check_session(l, inputs, 2, y[1]);
        // Weights of bytes are off by half a code, one of 255 for the nearest key.
        for (int64_t i = 0; i < y[0]->count; i++)
            assert_true(fabs(tare__tensor_get(y[0], i) - tare__tensor_get(y[1], i)) < 0.02);
        for (size_t i = 0; i < 2; i++) tare_tensor_release(inputs[i]);
        for (size_t i = 0; i < 2; i++) tare_tensor_release(y[i]);
        tare_model_destroy(l);
        tare_model_destroy(m);
    }
}

static void products_that_floats_follow_give_floats(void **state) {
    (void)state;
    program p = new_program("v, u");
    const grid a = random_grid(false, 0.008), b = random_grid(false, 0.006);
    quantized(&p, "a", "v", &a);
    quantized(&p, "b", "u", &b);
    line(&p, "y = torch.ops.aten.matmul.default(a, b)");
    line(&p, "z = torch.ops.aten.softmax.int(y, -1)");
    p.output_scale = 1e-3;
    tare_tensor *inputs[] = {NEW_INPUT(2, 6, 5, 8), NEW_INPUT(2, 6, 8, 5)};
    tare_model *m = checked(&p, "z", inputs, 2);
    CHECK_HOLDS(printed(m), "y = torch.ops.tare.matmul_float(q_a, q_b)");
    CHECK_HOLDS(decided(m, "y"), "lower: lowered: computed in integers by ");
    tare_model_destroy(m);
    for (size_t i = 0; i < 2; i++) tare_tensor_release(inputs[i]);
}

static void items_of_tuples_stay_behind_them(void **state) {
    (void)state;
    program p = new_program("v");
    const grid a = random_grid(true, 0.008), y = random_grid(true, 0.011);
    quantized(&p, "a", "v", &a);
    line(&p, "parts = torch.ops.aten.split_with_sizes.default(a, [1, 3], 1)");
    line(&p, "item = parts[1]");
    line(&p, "t = torch.ops.aten.mT.default(item)");
    quantized(&p, "result", "t", &y);
    tare_tensor *input = NEW_INPUT(2, 4, 4, 3);
    tare_model *m = checked(&p, "result", &input, 1);
    tare_model_destroy(m);
    tare_tensor_release(input);
}

static void joined_layers_give_the_integers_of_the_references(void **state) {
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        program p = new_program("v");
        const bool is_signed = i % 2 == 0;
        const grid x = random_grid(is_signed, 0.01), y = random_grid(is_signed, 0.05);
        const grid z = random_grid(is_signed, 0.04), r = i < 2 ? random_grid(is_signed, 0.05) : y;
        const int64_t weight[] = {6, 3, 3, 3};
        quantized(&p, "x", "v", &x);
        put_weight(&p, 4, weight, 0);
        put_floats(&p, "b", 6, 0.5);
        line(&p, "c = torch.ops.aten.conv2d.default(x, w, b, [1, 1], [1, 1])");
        quantized(&p, "c_", "c", &y);
        line(&p, "d = torch.ops.aten.conv2d.default(x, w, None, [1, 1], [1, 1])");
        quantized(&p, "d_", "d", &z);
        line(&p, "e = torch.ops.aten.cat.default([c_, d_, c_, x], 1)");
        quantized(&p, "e_", "e", &r);
        line(&p, "m = torch.ops.aten.max_pool2d.default(e_, [3, 3], [1, 1], [1, 1])");
        quantized(&p, "result", "m", &r);
        tare_tensor *input = NEW_INPUT(2, 3, 17, 19); // several blocks of pixels
        tare_model *m = checked(&p, "result", &input, 1);
        CHECK_HOLDS(printed(m), "e = torch.ops.quantized.cat([c, d, c, q_x], 1, ");
        tare_model_destroy(m);
        tare_tensor_release(input);
    }
}

static void integers_are_requantized_without_floats(void **state) {
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        program p = new_program("v");
        const grid a = random_grid(i % 2 == 0, 0.008), b = random_grid(i % 2 == 0, 0.011);
        quantized(&p, "a", "v", &a);
        line(&p, "f = torch.ops.aten.flatten.using_ints(a, 1)");
        line(&p, "d = torch.ops.aten.dropout.default(f, 0.2, False)");
        quantized(&p, "b", i < 2 ? "d" : "a", &b);
        quantized(&p, "result", "b", i % 2 == 0 ? &b : &a);
        tare_tensor *x = NEW_INPUT(2, 3, 4, 8);
        tare_model *m = checked(&p, "result", &x, 1);
        CHECK_HOLDS(printed(m), "q_b = torch.ops.tare.identity(");
        const char *second = strstr(printed(m), "q_result");
        assert_int_equal(second == NULL, i % 2 == 0); // the same parameters again: nothing
        tare_model_destroy(m);
        tare_tensor_release(x);
    }
}

static void constants_stay_integers(void **state) {
    (void)state;
    program p = new_program("v");
    const grid a = random_grid(true, 0.008), b = random_grid(true, 0.006);
    const grid y = random_grid(true, 0.011);
    const int64_t shape[] = {8};
    quantized(&p, "a", "v", &a);
    put_integers(&p, "frozen", TARE_INT8, 1, shape, -128, 127);
    dequantized(&p, "b", "frozen", &b);
    line(&p, "y = torch.ops.aten.add.Tensor(a, b)");
    quantized(&p, "result", "y", &y);
    tare_tensor *x = NEW_INPUT(2, 3, 4, 8);
    tare_model *m = checked(&p, "result", &x, 1);
    CHECK_HOLDS(printed(m), "y = torch.ops.quantized.add(q_a, _quantized_constant_0, ");
    tare_model_destroy(m);
    tare_tensor_release(x);
}

static void integers_of_16_bits_stay_as_they_are(void **state) {
    (void)state;
    static const char *const calls[] = {"linear.default(x, w)", "relu.default(x)"};
    for (size_t i = 0; i < 2; i++) {
        program p = new_program("v");
        const int64_t weight[] = {6, 7};
        put_weight(&p, 2, weight, -1);
        line(&p, "q = " DECOMPOSED "quantize_per_tensor.default(v, 0.001, 0, -32768, 32767, "
                 "torch.int16)");
        line(&p, "x = " DECOMPOSED "dequantize_per_tensor.default(q, 0.001, 0, -32768, 32767, "
                 "torch.int16)");
        line(&p, "y = torch.ops.aten.%s", calls[i]);
        tare_model *m = converted(&p, "y"), *l = NULL;
        CHECK_DONE(tare_lower_pt2e(m, NULL, &l, job_error()));
        CHECK_HOLDS(decided(l, "y"), "lower: left float: its input 'x' has no 8-bit values of "
                                     "its own [dtypes]");
        tare_model_destroy(l);
        tare_model_destroy(m);
    }
}

static void operators_of_mixed_dtypes_stay_float(void **state) {
    (void)state;
    program p = new_program("v, u");
    const grid a = random_grid(true, 0.008), b = random_grid(false, 0.006);
    quantized(&p, "a", "v", &a);
    quantized(&p, "b", "u", &b);
    line(&p, "y = torch.ops.aten.add.Tensor(a, b)");
    quantized(&p, "result", "y", &a);
    tare_tensor *inputs[] = {NEW_INPUT(2, 3), NEW_INPUT(2, 3)};
    tare_model *m = checked(&p, "result", inputs, 2);
    CHECK_HOLDS(decided(m, "y"), "left float: its inputs and its output 'q_result' have different "
                                 "dtypes [dtypes]");
    tare_model_destroy(m);
    for (size_t i = 0; i < 2; i++) tare_tensor_release(inputs[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_give_the_integers_of_the_converted_program),
        cmocka_unit_test(relus_and_bounds_are_fused_or_follow),
        cmocka_unit_test(what_stays_float_says_why),
        cmocka_unit_test(quantize_moves_in_front_of_what_only_moves),
        cmocka_unit_test(attention_of_integers_is_computed_in_integers),
        cmocka_unit_test(products_that_floats_follow_give_floats),
        cmocka_unit_test(items_of_tuples_stay_behind_them),
        cmocka_unit_test(joined_layers_give_the_integers_of_the_references),
        cmocka_unit_test(integers_are_requantized_without_floats),
        cmocka_unit_test(constants_stay_integers),
        cmocka_unit_test(integers_of_16_bits_stay_as_they_are),
        cmocka_unit_test(operators_of_mixed_dtypes_stay_float),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
