// SPDX-License-Identifier: Apache-2.0
// Float convolutions of batches: images run as they do alone, whatever the batch and the threads.
#include "support/models.h"
#include "support/plan_checks.h"
#include "support/test.h"

#include "tare/session.h"

#define NN "torch.nn."
#define CONV(in, out, groups)                                                                      \
    "in_channels=" #in ", out_channels=" #out ", kernel_size=(3, 3), stride=(1, 1), "              \
    "padding=(1, 1), dilation=(1, 1), groups=" #groups ", padding_mode='zeros'"

enum { SAMPLES = 7 };

// The sizes make a call of one image worth it, of several, and of none.
static tare_model *make(void) {
    module *root = new_tree();
    put_module(root, NULL, "first", NN "Conv2d", CONV(3, 16, 1));
    put_module(root, NULL, "deep", NN "Conv2d", CONV(16, 16, 16));
    put_module(root, NULL, "wide", NN "Conv2d", CONV(16, 48, 1));
    return new_model(NULL, root,
                     "def forward(self, x):\n"
                     "    first = self.first(x)\n"
                     "    relu = torch.relu(first)\n"
                     "    deep = self.deep(relu)\n"
                     "    add = deep + relu\n"
                     "    wide = self.wide(add)\n"
                     "    return wide\n");
}

#define POINT(in, out)                                                                             \
    "in_channels=" #in ", out_channels=" #out ", kernel_size=(1, 1), stride=(1, 1), "              \
    "padding=(0, 0), dilation=(1, 1), groups=1, padding_mode='zeros'"

// Small images of many channels, which threads share by channels and by pixels rather than by rows.
static tare_model *make_small(void) {
    module *root = new_tree();
    put_module(root, NULL, "first", NN "Conv2d", CONV(3, 72, 1));
    put_module(root, NULL, "same", NN "Conv2d", CONV(72, 72, 1));
    put_module(root, NULL, "point", NN "Conv2d", POINT(72, 520));
    put_module(root, NULL, "last", NN "Conv2d", POINT(520, 264));
    return new_model(NULL, root,
                     "def forward(self, x):\n"
                     "    first = self.first(x)\n"
                     "    same = self.same(first)\n"
                     "    add = same + first\n"
                     "    relu = torch.relu(add)\n"
                     "    point = self.point(relu)\n"
                     "    pool = torch.nn.functional.adaptive_avg_pool2d(point, 1)\n"
                     "    last = self.last(pool)\n"
                     "    return last\n");
}

// A layer as large as its image is a linear layer to a library, which sums several rows otherwise
// than one.
static tare_model *make_whole(void) {
    module *root = new_tree();
    put_module(root, NULL, "first", NN "Conv2d", CONV(3, 48, 1));
    put_module(root, NULL, "whole", NN "Conv2d",
               "in_channels=48, out_channels=64, kernel_size=(7, 7), stride=(1, 1), "
               "padding=(0, 0), dilation=(1, 1), groups=1, padding_mode='zeros'");
    return new_model(NULL, root,
                     "def forward(self, x):\n"
                     "    first = self.first(x)\n"
                     "    whole = self.whole(first)\n"
                     "    return whole\n");
}

static tare_tensor *run(const tare_model *model, const tare_tensor *x, int threads) {
    return output_with(model, &(tare_session_options){.thread_count = threads}, x);
}

static tare_tensor *make_input(int64_t samples, int64_t size) {
    const int64_t shape[] = {samples, 3, size, size};
    tare_tensor *x = NULL;
    uint64_t seed = 5;
    CHECK_DONE(tare_tensor_create(TARE_FLOAT32, 4, shape, &x, job_error()));
    for (int64_t i = 0; i < x->count; i++) {
        seed = seed * 6364136223846793005U + 1442695040888963407U;
        tare__f32(x)[i] = (float)(seed >> 40) / 8388608.0F - 1.0F;
    }
    return x;
}

static void check_size(const tare_model *model, int64_t size) {
    tare_tensor *x = make_input(SAMPLES, size);
    tare_tensor *one = run(model, x, 1);
    const size_t bytes = tare__tensor_bytes(one) / SAMPLES;
    for (int threads = 2; threads <= 4; threads++) {
        tare_tensor *more = run(model, x, threads);
        assert_memory_equal(more->data, one->data, SAMPLES * bytes);
        tare_tensor_release(more);
    }
    for (int64_t i = 0; i < SAMPLES; i++) {
        tare_tensor *sample = NULL;
        CHECK_DONE(tare__tensor_rows(x, i, 1, &sample, job_error()));
        for (int threads = 1; threads <= 4; threads++) {
            tare_tensor *alone = run(model, sample, threads);
            assert_memory_equal(alone->data, (char *)one->data + (size_t)i * bytes, bytes);
            tare_tensor_release(alone);
        }
        tare_tensor_release(sample);
    }
    tare_tensor_release(one);
    tare_tensor_release(x);
}

static void images_of_a_batch_are_those_alone(void **state) {
    (void)state;
    tare_model *model = make();
    const int64_t sizes[] = {5, 9, 14, 40};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) check_size(model, sizes[i]);
    tare_model_destroy(model);
}

static void small_images_are_the_same_for_any_threads(void **state) {
    (void)state;
    tare_model *model = make_small();
    check_size(model, 7);
    check_size(model, 1);
    tare_model_destroy(model);
}

static void layers_of_whole_images_are_the_same_for_any_batch(void **state) {
    (void)state;
    tare_model *model = make_whole();
    check_size(model, 7);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_of_a_batch_are_those_alone),
        cmocka_unit_test(small_images_are_the_same_for_any_threads),
        cmocka_unit_test(layers_of_whole_images_are_the_same_for_any_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
