// SPDX-License-Identifier: Apache-2.0
// Float layers of a single row: plans give the portable kernels' bits at every level of
// instructions and with any number of threads, also where a library computes other layers.
#include "support/models.h"
#include "support/plan_checks.h"
#include "support/test.h"

#include "runtime/kernels/isa.h"

#define NN "torch.nn."

static void check(tare_model *model, tare_tensor *x) {
    tare_tensor *expected = output_with(model, &portable_reference, x);
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
        assert_int_equal(setenv("TARE_ISA", tare__isa_level_name((isa_level)isa), 1), 0);
        for (int k = 0; k < 6; k++) {
            const tare_session_options options = {.thread_count = 1 + k / 2,
                                                  .portable_floats = k % 2 != 0};
            tare_tensor *y = output_with(model, &options, x);
            assert_int_equal(y->count, expected->count);
            if (memcmp(y->data, expected->data, tare__tensor_bytes(y)) != 0)
                fail_msg("%s, options %d", tare__isa_level_name((isa_level)isa), k);
            tare_tensor_release(y);
        }
    }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
    tare_tensor_release(expected);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

static void put_linear(module *root, const char *path, int in, int out, bool has_bias) {
    char config[100];
    (void)snprintf(config, sizeof config, "in_features=%d, out_features=%d, bias=%s", in, out,
                   has_bias ? "True" : "False");
    put_module(root, NULL, path, NN "Linear", config);
}

// Shared by threads, of every width of the last panel, and with what may follow a layer.
static void linear_layers_of_one_row_have_fixed_bits(void **state) {
    (void)state;
    module *root = new_tree();
    put_linear(root, "first", 91, 1530, true);
    put_linear(root, "second", 1530, 130, false);
    put_linear(root, "third", 130, 130, true);
    put_linear(root, "last", 130, 7, true);
    check(new_model(NULL, root,
                    "def forward(self, x):\n"
                    "    first = self.first(x)\n"
                    "    hardswish = torch.nn.functional.hardswish(first)\n"
                    "    second = self.second(hardswish)\n"
                    "    relu = torch.relu(second)\n"
                    "    third = self.third(relu)\n"
                    "    gelu = torch.nn.functional.gelu(third)\n"
                    "    add = gelu + relu\n"
                    "    tanh = torch.tanh(add)\n"
                    "    last = self.last(tanh)\n"
                    "    return last\n"),
          NEW_INPUT(1, 1, 91));
}

static void check_pixels(tare_tensor *input) {
    module *root = new_tree();
    put_module(root, NULL, "narrow", NN "Conv2d",
               "in_channels=333, out_channels=450, kernel_size=(1, 1)");
    put_module(root, NULL, "wide", NN "Conv2d",
               "in_channels=450, out_channels=333, kernel_size=(1, 1)");
    check(new_model(NULL, root,
                    "def forward(self, x):\n"
                    "    mean = torch.nn.functional.adaptive_avg_pool2d(x, 1)\n"
                    "    narrow = self.narrow(mean)\n"
                    "    relu = torch.nn.functional.relu6(narrow)\n"
                    "    wide = self.wide(relu)\n"
                    "    gate = torch.nn.functional.hardsigmoid(wide)\n"
                    "    mul = gate * x\n"
                    "    return mul\n"),
          input);
}

static void convolutions_of_one_pixel_have_fixed_bits(void **state) {
    (void)state;
    check_pixels(NEW_INPUT(1, 333, 5, 4));
    check_pixels(NEW_INPUT(7, 333, 5, 4));
}

// Linked with a layer that sees padding alone beside it, which row blocks refuse; the pixel has as
// many functions behind it as a layer may have.
static void a_pixel_before_a_depthwise_layer_has_fixed_bits(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "wide", NN "Conv2d",
               "in_channels=5, out_channels=262144, kernel_size=(1, 1)");
    put_module(root, NULL, "deep", NN "Conv2d",
               "in_channels=262144, out_channels=262144, kernel_size=(1, 1), padding=(1, 1), "
               "groups=262144, bias=False");
    check(new_model(NULL, root,
                    "def forward(self, x):\n"
                    "    wide = self.wide(x)\n"
                    "    relu = torch.relu(wide)\n"
                    "    hardswish = torch.nn.functional.hardswish(relu)\n"
                    "    tanh = torch.tanh(hardswish)\n"
                    "    relu_1 = torch.relu(tanh)\n"
                    "    tanh_1 = torch.tanh(relu_1)\n"
                    "    relu6 = torch.nn.functional.relu6(tanh_1)\n"
                    "    deep = self.deep(relu6)\n"
                    "    return deep\n"),
          NEW_INPUT(1, 5, 1, 1));
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    module *root = new_tree();
    put_linear(root, "layer", 19, 70, false);
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n"
                                  "    layer = self.layer(x)\n"
                                  "    relu = torch.relu(layer)\n"
                                  "    return relu\n");
    tare_tensor *x = NEW_INPUT(1, 19);
    check_run_without_memory(model, NULL, (const tare_tensor *[]){x}, 1);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

// A window of one pixel in the padding of an image of one pixel.
static void what_lies_in_the_padding_is_not_seen(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "conv", "torch.nn.Conv2d",
               "in_channels=4, out_channels=8, kernel_size=(1, 1), stride=(3, 3), "
               "padding=(1, 1), dilation=(1, 1), groups=1, padding_mode='zeros'");
    tare_model *m =
        new_model(NULL, root, "def forward(self, x):\n    conv = self.conv(x)\n    return conv\n");
    const tare_tensor *bias = tare__module_tensor(m->root->children[0].module, "bias");
    tare_tensor *x = NEW_INPUT(1, 4, 1, 1);
    tare_session *s = session_of(m, false);
    tare_tensor *y = output_of(s, x);
    assert_int_equal(y->count, 8);
    assert_memory_equal(y->data, bias->data, tare__tensor_bytes(y));
    tare_tensor_release(y);
    tare_tensor_release(x);
    tare_session_destroy(s);
    tare_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_layers_of_one_row_have_fixed_bits),
        cmocka_unit_test(convolutions_of_one_pixel_have_fixed_bits),
        cmocka_unit_test(a_pixel_before_a_depthwise_layer_has_fixed_bits),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(what_lies_in_the_padding_is_not_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
