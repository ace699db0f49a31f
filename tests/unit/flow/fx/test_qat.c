// SPDX-License-Identifier: Apache-2.0
// Forms of quantization-aware training. Numbers and names were recorded from torch 2.15.
#include "support/models.h"
#include "support/test.h"

#include <math.h>

#include "config/qconfig.h"
#include "observe/fake_quantize.h"

#define NN     "torch.nn."
#define NNQAT  "torch.ao.nn.qat."
#define NNIQAT "torch.ao.nn.intrinsic.qat."
#define CONV(dims, more)                                                                           \
    "in_channels=2, out_channels=3, kernel_size=" dims ", groups=1, padding_mode='zeros'" more
#define ONE   "(1,), stride=(1,), padding=(0,), dilation=(1,)"
#define TWO   "(1, 1), stride=(1, 1), padding=(0, 0), dilation=(1, 1)"
#define THREE "(1, 1, 1), stride=(1, 1, 1), padding=(0, 0, 0), dilation=(1, 1, 1)"

// A chain of modules a - b - c (NULL ends).
static tare_model *chain(const char *const classes[3], const char *const configs[3]) {
    module *root = new_tree();
    const char *const names[] = {"a", "b", "c"};
    text code = {0};
    tare__text_append(&code, "def forward(self, x):\n");
    const char *last = "x";
    for (size_t i = 0; i < 3 && classes[i] != NULL; i++) {
        put_module(root, NULL, names[i], classes[i], configs[i]);
        tare__text_printf(&code, "    %s = self.%s(%s)\n", names[i], names[i], last);
        last = names[i];
    }
    tare__text_printf(&code, "    return %s\n", last);
    tare_model *model = new_model(NULL, root, tare__text_chars(&code));
    tare__text_release(&code);
    return model;
}

static tare_qconfig_mapping *qat_mapping(const char *name) {
    tare_qconfig_mapping *m = NULL;
    CHECK_DONE(tare_qconfig_mapping_default(name, true, -1, &m, job_error()));
    return m;
}

static tare_status prepare(const tare_model *model, const tare_qconfig_mapping *mapping,
                           const char *backend_name, tare_model **out) {
    tare_backend_config *backend = builtin_backend(backend_name);
    const tare_prepare_options options = {
        .struct_size = sizeof options, .backend = backend, .qconfig_mapping = mapping};
    const tare_status status = tare_prepare_qat_fx(model, &options, out, job_error());
    tare_backend_config_destroy(backend);
    return status;
}

static tare_model *prepared_qat(const tare_model *model) {
    tare_qconfig_mapping *mapping = qat_mapping("x86");
    tare_model *out = NULL;
    CHECK_DONE(prepare(model, mapping, "x86", &out));
    tare_qconfig_mapping_destroy(mapping);
    return out;
}

// --- swaps ---

