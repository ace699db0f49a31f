// SPDX-License-Identifier: Apache-2.0
// Pooling of quantized values gives the references' bits, for every geometry and level.
#include "support/test.h"

#include "core/tensor/tensor.h"
#include "ops/op.h"
#include "runtime/plan/call_plan.h"
#include "support/models.h"
#include "support/plan_checks.h"

// `call` pools what is called q: quantized values, or what `before`, a line or nothing, makes of
// quantized values p.
static void check_lines(const tare_tensor *x, const char *dtype, const char *before,
                        const char *call, int most_threads) {
    char code[768];
    (void)snprintf(code, sizeof code,
                   "def forward(self, x):\n"
                   "    %s = torch.quantize_per_tensor(x, 0.01, %d, torch.%s)\n"
                   "%s"
                   "    y = %s\n"
                   "    z = y.dequantize()\n"
                   "    return z\n",
                   *before != 0 ? "p" : "q", strcmp(dtype, "qint8") == 0 ? -3 : 120, dtype, before,
                   call);
    tare_model *m = new_model(NULL, new_tree(), code);
    tare_session *reference = session_of(m, true);
    tare_tensor *expected = output_of(reference, x);
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
        assert_int_equal(setenv("TARE_ISA", tare__isa_level_name((isa_level)isa), 1), 0);
        for (int threads = 1; threads <= most_threads; threads++) {
            const tare_session_options options = {.thread_count = threads};
            tare_tensor *found = output_with(m, &options, x);
            check_same_tensor(found, expected);
            tare_tensor_release(found);
        }
    }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
    tare_tensor_release(expected);
    tare_session_destroy(reference);
    tare_model_destroy(m);
}

static void check_shared_pool(const tare_tensor *x, const char *dtype, const char *call,
                              int most_threads) {
    check_lines(x, dtype, "", call, most_threads);
}

static void check_pool(const tare_tensor *x, const char *dtype, const char *call) {
    check_shared_pool(x, dtype, call, 1);
}

static void check_max_pool(const tare_tensor *x, int kernel, int stride, int padding,
                           int dilation) {
    for (int ceil = 0; ceil < 2; ceil++) {
        char call[256];
        (void)snprintf(call, sizeof call,
                       "torch.nn.functional.max_pool2d(q, kernel_size=%d, stride=%d, padding=%d, "
                       "dilation=%d, ceil_mode=%s)",
                       kernel, stride, padding, dilation, ceil ? "True" : "False");
        check_pool(x, "quint8", call);
        check_pool(x, "qint8", call);
    }
}

static void max_pool_equals_the_reference(void **state) {
    (void)state;
    const int64_t widths[] = {9, 16, 43};
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        tare_tensor *x = NEW_INPUT(2, 3, 11, widths[w]);
        for (int kernel = 1; kernel <= 4; kernel++)
            for (int stride = 1; stride <= 3; stride++)
                for (int padding = 0; padding <= kernel / 2; padding++)
                    for (int dilation = 1; dilation <= 2; dilation++)
                        check_max_pool(x, kernel, stride, padding, dilation);
        tare_tensor_release(x);
    }
}

static void check_max_pools_of_lines(const tare_tensor *x, int size[2], int kernel, int stride) {
    for (int padding = 0; padding <= kernel / 2; padding++)
        for (int dilation = 1; dilation <= 2; dilation++) {
            char last[128], call[256];
            (void)snprintf(last, sizeof last,
                           "    q = torch.nn.functional.interpolate(p, [%d, %d])\n", size[0],
                           size[1]);
            (void)snprintf(call, sizeof call,
                           "torch.nn.functional.max_pool2d(q, kernel_size=(%d, %d), stride=%d, "
                           "padding=%d, dilation=%d, ceil_mode=True)",
                           1 + kernel / 2, kernel, stride, padding / 2, dilation);
            check_lines(x, dilation == 1 ? "quint8" : "qint8", last, call, 1);
        }
}

// Rows whose windows lie inside, reach into the padding on one side or on both, of few channels and
// many.
static void max_pool_of_lines_equals_the_reference(void **state) {
    (void)state;
    const int64_t channels[] = {1, 3, 24, 70};
    for (size_t c = 0; c < sizeof channels / sizeof *channels; c++) {
        tare_tensor *x = NEW_INPUT(2, channels[c], 5, 6);
        for (int kernel = 1; kernel <= 5; kernel += 2)
            for (int stride = 1; stride <= 3; stride++) {
                check_max_pools_of_lines(x, (int[]){9, 11}, kernel, stride);
                check_max_pools_of_lines(x, (int[]){9, 10}, kernel, stride);
            }
        tare_tensor_release(x);
    }
}

