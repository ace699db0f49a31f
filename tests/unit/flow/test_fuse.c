// SPDX-License-Identifier: Apache-2.0
// Which chains are fused into which module, and that folding a batch norm gives torch's bits.
#include "flow/fusers.h"
#include "support/models.h"
#include "support/test.h"

#include <math.h>

#define CONV(dims, more)                                                                           \
    "in_channels=2, out_channels=3, kernel_size=" dims ", groups=1, padding_mode='zeros'" more
#define ONE   "(1,), stride=(1,), padding=(0,), dilation=(1,)"
#define TWO   "(1, 1), stride=(1, 1), padding=(0, 0), dilation=(1, 1)"
#define THREE "(1, 1, 1), stride=(1, 1, 1), padding=(0, 0, 0), dilation=(1, 1, 1)"
#define NN    "torch.nn."
#define NNI   "torch.ao.nn.intrinsic."

// A chain of modules a - b - c (NULL ends): each under its class's letter.
static tare_model *chain(const char *a, const char *a_config, const char *b, const char *b_config,
                         const char *c) {
    module *root = new_tree();
    put_module(root, NULL, "a", a, a_config);
    put_module(root, NULL, "b", b, b_config);
    if (c != NULL) put_module(root, NULL, "c", c, "");
    return new_model(NULL, root,
                     c != NULL ? "def forward(self, x):\n    a = self.a(x)\n    b = self.b(a)\n"
                                 "    c = self.c(b)\n    return c\n"
                               : "def forward(self, x):\n    a = self.a(x)\n    b = self.b(a)\n"
                                 "    return b\n");
}

static tare_model *fused(const tare_model *model, const char *backend_name) {
    tare_backend_config *backend = builtin_backend(backend_name);
    tare_model *out = NULL;
    CHECK_DONE(tare_fuse_fx(model, backend, &out, job_error()));
    tare_backend_config_destroy(backend);
    return out;
}

