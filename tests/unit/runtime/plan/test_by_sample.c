// SPDX-License-Identifier: Apache-2.0
// Sessions run plans on shapes that change, by threads and by samples, and survive failures.
#include "support/test.h"

#include "runtime/plan/build.h"
#include "runtime/session/session.h"
#include "support/models.h"
#include "support/plan_checks.h"

#define NN "torch.nn."

// --- shapes that change ---

static tare_model *small_model(void) {
    module *root = new_tree();
    put_module(root, NULL, "conv", NN "Conv2d",
               "in_channels=3, out_channels=8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), "
               "dilation=(1, 1), groups=1, bias=True");
    put_module(root, NULL, "bn", NN "BatchNorm2d", "num_features=8");
    put_module(root, NULL, "fc", NN "Linear", "in_features=8, out_features=3");
    return new_model(NULL, root,
                     "def forward(self, x):\n"
                     "    conv = self.conv(x)\n"
                     "    bn = self.bn(conv)\n"
                     "    relu = torch.nn.functional.relu(bn, inplace = False)\n"
                     "    more = relu.clone()\n"
                     "    add = relu + conv\n"
                     "    pooled = torch.nn.functional.adaptive_avg_pool2d(add, (1, 1))\n"
                     "    flat = torch.flatten(pooled, 1)\n"
                     "    fc = self.fc(flat)\n"
                     "    view = flat.view(-1)\n"
                     "    return (fc, x, view, more)\n");
}

static void each_shape_has_its_plan(void **state) {
    (void)state;
    static const int64_t shapes[][4] = {{1, 3, 8, 8}, {2, 3, 8, 8}, {5, 3, 4, 6},
                                        {1, 3, 5, 5}, {3, 3, 7, 4}, {1, 3, 1, 1}};
    tare_model *model = small_model();
    tare_session *planned = session_of(model, false), *reference = session_of(model, true);
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < 6; i++) {
            tare_tensor *x = new_input(4, shapes[round == 1 ? 5 - i : i]);
            check_equal_runs(planned, reference, x, "small model");
            tare_tensor_release(x);
        }
    tare_session_destroy(planned);
    tare_session_destroy(reference);
    tare_model_destroy(model);
}

static void outputs_stay_when_the_session_runs_again(void **state) {
    (void)state;
    tare_model *model = small_model();
    tare_session *s = session_of(model, false);
    tare_tensor *x = NEW_INPUT(1, 3, 8, 8), *y = NULL, *first[4], *second[4];
    size_t count = 0;
    CHECK_OK(tare_tensor_create(TARE_FLOAT32, 4, x->shape, &y, NULL));
    CHECK_OK(tare_session_run(s, (const tare_tensor *[]){x}, 1, first, 4, &count, NULL));
    tare_tensor *kept = NULL;
    CHECK_OK(tare__tensor_copy(first[0], &kept, NULL));
    CHECK_OK(tare_session_run(s, (const tare_tensor *[]){y}, 1, second, 4, &count, NULL));
    tare_session_destroy(s);
    assert_memory_equal(kept->data, first[0]->data, tare__tensor_bytes(kept));
    assert_memory_not_equal(first[0]->data, second[0]->data, tare__tensor_bytes(kept));
    for (size_t i = 0; i < count; i++) {
        tare_tensor_release(first[i]);
        tare_tensor_release(second[i]);
    }
    tare_tensor_release(kept);
    tare_tensor_release(x);
    tare_tensor_release(y);
    tare_model_destroy(model);
}

// --- threads ---

static tare_model *wide_model(const char *conv, int64_t out) {
    char config[64];
    module *root = new_tree();
    put_module(root, NULL, "conv", NN "Conv2d", conv);
    (void)snprintf(config, sizeof config, "in_features=%lld, out_features=100", (long long)out);
    put_module(root, NULL, "fc", NN "Linear", config);
    return new_model(NULL, root,
                     "def forward(self, x):\n"
                     "    conv = self.conv(x)\n"
                     "    relu = torch.nn.functional.relu(conv, inplace = False)\n"
                     "    flat = torch.flatten(relu, 1)\n"
                     "    fc = self.fc(flat)\n"
                     "    flatter = torch.flatten(relu, 0, 2)\n"
                     "    softmax = torch.softmax(flatter, -1)\n"
                     "    return (fc, softmax)\n");
}

