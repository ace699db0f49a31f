// SPDX-License-Identifier: Apache-2.0
// Functions and norms of floats: plans give the references' bits at every level of instructions and
// with any number of threads.
#include "support/test.h"

#include "core/tensor/tensor.h"
#include "core/text/text.h"
#include "runtime/kernels/isa.h"
#include "support/models.h"
#include "support/plan_checks.h"

#define ATEN "torch.ops.aten."

// Of x [..][12][..][19] and its quantized values q; `narrow` are tensors of 12, `wide` of 19
// elements.
static const char *const calls[] = {
    ATEN "exp.default(x)",
    ATEN "expm1.default(x)",
    ATEN "erf.default(x)",
    ATEN "tanh.default(x)",
    ATEN "sigmoid.default(x)",
    ATEN "relu.default(x)",
    ATEN "relu6.default(x)",
    ATEN "hardtanh.default(x, -0.5, 0.75)",
    ATEN "hardsigmoid.default(x)",
    ATEN "hardswish.default(x)",
    ATEN "leaky_relu.default(x, 0.1)",
    ATEN "elu.default(x)",
    ATEN "celu.default(x, 1.5)",
    ATEN "selu.default(x)",
    ATEN "gelu.default(x)",
    ATEN "gelu.default(x, approximate = 'tanh')",
    ATEN "silu.default(x)",
    ATEN "mish.default(x)",
    "torch.nn.functional.tanhshrink(x)",
    ATEN "reciprocal.default(x)",
    ATEN "softmax.int(x, -1)",
    ATEN "softmax.int(x, 1)",
    ATEN "log_softmax.int(x, -1)",
    ATEN "layer_norm.default(x, [19], wide, wide_bias)",
    ATEN "layer_norm.default(x, [19], wide)",
    ATEN "layer_norm.default(x, [5, 19])",
    ATEN "rms_norm.default(x, [19], wide, 1e-06)",
    ATEN "group_norm.default(x, 3, narrow, narrow_bias)",
    ATEN "group_norm.default(x, 12)",
    ATEN "instance_norm.default(x, narrow, narrow_bias, None, None, True, 0.1, 1e-05, True)",
    ATEN "mean.dim(x, [2, 3])",
    ATEN "mean.dim(x, [-1], True)",
    ATEN "sum.dim_IntList(x, [1, 2, 3])",
    ATEN "sum.default(x)",
    ATEN "linalg_vector_norm.default(x, 2, [2, 3], True)",
    "torch.nn.functional.normalize(x, dim = -1)",
    "torch.ops.quantized.layer_norm(q, [19], wide, wide_bias, 1e-05, 0.02, 120)",
    "torch.ops.quantized.layer_norm(q, [19], None, None, 1e-05, 0.02, 120)",
};
enum { CALLS = sizeof calls / sizeof *calls };

static tare_model *model_of(const char *call) {
    static const char *const names[] = {"wide", "wide_bias", "narrow", "narrow_bias"};
    module *root = new_tree();
    text code = {0};
    tare__text_append(&code, "def forward(self, x):\n");
    for (size_t i = 0; i < 4; i++) {
        const char *config =
            i < 2 ? "in_features=2, out_features=19" : "in_features=2, out_features=12";
        put_module(root, NULL, names[i], "torch.nn.Linear", config);
        if (strstr(call, names[i]) != NULL) // it may read no tensor that nobody uses
            tare__text_printf(&code, "    %s = self.%s.bias\n", names[i], names[i]);
    }
    const bool has_quantized = strstr(call, "(q,") != NULL;
    if (has_quantized)
        tare__text_append(&code, "    q = torch.quantize_per_tensor(x, 0.03, 100, torch.quint8)\n");
    tare__text_printf(&code, "    y = %s\n", call);
    tare__text_append(&code,
                      has_quantized ? "    z = y.dequantize()\n    return z\n" : "    return y\n");
    tare_model *model = new_model(NULL, root, tare__text_chars(&code));
    tare__text_release(&code);
    return model;
}

static void check_call(const char *call, const tare_tensor *x) {
    tare_model *model = model_of(call);
    tare_session *reference = session_of(model, true);
    tare_tensor *expected = output_of(reference, x);
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
        assert_int_equal(setenv("TARE_ISA", tare__isa_level_name((isa_level)isa), 1), 0);
        for (int threads = 1; threads <= 3; threads++) {
            const tare_session_options options = {.thread_count = threads};
            tare_tensor *y = output_with(model, &options, x);
            assert_int_equal(y->count, expected->count);
            if (memcmp(y->data, expected->data, tare__tensor_bytes(y)) != 0)
                fail_msg("%s, %s, %d threads", call, tare__isa_level_name((isa_level)isa), threads);
            tare_tensor_release(y);
        }
    }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
    tare_tensor_release(expected);
    tare_session_destroy(reference);
    tare_model_destroy(model);
}

static void every_level_gives_the_references_bits(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(2, 12, 5, 19), *large = NEW_INPUT(16, 12, 10, 19);
    for (size_t i = 0; i < CALLS; i++) {
        check_call(calls[i], x);
        if (strstr(calls[i], "[5, 19]") == NULL) check_call(calls[i], large); // shared by threads
    }
    tare_tensor_release(large);
    tare_tensor_release(x);
}

// No step could say that a library computed them.
static void products_of_constants_have_fixed_bits(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "fc", "torch.nn.Linear", "in_features=53, out_features=37");
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n"
                                  "    w = self.fc.weight\n"
                                  "    e = torch.exp(w)\n"
                                  "    t = torch.t(e)\n"
                                  "    p = torch.matmul(e, t)\n"
                                  "    y = p + x\n"
                                  "    return y\n");
    tare_tensor *x = NEW_INPUT(1, 1);
    const tare_session_options portable = {.portable_floats = true};
    tare_tensor *fixed = output_with(model, &portable, x), *found = output_with(model, NULL, x);
    check_same_tensor(found, fixed);
    tare_tensor_release(found);
    tare_tensor_release(fixed);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_gives_the_references_bits),
        cmocka_unit_test(products_of_constants_have_fixed_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
