// SPDX-License-Identifier: Apache-2.0
// Which modules and functions of a whole flow become quantized ones, and which stay float.
#include "support/models.h"
#include "support/test.h"

#include <math.h>

#define NN "torch.nn."
#define CONV                                                                                       \
    "in_channels=2, out_channels=2, kernel_size=(1, 1), stride=(1, 1), padding=(0, 0), "           \
    "dilation=(1, 1), groups=1, padding_mode='zeros'"

// The whole flow with the default mapping of a backend. The model is consumed.
static tare_model *lowered_for(const char *backend_name, tare_model *model, size_t ndim,
                               const int64_t *shape) {
    tare_backend_config *backend = builtin_backend(backend_name);
    tare_qconfig_mapping *mapping =
        default_mapping(strcmp(backend_name, "native") == 0 ? "x86" : backend_name);
    tare_model *p = prepared(model, backend, mapping);
    calibrated(p, ndim, shape);
    tare_model *q = lowered(p, backend);
    // What was lowered computes what the reference form stands for, within a few steps.
    tare_model *r = referenced(p, backend);
    tare_tensor *x = new_input((int)ndim, shape);
    const tare_tensor *inputs[] = {x, x, x};
    const size_t count = tare_model_input_count(q);
    tare_tensor *got = result_of(q, inputs, count), *wanted = result_of(r, inputs, count);
    assert_int_equal(got->count, wanted->count);
    for (int64_t i = 0; i < got->count; i++)
        if (fabs(tare__tensor_get(got, i) - tare__tensor_get(wanted, i)) > 0.06)
            fail_msg("%lld: %g, wanted %g", (long long)i, tare__tensor_get(got, i),
                     tare__tensor_get(wanted, i));
    tare_tensor_release(got);
    tare_tensor_release(wanted);
    tare_tensor_release(x);
    tare_model_destroy(r);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    assert_int_equal(tare_model_get_stage(q), TARE_STAGE_LOWERED);
    return q;
}
#define LOWERED(model, ...)                                                                        \
    lowered_for("x86", (model), sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t),          \
                (const int64_t[]){__VA_ARGS__})

static tare_model *conv_then(const char *lines) {
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Conv2d", CONV);
    put_module(root, NULL, "b", NN "Conv2d", CONV);
    put_module(root, NULL, "relu", NN "ReLU", "");
    put_module(root, NULL, "hardswish", NN "Hardswish", "");
    put_module(root, NULL, "leaky", NN "LeakyReLU", "negative_slope=0.1");
    put_module(root, NULL, "pool", NN "AvgPool2d", "kernel_size=1, stride=1, padding=0");
    put_module(root, NULL, "tanh", NN "Tanh", "");
    char code[1024];
    snprintf(code, sizeof code, "def forward(self, x):\n    a = self.a(x)\n%s", lines);
    return new_model(NULL, root, code);
}

static void modules_become_quantized_ones(void **state) {
    (void)state;
    tare_model *q = LOWERED(conv_then("    relu = self.relu(a)\n    b = self.b(relu)\n"
                                      "    return b\n"),
                            1, 2, 2, 2);
    CHECK_HOLDS(printed(q), "(a): QuantizedConvReLU2d(2, 2, kernel_size=(1, 1), stride=(1, 1), "
                            "scale=0.0");
    CHECK_HOLDS(printed(q), "(b): QuantizedConv2d(2, 2, kernel_size=(1, 1), stride=(1, 1), scale=");
    CHECK_HOLDS(printed(q), "    a = self.a(quantize_per_tensor);  quantize_per_tensor = None\n"
                            "    b = self.b(a);  a = None\n"
                            "    dequantize_2 = b.dequantize();  b = None\n"
                            "    return dequantize_2\n");
    CHECK_HOLDS(decided(q, "a"), "lower: lowered: computed in integers by QuantizedConvReLU2d");
    tare_model_destroy(q);
}

