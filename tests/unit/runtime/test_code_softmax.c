// SPDX-License-Identifier: Apache-2.0
// Softmax of codes by lines: the reference's bits for every level and number of threads.
#include "support/test.h"

#include "core/tensor.h"
#include "runtime/isa.h"
#include "support/models.h"

static tare_tensor *run(const tare_model *m, const tare_tensor *x, bool reference, int threads) {
    const tare_session_options options = {.reference = reference, .thread_count = threads};
    tare_session *s = NULL;
    tare_tensor *y = NULL;
    tare_step step = {.struct_size = sizeof step};
    size_t count = 0, i = 0;
    CHECK_DONE(tare_session_create(m, &options, &s, job_error()));
    CHECK_DONE(tare_session_run(s, &x, 1, &y, 1, &count, job_error()));
    while (tare_session_get_step(s, i, &step) && strcmp(step.kind, "code softmax") != 0) i++;
    assert_true(reference || i < tare_session_step_count(s));
    tare_session_destroy(s);
    return y;
}

static void check(int64_t lines, int64_t width, const char *dtype, const char *call) {
    char code[1024];
    (void)snprintf(code, sizeof code,
                   "def forward(self, x):\n"
                   "    q = torch.quantize_per_tensor(x, 0.013, 7, torch.%s)\n"
                   "    y = %s\n"
                   "    z = y.dequantize()\n"
                   "    return z\n",
                   dtype, call);
    tare_model *m = new_model(NULL, new_tree(), code);
    tare_tensor *x = NEW_INPUT(2, lines, width);
    tare_tensor *expected = run(m, x, true, 1);
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
        assert_int_equal(setenv("TARE_ISA", tare__isa_level_name((isa_level)isa), 1), 0);
        tare_tensor *found = run(m, x, false, 1 + isa % 2);
        check_same_tensor(found, expected);
        tare_tensor_release(found);
    }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
    tare_tensor_release(expected);
    tare_tensor_release(x);
    tare_model_destroy(m);
}

static void lines_of_codes_give_the_references_bits(void **state) {
    (void)state;
    static const int64_t widths[] = {8, 17, 64, 131};
    for (size_t i = 0; i < 4; i++)
        for (int is_signed = 0; is_signed < 2; is_signed++) {
            const char *dtype = is_signed ? "qint8" : "quint8";
            check(1, widths[i], dtype, "torch.ops.quantized.softmax(q, 2, 0.00390625, 0)");
            check(300, widths[i], dtype, "torch.ops.quantized.softmax(q, -1, 0.00390625, 0)");
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_codes_give_the_references_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