static void max_pool_of_lines_of_volumes_equals_the_reference(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(1, 20, 3, 4, 5);
    for (int kernel = 1; kernel <= 3; kernel++)
        for (int stride = 1; stride <= 2; stride++)
            for (int dilation = 1; dilation <= 2; dilation++) {
                char call[256];
                (void)snprintf(call, sizeof call,
                               "torch.nn.functional.max_pool3d(q, kernel_size=%d, stride=%d, "
                               "padding=%d, dilation=%d, ceil_mode=True)",
                               kernel, stride, kernel / 2, dilation);
                check_lines(x, dilation == 1 ? "quint8" : "qint8",
                            "    q = torch.nn.functional.interpolate(p, [4, 6, 7])\n", call, 1);
            }
    tare_tensor_release(x);
}

static void adaptive_max_pool_of_lines_equals_the_reference(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(2, 5, 4, 4);
    for (int size = 1; size <= 8; size++) {
        char call[128];
        (void)snprintf(call, sizeof call, "torch.nn.functional.adaptive_max_pool2d(q, (%d, %d))",
                       size, 9 - size);
        check_lines(x, "qint8", "    q = torch.nn.functional.interpolate(p, [7, 10])\n", call, 1);
    }
    tare_tensor_release(x);
}

// Dilated windows step over images of one or two pixels. What is resized lies channels last.
static void windows_between_pixels_give_the_least_integer(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(2, 3, 4, 4);
    for (int height = 1; height <= 3; height++)
        for (int width = 1; width <= 3; width++)
            for (int stride = 1; stride <= 2; stride++) {
                char small[128], call[256];
                (void)snprintf(small, sizeof small,
                               "    q = torch.nn.functional.interpolate(p, [%d, %d])\n", height,
                               width);
                (void)snprintf(call, sizeof call,
                               "torch.nn.functional.max_pool2d(q, kernel_size=2, stride=%d, "
                               "padding=1, dilation=2, ceil_mode=True)",
                               stride);
                check_lines(x, "quint8", small, call, 1);
                check_lines(x, "qint8", small, call, 1);
            }
    tare_tensor_release(x);
}

// max_pool2d by a window of 2 by 2 that stands in the padding alone, as a call.
static void bind_pool(op_call *call, value args[5], tare_tensor *x, arena *memory) {
    args[0] = (value){.kind = VALUE_TENSOR, .as.tensor = x};
    args[1] = tare__int(2);
    args[2] = tare__int(1);
    args[3] = tare__int(1);
    args[4] = tare__int(2);
    *call = (op_call){.op = tare__op_by_id("max_pool2d", 0),
                      .node_name = "pool",
                      .args = args,
                      .arg_count = 5,
                      .memory = memory,
                      .err = job_error()};
    CHECK_DONE(tare__call_bind(call, call->op));
    CHECK_DONE(tare__op_shape(call));
    CHECK_DONE(tare__call_allocate(call));
}

static void windows_without_pixels_give_the_parameters_least_integer(void **state) {
    static const struct {
        tare_dtype dtype;
        int64_t least, code;
    } cases[] = {{TARE_QUINT8, 7, 90}, {TARE_QINT8, -127, 3}, {TARE_QINT8, -64, -60}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qparams *q = tare__qparams_per_tensor(cases[i].dtype, 0.1, 8);
        tare_tensor *x = NULL;
        arena memory = {0};
        op_call planned, reference;
        value args[5];
        bool handled = false;
        call_plans plans = {0};
        scratch block = {0};
        q->quant_min = cases[i].least;
        CHECK_DONE(tare__tensor_quantized(4, (const int64_t[]){1, 1, 1, 1}, q, &x, job_error()));
        tare__tensor_set(x, 0, (double)cases[i].code);
        bind_pool(&planned, args, x, &memory);
        bind_pool(&reference, args, x, &memory);
        const interpreter it = {.thread_count = 1};
        kernel_context kernels = {.elementwise = tare__elementwise_choose(ISA_SCALAR)};
        const plan_setting setting = {.it = &it, .kernels = &kernels};
        const node n = {.op = NODE_CALL_FUNCTION, .name = "pool", .args = args, .arg_count = 5};
        CHECK_DONE(tare__call_plans_run(&plans, &setting, &block, &n, &planned, &handled));
        CHECK_DONE(tare__op_compute(&reference));
        assert_true(handled);
        assert_int_equal(tare__tensor_get_int(reference.result.as.tensor, 0), cases[i].least);
        check_same_tensor(planned.result.as.tensor, reference.result.as.tensor);
        tare__value_release_tensors(&planned.result);
        tare__value_release_tensors(&reference.result);
        tare__call_plans_destroy(&plans);
        tare__scratch_release(&block);
        tare_tensor_release(x);
        tare__qparams_release(q);
        tare__arena_release(&memory);
    }
}

static void adaptive_average_equals_the_reference(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(2, 3, 11, 19);
    for (int size = 1; size <= 12; size++) {
        char call[128];
        (void)snprintf(call, sizeof call, "torch.nn.functional.adaptive_avg_pool2d(q, (%d, %d))",
                       size, 13 - size);
        check_pool(x, "quint8", call);
        check_pool(x, "qint8", call);
    }
    tare_tensor_release(x);
}