static void chains_become_one_module(void **state) {
    (void)state;
    static const struct {
        const char *a, *a_config, *b, *b_config, *c, *fused;
    } rows[] = {
        {NN "Conv1d", CONV(ONE, ""), NN "ReLU", "", NULL, NNI "ConvReLU1d"},
        {NN "Conv2d", CONV(TWO, ""), NN "ReLU", "", NULL, NNI "ConvReLU2d"},
        {NN "Conv3d", CONV(THREE, ""), NN "ReLU", "", NULL, NNI "ConvReLU3d"},
        {NN "Conv1d", CONV(ONE, ""), NN "BatchNorm1d", "num_features=3", NULL, NN "Conv1d"},
        {NN "Conv2d", CONV(TWO, ""), NN "BatchNorm2d", "num_features=3", NULL, NN "Conv2d"},
        {NN "Conv3d", CONV(THREE, ""), NN "BatchNorm3d", "num_features=3", NULL, NN "Conv3d"},
        {NN "Conv1d", CONV(ONE, ""), NN "BatchNorm1d", "num_features=3", NN "ReLU",
         NNI "ConvReLU1d"},
        {NN "Conv2d", CONV(TWO, ", bias=False"), NN "BatchNorm2d", "num_features=3", NN "ReLU",
         NNI "ConvReLU2d"},
        {NN "Conv3d", CONV(THREE, ""), NN "BatchNorm3d", "num_features=3", NN "ReLU",
         NNI "ConvReLU3d"},
        {NN "ConvTranspose1d", CONV(ONE, ", output_padding=(0,)"), NN "BatchNorm1d",
         "num_features=3", NULL, NN "ConvTranspose1d"},
        {NN "ConvTranspose2d", CONV(TWO, ", output_padding=(0, 0)"), NN "BatchNorm2d",
         "num_features=3", NULL, NN "ConvTranspose2d"},
        {NN "Linear", "in_features=2, out_features=3", NN "ReLU", "", NULL, NNI "LinearReLU"},
        {NN "Linear", "in_features=2, out_features=3", NN "BatchNorm1d", "num_features=3", NULL,
         NN "Linear"},
        {NN "BatchNorm2d", "num_features=2", NN "ReLU", "", NULL, NNI "BNReLU2d"},
        {NN "BatchNorm3d", "num_features=2", NN "ReLU", "", NULL, NNI "BNReLU3d"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tare_model *model =
            chain(rows[i].a, rows[i].a_config, rows[i].b, rows[i].b_config, rows[i].c);
        tare_model *out = fused(model, "x86");
        const module *a = tare__module_find(out->root, "a");
        if (strcmp(a->class->name, rows[i].fused) != 0)
            fail_msg("%s - %s: %s", rows[i].a, rows[i].b, a->class->name);
        assert_null(tare__module_find(out->root, "b"));
        assert_int_equal(tare_model_get_stage(out), TARE_STAGE_FUSED);
        assert_int_equal(tare_model_get_stage(model), TARE_STAGE_FLOAT);
        CHECK_HOLDS(printed(out), "    a = self.a(x);  x = None\n    return a\n");
        CHECK_HOLDS(decided(out, "b"), "fuse: fused: fused into ");
        // A folded weighted module always has a bias.
        CHECK_LACKS(printed(out), "bias=False");
        tare_model_destroy(out);
        tare_model_destroy(model);
    }
}

static void onednn_fuses_activations_and_sums(void **state) {
    (void)state;
    tare_model *model = chain(NN "Linear", "in_features=2, out_features=3", NN "LeakyReLU",
                              "negative_slope=0.1", NULL);
    tare_model *out = fused(model, "onednn");
    CHECK_HOLDS(printed(out), "(a): LinearLeakyReLU(");
    tare_model_destroy(out);
    tare_model_destroy(model);
    model = chain(NN "Linear", "in_features=2, out_features=3", NN "Tanh", "", NULL);
    out = fused(model, "onednn");
    CHECK_HOLDS(printed(out), "(a): LinearTanh(");
    tare_model_destroy(out);
    tare_model_destroy(model);
    // A relu's module is called "relu" inside ConvAddReLU2d.
    module *root = new_tree();
    put_module(root, NULL, "conv", NN "Conv2d", CONV(TWO, ""));
    put_module(root, NULL, "relu", NN "ReLU", "");
    model = new_model(NULL, root,
                      "def forward(self, x, y):\n    conv = self.conv(x)\n    add = conv + y\n"
                      "    relu = self.relu(add)\n    return relu\n");
    out = fused(model, "onednn");
    CHECK_HOLDS(printed(out), "(conv): ConvAddReLU2d(\n    (0): Conv2d(");
    CHECK_HOLDS(printed(out), "    (relu): ReLU()");
    CHECK_HOLDS(printed(out), "conv = self.conv(x, y)");
    tare_model_destroy(out);
    tare_model_destroy(model);
}

static void a_functional_relu_becomes_a_module(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Linear", "in_features=2, out_features=3");
    tare_model *model =
        new_model(NULL, root,
                  "def forward(self, x):\n    a = self.a(x)\n"
                  "    relu = torch.nn.functional.relu(a, inplace = False)\n    return relu\n");
    tare_model *out = fused(model, "x86");
    CHECK_HOLDS(printed(out), "(a): LinearReLU(\n    (0): Linear(in_features=2, out_features=3, "
                              "bias=True)\n    (1): ReLU()\n  )");
    tare_tensor *x = NEW_INPUT(4, 2);
    const tare_tensor *inputs[] = {x};
    tare_tensor *wanted = result_of(model, inputs, 1), *y = result_of(out, inputs, 1);
    check_same_tensor(y, wanted);
    tare_tensor_release(y);
    tare_tensor_release(wanted);
    tare_tensor_release(x);
    tare_model_destroy(out);
    tare_model_destroy(model);
}

static void what_has_another_reader_is_not_fused(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Linear", "in_features=2, out_features=3");
    put_module(root, NULL, "b", NN "ReLU", "");
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n    a = self.a(x)\n    b = self.b(a)\n"
                                  "    return (a, b)\n");
    tare_model *out = fused(model, "x86");
    CHECK_HOLDS(printed(out), "    a = self.a(x);  x = None\n    b = self.b(a)\n");
    assert_int_equal(tare_model_decision_count(out), 0);
    tare_model_destroy(out);
    tare_model_destroy(model);
}

static void a_module_called_twice_is_fused_from_its_float_self(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "a", NN "Conv2d",
               "in_channels=2, out_channels=2, kernel_size=" TWO ", groups=1, "
               "padding_mode='zeros'");
    put_module(root, NULL, "b", NN "BatchNorm2d", "num_features=2");
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n    a = self.a(x)\n    b = self.b(a)\n"
                                  "    a_1 = self.a(b)\n    b_1 = self.b(a_1)\n    return b_1\n");
    tare_model *out = fused(model, "x86");
    tare_tensor *x = NEW_INPUT(1, 2, 3, 3);
    const tare_tensor *inputs[] = {x};
    tare_tensor *wanted = result_of(model, inputs, 1), *y = result_of(out, inputs, 1);
    for (int64_t i = 0; i < y->count; i++)
        assert_true(fabs(tare__tensor_get(y, i) - tare__tensor_get(wanted, i)) < 1e-5);
    tare_tensor_release(y);
    tare_tensor_release(wanted);
    tare_tensor_release(x);
    tare_model_destroy(out);
    tare_model_destroy(model);
}

