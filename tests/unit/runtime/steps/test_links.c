// SPDX-License-Identifier: Apache-2.0
// Float convolutions that plans compute together, in row blocks of rows: they give what the layers
// give one by one, for any number of threads and in a batch.
#include "support/models.h"
#include "support/plan_checks.h"
#include "support/test.h"

#define NN "torch.nn."

enum { HEIGHT = 185, WIDTH = 179 };

static void put_conv(module *root, const char *path, int in, int out, int kernel, int stride,
                     int dilation, int groups) {
    char config[300];
    const int pad = dilation * (kernel / 2);
    (void)snprintf(config, sizeof config,
                   "in_channels=%d, out_channels=%d, kernel_size=(%d, %d), stride=(%d, %d), "
                   "padding=(%d, %d), dilation=(%d, %d), groups=%d",
                   in, out, kernel, kernel, stride, stride, pad, pad, dilation, dilation, groups);
    put_module(root, NULL, path, NN "Conv2d", config);
}

// Every kind of window: of strides, of dilations, of large kernels; a batch norm within a chain,
// and a residual at its end. What lies between the layers of a chain has more than a megabyte.
static tare_model *make(void) {
    module *root = new_tree();
    put_conv(root, "stem", 3, 32, 3, 2, 1, 1);
    put_conv(root, "deep", 32, 32, 3, 1, 1, 32);
    put_module(root, NULL, "norm", NN "BatchNorm2d", "num_features=32");
    put_conv(root, "narrow", 32, 8, 1, 1, 1, 1);
    put_conv(root, "wide", 8, 40, 1, 1, 1, 1);
    put_conv(root, "far", 40, 40, 3, 1, 2, 40);
    put_conv(root, "back", 40, 8, 1, 1, 1, 1);
    put_conv(root, "more", 8, 48, 1, 1, 1, 1);
    put_conv(root, "half", 48, 48, 5, 2, 1, 48);
    put_conv(root, "last", 48, 8, 3, 1, 1, 1);
    return new_model(NULL, root,
                     "def forward(self, x):\n"
                     "    stem = self.stem(x)\n"
                     "    relu = torch.relu(stem)\n"
                     "    deep = self.deep(relu)\n"
                     "    norm = self.norm(deep)\n"
                     "    relu6 = torch.nn.functional.relu6(norm)\n"
                     "    narrow = self.narrow(relu6)\n"
                     "    wide = self.wide(narrow)\n"
                     "    hardswish = torch.nn.functional.hardswish(wide)\n"
                     "    far = self.far(hardswish)\n"
                     "    back = self.back(far)\n"
                     "    add = back + narrow\n"
                     "    more = self.more(add)\n"
                     "    half = self.half(more)\n"
                     "    last = self.last(half)\n"
                     "    return last\n");
}

// What a session gives, of which so many steps compute several layers in row blocks.
static tare_tensor *check_row_blocks(const tare_model *model, const tare_session_options *options,
                                     const tare_tensor *x, size_t row_blocks,
                                     const tare_tensor *expected) {
    tare_session *s = session_with(model, options);
    tare_tensor *y = output_of(s, x);
#ifdef TARE_HAVE_DNNL
    assert_int_equal(count_steps(s, NULL, "in row blocks"), row_blocks);
#else
    (void)row_blocks;
#endif
    check_near_floats(y, expected, 2e-5F, "row_blocks");
    tare_session_destroy(s);
    return y;
}

static void bands_give_what_layers_give(void **state) {
    (void)state;
    tare_model *model = make();
    tare_tensor *x = NEW_INPUT(1, 3, HEIGHT, WIDTH), *first = NULL;
    tare_tensor *expected = output_with(model, &portable_reference, x);
    for (int threads = 1; threads <= 5; threads++) {
        const tare_session_options options = {.thread_count = threads};
        tare_tensor *y = check_row_blocks(model, &options, x, 3, expected);
        if (first == NULL) first = tare_tensor_retain(y);
        assert_memory_equal(y->data, first->data, tare__tensor_bytes(y));
        tare_tensor_release(y);
    }
    const tare_session_options portable = {.portable_floats = true}; // layers have fixed bits there
    tare_tensor_release(check_row_blocks(model, &portable, x, 0, expected));
    tare_tensor_release(first);
    tare_tensor_release(expected);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

static tare_tensor *sample_of(const tare_tensor *x, int64_t i) {
    tare_tensor *one = NEW_INPUT(1, 3, HEIGHT, WIDTH);
    const size_t bytes = tare__tensor_bytes(one);
    memcpy(one->data, (const unsigned char *)x->data + (size_t)i * bytes, bytes);
    return one;
}

// Threads take samples of their own there.
static void samples_of_a_batch_run_as_they_do_alone(void **state) {
    (void)state;
    enum { SAMPLES = 5 };
    tare_model *model = make();
    tare_tensor *x = NEW_INPUT(SAMPLES, 3, HEIGHT, WIDTH);
    for (int threads = 1; threads <= 2; threads++) {
        const tare_session_options options = {.thread_count = threads};
        tare_tensor *all = output_with(model, &options, x);
        const size_t bytes = tare__tensor_bytes(all) / SAMPLES;
        for (int64_t i = 0; i < SAMPLES; i++) {
            tare_tensor *one = sample_of(x, i), *y = output_with(model, &options, one);
            assert_memory_equal(y->data, (const unsigned char *)all->data + (size_t)i * bytes,
                                bytes);
            tare_tensor_release(y);
            tare_tensor_release(one);
        }
        tare_tensor_release(all);
    }
    tare_tensor_release(x);
    tare_model_destroy(model);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    module *root = new_tree();
    put_conv(root, "deep", 32, 32, 3, 1, 1, 32);
    put_module(root, NULL, "norm", NN "BatchNorm2d", "num_features=32");
    put_conv(root, "narrow", 32, 8, 1, 1, 1, 1);
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n"
                                  "    deep = self.deep(x)\n"
                                  "    norm = self.norm(deep)\n"
                                  "    narrow = self.narrow(norm)\n"
                                  "    return narrow\n");
    tare_tensor *x = NEW_INPUT(1, 32, 97, 91);
    const tare_session_options options = {.thread_count = 2};
    check_run_without_memory(model, &options, (const tare_tensor *[]){x}, 1);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bands_give_what_layers_give),
        cmocka_unit_test(samples_of_a_batch_run_as_they_do_alone),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
