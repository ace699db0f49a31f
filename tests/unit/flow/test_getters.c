// SPDX-License-Identifier: Apache-2.0
// Patterns with wildcards, roots and extra inputs, and getters of the user's own.
#include "support/fuser_log.h"
#include "support/models.h"
#include "support/test.h"

// --- relu(add(anything, bn(conv))) ---

static const tare_match_node *conv_of(void *user, const tare_match *match) {
    (void)user;
    const tare_match *sum = tare_match_nested(match, 1), *pair = tare_match_nested(sum, 2);
    return tare_match_node_at(pair, 1);
}

static size_t other_of(void *user, const tare_match *match, const tare_match_node **out,
                       size_t capacity) {
    (void)user;
    if (capacity == 0) return 0;
    out[0] = tare_match_node_at(tare_match_nested(match, 1), 1);
    return 1;
}

static const tare_match_node *no_root(void *user, const tare_match *match) {
    (void)user;
    (void)match;
    return NULL;
}

static const tare_match_node *relu_of(void *user, const tare_match *match) {
    (void)user;
    return tare_match_node_at(tare_match_nested(match, 1), 0); // the add: no module
}

static size_t inner_of(void *user, const tare_match *match, const tare_match_node **out,
                       size_t capacity) {
    (void)capacity;
    out[0] = conv_of(user, match);
    return 1;
}

// The conv of a pattern relu, add, other, bn, conv becomes a ConvAddReLU2d of the conv alone.
static tare_status fuse_residual(void *user, bool is_qat, const tare_module *const *modules,
                                 const char *const *functions, size_t count, tare_module **out,
                                 tare_error *err) {
    (void)is_qat;
    note(user, modules, functions, count);
    tare_module *made = NULL;
    TARE_TRY(tare_module_create(NULL, "torch.ao.nn.intrinsic.ConvAddReLU2d", &made, err));
    tare_status status = tare_module_set_child(made, "0", modules[count - 1], err);
    if (status == TARE_OK) status = tare_module_set_child(made, "relu", modules[0], err);
    if (status == TARE_OK)
        *out = made;
    else
        tare_module_release(made);
    return status;
}

#define CONV                                                                                       \
    "in_channels=2, out_channels=2, kernel_size=(1, 1), stride=(1, 1), padding=(0, 0), "           \
    "dilation=(1, 1), groups=1, padding_mode='zeros'"

static tare_model *residual_model(const char *other) {
    module *root = new_tree();
    put_module(root, NULL, "other", "torch.nn.Conv2d", CONV);
    put_module(root, NULL, "conv", "torch.nn.Conv2d", CONV);
    put_module(root, NULL, "bn", "torch.nn.BatchNorm2d", "num_features=2, eps=1e-05");
    put_module(root, NULL, "relu", "torch.nn.ReLU", "");
    char code[512];
    snprintf(code, sizeof code,
             "def forward(self, x):\n    conv = self.conv(x)\n    bn = self.bn(conv)\n"
             "%s    add = %s + bn\n    relu = self.relu(add)\n    return relu\n",
             other[0] == 'o' ? "    other = self.other(x)\n" : "", other);
    return new_model(NULL, root, code);
}

static tare_pattern_config *add_residual(tare_backend_config *backend, fuser_log *log) {
    tare_pattern_config *p = tare_pattern_config_create();
    tare_pattern_config_set_pattern_complex(
        p, "[\"torch.nn.ReLU\", [\"operator.add\", \"MatchAllNode\", "
           "[\"torch.nn.BatchNorm2d\", \"torch.nn.Conv2d\"]]]");
    tare_pattern_config_set_fuser_callback(p, fuse_residual, log);
    tare_pattern_config_set_root_node_getter(p, conv_of, NULL);
    tare_pattern_config_set_extra_inputs_getter(p, other_of, NULL);
    tare_backend_config_set(backend, p);
    CHECK_DONE(tare_backend_config_check(backend, job_error()));
    return p;
}

static void complex_patterns_have_wildcards_roots_and_extra_inputs(void **state) {
    (void)state;
    fuser_log log = {0};
    tare_backend_config *backend = tare_backend_config_create("mine");
    add_residual(backend, &log);
    tare_model *model = residual_model("other"), *fused = NULL;
    CHECK_DONE(tare_fuse_fx(model, backend, &fused, job_error()));
    assert_string_equal(log.seen,
                        "torch.nn.ReLU operator.add * torch.nn.BatchNorm2d torch.nn.Conv2d");
    CHECK_HOLDS(printed(fused), "    other = self.other(x)\n"
                                "    conv = self.conv(x, other);  x = other = None\n"
                                "    return conv\n");
    CHECK_HOLDS(printed(fused), "(conv): ConvAddReLU2d(");
    assert_string_equal(decided(fused, "other"), ""); // the wildcard stays what it was
    CHECK_HOLDS(decided(fused, "bn"), "fused into ConvAddReLU2d at 'conv'");
    tare_model_destroy(fused);
    fused = NULL;
    tare_model_destroy(model);
    // The wildcard may be any node, a placeholder too.
    model = residual_model("x");
    CHECK_DONE(tare_fuse_fx(model, backend, &fused, job_error()));
    CHECK_HOLDS(printed(fused), "    conv = self.conv(x, x);  x = None\n");
    tare_model_destroy(fused);
    tare_model_destroy(model);
    tare_backend_config_destroy(backend);
}