// --- the numbers ---

static void set(module *m, const char *name, int ndim, const int64_t *shape, const float *values) {
    tare_tensor *t = NULL;
    CHECK_DONE(tare_tensor_from_data(TARE_FLOAT32, ndim, shape, values, &t, job_error()));
    CHECK_DONE(tare__module_set_tensor(m, name, t, true, job_error()));
    tare_tensor_release(t);
}

// Recorded from torch.nn.utils.fusion.fuse_conv_bn_weights.
static void folding_gives_torch_s_bits(void **state) {
    (void)state;
    static const float weight[] = {-0.24185293912887573f, -0.0519711934030056f,
                                   -0.08597981929779053f, 0.37778958678245544f,
                                   0.4860247075557709f,   -0.5091968774795532f};
    static const float bias[] = {-0.3904639780521393f, -0.21747368574142456f, 0.09452475607395172f};
    static const float gamma[] = {0.9588635563850403f, 0.7835354208946228f, 1.113016963005066f};
    static const float beta[] = {0.2692166566848755f, 0.08370767533779144f, -0.5489887595176697f};
    static const float mean[] = {-0.08381211757659912f, -0.13870997726917267f,
                                 -0.5288982391357422f};
    static const float var[] = {1.4124211072921753f, 0.9060722589492798f, 0.5366693735122681f};
    static const float folded_weight[] = {-0.19513021409511566f, -0.04193105921149254f,
                                          -0.07077360898256302f, 0.31097450852394104f,
                                          0.738418698310852f,    -0.7736242413520813f};
    static const float folded_bias[] = {0.021805807948112488f, 0.018873952329158783f,
                                        0.3981795310974121f};
    tare_model *model =
        chain(NN "Conv2d", CONV(TWO, ""), NN "BatchNorm2d", "num_features=3, eps=1e-05", NULL);
    module *a = tare__module_find(model->root, "a"), *b = tare__module_find(model->root, "b");
    const int64_t three = 3, shape[] = {3, 2, 1, 1};
    set(a, "weight", 4, shape, weight);
    set(a, "bias", 1, &three, bias);
    set(b, "weight", 1, &three, gamma);
    set(b, "bias", 1, &three, beta);
    set(b, "running_mean", 1, &three, mean);
    set(b, "running_var", 1, &three, var);
    tare_model *out = fused(model, "x86");
    const module *made = tare__module_find(out->root, "a");
    assert_memory_equal(tare__module_tensor(made, "weight")->data, folded_weight,
                        sizeof folded_weight);
    assert_memory_equal(tare__module_tensor(made, "bias")->data, folded_bias, sizeof folded_bias);
    tare_model_destroy(out);
    tare_model_destroy(model);
}

// y = bn(weighted(x)) within float rounding, whatever is missing.
static void check_folded(tare_model *model, tare_tensor *x) {
    tare_model *out = fused(model, "x86");
    const tare_tensor *inputs[] = {x};
    tare_tensor *wanted = result_of(model, inputs, 1), *y = result_of(out, inputs, 1);
    assert_int_equal(y->count, wanted->count);
    for (int64_t i = 0; i < y->count; i++)
        assert_true(fabs(tare__tensor_get(y, i) - tare__tensor_get(wanted, i)) < 1e-5);
    tare_tensor_release(y);
    tare_tensor_release(wanted);
    tare_tensor_release(x);
    tare_model_destroy(out);
    tare_model_destroy(model);
}

static void folding_keeps_what_is_computed(void **state) {
    (void)state;
    check_folded(chain(NN "Conv2d", CONV(TWO, ", bias=False"), NN "BatchNorm2d",
                       "num_features=3, eps=0.001", NULL),
                 NEW_INPUT(2, 2, 3, 3));
    check_folded(chain(NN "Linear", "in_features=2, out_features=3", NN "BatchNorm1d",
                       "num_features=3", NULL),
                 NEW_INPUT(5, 2));
    check_folded(chain(NN "ConvTranspose2d",
                       "in_channels=2, out_channels=3, kernel_size=(2, 2), stride=(2, 2), "
                       "padding=(0, 0), dilation=(1, 1), output_padding=(0, 0), groups=1, "
                       "padding_mode='zeros'",
                       NN "BatchNorm2d", "num_features=3", NULL),
                 NEW_INPUT(1, 2, 3, 3));
    // The weight has the output channels of one group.
    check_folded(chain(NN "ConvTranspose2d",
                       "in_channels=4, out_channels=6, kernel_size=(2, 2), stride=(2, 2), "
                       "padding=(0, 0), dilation=(1, 1), output_padding=(0, 0), groups=2, "
                       "padding_mode='zeros'",
                       NN "BatchNorm2d", "num_features=6", NULL),
                 NEW_INPUT(1, 4, 3, 3));
    // Without affine parameters.
    tare_model *model =
        chain(NN "Conv2d", CONV(TWO, ""), NN "BatchNorm2d", "num_features=3, affine=False", NULL);
    module *b = tare__module_find(model->root, "b");
    CHECK_DONE(tare__module_set_tensor(b, "weight", NULL, true, job_error()));
    CHECK_DONE(tare__module_set_tensor(b, "bias", NULL, true, job_error()));
    check_folded(model, NEW_INPUT(1, 2, 3, 3));
}