static void weighted_modules_take_their_training_form(void **state) {
    (void)state;
    static const struct {
        const char *classes[3], *configs[3], *swapped;
    } rows[] = {
        {{NN "Conv1d"}, {CONV(ONE, "")}, NNQAT "Conv1d"},
        {{NN "Conv2d"}, {CONV(TWO, "")}, NNQAT "Conv2d"},
        {{NN "Conv3d"}, {CONV(THREE, "")}, NNQAT "Conv3d"},
        {{NN "Conv1d", NN "ReLU"}, {CONV(ONE, ""), ""}, NNIQAT "ConvReLU1d"},
        {{NN "Conv3d", NN "ReLU"}, {CONV(THREE, ""), ""}, NNIQAT "ConvReLU3d"},
        {{NN "Conv1d", NN "BatchNorm1d"}, {CONV(ONE, ""), "num_features=3"}, NNIQAT "ConvBn1d"},
        {{NN "Conv2d", NN "BatchNorm2d"}, {CONV(TWO, ""), "num_features=3"}, NNIQAT "ConvBn2d"},
        {{NN "Conv3d", NN "BatchNorm3d"}, {CONV(THREE, ""), "num_features=3"}, NNIQAT "ConvBn3d"},
        {{NN "Conv1d", NN "BatchNorm1d", NN "ReLU"},
         {CONV(ONE, ""), "num_features=3", ""},
         NNIQAT "ConvBnReLU1d"},
        {{NN "Conv2d", NN "BatchNorm2d", NN "ReLU"},
         {CONV(TWO, ", bias=False"), "num_features=3", ""},
         NNIQAT "ConvBnReLU2d"},
        {{NN "Conv3d", NN "BatchNorm3d", NN "ReLU"},
         {CONV(THREE, ""), "num_features=3", ""},
         NNIQAT "ConvBnReLU3d"},
        {{NN "Linear"}, {"in_features=2, out_features=3"}, NNQAT "Linear"},
        {{NN "Linear", NN "ReLU"}, {"in_features=2, out_features=3", ""}, NNIQAT "LinearReLU"},
        {{NN "Linear", NN "BatchNorm1d"},
         {"in_features=2, out_features=3", "num_features=3"},
         NNIQAT "LinearBn1d"},
        // No class is made for these.
        {{NN "BatchNorm2d", NN "ReLU"}, {"num_features=2", ""}, "torch.ao.nn.intrinsic.BNReLU2d"},
        {{NN "ConvTranspose2d"}, {CONV(TWO, ", output_padding=(0, 0)")}, NN "ConvTranspose2d"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tare_model *model = chain(rows[i].classes, rows[i].configs);
        tare_model *out = prepared_qat(model);
        const module *a = tare__module_find(out->root, "a");
        assert_string_equal(a->class->name, rows[i].swapped);
        // One node is left of the chain, and observers around it.
        assert_null(tare__module_find(out->root, "b"));
        tare_model_destroy(out);
        tare_model_destroy(model);
    }
}

static bool append_name(void *user, const char *chars, size_t length) {
    tare__text_append_n(user, chars, length);
    return true;
}

static void state_names_are_torch_s(void **state) {
    (void)state;
    const char *const classes[3] = {NN "Conv2d", NN "BatchNorm2d", NN "ReLU"};
    const char *const configs[3] = {CONV(TWO, ""), "num_features=3", ""};
    tare_model *model = chain(classes, configs), *out = prepared_qat(model);
    text names = {0};
    CHECK_DONE(tare_model_print(out, TARE_PRINT_STATE, append_name, &names, job_error()));
    CHECK_HOLDS(tare__text_chars(&names),
                "a.weight\na.bias\na.bn.weight\na.bn.bias\na.bn.running_mean\na.bn.running_var\n");
    CHECK_HOLDS(tare__text_chars(&names),
                "a.weight_fake_quant.fake_quant_enabled\na.weight_fake_quant.observer_enabled\n"
                "a.weight_fake_quant.scale\na.weight_fake_quant.zero_point\n"
                "a.weight_fake_quant.activation_post_process.eps\n"
                "a.weight_fake_quant.activation_post_process.min_val\n"
                "a.weight_fake_quant.activation_post_process.max_val\n");
    tare__text_release(&names);
    tare_model_destroy(out);
    tare_model_destroy(model);
}

// --- forward ---

static void set_floats(module *m, const char *name, int ndim, float a, float b) {
    const int64_t shape[] = {2, 1, 1, 1};
    const float values[] = {a, b};
    tare_tensor *t = NULL;
    CHECK_OK(tare_tensor_from_data(TARE_FLOAT32, ndim, shape, values, &t, NULL));
    const named_tensor *was = tare__module_named_tensor(m, name);
    CHECK_OK(tare__module_set_tensor(m, name, t, was == NULL || was->is_parameter, NULL));
    tare_tensor_release(t);
}

static tare_model *small_model(bool is_linear) {
    const char *const conv[3] = {NN "Conv2d", NN "BatchNorm2d", NN "ReLU"};
    const char *const conv_configs[3] = {"in_channels=1, out_channels=2, kernel_size=" TWO
                                         ", groups=1, padding_mode='zeros'",
                                         "num_features=2", ""};
    const char *const linear[3] = {NN "Linear", NN "BatchNorm1d", NULL};
    const char *const linear_configs[3] = {"in_features=1, out_features=2", "num_features=2", ""};
    tare_model *model = is_linear ? chain(linear, linear_configs) : chain(conv, conv_configs);
    module *a = tare__module_find(model->root, "a"), *b = tare__module_find(model->root, "b");
    set_floats(a, "weight", is_linear ? 2 : 4, 0.5F, -1.25F);
    set_floats(a, "bias", 1, 0.1F, 0.2F);
    set_floats(b, "running_mean", 1, 0.1F, -0.2F);
    set_floats(b, "running_var", 1, 0.5F, 2);
    set_floats(b, "weight", 1, 1.5F, 0.75F);
    set_floats(b, "bias", 1, 0.3F, -0.4F);
    CHECK_DONE(tare_model_set_training(model, true, job_error()));
    return model;
}

static void check_floats(const tare_tensor *t, int64_t count, const float *expected) {
    assert_int_equal(t->count, count);
    for (int64_t i = 0; i < count; i++)
        if (!(fabsf(tare__f32(t)[i] - expected[i]) < 2e-5F))
            fail_msg("[%d] is %g, expected %g", (int)i, (double)tare__f32(t)[i],
                     (double)expected[i]);
}

static void check_step(tare_model *m, bool is_linear, const float out[8], const float mean[2],
                       const float var[2]) {
    static const float x[] = {-1, 0.5F, 2, -0.25F};
    const int64_t picture[] = {2, 1, 1, 2}, rows[] = {4, 1};
    tare_tensor *input = NULL;
    CHECK_OK(tare_tensor_from_data(TARE_FLOAT32, is_linear ? 2 : 4, is_linear ? rows : picture, x,
                                   &input, NULL));
    const tare_tensor *inputs[] = {input};
    tare_tensor *y = result_of(m, inputs, 1);
    const module *bn = tare__module_find(m->root, "a.bn");
    check_floats(y, 8, out);
    CHECK_DONE(tare_calibrate(m, inputs, 1, job_error())); // the model learns, as the session did
    check_floats(tare__module_tensor(bn, "running_mean"), 2, mean);
    check_floats(tare__module_tensor(bn, "running_var"), 2, var);
    tare_tensor_release(y);
    tare_tensor_release(input);
}

static const float mean_1[] = {0.11565F, -0.199124F}, var_1[] = {0.491147F, 2.057167F};
static const float mean_2[] = {0.129596F, -0.198263F}, var_2[] = {0.482458F, 2.107663F};
static const float mean_3[] = {0.142014F, -0.197639F}, var_3[] = {0.473936F, 2.155099F};

static void convolutions_scale_by_their_batch_norm(void **state) {
    (void)state;
    const float live[] = {0, 0.55025F, 0.48911F, 0, 2.58821F, 0, 0, 0};
    const float frozen[] = {0, 0.7534F, 0.44797F, 0, 2.362F, 0, 0, 0};
    const float eval[] = {0, 0.75276F, 0.44759F, 0, 2.36F, 0, 0, 0};
    tare_model *model = small_model(false), *m = prepared_qat(model);
    check_step(m, false, live, mean_1, var_1);
    check_step(m, false, live, mean_2, var_2);
    CHECK_DONE(tare_model_freeze_bn_stats(m, true, job_error()));
    CHECK_DONE(tare_model_set_training(m, true, job_error())); // frozen ones stay as they are
    check_step(m, false, frozen, mean_2, var_2);
    CHECK_DONE(tare_model_freeze_bn_stats(m, false, job_error()));
    CHECK_DONE(tare_model_set_training(m, false, job_error()));
    assert_false(tare_model_is_training(m));
    check_step(m, false, eval, mean_2, var_2);
    tare_model_destroy(m);
    tare_model_destroy(model);
}

static void linear_layers_scale_but_are_not_frozen(void **state) {
    (void)state;
    const float live[] = {-1.46421F, 0.48807F,  0.55315F,  -0.52061F,
                          2.60304F,  -1.52929F, -0.48807F, 0};
    const float eval[] = {-0.84535F, 0.42267F,  0.74781F,  -0.52021F,
                          2.34096F,  -1.49561F, -0.06503F, -0.03251F};
    tare_model *model = small_model(true), *m = prepared_qat(model);
    check_step(m, true, live, mean_1, var_1);
    check_step(m, true, live, mean_2, var_2);
    CHECK_DONE(tare_model_freeze_bn_stats(m, true, job_error()));
    check_step(m, true, live, mean_3, var_3);
    CHECK_DONE(tare_model_set_training(m, false, job_error()));
    check_step(m, true, eval, mean_3, var_3);
    tare_model_destroy(m);
    tare_model_destroy(model);
}

static void convert_folds_with_the_running_statistics(void **state) {
    (void)state;
    const float live[] = {0, 0.55025F, 0.48911F, 0, 2.58821F, 0, 0, 0};
    tare_model *model = small_model(false), *m = prepared_qat(model), *out = NULL;
    check_step(m, false, live, mean_1, var_1);
    check_step(m, false, live, mean_2, var_2);
    CHECK_DONE(tare_convert_to_reference_fx(m, NULL, &out, job_error()));
    const module *conv = tare__module_find(out->root, "a.0");
    assert_string_equal(conv->class->name, "torch.ao.nn.quantized.reference.Conv2d");
    check_floats(tare__module_tensor(conv, "weight"), 2, (const float[]){1.07976F, -0.645758F});
    check_floats(tare__module_tensor(conv, "bias"), 2, (const float[]){0.236086F, -0.194255F});
    tare_model_destroy(out);
    tare_model_destroy(m);
    tare_model_destroy(model);
}

static void switches_reach_every_fake_quantizer(void **state) {
    (void)state;
    tare_model *model = small_model(false), *m = prepared_qat(model);
    CHECK_DONE(tare_model_enable_observer(m, false, job_error()));
    CHECK_HOLDS(printed(m), "observer_enabled=tensor([0])");
    CHECK_LACKS(printed(m), "observer_enabled=tensor([1])");
    CHECK_DONE(tare_model_enable_fake_quant(m, false, job_error()));
    CHECK_LACKS(printed(m), "fake_quant_enabled=tensor([1])");
    CHECK_DONE(tare_model_enable_observer(m, true, job_error()));
    CHECK_LACKS(printed(m), "observer_enabled=tensor([0])");
    CHECK_DONE(tare_model_set_learnable_mode(m, TARE_LEARNABLE_LEARN, job_error()));
    CHECK_REFUSED(tare_model_set_learnable_mode(m, (tare_learnable_mode)9, job_error()),
                  TARE_INVALID_ARGUMENT, "9 is no mode");
    CHECK_REFUSED(tare_model_enable_observer(model, true, job_error()), TARE_INVALID_ARGUMENT,
                  "expected a prepared model");
    tare_model_destroy(m);
    tare_model_destroy(model);
}

// --- who is swapped ---

static void regexes_do_not_keep_a_module_from_its_swap(void **state) {
    (void)state;
    const char *const classes[3] = {NN "Linear", NN "ReLU6", NN "Linear"};
    const char *const configs[3] = {"in_features=2, out_features=2", "",
                                    "in_features=2, out_features=2"};
    tare_model *model = chain(classes, configs), *m = NULL, *out = NULL;
    tare_qconfig_mapping *mapping = qat_mapping("x86");
    tare_qconfig_mapping_set_module_name_regex(mapping, "a", NULL);
    tare_qconfig_mapping_set_module_name(mapping, "c", NULL);
    CHECK_DONE(prepare(model, mapping, "x86", &m));
    // Torch propagates names, but no regexes: a trains with a fake quantized weight all the same.
    assert_string_equal(tare__module_find(m->root, "a")->class->name, NNQAT "Linear");
    assert_string_equal(tare__module_find(m->root, "c")->class->name, NN "Linear");
    CALIBRATED(m, 3, 2);
    CHECK_DONE(tare_convert_fx(m, NULL, &out, job_error()));
    assert_string_equal(tare__module_find(out->root, "a")->class->name, NN "Linear");
    tare_model_destroy(out);
    tare_model_destroy(m);
    tare_qconfig_mapping_destroy(mapping);
    tare_model_destroy(model);
}

static void scales_per_input_channel_stay_in_reference_form(void **state) {
    (void)state;
    const char *const classes[3] = {NN "ConvTranspose2d"};
    const char *const configs[3] = {CONV(TWO, ", output_padding=(0, 0)")};
    tare_model *model = chain(classes, configs), *m = NULL, *out = NULL;
    tare_qconfig_mapping *mapping = qat_mapping("onednn");
    CHECK_DONE(prepare(model, mapping, "onednn", &m));
    CALIBRATED(m, 1, 2, 3, 3);
    CHECK_DONE(tare_convert_fx(m, NULL, &out, job_error()));
    CHECK_HOLDS(printed(out), "(a): QuantizedConvTranspose2d(Reference)(2, 3");
    CHECK_HOLDS(decided(out, "a"), "a scale per input channel");
    tare_model_destroy(out);
    tare_model_destroy(m);
    tare_qconfig_mapping_destroy(mapping);
    tare_model_destroy(model);
}

static void dynamic_layers_need_no_memory(void **state) {
    (void)state;
    const char *const classes[3] = {NN "Linear"}, *const configs[3] = {
                                                      "in_features=2, out_features=2"};
    tare_model *model = chain(classes, configs), *m = NULL, *out = NULL;
    tare_qconfig *q = NULL;
    tare_qconfig_mapping *mapping = tare_qconfig_mapping_create();
    CHECK_DONE(tare_qconfig_named("default_dynamic_qat_qconfig", &q, job_error()));
    assert_true(tare__qconfig_is_memoryless(q));
    tare_qconfig_mapping_set_object_type(mapping, NN "Linear", q);
    CHECK_DONE(prepare(model, mapping, "native", &m));
    CALIBRATED(m, 3, 2);
    CHECK_DONE(tare_convert_fx(m, NULL, &out, job_error()));
    CHECK_HOLDS(printed(out), "(a): DynamicQuantizedLinear(in_features=2, out_features=2");
    tare_model_destroy(out);
    tare_model_destroy(m);
    tare_qconfig_mapping_destroy(mapping);
    tare_qconfig_release(q);
    tare_model_destroy(model);
}

// --- refusals ---

static void refuse_chain(const char *const classes[3], const char *const configs[3],
                         bool second_trains, const char *words) {
    tare_model *model = chain(classes, configs), *m = NULL;
    tare_qconfig_mapping *mapping = qat_mapping("x86");
    CHECK_DONE(tare_model_set_training(model, true, job_error()));
    tare__module_find(model->root, "b")->training = second_trains;
    CHECK_REFUSED(prepare(model, mapping, "x86", &m),
                  strstr(words, "not yet supported") != NULL ? TARE_UNSUPPORTED
                                                             : TARE_INVALID_ARGUMENT,
                  words);
    tare_qconfig_mapping_destroy(mapping);
    tare_model_destroy(model);
}

static void torch_s_refusals_have_torch_s_words(void **state) {
    (void)state;
    const char *const conv[3] = {NN "Conv2d", NN "BatchNorm2d"};
    const char *const conv_relu[3] = {NN "Conv2d", NN "BatchNorm2d", NN "ReLU"};
    const char *const linear[3] = {NN "Linear", NN "BatchNorm1d"};
    const char *const transposed[3] = {NN "ConvTranspose2d", NN "BatchNorm2d"};
    const char *const fine[3] = {CONV(TWO, ""), "num_features=3", ""};
    const char *const narrow[3] = {CONV(TWO, ""), "num_features=4", ""};
    const char *const plain[3] = {CONV(TWO, ""), "num_features=3, affine=False", ""};
    const char *const forgetful[3] = {CONV(TWO, ""), "num_features=3, track_running_stats=False",
                                      ""};
    const char *const layer[3] = {"in_features=2, out_features=3", "num_features=3"};
    const char *const wide[3] = {"in_features=2, out_features=3", "num_features=4", ""};
    const char *const turned[3] = {CONV(TWO, ", output_padding=(0, 0)"), "num_features=3", ""};
    refuse_chain(conv, fine, false, "Conv and BN both must be in the same mode (train or eval).");
    refuse_chain(linear, layer, false,
                 "Linear and BN both must be in the same mode (train or eval).");
    refuse_chain(conv, narrow, true,
                 "Output channel of Conv2d must match num_features of BatchNorm2d.");
    refuse_chain(conv_relu, narrow, true,
                 "Output channel of Conv2d must match num_features of BatchNorm2d");
    refuse_chain(linear, wide, true,
                 "Output features of Linear must match num_features of BatchNorm1d");
    refuse_chain(conv, plain, true, "Only support fusing BatchNorm2d with affine set to True");
    refuse_chain(conv, forgetful, true,
                 "Only support fusing BatchNorm2d with tracking_running_stats set to True");
    refuse_chain(transposed, turned, true,
                 "Fusing ConvTranspose+BatchNorm not yet supported in QAT.");
}

static void sums_are_not_fused_with_batch_norms_in_training(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "conv", NN "Conv2d", CONV(TWO, ""));
    put_module(root, NULL, "bn", NN "BatchNorm2d", "num_features=3");
    tare_model *model =
        new_model(NULL, root,
                  "def forward(self, x, y):\n    conv = self.conv(x)\n    bn = self.bn(conv)\n"
                  "    add = torch.add(bn, y)\n    return add\n");
    tare_model *m = NULL;
    tare_qconfig_mapping *mapping = qat_mapping("onednn");
    CHECK_REFUSED(prepare(model, mapping, "onednn", &m), TARE_UNSUPPORTED,
                  "Cannot fuse train modules: (Conv2d(2, 3, kernel_size=(1, 1), stride=(1, 1)), "
                  "BatchNorm2d(3");
    tare_qconfig_mapping_destroy(mapping);
    tare_model_destroy(model);
}

