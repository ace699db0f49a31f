// SPDX-License-Identifier: Apache-2.0
// Softmax of quantized values by lines: the reference's bits for every level and number of threads.
#include "support/test.h"

#include "runtime/kernels/isa.h"
#include "support/models.h"
#include "support/plan_checks.h"

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
    tare_session *reference = session_of(m, true);
    tare_tensor *expected = output_of(reference, x);
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
        assert_int_equal(setenv("TARE_ISA", tare__isa_level_name((isa_level)isa), 1), 0);
        tare_session *s = session_on(m, 1 + isa % 2);
        tare_tensor *found = output_of(s, x);
        assert_true(count_steps(s, "quantized rows", NULL) > 0);
        check_same_tensor(found, expected);
        tare_tensor_release(found);
        tare_session_destroy(s);
    }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
    tare_tensor_release(expected);
    tare_session_destroy(reference);
    tare_tensor_release(x);
    tare_model_destroy(m);
}

static void lines_of_integers_give_the_references_bits(void **state) {
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
        cmocka_unit_test(lines_of_integers_give_the_references_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