static void a_wildcard_stands_for_constants_too(void **state) {
    (void)state;
    fuser_log log = {0};
    tare_backend_config *backend = tare_backend_config_create("mine");
    tare_pattern_config *p = add_residual(backend, &log);
    tare_pattern_config_set_extra_inputs_getter(p, NULL, NULL);
    tare_model *model = residual_model("1.5"), *fused = NULL;
    CHECK_DONE(tare_fuse_fx(model, backend, &fused, job_error()));
    CHECK_HOLDS(printed(fused), "conv = self.conv(x);  x = None\n");
    tare_model_destroy(fused);
    tare_model_destroy(model);
    tare_backend_config_destroy(backend);
}

static void what_getters_get_wrong_is_reported(void **state) {
    (void)state;
    fuser_log log = {0};
    tare_backend_config *backend = tare_backend_config_create("mine");
    tare_pattern_config *p = add_residual(backend, &log);
    tare_model *model = residual_model("other"), *fused = NULL;
    tare_pattern_config_set_root_node_getter(p, no_root, NULL);
    CHECK_REFUSED(tare_fuse_fx(model, backend, &fused, job_error()), TARE_INVALID_ARGUMENT,
                  "Expecting module node to be a call_module Node");
    tare_pattern_config_set_root_node_getter(p, relu_of, NULL);
    CHECK_REFUSED(tare_fuse_fx(model, backend, &fused, job_error()), TARE_INVALID_ARGUMENT,
                  "Expecting module node to be a call_module Node");
    tare_pattern_config_set_root_node_getter(p, conv_of, NULL);
    tare_pattern_config_set_extra_inputs_getter(p, inner_of, NULL);
    CHECK_REFUSED(tare_fuse_fx(model, backend, &fused, job_error()), TARE_INVALID_ARGUMENT,
                  "an extra input is part of the fused pattern itself");
    // A getter that was written for two nodes meets a constant.
    tare_pattern_config_set_extra_inputs_getter(p, other_of, NULL);
    tare_model *constant = residual_model("1.5");
    CHECK_REFUSED(tare_fuse_fx(constant, backend, &fused, job_error()), TARE_INVALID_ARGUMENT,
                  "extra input");
    assert_null(fused);
    tare_model_destroy(constant);
    tare_model_destroy(model);
    tare_backend_config_destroy(backend);
}

static void onednn_fuses_the_conv_that_the_pattern_names(void **state) {
    (void)state;
    // The other addend is a conv as well, and it must not be taken for the root.
    module *root = new_tree();
    put_module(root, NULL, "first", "torch.nn.Conv2d", CONV);
    put_module(root, NULL, "second", "torch.nn.Conv2d", CONV ", bias=False");
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n    first = self.first(x)\n"
                                  "    second = self.second(x)\n    add = first + second\n"
                                  "    return add\n");
    tare_backend_config *backend = builtin_backend("onednn");
    tare_model *fused = NULL;
    CHECK_DONE(tare_fuse_fx(model, backend, &fused, job_error()));
    const bool left = strstr(printed(fused), "self.first(x, second)") != NULL;
    CHECK_HOLDS(
        printed(fused),
        left ? "(first): ConvAdd2d(\n    (0): Conv2d(2, 2, kernel_size=(1, 1), stride=(1, 1))"
             : "(second): ConvAdd2d(\n    (0): Conv2d(2, 2, kernel_size=(1, 1), stride=(1, 1), "
               "bias=False)");
    tare_tensor *x = NEW_INPUT(1, 2, 3, 3);
    const tare_tensor *inputs[] = {x};
    tare_tensor *wanted = result_of(model, inputs, 1), *y = result_of(fused, inputs, 1);
    check_same_tensor(y, wanted);
    tare_tensor_release(y);
    tare_tensor_release(wanted);
    tare_tensor_release(x);
    tare_model_destroy(fused);
    tare_model_destroy(model);
    tare_backend_config_destroy(backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complex_patterns_have_wildcards_roots_and_extra_inputs),
        cmocka_unit_test(a_wildcard_stands_for_constants_too),
        cmocka_unit_test(what_getters_get_wrong_is_reported),
        cmocka_unit_test(onednn_fuses_the_conv_that_the_pattern_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
