// SPDX-License-Identifier: Apache-2.0
// Batch norms of exported programs: folded where the program computes the same without them.
#include <math.h>

#include "support/exported.h"
#include "support/models.h"
#include "support/test.h"

#define CONV "torch.ops.aten.conv2d.default("
#define NORM(x, mean)                                                                              \
    "torch.ops.aten.batch_norm.default(" x ", v, u, " mean ", v, False, 0.1, 0.5, False)\n"

#define HEAD                                                                                       \
    "def forward(self, x):\n"                                                                      \
    "    w = self.w\n"                                                                             \
    "    u = self.u\n"                                                                             \
    "    v = self.v\n"

static void set(module *root, const char *name, tare_tensor *t) {
    CHECK_DONE(tare__module_set_tensor(root, name, t, true, job_error()));
    tare_tensor_release(t);
}

static tare_status annotate_nothing(void *self, tare_model *model, tare_error *err) {
    (void)self;
    (void)model;
    (void)err;
    return TARE_OK;
}

static bool is_recorded(const tare_model *model, const char *reason) {
    tare_decision d;
    bool found = false;
    for (size_t i = 0; i < tare_model_decision_count(model) && !found; i++) {
        CHECK_DONE(tare_model_decision_at(model, i, &d, job_error()));
        found = strcmp(d.reason, reason) == 0;
    }
    return found;
}

// Prepares the program; it has to compute what it computed before.
static void check(const char *code, const char *expected, bool is_folded) {
    static const tare_quantizer_class class = {
        .struct_size = sizeof class, .name = "Nothing", .annotate = annotate_nothing};
    module *root = new_tree();
    tare_quantizer *q = NULL;
    tare_model *p = NULL;
    set(root, "w", new_input(4, (int64_t[]){4, 4, 1, 1}));
    set(root, "g", new_input(4, (int64_t[]){4, 2, 1, 1}));
    set(root, "u", new_input(1, (int64_t[]){4}));
    tare_tensor *v = new_input(1, (int64_t[]){4});
    for (int i = 0; i < 4; i++) ((float *)tare_tensor_mutable_data(v))[i] = 0.75f + 0.5f * (float)i;
    set(root, "v", v);
    tare_model *m = new_exported(root, code);
    CHECK_DONE(tare_quantizer_create(&class, NULL, &q, job_error()));
    CHECK_DONE(tare_prepare_pt2e(m, q, &p, job_error()));
    check_holds(printed(p), "batch_norm", !is_folded);
    assert_true(is_recorded(p, expected));
    tare_tensor *x = new_input(4, (int64_t[]){1, 4, 4, 4});
    tare_tensor *y = result_of(m, (const tare_tensor *const *)&x, 1);
    tare_tensor *z = result_of(p, (const tare_tensor *const *)&x, 1);
    assert_int_equal(y->count, z->count);
    for (int64_t i = 0; i < y->count; i++)
        assert_true(fabs(tare__tensor_get(y, i) - tare__tensor_get(z, i)) < 1e-5);
    tare_tensor_release(x);
    tare_tensor_release(y);
    tare_tensor_release(z);
    tare_model_destroy(p);
    tare_model_destroy(m);
    tare_quantizer_destroy(q);
}

static void a_batch_norm_goes_into_the_weight_of_its_layer(void **state) {
    (void)state;
    check(HEAD "    conv = " CONV "x, w)\n"
               "    norm = " NORM("conv", "u") "    relu = torch.ops.aten.relu.default(norm)\n"
                                               "    return relu\n",
          "'norm' is folded into its weight", true);
    check(HEAD "    conv = " CONV "x, w)\n" // one module, called twice
               "    a = " NORM("conv", "u") "    conv_1 = " CONV "a, w)\n"
                                            "    b = " NORM("conv_1", "u") "    return b\n",
          "'b' is removed: its weight is folded already", true);
}

// torch folds these, too, and the program computes something else.
// Its weight has the output channels of one group.
static void a_batch_norm_goes_into_a_grouped_transposed_convolution(void **state) {
    (void)state;
    check(HEAD "    g = self.g\n"
               "    a = torch.ops.aten.conv_transpose2d.input(x, g, None, [1, 1], [0, 0], [0, 0], 2)\n"
               "    b = " NORM("a", "u") "    return b\n",
          "'b' is folded into its weight", true);
}

static void a_batch_norm_stays_where_others_need_the_layer_as_it_is(void **state) {
    (void)state;
    check(HEAD "    conv = " CONV "x, w)\n"
               "    short = torch.ops.aten.relu.default(conv)\n"
               "    norm = " NORM("conv", "u") "    add = torch.ops.aten.add.Tensor(norm, short)\n"
                                               "    return add\n",
          "'norm' is not folded into 'conv', which 'short' needs as it is", false);
    check(HEAD "    conv = " CONV "x, w)\n" // a weight of two layers
               "    norm = " NORM("conv", "u") "    conv_1 = " CONV "norm, w)\n"
                                               "    return conv_1\n",
          "'norm' is not folded into 'conv', which 'conv_1' needs as it is", false);
    check(HEAD "    conv = " CONV "x, w)\n" // with different batch norms
               "    a = " NORM("conv", "u") "    conv_1 = " CONV "a, w)\n"
                                            "    b = " NORM("conv_1", "v") "    return b\n",
          "'a' is not folded into 'conv', which 'conv_1' needs as it is", false);
    check(HEAD "    conv = " CONV "x, w)\n" // RepGhostNet has two in a row
               "    a = " NORM("conv",
                               "u") "    short = torch.ops.aten.relu.default(a)\n"
                                    "    b = " NORM(
                                        "a", "v") "    add = torch.ops.aten.add.Tensor(b, short)\n"
                                                  "    return add\n",
          "'b' is not folded into 'conv', which has taken a batch norm already", false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_norm_goes_into_the_weight_of_its_layer),
        cmocka_unit_test(a_batch_norm_goes_into_a_grouped_transposed_convolution),
        cmocka_unit_test(a_batch_norm_stays_where_others_need_the_layer_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