// --- refusals ---

static void check_fuse_refused(tare_model *model, const char *backend_name, const char *words) {
    tare_backend_config *backend = builtin_backend(backend_name);
    tare_model *out = NULL;
    CHECK_REFUSED(tare_fuse_fx(model, backend, &out, job_error()), TARE_INVALID_ARGUMENT, words);
    CHECK_REFUSED(tare_fuse_fx(model, backend, &out, job_error()), TARE_INVALID_ARGUMENT,
                  "node 'a'");
    assert_null(out);
    tare_backend_config_destroy(backend);
    tare_model_destroy(model);
}

static tare_model *in_modes(tare_model *model, bool a, bool b) {
    tare__module_find(model->root, "a")->training = a;
    tare__module_find(model->root, "b")->training = b;
    return model;
}

static void modes_must_agree(void **state) {
    (void)state;
#define CONV_BN chain(NN "Conv2d", CONV(TWO, ""), NN "BatchNorm2d", "num_features=3", NULL)
#define LINEAR_BN                                                                                  \
    chain(NN "Linear", "in_features=2, out_features=3", NN "BatchNorm1d", "num_features=3", NULL)
    check_fuse_refused(in_modes(CONV_BN, true, false), "x86",
                       "Conv and BN both must be in the same mode (train or eval).");
    check_fuse_refused(in_modes(CONV_BN, true, true), "x86", "Fusion only for eval!");
    check_fuse_refused(in_modes(LINEAR_BN, false, true), "x86",
                       "Linear and BN both must be in the same mode (train or eval).");
    check_fuse_refused(in_modes(LINEAR_BN, true, true), "x86", "Fusion only for eval!");
    check_fuse_refused(in_modes(chain(NN "ConvTranspose2d", CONV(TWO, ", output_padding=(0, 0)"),
                                      NN "BatchNorm2d", "num_features=3", NULL),
                                true, false),
                       "x86",
                       "ConvTranspose and BN both must be in the same mode (train or eval).");
    check_fuse_refused(in_modes(chain(NN "Linear", "in_features=2, out_features=3",
                                      NN "BatchNorm1d", "num_features=3", NN "LeakyReLU"),
                                false, true),
                       "onednn",
                       "Linear, BN and LeakyReLU all must be in the same mode (train or eval).");
}

static void statistics_of_another_size_are_refused(void **state) {
    (void)state;
    check_fuse_refused(chain(NN "Conv2d", CONV(TWO, ""), NN "BatchNorm2d", "num_features=4", NULL),
                       "x86", "expected 3 float32 values in 'running_mean', found 4");
    tare_model *model = CONV_BN;
    CHECK_DONE(tare__module_set_tensor(tare__module_find(model->root, "b"), "running_var", NULL,
                                       false, job_error()));
    check_fuse_refused(model, "x86", "expected a tensor 'running_var', found none");
}

static tare_status run_fuser(const char *method, bool is_qat, const module *a, const module *b,
                             const module *c, module **out) {
    const module *modules[] = {a, b, c};
    const char *functions[3] = {NULL};
    const fuse_leaves leaves = {modules, functions, c != NULL ? 3 : 2};
    const tare_context *builtin = tare__context_or_builtin(NULL);
    return tare__fuser_run(&builtin->classes, method, is_qat, &leaves, out, job_error());
}

#define MAPPINGS "torch.ao.quantization.fuser_method_mappings."