static void embeddings_need_float_qparams(void **state) {
    (void)state;
    const char *const classes[3] = {NN "Embedding"}, *const configs[3] = {
                                                         "num_embeddings=4, embedding_dim=2"};
    tare_model *model = chain(classes, configs), *m = NULL;
    tare_qconfig_mapping *mapping = qat_mapping("x86");
    CHECK_REFUSED(prepare(model, mapping, "x86", &m), TARE_INVALID_ARGUMENT,
                  "Embedding weights requires a qscheme of torch.per_channel_affine_float_qparams "
                  "Got torch.per_channel_symmetric");
    tare_qconfig_mapping_destroy(mapping);
    tare_model_destroy(model);
}

// --- a mapping for convert ---

static tare_status convert_with(const tare_model *m, const tare_qconfig_mapping *mapping,
                                tare_model **out) {
    const tare_convert_options options = {.struct_size = sizeof options,
                                          .qconfig_mapping = mapping};
    return tare_convert_fx(m, &options, out, job_error());
}

static void convert_s_mapping_can_only_switch_off(void **state) {
    (void)state;
    tare_model *model = small_model(false), *m = prepared_qat(model), *out = NULL;
    tare_qconfig_mapping *mapping = qat_mapping("x86");
    tare_qconfig *other = NULL;
    CALIBRATED(m, 2, 1, 1, 2);
    CHECK_DONE(convert_with(m, mapping, &out));
    CHECK_HOLDS(printed(out), "(a): QuantizedConvReLU2d(");
    tare_model_destroy(out);
    tare_qconfig_mapping_set_module_name(mapping, "a", NULL);
    CHECK_DONE(convert_with(m, mapping, &out));
    CHECK_LACKS(printed(out), "Quantized");
    CHECK_HOLDS(decided(out, "a"), "the mapping given at convert");
    tare_model_destroy(out);
    CHECK_DONE(tare_qconfig_named("default_qat_qconfig", &other, job_error()));
    tare_qconfig_mapping_set_module_name(mapping, "a", other);
    CHECK_REFUSED(convert_with(m, mapping, &out), TARE_INVALID_ARGUMENT,
                  "Expected node 'a' to have the same qconfig");
    tare_qconfig_mapping_set_object_type(mapping, NN "Tanh", other);
    CHECK_REFUSED(convert_with(m, mapping, &out), TARE_INVALID_ARGUMENT,
                  "Expected convert QConfigMapping to have the same qconfig as prepare for key "
                  "object_type torch.nn.Tanh");
    tare_qconfig_mapping_set_global(mapping, NULL);
    CHECK_REFUSED(convert_with(m, mapping, &out), TARE_INVALID_ARGUMENT,
                  "Expected global qconfigs to be the same");
    tare_qconfig_mapping_destroy(mapping);
    mapping = tare_qconfig_mapping_create();
    CHECK_REFUSED(convert_with(m, mapping, &out), TARE_INVALID_ARGUMENT, "Expected global");
    tare_qconfig_release(other);
    tare_qconfig_mapping_destroy(mapping);
    tare_model_destroy(m);
    tare_model_destroy(model);
}

