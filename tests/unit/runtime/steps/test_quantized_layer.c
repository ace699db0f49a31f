// SPDX-License-Identifier: Apache-2.0
// Quantized convolutions of every form are one step of integers in a session's plan, and give the
// bits of their references there; and without a plan.
#include "support/test.h"

#include "support/models.h"
#include "support/plan_checks.h"

#define NN "torch.nn."

typedef struct form {
    const char *class, *config;
    int ndim;
    int64_t shape[5];
} form;

// Channels stay 8, sizes may change.
static const form forms[] = {
    {NN "ConvTranspose2d", "kernel_size=(2, 2), stride=(2, 2)", 4, {2, 8, 5, 7}},
    {NN "ConvTranspose2d",
     "kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), output_padding=(1, 1)",
     4,
     {1, 8, 5, 7}},
    {NN "ConvTranspose1d", "kernel_size=(5,), stride=(3,), padding=(1,)", 3, {2, 8, 9}},
    {NN "Conv1d", "kernel_size=(3,), stride=(1,), padding=(2,)", 3, {2, 8, 9}},
    {NN "Conv2d",
     "kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), padding_mode='reflect'",
     4,
     {2, 8, 5, 7}},
    {NN "Conv3d", "kernel_size=(3, 3, 3), stride=(1, 2, 1), padding=(1, 1, 1)", 5, {2, 8, 3, 5, 4}},
    {NN "Conv2d", "kernel_size=(3, 3), stride=(1, 1), padding=(1, 1)", 3, {8, 5, 7}},
};

static tare_model *quantized(const form *f) {
    char config[256];
    (void)snprintf(config, sizeof config, "in_channels=8, out_channels=8, bias=True, %s",
                   f->config);
    module *root = new_tree();
    put_module(root, NULL, "a", f->class, config);
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n"
                                  "    a = self.a(x)\n"
                                  "    return a\n");
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *p = prepared(model, backend, mapping);
    calibrated(p, (size_t)f->ndim, f->shape);
    tare_model *q = lowered(p, backend);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    return q;
}

static void every_form_is_a_step_of_integers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        tare_model *model = quantized(&forms[i]);
        tare_tensor *x = new_input(forms[i].ndim, forms[i].shape);
        tare_session *plain = session_of(model, true);
        tare_tensor *expected = output_of(plain, x);
        for (int threads = 1; threads <= 3; threads++) {
            tare_session *s = session_on(model, threads);
            for (int again = 0; again < 2; again++) {
                tare_tensor *y = output_of(s, x);
                check_same_tensor(y, expected);
                tare_tensor_release(y);
            }
            check_calls(s, "", forms[i].class);
            assert_int_equal(count_steps(s, "quantized layer", NULL), 1);
            tare_session_destroy(s);
        }
        tare_tensor_release(expected);
        tare_session_destroy(plain);
        tare_tensor_release(x);
        tare_model_destroy(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_a_step_of_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