// Layers that are long enough to be cut into row blocks of rows, images of a batch, or columns.
static void threads_share_layers(void **state) {
    (void)state;
    static const struct {
        const char *conv;
        int64_t channels, out; // out: elements of one image's result
    } cases[] = {
        {"in_channels=16, out_channels=16, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), "
         "dilation=(1, 1), groups=1, bias=True",
         16, 16 * 29 * 29},
        {"in_channels=16, out_channels=32, kernel_size=(5, 3), stride=(2, 2), padding=(2, 0), "
         "dilation=(1, 1), groups=1, bias=False",
         16, 32 * 15 * 14},
        {"in_channels=24, out_channels=24, kernel_size=(3, 3), stride=(3, 1), padding=(4, 4), "
         "dilation=(4, 2), groups=2, bias=True",
         24, 24 * 10 * 33},
        {"in_channels=32, out_channels=64, kernel_size=(1, 1), stride=(2, 2), padding=(0, 0), "
         "dilation=(1, 1), groups=1, bias=True",
         32, 64 * 15 * 15},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int64_t batch = 1; batch <= 4; batch += 3) {
            tare_model *model = wide_model(cases[i].conv, cases[i].out);
            tare_session *reference = session_of(model, true);
            tare_tensor *x = NEW_INPUT(batch, cases[i].channels, 29, 29);
            for (int threads = 1; threads <= 3; threads++) {
                tare_session *s = session_on(model, threads);
                check_equal_runs(s, reference, x, cases[i].conv);
                tare_session_destroy(s);
            }
            tare_tensor_release(x);
            tare_session_destroy(reference);
            tare_model_destroy(model);
        }
}

// --- samples in turn ---

enum { PICTURES = 20 }; // too many for caches

static tare_model *picture_model(const char *end) {
    char code[512];
    module *root = new_tree();
    put_module(root, NULL, "conv", NN "Conv2d",
               "in_channels=4, out_channels=32, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), "
               "dilation=(1, 1), groups=1, bias=True");
    (void)snprintf(code, sizeof code,
                   "def forward(self, x):\n"
                   "    conv = self.conv(x)\n"
                   "    relu = torch.nn.functional.relu(conv, inplace = False)\n%s",
                   end);
    return new_model(NULL, root, code);
}

// Does the plan of the latest run take samples in turn? Steps tell of all of them.
static bool takes_turns(const tare_session *s, int64_t samples) {
    tare_step step = {.struct_size = sizeof step};
    assert_true(tare_session_get_step(s, 0, &step));
    assert_int_equal(step.input_shape[0], samples);
    return tare__session_plan(s)->samples > 1;
}

// One sample's outputs are a slice of the batch's, to the bit.
static void check_sample(tare_session *s, const tare_tensor *x, int64_t sample,
                         tare_tensor *const *whole, size_t count) {
    tare_tensor *row = NULL, *found[4];
    size_t found_count = 0;
    CHECK_OK(tare__tensor_rows(x, sample, 1, &row, NULL));
    const tare_tensor *in = row;
    CHECK_OK(tare_session_run(s, &in, 1, found, 4, &found_count, NULL));
    assert_int_equal(found_count, count);
    for (size_t i = 0; i < count; i++) {
        const size_t bytes = tare__tensor_bytes(found[i]);
        assert_int_equal(bytes * (size_t)x->shape[0], tare__tensor_bytes(whole[i]));
        assert_memory_equal((char *)whole[i]->data + (size_t)sample * bytes, found[i]->data, bytes);
        tare_tensor_release(found[i]);
    }
    tare_tensor_release(row);
}

static void check_turns(const tare_model *model, const tare_tensor *x, int threads) {
    tare_tensor *made[4] = {NULL};
    tare_session *s = session_on(model, threads);
    size_t count = 0;
    CHECK_OK(tare_session_run(s, &x, 1, made, 4, &count, NULL));
    assert_true(takes_turns(s, x->shape[0]));
    for (int64_t n = 0; n < x->shape[0]; n++) check_sample(s, x, n, made, count);
    for (size_t i = 0; i < count; i++) memset(made[i]->data, 0xff, tare__tensor_bytes(made[i]));
    CHECK_OK(tare_session_run_into(s, &x, 1, made, count, NULL));
    for (int64_t n = 0; n < x->shape[0]; n++) check_sample(s, x, n, made, count);
    for (size_t i = 0; i < count; i++) tare_tensor_release(made[i]);
    tare_session_destroy(s);
}

// What lies between the layers of all of them would not stay in the cache.
static void large_batches_run_sample_by_sample(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(PICTURES, 4, 64, 64);
    tare_model *model = picture_model("    pool = torch.nn.functional.max_pool2d(relu, 2)\n"
                                      "    flat = torch.flatten(pool, 1)\n"
                                      "    return (flat, relu, x)\n");
    for (int threads = 1; threads <= 2; threads++) check_turns(model, x, threads);
    check_model(model, x, "a batch of pictures");
    tare_model_destroy(model);
    tare_tensor_release(x);
}

static void check_together(const char *end, int64_t batch, int64_t size) {
    tare_tensor *x = NEW_INPUT(batch, 4, size, size);
    tare_model *model = picture_model(end);
    tare_session *planned = session_of(model, false), *reference = session_of(model, true);
    check_equal_runs(planned, reference, x, end);
    assert_false(takes_turns(planned, batch));
    tare_session_destroy(reference);
    tare_session_destroy(planned);
    tare_model_destroy(model);
    tare_tensor_release(x);
}

