// SPDX-License-Identifier: Apache-2.0
// Functions that are composed of others: plans have steps for the inner calls, which give the
// reference's bits.
#include "support/test.h"

#include "support/models.h"
#include "support/plan_checks.h"

typedef struct network {
    const char *name, *body;
} network;

static const network networks[] = {
    {"a product that is added", "    a = torch.exp(x)\n"
                                "    y = torch.ops.aten.addcmul.default(a, x, a, value = 0.5)\n"
                                "    return y\n"},
    {"a quotient that is added, and a choice of bounds",
     "    a = torch.exp(x)\n"
     "    b = torch.ops.aten.addcdiv.default(x, x, a)\n"
     "    y = torch.ops.aten.lerp.Scalar(b, a, 0.25)\n"
     "    return y\n"},
    {"two results, of which one is read",
     "    a = torch.ops.aten.max_pool2d_with_indices.default(x, [2, 2])\n"
     "    b = a[0]\n"
     "    y = torch.tanh(b)\n"
     "    return y\n"},
    {"a norm with statistics that nobody reads",
     "    w = x.new_ones(5)\n"
     "    a = torch.ops.aten.native_layer_norm.default(x, [5], w, w, 1e-05)\n"
     "    y = a[0]\n"
     "    return y\n"},
    {"a view of what is composed, and one of its parts twice",
     "    a = torch.ops.aten.addcmul.default(x, x, x)\n"
     "    b = a.reshape(2, 20, 6)\n"
     "    c = torch.tanh(b)\n"
     "    d = a.reshape(2, 20, 6)\n"
     "    y = c + d\n"
     "    return (y, a)\n"},
    {"an argument that is given back", "    a = torch.ops.aten.broadcast_tensors.default([x, x])\n"
                                       "    b = a[1]\n"
                                       "    y = torch.tanh(b)\n"
                                       "    return y\n"},
    {"a product and a bias", "    w = x.new_ones(5, 7)\n"
                             "    v = x.new_ones(7)\n"
                             "    a = x.reshape(48, 5)\n"
                             "    y = torch.addmm(v, a, w, beta = 2, alpha = 0.5)\n"
                             "    return y\n"},
    {"constants alone", "    w = x.new_ones(5)\n"
                        "    a = torch.ops.aten.addcmul.default(w, w, w, value = 3)\n"
                        "    y = x * a\n"
                        "    return y\n"},
};

static void check_steps(const tare_session *s, size_t which) {
    check_calls(s, "", networks[which].name);
}

static void parts_have_steps(void **state) {
    tare_tensor *x = NEW_INPUT(2, 6, 4, 5);
    (void)state;
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        char code[1024];
        (void)snprintf(code, sizeof code, "def forward(self, x):\n%s", networks[i].body);
        tare_model *m = new_model(NULL, new_tree(), code);
        check_plans(m, x, check_steps, i);
        tare_model_destroy(m);
    }
    tare_tensor_release(x);
}

// Its float bits are a library's.
static void a_layer_of_core_programs_is_a_layer(void **state) {
    module *root = new_tree();
    tare_tensor *x = NEW_INPUT(2, 6, 4, 5);
    (void)state;
    put_module(root, NULL, "c", "torch.nn.Conv2d", "in_channels=6, out_channels=3, kernel_size=3");
    tare_model *m = new_model(NULL, root,
                              "def forward(self, x):\n"
                              "    w = self.c.weight\n"
                              "    a = torch.ops.aten.convolution.default(x, w, None, [1, 1], "
                              "[1, 1], [1, 1], False, [0, 0], 1)\n"
                              "    y = torch.relu(a)\n"
                              "    return y\n");
    tare_session *s = session_of(m, false), *reference = session_of(m, true);
    tare_tensor *y = output_of(s, x), *expected = output_of(reference, x);
    check_near_floats(y, expected, 1e-6F, "a convolution");
    assert_int_equal(count_steps(s, "layer", NULL), 1);
    check_calls(s, "", "a convolution");
    tare_tensor_release(y);
    tare_tensor_release(expected);
    tare_session_destroy(s);
    tare_session_destroy(reference);
    tare_model_destroy(m);
    tare_tensor_release(x);
}

// A plan records calls alone: the indices that a constant mask marks must come from one of them.
static void a_constant_mask_picks(void **state) {
    module *root = new_tree();
    tare_tensor *x = NEW_INPUT(2, 6, 4, 5), *mask = NULL;
    const int64_t shape[] = {6, 1, 5};
    (void)state;
    CHECK_DONE(tare_tensor_create(TARE_BOOL, 3, shape, &mask, job_error()));
    for (int64_t i = 0; i < mask->count; i++) tare__tensor_set(mask, i, i % 3 == 1);
    CHECK_DONE(tare__module_set_tensor(root, "mask", mask, false, job_error()));
    tare_tensor_release(mask);
    tare_model *m = new_model(NULL, root,
                              "def forward(self, x):\n"
                              "    k = self.mask\n"
                              "    y = x.masked_select(k)\n"
                              "    return y\n");
    tare_session *s = session_of(m, false);
    tare_tensor *y = output_of(s, x);
    const float *from = tare_tensor_data(x), *picked = tare_tensor_data(y);
    for (int64_t i = 0; i < x->count; i++)
        if ((i / 20 % 6 * 5 + i % 5) % 3 == 1) assert_true(*picked++ == from[i]);
    assert_int_equal(picked - (const float *)tare_tensor_data(y), y->count);
    tare_tensor_release(y);
    tare_session_destroy(s);
    tare_model_destroy(m);
    tare_tensor_release(x);
}

static void every_allocation_may_fail(void **state) {
    char code[1024];
    (void)state;
    (void)snprintf(code, sizeof code, "def forward(self, x):\n%s", networks[4].body);
    tare_tensor *x = NEW_INPUT(2, 6, 4, 5);
    tare_model *m = new_model(NULL, new_tree(), code);
    check_run_without_memory(m, NULL, (const tare_tensor *[]){x}, 1);
    tare_model_destroy(m);
    tare_tensor_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_have_steps), cmocka_unit_test(a_layer_of_core_programs_is_a_layer),
        cmocka_unit_test(a_constant_mask_picks), cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