// Windows of columns: the last dimensions, which they keep, are channels of wider pixels.
static void windows_of_columns_equal_the_reference(void **state) {
    static const char *const before[] = {
        "", "    q = torch.nn.functional.interpolate(p, scale_factor=1)\n", // channels last
        "    q = torch.cat([p, p], 1)\n"};
    static const char *const calls[] = {
        "torch.nn.functional.avg_pool2d(q, (2, 1), stride=(2, 1))",
        "torch.nn.functional.avg_pool2d(q, (3, 1), stride=(1, 1), padding=(1, 0))",
        "torch.nn.functional.max_pool2d(q, (3, 1), stride=(2, 1), padding=(1, 0))",
        "torch.nn.functional.max_pool2d(q, (2, 1), stride=(1, 1), dilation=(2, 3))",
        "torch.nn.functional.adaptive_avg_pool2d(q, (3, None))",
        "torch.nn.functional.adaptive_avg_pool2d(q, (1, None))",
        "torch.nn.functional.adaptive_max_pool2d(q, (2, None))",
        "torch.nn.functional.avg_pool2d(q, 1, 1)",
    };
    static const int64_t shapes[][4] = {{2, 1, 32, 64}, {1, 3, 9, 5}, {2, 20, 7, 3}, {3, 1, 6, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        tare_tensor *x = new_input(4, shapes[i]);
        for (size_t k = 0; k < sizeof before / sizeof *before; k++)
            for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
                check_lines(x, "quint8", before[k], calls[c], 2);
                check_lines(x, "qint8", before[k], calls[c], 2);
            }
        tare_tensor_release(x);
    }
    tare_tensor *x = NEW_INPUT(2, 3, 5, 4, 6);
    check_pool(x, "quint8", "torch.nn.functional.avg_pool3d(q, (2, 1, 1), stride=(2, 1, 1))");
    check_pool(x, "qint8", "torch.nn.functional.max_pool3d(q, (2, 2, 1), stride=(1, 2, 1))");
    check_pool(x, "qint8", "torch.nn.functional.max_pool3d(q, (1, 2, 1), stride=(1, 2, 1))");
    tare_tensor_release(x);
}

// More threads than windows, windows of few channels and many, in one task and in several.
static void threads_share_a_window(void **state) {
    (void)state;
    const int64_t channels[] = {1, 3, 32, 100, 129, 256, 257, 600};
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        const int64_t side = channels[i] < 32 ? 190 : 37;
        tare_tensor *x = NEW_INPUT(1, channels[i], side, side);
        char call[128];
        for (int columns = 1; columns <= 2; columns++) {
            (void)snprintf(call, sizeof call,
                           "torch.nn.functional.avg_pool2d(q, kernel_size=(%d, %d))", (int)side,
                           (int)side / columns);
            check_shared_pool(x, "quint8", call, 4);
            check_shared_pool(x, "qint8", call, 4);
        }
        tare_tensor_release(x);
    }
}

// How often a plan changes the layout to average windows of columns.
static size_t reorders_for(int64_t width) {
    tare_model *m = new_model(NULL, new_tree(),
                              "def forward(self, x):\n"
                              "    q = torch.quantize_per_tensor(x, 0.01, 120, torch.quint8)\n"
                              "    y = torch.nn.functional.avg_pool2d(q, (2, 1), stride=(2, 1))\n"
                              "    z = y.dequantize()\n"
                              "    return z\n");
    tare_tensor *x = NEW_INPUT(1, 32, 64, width);
    tare_session *s = session_of(m, false);
    tare_tensor_release(output_of(s, x));
    assert_int_equal(count_steps(s, "quantized pool", NULL), 1);
    const size_t count = count_steps(s, "reorder", NULL);
    tare_session_destroy(s);
    tare_tensor_release(x);
    tare_model_destroy(m);
    return count;
}

// Rows of a plane are vectors in the plain layout, unless they are short: then channels are, else
// each element would be pooled alone.
static void narrow_images_are_pooled_by_channels(void **state) {
    (void)state;
    assert_int_equal(reorders_for(64), 0);
    assert_true(reorders_for(1) > 0);
    assert_true(reorders_for(5) > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrow_images_are_pooled_by_channels),
        cmocka_unit_test(max_pool_equals_the_reference),
        cmocka_unit_test(max_pool_of_lines_equals_the_reference),
        cmocka_unit_test(max_pool_of_lines_of_volumes_equals_the_reference),
        cmocka_unit_test(adaptive_max_pool_of_lines_equals_the_reference),
        cmocka_unit_test(windows_between_pixels_give_the_least_integer),
        cmocka_unit_test(windows_without_pixels_give_the_parameters_least_integer),
        cmocka_unit_test(adaptive_average_equals_the_reference),
        cmocka_unit_test(windows_of_columns_equal_the_reference),
        cmocka_unit_test(threads_share_a_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
