// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions of floats: where a library compiles their subconvolutions they are one
// step of a plan, which gives what the reference gives, but for rounding.
#include "support/models.h"
#include "support/plan_checks.h"
#include "support/test.h"

#define NN "torch.nn."

typedef struct form {
    int dims;
    const char *config; // of 8 channels in
    int outs;
    bool has_norm; // and a bound behind it
    int64_t batch;
    bool may_be_left; // to the reference: libraries need no fast form of it
} form;

static const form forms[] = {
    {2, "kernel_size=(2, 2), stride=(2, 2)", 24, false, 1},
    {2, "kernel_size=(2, 2), stride=(2, 2)", 24, true, 3},
    {2, "kernel_size=(4, 4), stride=(2, 2), padding=(1, 1)", 12, true, 1},
    {2, "kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), output_padding=(1, 1)", 8, true, 2},
    {2, "kernel_size=(3, 3), stride=(1, 1), padding=(1, 1)", 16, true, 1},
    {2, "kernel_size=(2, 3), stride=(3, 2), groups=2", 16, true, 1,
     true}, // pixels that nothing reaches
    {2, "kernel_size=(2, 3), stride=(3, 2)", 16, true, 1, true},
    {2, "kernel_size=(3, 3), stride=(2, 2), dilation=(2, 3), groups=8", 8, false, 2, true},
    // Subconvolutions without a tap, with more outputs than inputs.
    {2, "kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), output_padding=(1, 1), dilation=(2, 2)",
     8, false, 1, true},
    {2, "kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), dilation=(2, 2)", 32, true, 2, true},
    {2, "kernel_size=(2, 2), stride=(1, 1), padding=(2, 2)", 8, true, 1, true}, // cut-off input
    {1, "kernel_size=(5,), stride=(3,), padding=(1,), bias=False", 10, true, 2},
    {3, "kernel_size=(3, 2, 2), stride=(2, 2, 2), padding=(1, 0, 0)", 8, true, 1},
};
enum { FORMS = sizeof forms / sizeof *forms };

static tare_model *model_of(const form *f) {
    char config[200], class[40], norm[40], channels[40];
    (void)snprintf(config, sizeof config, "in_channels=8, out_channels=%d, %s", f->outs, f->config);
    (void)snprintf(class, sizeof class, NN "ConvTranspose%dd", f->dims);
    (void)snprintf(norm, sizeof norm, NN "BatchNorm%dd", f->dims);
    (void)snprintf(channels, sizeof channels, "num_features=%d", f->outs);
    module *root = new_tree();
    put_module(root, NULL, "up", class, config);
    if (f->has_norm) put_module(root, NULL, "bn", norm, channels);
    return new_model(NULL, root,
                     f->has_norm ? "def forward(self, x):\n"
                                   "    up = self.up(x)\n"
                                   "    bn = self.bn(up)\n"
                                   "    relu = torch.nn.functional.relu6(bn)\n"
                                   "    return relu\n"
                                 : "def forward(self, x):\n"
                                   "    up = self.up(x)\n"
                                   "    add = up + up\n"
                                   "    return add\n");
}

static tare_tensor *input_of(const form *f) {
    const int64_t shape[] = {f->batch, 8, 9, 6, 4};
    return new_input(f->dims + 2, shape);
}

static void check_form(const form *f) {
    tare_model *model = model_of(f);
    tare_tensor *x = input_of(f), *expected = output_with(model, &portable_reference, x);
    for (int threads = 1; threads <= 3; threads++) {
        tare_session *s = session_on(model, threads);
        tare_tensor *y = output_of(s, x);
#ifdef TARE_HAVE_DNNL
        if (count_steps(s, "layer", NULL) == 0 && !f->may_be_left)
            fail_msg("%s is no step", f->config);
#endif
        check_near_floats(y, expected, 2e-5F, f->config);
        tare_tensor_release(y);
        tare_session_destroy(s);
    }
    tare_tensor_release(expected);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

static void parts_give_what_the_reference_gives(void **state) {
    (void)state;
    for (size_t i = 0; i < FORMS; i++) check_form(&forms[i]);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    tare_model *model = model_of(&forms[1]);
    tare_tensor *x = input_of(&forms[1]);
    check_run_without_memory(model, NULL, (const tare_tensor *[]){x}, 1);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_give_what_the_reference_gives),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