// Samples that have to do with each other, and those whose results fit into the cache.
static void other_batches_run_as_a_whole(void **state) {
    (void)state;
    check_together("    soft = torch.softmax(relu, 0)\n"
                   "    return soft\n",
                   PICTURES, 64);
    check_together("    mean = torch.mean(relu, [0, 2, 3], keepdim = True)\n"
                   "    sub = torch.sub(relu, mean)\n"
                   "    return sub\n",
                   PICTURES, 64);
    check_together("    size = relu.size(0)\n"
                   "    norm = torch.nn.functional.group_norm(relu, size)\n"
                   "    return norm\n",
                   16, 72);
    check_together("    return relu\n", 2, 8);
}

// Observers see the batches that they are given: averages over batches depend on them.
static void observers_see_whole_batches(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(PICTURES, 4, 64, 64), *y = NULL;
    tare_model *model = picture_model("    return relu\n");
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *watched = prepared(model, backend, mapping);
    tare_session *s = session_of(watched, false);
    size_t count = 0;
    const tare_tensor *in = x;
    CHECK_OK(tare_session_run(s, &in, 1, &y, 1, &count, NULL));
    assert_false(takes_turns(s, PICTURES));
    tare_tensor_release(y);
    tare_session_destroy(s);
    tare_model_destroy(watched);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    tare_model_destroy(model);
    tare_tensor_release(x);
}

// Times and work are those of all samples.
static void profiles_tell_of_all_samples(void **state) {
    (void)state;
    enum { RUNS = 3 };
    tare_tensor *x = NEW_INPUT(PICTURES, 4, 64, 64), *y = NULL;
    tare_model *model = picture_model("    return relu\n");
    tare_session *s = session_of(model, false);
    tare_step step = {.struct_size = sizeof step};
    const tare_tensor *in = x;
    size_t count = 0;
    CHECK_OK(tare_session_profile(s, true, NULL));
    for (int i = 0; i < RUNS; i++) {
        CHECK_OK(tare_session_run(s, &in, 1, &y, 1, &count, NULL));
        tare_tensor_release(y);
    }
    assert_true(takes_turns(s, PICTURES));
    int64_t macs = 0;
    for (size_t i = 0; tare_session_get_step(s, i, &step); i++) {
        assert_int_equal(step.run_count, RUNS);
        macs += step.macs;
    }
    assert_int_equal(macs, (int64_t)PICTURES * 64 * 64 * 32 * 4 * 9);
    tare_session_destroy(s);
    tare_model_destroy(model);
    tare_tensor_release(x);
}

// --- refusals and failures ---

static void inputs_that_do_not_fit_are_named_as_without_a_plan(void **state) {
    (void)state;
    tare_model *model = small_model();
    tare_session *s = session_of(model, false);
    tare_tensor *wrong = NEW_INPUT(1, 4, 8, 8), *right = NEW_INPUT(1, 3, 8, 8), *out[4];
    size_t count = 0;
    for (int i = 0; i < 6; i++)
        CHECK_REFUSED(
            tare_session_run(s, (const tare_tensor *[]){wrong}, 1, out, 4, &count, job_error()),
            TARE_INVALID_ARGUMENT, "node 'conv': conv2d: input of shape [1, 4, 8, 8]");
    CHECK_REFUSED(
        tare_session_run(s, (const tare_tensor *[]){right}, 1, out, 3, &count, job_error()),
        TARE_INVALID_ARGUMENT, "the model has 4 outputs, there is room for 3");
    CHECK_OK(tare_session_run(s, (const tare_tensor *[]){right}, 1, out, 4, &count, NULL));
    for (size_t i = 0; i < count; i++) tare_tensor_release(out[i]);
    tare_tensor_release(wrong);
    tare_tensor_release(right);
    tare_session_destroy(s);
    tare_model_destroy(model);
}

static void a_plan_survives_every_failing_allocation(void **state) {
    (void)state;
    tare_model *model = small_model();
    tare_tensor *x = NEW_INPUT(2, 3, 4, 4);
    check_run_without_memory(model, NULL, (const tare_tensor *[]){x}, 1);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_batches_run_sample_by_sample),
        cmocka_unit_test(other_batches_run_as_a_whole),
        cmocka_unit_test(observers_see_whole_batches),
        cmocka_unit_test(profiles_tell_of_all_samples),
        cmocka_unit_test(each_shape_has_its_plan),
        cmocka_unit_test(threads_share_layers),
        cmocka_unit_test(outputs_stay_when_the_session_runs_again),
        cmocka_unit_test(inputs_that_do_not_fit_are_named_as_without_a_plan),
        cmocka_unit_test(a_plan_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