static void sums_and_products_are_lowered_with_their_relu(void **state) {
    (void)state;
    static const struct {
        const char *lines, *wanted;
    } rows[] = {
        {"    b = self.b(x)\n    add = a + b\n    return add\n",
         "    add_1 = torch.ops.quantized.add(a, b, _scale_0, _zero_point_0);"},
        {"    b = self.b(x)\n    add = a + b\n    relu = self.relu(add)\n    return relu\n",
         "torch.ops.quantized.add_relu(a, b, relu_scale_0, relu_zero_point_0);"},
        {"    b = self.b(x)\n    add = torch.add(a, b)\n"
         "    relu = torch.nn.functional.relu(add, inplace = False)\n    return relu\n",
         "torch.ops.quantized.add_relu(a, b, _scale_0, _zero_point_0);"},
        {"    b = self.b(x)\n    mul = a * b\n    return mul\n",
         "    mul_1 = torch.ops.quantized.mul(a, b, _scale_0, _zero_point_0);"},
        {"    b = self.b(x)\n    mul = torch.mul(a, b)\n    relu = self.relu(mul)\n"
         "    return relu\n",
         "torch.ops.quantized.mul_relu(a, b, relu_scale_0, relu_zero_point_0);"},
        // With a number the parameters follow from the input's.
        {"    add = a + 0.5\n    return add\n", "    add_1 = torch.ops.quantized.add(a, 0.5);"},
        {"    mul = a * 2\n    return mul\n", "    mul_1 = torch.ops.quantized.mul(a, 2);"},
        {"    b = self.b(x)\n    matmul = torch.matmul(a, b)\n    return matmul\n",
         "torch.ops.quantized.matmul(a, b, _scale_0, _zero_point_0);"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tare_model *q = LOWERED(conv_then(rows[i].lines), 1, 2, 2, 2);
        CHECK_HOLDS(printed(q), rows[i].wanted);
        CHECK_LACKS(printed(q), "self.relu(");
        tare_model_destroy(q);
    }
}

static void a_number_leaves_no_parameters_behind(void **state) {
    (void)state;
    tare_model *q = LOWERED(conv_then("    add = a + 0.5\n    return add\n"), 1, 2, 2, 2);
    CHECK_LACKS(printed(q), "_scale_0 = self._scale_0");
    assert_null(tare__module_find_tensor(q->root, "_scale_0"));
    tare_model_destroy(q);
}

// A sum with a number takes its parameters from its input; cat needs those of all its inputs.
static void a_sum_with_a_number_is_not_lowered_before_a_join(void **state) {
    (void)state;
    tare_model *q = LOWERED(conv_then("    add = a + 4.0\n    reshape = add.reshape(1, 2, 2, 2)\n"
                                      "    cat = torch.cat([a, reshape], 1)\n    return cat\n"),
                            1, 2, 2, 2);
    CHECK_LACKS(printed(q), "torch.ops.quantized.add(");
    CHECK_HOLDS(decided(q, "add"), "'cat' joins it with values of others");
    tare_model_destroy(q);
}

static void another_reader_in_between_keeps_the_operator_float(void **state) {
    (void)state;
    // Someone else needs the float sum: torch's pass fails there.
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Linear", "in_features=3, out_features=3");
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n    a = self.a(x)\n"
                                  "    add = a + a\n    relu = torch.relu(add)\n"
                                  "    exp = torch.exp(add)\n    return (relu, exp)\n");
    tare_model *p = prepared(model, backend, mapping);
    CALIBRATED(p, 4, 3);
    tare_model *q = lowered(p, backend);
    CHECK_HOLDS(printed(q), "torch.exp(");
    CHECK_HOLDS(decided(q, "a"), "lower: lowered");
    tare_model_destroy(q);
    tare_model_destroy(p);
    // By hand: a relu and another reader stand between an add and its quantize node.
    tare_qconfig_mapping_set_object_type(mapping, "torch.relu", NULL);
    p = prepared(model, backend, mapping);
    CALIBRATED(p, 4, 3);
    q = lowered(p, backend);
    CHECK_HOLDS(printed(q), "torch.relu(");
    tare_tensor *x = NEW_INPUT(4, 3);
    const tare_tensor *inputs[] = {x};
    tare_model *r = referenced(p, backend);
    tare_tensor *y = result_of(q, inputs, 1), *wanted = result_of(r, inputs, 1);
    for (int64_t i = 0; i < y->count; i++)
        assert_true(fabs(tare__tensor_get(y, i) - tare__tensor_get(wanted, i)) < 0.1);
    tare_tensor_release(y);
    tare_tensor_release(wanted);
    tare_tensor_release(x);
    tare_model_destroy(r);
    tare_model_destroy(q);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

static void shapes_are_read_from_quantized_tensors(void **state) {
    (void)state;
    tare_model *q = LOWERED(conv_then("    size = a.size(0)\n    getattr_1 = a.shape\n"
                                      "    view = a.view(size, -1)\n    return view\n"),
                            1, 2, 2, 2);
    CHECK_HOLDS(printed(q), "    size = a.size(0)\n");
    CHECK_HOLDS(printed(q), "a.view(size, -1)");
    tare_model_destroy(q);
    q = LOWERED(conv_then("    getattr_1 = a.shape\n    getitem = getattr_1[0]\n"
                          "    reshape = a.reshape(getitem, -1)\n    return reshape\n"),
                1, 2, 2, 2);
    CHECK_HOLDS(printed(q), "    getattr_1 = a.shape\n");
    CHECK_HOLDS(printed(q), "    reshape = a.reshape(getitem, -1);");
    tare_model_destroy(q);
}

static void operators_without_a_weight_go_the_special_way(void **state) {
    (void)state;
    static const struct {
        const char *lines, *wanted;
    } rows[] = {
        {"    pool = self.pool(a)\n    return pool\n", "    pool = self.pool(a);"},
        {"    tanh = self.tanh(a)\n    return tanh\n", "    tanh = self.tanh(a);"},
        {"    sigmoid = torch.sigmoid(a)\n    return sigmoid\n", "    sigmoid = torch.sigmoid(a);"},
        {"    hardswish = self.hardswish(a)\n    return hardswish\n",
         "(hardswish): QuantizedHardswish("},
        {"    leaky = self.leaky(a)\n    return leaky\n",
         "(leaky): QuantizedLeakyReLU(negative_slope=0.1)"},
        {"    elu = torch.nn.functional.elu(a, alpha = 1.0, inplace = False)\n    return elu\n",
         "    elu_1 = torch.ops.quantized.elu(a, alpha = 1.0, output_scale = _scale_0, "
         "output_zero_point = _zero_point_0);"},
        {"    hardswish = torch.nn.functional.hardswish(a, inplace = False)\n"
         "    return hardswish\n",
         "torch.ops.quantized.hardswish(a, output_scale = _scale_0, output_zero_point = "
         "_zero_point_0);"},
        // Positions of arguments are the function's own.
        {"    elu = torch.nn.functional.elu(a, 1.5, False)\n    return elu\n",
         "    elu_1 = torch.ops.quantized.elu(a, alpha = 1.5, output_scale = _scale_0, "
         "output_zero_point = _zero_point_0);"},
        {"    instance_norm = torch.nn.functional.instance_norm(a, None, None, None, None, True, "
         "0.1, "
         "0.25)\n    return instance_norm\n",
         "    instance_norm_1 = torch.ops.quantized.instance_norm(a, eps = 0.25, output_scale = "
         "_scale_0, output_zero_point = _zero_point_0);"},
        {"    flatten = torch.flatten(a, 1)\n    return flatten\n",
         "    flatten = torch.flatten(a, 1);"},
        {"    b = self.b(x)\n    cat = torch.cat([a, b], dim = 1)\n    return cat\n",
         "    cat = torch.cat([a, b], dim = 1);"},
        {"    clamp = torch.clamp(a, 0.0, 0.5)\n    return clamp\n",
         "    clamp = torch.clamp(a, 0.0, 0.5);"},
        {"    mean = a.mean((2, 3), keepdim = True)\n    return mean\n",
         "    mean = a.mean((2, 3), keepdim = True);"},
        {"    permute = a.permute(0, 2, 3, 1)\n    return permute\n",
         "    permute = a.permute(0, 2, 3, 1);"},
        // torch's method flatten is on none of its lists.
        {"    flatten = a.flatten(1)\n    return flatten\n", "dequantize_1.flatten(1);"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tare_model *q = LOWERED(conv_then(rows[i].lines), 1, 2, 2, 2);
        CHECK_HOLDS(printed(q), rows[i].wanted);
        tare_model_destroy(q);
    }
}

// The reference form, with which lowered_for compares, pads as the float layer does.
static void convolutions_pad_as_their_mode_says(void **state) {
    (void)state;
    static const char *const modes[] = {"zeros", "reflect", "replicate", "circular"};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        char config[256];
        module *root = new_tree();
        snprintf(config, sizeof config,
                 "in_channels=2, out_channels=2, kernel_size=(3, 3), stride=(1, 1), "
                 "padding=(1, 1), dilation=(1, 1), groups=1, padding_mode='%s'",
                 modes[i]);
        put_module(root, NULL, "a", NN "Conv2d", config);
        tare_model *model =
            new_model(NULL, root, "def forward(self, x):\n    a = self.a(x)\n    return a\n");
        tare_tensor *x = NEW_INPUT(1, 2, 4, 4);
        const tare_tensor *inputs[] = {x};
        tare_tensor *wanted = result_of(model, inputs, 1);
        tare_model *q = LOWERED(model, 1, 2, 4, 4); // compares with the reference form
        tare_tensor *got = result_of(q, inputs, 1);
        if (i >= 2) CHECK_HOLDS(decided(q, "a"), "integer convolutions have 'zeros' and 'reflect'");
        for (int64_t k = 0; k < got->count; k++)
            assert_true(fabs(tare__tensor_get(got, k) - tare__tensor_get(wanted, k)) < 0.06);
        tare_tensor_release(x);
        tare_tensor_release(wanted);
        tare_tensor_release(got);
        tare_model_destroy(q);
    }
}

static void each_call_of_a_module_keeps_its_output_s_parameters(void **state) {
    (void)state;
    tare_model *q = LOWERED(conv_then("    add = a + 3.0\n    a_1 = self.a(add)\n"
                                      "    return a_1\n"),
                            1, 2, 2, 2);
    const module *a = tare__module_find(q->root, "a");
    const tare_tensor *first = tare__module_tensor(a, "scale_of_a");
    const tare_tensor *second = tare__module_tensor(a, "scale_of_a_1");
    assert_non_null(first);
    assert_non_null(second);
    assert_true(tare__tensor_get(first, 0) != tare__tensor_get(second, 0));
    // Printed as torch prints it: the last call's.
    assert_true(tare__tensor_get(tare__module_tensor(a, "scale"), 0) ==
                tare__tensor_get(second, 0));
    tare_model_destroy(q);
}

static void the_engine_s_rule_is_frozen_in_the_model(void **state) {
    (void)state;
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *model = conv_then("    return a\n"), *p = prepared(model, backend, mapping);
    CALIBRATED(p, 1, 2, 2, 2);
    const char *rules[5] = {NULL};
    tare_model *made[5] = {NULL};
    for (int engine = TARE_ENGINE_DEFAULT; engine <= TARE_ENGINE_ONEDNN; engine++) {
        const tare_convert_options options = {.backend = backend, .engine = (tare_engine)engine};
        CHECK_DONE(tare_convert_fx(p, &options, &made[engine], job_error()));
        const value *rule = tare__module_config(tare__module_find(made[engine]->root, "a"), "rule");
        assert_non_null(rule);
        rules[engine] = rule->as.text;
    }
    assert_string_equal(rules[TARE_ENGINE_DEFAULT], rules[TARE_ENGINE_X86]);
    assert_string_not_equal(rules[TARE_ENGINE_X86], rules[TARE_ENGINE_QNNPACK]);
    for (int engine = 0; engine < 5; engine++) tare_model_destroy(made[engine]);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

static void onednn_s_sums_inside_a_convolution_are_lowered(void **state) {
    (void)state;
    const int64_t shape[] = {1, 2, 2, 2};
    tare_model *q = lowered_for("onednn",
                                conv_then("    b = self.b(x)\n    add = a + b\n"
                                          "    relu = self.relu(add)\n    return relu\n"),
                                4, shape);
    CHECK_HOLDS(printed(q), "QuantizedConvAddReLU2d(");
    CHECK_LACKS(printed(q), "quantized.add");
    tare_model_destroy(q);
    module *root = new_tree();
    put_module(root, NULL, "fc", NN "Linear", "in_features=3, out_features=2");
    put_module(root, NULL, "leaky", NN "LeakyReLU", "negative_slope=0.125");
    const int64_t rows[] = {4, 3};
    q = lowered_for("onednn",
                    new_model(NULL, root,
                              "def forward(self, x):\n    fc = self.fc(x)\n"
                              "    leaky = self.leaky(fc)\n    return leaky\n"),
                    2, rows);
    CHECK_HOLDS(printed(q), "QuantizedLinearLeakyReLU(");
    const module *fc = tare__module_find(q->root, "fc");
    assert_true(tare__module_double(fc, "negative_slope", 0) == 0.125);
    assert_string_equal(tare__module_config(fc, "rule")->as.text, "O"); // oneDNN's, in any engine
    tare_model_destroy(q);
}

// A linear layer, a layer norm that x86's config lacks, and a second linear layer: what `rest` does
// with them after `norm = norm(fc)`.
static tare_model *lowered_around_a_norm(const char *rest) {
    module *root = new_tree();
    put_module(root, NULL, "fc", NN "Linear", "in_features=3, out_features=3");
    put_module(root, NULL, "norm", NN "LayerNorm",
               "normalized_shape=(3,), eps=1e-05, elementwise_affine=True");
    put_module(root, NULL, "fc2", NN "Linear", "in_features=3, out_features=3");
    char code[256];
    snprintf(code, sizeof(code),
             "def forward(self, x):\n    fc = self.fc(x)\n    norm = self.norm(fc)\n"
             "    fc2 = self.fc2(norm)\n%s",
             rest);
    return LOWERED(new_model(NULL, root, code), 4, 3);
}

// The first call is enclosed by its neighbours, the second is not.
static void a_module_that_one_call_feeds_floats_stays_float(void **state) {
    (void)state;
    tare_model *q = lowered_around_a_norm("    norm_1 = self.norm(fc2)\n    return norm_1\n");
    CHECK_HOLDS(printed(q), "(norm): LayerNorm(");
    CHECK_HOLDS(printed(q), "(fc2): QuantizedLinear(");
    CHECK_HOLDS(explained(q, "norm"),
                "another call of the module 'norm' has a float input or output");
    tare_model_destroy(q);
}

static void an_operator_without_a_weight_keeps_its_float_readers(void **state) {
    (void)state;
    tare_model *q = lowered_around_a_norm("    erf = torch.erf(norm)\n    return (fc2, erf)\n");
    CHECK_HOLDS(printed(q), "(norm): LayerNorm(");
    CHECK_HOLDS(explained(q, "norm"), "'erf' reads its value as float");
    tare_model_destroy(q);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_become_quantized_ones),
        cmocka_unit_test(sums_and_products_are_lowered_with_their_relu),
        cmocka_unit_test(a_number_leaves_no_parameters_behind),
        cmocka_unit_test(a_sum_with_a_number_is_not_lowered_before_a_join),
        cmocka_unit_test(another_reader_in_between_keeps_the_operator_float),
        cmocka_unit_test(shapes_are_read_from_quantized_tensors),
        cmocka_unit_test(operators_without_a_weight_go_the_special_way),
        cmocka_unit_test(convolutions_pad_as_their_mode_says),
        cmocka_unit_test(each_call_of_a_module_keeps_its_output_s_parameters),
        cmocka_unit_test(a_module_that_one_call_feeds_floats_stays_float),
        cmocka_unit_test(an_operator_without_a_weight_keeps_its_float_readers),
        cmocka_unit_test(the_engine_s_rule_is_frozen_in_the_model),
        cmocka_unit_test(onednn_s_sums_inside_a_convolution_are_lowered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
