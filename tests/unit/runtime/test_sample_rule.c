// SPDX-License-Identifier: Apache-2.0
// Which graphs are proved to keep samples apart: a sample that meets another must not be missed.
#include "runtime/samples.h"
#include "support/models.h"
#include "support/test.h"

#define NN "torch.nn."

typedef struct rule_case {
    const char *what, *body; // of forward(self, x); x is [batch, 4, 6, 6]
    bool is_proved;
} rule_case;

static tare_model *make(const char *body) {
    char code[1024];
    module *root = new_tree();
    put_module(root, NULL, "conv", NN "Conv2d",
               "in_channels=4, out_channels=4, kernel_size=(3, 3), stride=(1, 1), "
               "padding=(1, 1), dilation=(1, 1), groups=1, padding_mode='zeros'");
    put_module(root, NULL, "linear", NN "Linear", "in_features=6, out_features=6");
    put_module(root, NULL, "bn", NN "BatchNorm2d", "num_features=4");
    put_module(root, NULL, "pool", NN "AdaptiveAvgPool2d", "output_size=(1, 1)");
    snprintf(code, sizeof code, "def forward(self, x):\n%s", body);
    return new_model(NULL, root, code);
}

static bool is_proved(const char *body) {
    const int64_t shape[] = {3, 4, 6, 6};
    tare_tensor *x = NULL;
    tare_model *model = make(body);
    bool proved = false;
    CHECK_DONE(tare_tensor_create(TARE_FLOAT32, 4, shape, &x, job_error()));
    const tare_tensor *inputs[] = {x};
    const tare_batch batch = {
        .struct_size = sizeof batch, .inputs = inputs, .input_count = 1, .size = 3};
    CHECK_DONE(tare__samples_by_rule(model, &batch, &proved, job_error()));
    tare_tensor_release(x);
    tare_model_destroy(model);
    return proved;
}

static const rule_case cases[] = {
    {"layers, norms, pools and views",
     "    conv = self.conv(x)\n"
     "    bn = self.bn(conv)\n"
     "    relu = torch.relu(bn)\n"
     "    add = relu + x\n"
     "    pool = self.pool(add)\n"
     "    mul = add * pool\n"
     "    cat = torch.cat([mul, x], 1)\n"
     "    flatten = torch.flatten(cat, 1)\n"
     "    return flatten\n",
     true},
    {"sizes that only shape",
     "    size = x.size(0)\n"
     "    view = x.view(size, 144)\n"
     "    return view\n",
     true},
    {"means over pixels",
     "    mean = x.mean([2, 3])\n"
     "    return mean\n",
     true},
    {"a mean over the batch",
     "    mean = x.mean(0)\n"
     "    sub = x - mean\n"
     "    return sub\n",
     false},
    {"a mean over the batch that keeps its dimension",
     "    mean = x.mean(0, True)\n"
     "    sub = x - mean\n"
     "    return sub\n",
     false},
    {"sums along the batch",
     "    cumsum = torch.cumsum(x, 0)\n"
     "    conv = self.conv(cumsum)\n"
     "    return conv\n",
     false},
    {"shares of the batch",
     "    softmax = torch.nn.functional.softmax(x, 0)\n"
     "    return softmax\n",
     false},
    {"samples in the opposite order",
     "    flip = torch.flip(x, [0])\n"
     "    return flip\n",
     false},
    {"a number that follows the batch",
     "    size = x.size(0)\n"
     "    mul = x * size\n"
     "    return mul\n",
     false},
    {"samples along a last dimension",
     "    mean = x.mean([1, 2, 3])\n"
     "    add = x + mean\n"
     "    return add\n",
     false},
    {"norms of the batch",
     "    batch_norm = torch.nn.functional.batch_norm(x, None, None, None, None, True)\n"
     "    return batch_norm\n",
     false},
};

static void what_meets_is_not_proved(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (is_proved(cases[i].body) != cases[i].is_proved)
            fail_msg("%s: expected %s", cases[i].what, cases[i].is_proved ? "a proof" : "none");
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    const int64_t shape[] = {2, 4, 6, 6};
    tare_model *model = make(cases[0].body);
    tare_tensor *x = NULL;
    CHECK_DONE(tare_tensor_create(TARE_FLOAT32, 4, shape, &x, job_error()));
    const tare_tensor *inputs[] = {x};
    const tare_batch batch = {
        .struct_size = sizeof batch, .inputs = inputs, .input_count = 1, .size = 2};
    tare_status status = TARE_OK;
    bool proved = false;
    EVERY_ALLOCATION_FAILS(
        status, status = tare__samples_by_rule(model, &batch, &proved, job_error()), (void)proved);
    assert_true(proved);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_meets_is_not_proved),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