// --- memory ---

static tare_status whole_job(const tare_model *model, const tare_backend_config *backend,
                             const tare_qconfig_mapping *mapping, const tare_tensor *x) {
    const tare_prepare_options options = {
        .struct_size = sizeof options, .backend = backend, .qconfig_mapping = mapping};
    const tare_convert_options convert = {
        .struct_size = sizeof convert, .backend = backend, .qconfig_mapping = mapping};
    tare_model *m = NULL, *out = NULL;
    TARE_TRY(tare_prepare_qat_fx(model, &options, &m, NULL));
    tare_status status = tare_calibrate(m, &x, 1, NULL);
    if (status == TARE_OK) status = tare_model_freeze_bn_stats(m, true, NULL);
    if (status == TARE_OK) status = tare_model_enable_observer(m, false, NULL);
    if (status == TARE_OK) status = tare_convert_fx(m, &convert, &out, NULL);
    tare_model_destroy(out);
    tare_model_destroy(m);
    return status;
}

static void a_failed_allocation_is_an_error_and_no_leak(void **state) {
    (void)state;
    tare_model *model = small_model(false);
    tare_backend_config *backend = builtin_backend("native");
    tare_qconfig *q = NULL;
    tare_qconfig_mapping *mapping = tare_qconfig_mapping_create();
    CHECK_DONE(tare_qconfig_named("default_qat_qconfig_v2", &q, job_error()));
    tare_qconfig_mapping_set_global(mapping, q);
    tare_tensor *x = NEW_INPUT(2, 1, 1, 2);
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = whole_job(model, backend, mapping, x), (void)0);
    tare_tensor_release(x);
    tare_qconfig_release(q);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weighted_modules_take_their_training_form),
        cmocka_unit_test(state_names_are_torch_s),
        cmocka_unit_test(convolutions_scale_by_their_batch_norm),
        cmocka_unit_test(linear_layers_scale_but_are_not_frozen),
        cmocka_unit_test(convert_folds_with_the_running_statistics),
        cmocka_unit_test(switches_reach_every_fake_quantizer),
        cmocka_unit_test(regexes_do_not_keep_a_module_from_its_swap),
        cmocka_unit_test(scales_per_input_channel_stay_in_reference_form),
        cmocka_unit_test(dynamic_layers_need_no_memory),
        cmocka_unit_test(torch_s_refusals_have_torch_s_words),
        cmocka_unit_test(sums_are_not_fused_with_batch_norms_in_training),
        cmocka_unit_test(embeddings_need_float_qparams),
        cmocka_unit_test(convert_s_mapping_can_only_switch_off),
        cmocka_unit_test(a_failed_allocation_is_an_error_and_no_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
