// SPDX-License-Identifier: Apache-2.0
// Pooling of floats gives the references' bits, for every geometry, layout and level.
#include "core/tensor/tensor.h"
#include "ops/op.h"
#include "runtime/plan/build.h"
#include "support/models.h"
#include "support/plan_checks.h"
#include "support/test.h"

// `before` makes q of the input x.
static void check_pool(const tare_tensor *x, const char *before, const char *call) {
    char code[512];
    (void)snprintf(code, sizeof code,
                   "def forward(self, x):\n    q = %s\n    y = %s\n    return y\n", before, call);
    tare_model *m = new_model(NULL, new_tree(), code);
    tare_session *reference = session_of(m, true);
    tare_tensor *expected = output_of(reference, x);
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
        assert_int_equal(setenv("TARE_ISA", tare__isa_level_name((isa_level)isa), 1), 0);
        for (int threads = 1; threads <= 2; threads++) {
            const tare_session_options options = {.thread_count = threads};
            tare_session *s = session_with(m, &options);
            tare_tensor *found = output_of(s, x);
            check_same_tensor(found, expected);
            assert_int_equal(count_steps(s, "call", NULL), 0);
            tare_tensor_release(found);
            tare_session_destroy(s);
        }
    }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
    tare_tensor_release(expected);
    tare_session_destroy(reference);
    tare_model_destroy(m);
}

// Windows of columns: the last dimensions, which they keep, are channels of wider pixels.
static void windows_equal_the_reference(void **state) {
    static const char *const before[] = {
        "x + 1.0", "torch.nn.functional.interpolate(x, scale_factor=1)"}; // channels last
    static const char *const calls[] = {
        "torch.nn.functional.avg_pool2d(q, 2)",
        "torch.nn.functional.avg_pool2d(q, (2, 1), stride=(2, 1))",
        "torch.nn.functional.avg_pool2d(q, (3, 1), stride=(1, 1), padding=(1, 0))",
        "torch.nn.functional.max_pool2d(q, (3, 1), stride=(2, 1), padding=(1, 0))",
        "torch.nn.functional.adaptive_avg_pool2d(q, (3, None))",
        "torch.nn.functional.adaptive_avg_pool2d(q, (1, None))",
        "torch.nn.functional.adaptive_avg_pool2d(q, 1)",
        "torch.nn.functional.adaptive_max_pool2d(q, (2, None))",
    };
    static const int64_t shapes[][4] = {{2, 1, 32, 64}, {1, 3, 9, 5}, {2, 20, 7, 3}, {3, 1, 6, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        tare_tensor *x = new_input(4, shapes[i]);
        for (size_t k = 0; k < sizeof before / sizeof *before; k++)
            for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
                check_pool(x, before[k], calls[c]);
        tare_tensor_release(x);
    }
    tare_tensor *x = NEW_INPUT(2, 3, 5, 4, 6);
    check_pool(x, "x + 1.0", "torch.nn.functional.avg_pool3d(q, (2, 1, 1), stride=(2, 1, 1))");
    check_pool(x, "x + 1.0", "torch.nn.functional.max_pool3d(q, (1, 2, 1), stride=(1, 2, 1))");
    tare_tensor_release(x);
}

// Steps of this kind in a plan of `call`, whose input q lies in the plain layout.
static size_t steps_for(int64_t channels, int64_t width, const char *call, const char *kind) {
    char code[256];
    (void)snprintf(code, sizeof code,
                   "def forward(self, x):\n    q = x + 1.0\n    y = %s\n    return y\n", call);
    tare_model *m = new_model(NULL, new_tree(), code);
    tare_tensor *x = NEW_INPUT(1, channels, 64, width);
    tare_session *s = session_of(m, false);
    tare_tensor_release(output_of(s, x));
    assert_int_equal(count_steps(s, "pool", NULL), 1);
    const size_t count = count_steps(s, kind, NULL);
    tare_session_destroy(s);
    tare_tensor_release(x);
    tare_model_destroy(m);
    return count;
}

// Windows of columns pool rows of a plane in vectors, without a change of the layout, unless rows
// are short: then channels are the vectors, else each element would be pooled alone.
static void narrow_images_are_pooled_by_channels(void **state) {
    static const char *const call = "torch.nn.functional.avg_pool2d(q, (2, 1), stride=(2, 1))";
    (void)state;
    assert_int_equal(steps_for(32, 64, call, "reorder"), 0);
    assert_true(steps_for(32, 1, call, "reorder") > 0);
    assert_true(steps_for(32, 5, call, "reorder") > 0);
    assert_int_equal(steps_for(4, 5, call, "reorder"), 0); // still wider than its channels
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_equal_the_reference),
        cmocka_unit_test(narrow_images_are_pooled_by_channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
