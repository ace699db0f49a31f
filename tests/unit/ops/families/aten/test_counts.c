// SPDX-License-Identifier: Apache-2.0
// Distinct values and how often they are: values that PyTorch 2.15 computed for the same text.
#include "support/aten_cases.h"
#include "support/run.h"
#include "support/test.h"

// clang-format off
static const aten_case cases[] = {
    {"t = @mul.Scalar(x, 2.0); s = @to.dtype(t, torch.int64); b = @add.Scalar(s, 3); a = @flatten.using_ints(b); @bincount.default(a)", "6", VALUES(1, 4, 4, 7, 4, 4)},
    {"t = @arange.default(4); @bincount.default(t, None, 6)", "6", VALUES(1, 1, 1, 1, 0, 0)},
    {"t = @arange.default(2); @bincount.default(t, v)", "2", VALUES(0.5, 0.75)},
    {"t = @mul.Scalar(x, 2.0); s = @floor.default(t); r = @mode.default(s); r[0]", "2x3", VALUES(-3, -2, -1, 0, 1, 2)},
    {"t = @mul.Scalar(x, 2.0); s = @trunc.default(t); r = @mode.default(s, 1, True); r[0]", "2x1x4", VALUES(-3, -2, -2, -2, 0, 0, 0, 0)},
    {"t = @mul.Scalar(x, 2.0); s = @trunc.default(t); r = @mode.default(s, -1); r[1]", "2x3", VALUES(3, 3, 3, 3, 3, 3)},
    {"t = @abs.default(x); r = @_unique2.default(t); r[0]", "13", VALUES(0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1, 1.125, 1.25, 1.375, 1.5)},
    {"t = @mul.Scalar(x, 2.0); s = @trunc.default(t); r = @_unique2.default(s, True, True, True); r[1]", "2x3x4", VALUES(0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5)},
    {"t = @mul.Scalar(x, 2.0); s = @trunc.default(t); r = @_unique2.default(s, True, True, True); r[2]", "6", VALUES(1, 4, 4, 7, 4, 4)},
    {"t = @log.default(v); s = @sub.Tensor(t, t); a = @div.Tensor(s, s); r = @_unique2.default(a, True, False, True); r[2]", "2", VALUES(1, 1)},
};
// clang-format on

static void values_are_counted_as_torch_does(void **state) {
    (void)state;
    check_aten_cases(cases, sizeof cases / sizeof *cases);
}

static void wrong_calls_are_refused(void **state) {
    (void)state;
    refuse_aten("@bincount.default(x)", "needs a vector of integers");
    refuse_aten("t = @full.default([1], -1); @bincount.default(t)", "is no bin: -1");
    refuse_aten("t = @arange.default(3); @bincount.default(t, x)", "a weight for each element");
    refuse_aten("t = @arange.default(3); @bincount.default(t, None, -1)", "not be negative");
    refuse_aten("t = @zeros.default([2, 0]); @mode.default(t)", "a dimension with elements");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_counted_as_torch_does),
        cmocka_unit_test(wrong_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