static void fusers_check_their_parts(void **state) {
    (void)state;
    module *root = new_tree(), *out = NULL;
    const module *conv = put_module(root, NULL, "conv", NN "Conv2d", CONV(TWO, ""));
    const module *linear =
        put_module(root, NULL, "linear", NN "Linear", "in_features=2, out_features=3");
    const module *relu = put_module(root, NULL, "relu", NN "ReLU", "");
    const module *tanh = put_module(root, NULL, "tanh", NN "Tanh", "");
    module *bn = put_module(root, NULL, "bn", NN "BatchNorm2d", "num_features=4");
    CHECK_REFUSED(run_fuser(MAPPINGS "_sequential_wrapper2(" NNI "LinearReLU)", false, conv, relu,
                            NULL, &out),
                  TARE_INVALID_ARGUMENT,
                  "Incorrect types for input modules: torch.nn.Conv2d and torch.nn.ReLU");
    CHECK_REFUSED(run_fuser(MAPPINGS "_sequential_wrapper2(" NNI "ConvReLU2d)", false, conv, tanh,
                            NULL, &out),
                  TARE_INVALID_ARGUMENT, "Incorrect types for input modules");
    CHECK_REFUSED(run_fuser(MAPPINGS "_sequential_wrapper2(" NNI "ConvReLU2d)", false, relu, tanh,
                            NULL, &out),
                  TARE_INVALID_ARGUMENT, "found no module to fuse into");
    CHECK_REFUSED(run_fuser(MAPPINGS "fuse_conv_bm", false, conv, bn, NULL, &out), TARE_NOT_FOUND,
                  "fuse_conv_bn");
    // What only training asks for.
    CHECK_REFUSED(run_fuser(MAPPINGS "fuse_conv_bn", true, conv, bn, NULL, &out),
                  TARE_INVALID_ARGUMENT, "must match num_features of BatchNorm2d");
    CHECK_REFUSED(run_fuser(MAPPINGS "fuse_linear_bn", true, linear, bn, NULL, &out),
                  TARE_INVALID_ARGUMENT,
                  "Output features of Linear must match num_features of BatchNorm1d");
    bn = put_module(root, NULL, "bn", NN "BatchNorm2d", "num_features=3, affine=False");
    CHECK_REFUSED(run_fuser(MAPPINGS "fuse_conv_bn_relu", true, conv, bn, relu, &out),
                  TARE_INVALID_ARGUMENT, "Only support fusing BatchNorm2d with affine set to True");
    bn =
        put_module(root, NULL, "bn", NN "BatchNorm2d", "num_features=3, track_running_stats=False");
    CHECK_REFUSED(run_fuser(MAPPINGS "fuse_conv_bn", true, conv, bn, NULL, &out),
                  TARE_INVALID_ARGUMENT,
                  "Only support fusing BatchNorm2d with tracking_running_stats set to True");
    const module *transposed = put_module(root, NULL, "transposed", NN "ConvTranspose2d",
                                          CONV(TWO, ", output_padding=(0, 0)"));
    bn = put_module(root, NULL, "bn", NN "BatchNorm2d", "num_features=3");
    CHECK_REFUSED(run_fuser(MAPPINGS "fuse_convtranspose_bn", true, transposed, bn, NULL, &out),
                  TARE_UNSUPPORTED, "Fusing ConvTranspose+BatchNorm not yet supported in QAT.");
    assert_null(out);
    // Training keeps the batch norm beside the convolution.
    CHECK_DONE(run_fuser(MAPPINGS "fuse_conv_bn_relu", true, relu, bn, conv, &out));
    assert_string_equal(out->class->name, NNI "ConvBnReLU2d");
    assert_int_equal(out->child_count, 3);
    tare__module_release(out);
    tare__module_release(root);
}

static void nothing_comes_from_nothing(void **state) {
    (void)state;
    tare_model *out = NULL;
    CHECK_REFUSED(tare_fuse_fx(NULL, NULL, &out, job_error()), TARE_INVALID_ARGUMENT, "NULL");
    assert_null(out);
    tare_model *model = CONV_BN;
    CHECK_DONE(tare_fuse_fx(model, NULL, &out, job_error())); // the native backend
    assert_null(tare__module_find(out->root, "b"));
    tare_model_destroy(out);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_become_one_module),
        cmocka_unit_test(onednn_fuses_activations_and_sums),
        cmocka_unit_test(a_functional_relu_becomes_a_module),
        cmocka_unit_test(what_has_another_reader_is_not_fused),
        cmocka_unit_test(a_module_called_twice_is_fused_from_its_float_self),
        cmocka_unit_test(folding_gives_torch_s_bits),
        cmocka_unit_test(folding_keeps_what_is_computed),
        cmocka_unit_test(modes_must_agree),
        cmocka_unit_test(statistics_of_another_size_are_refused),
        cmocka_unit_test(fusers_check_their_parts),
        cmocka_unit_test(nothing_comes_from_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
