// SPDX-License-Identifier: Apache-2.0
// Picked elements: values that PyTorch 2.15 computed for the same text.
#include "support/aten_cases.h"
#include "support/run.h"
#include "support/test.h"

// clang-format off
static const aten_case cases[] = {
    {"t = @arange.start_step(-2, 22, 7); @take.default(x, t)", "4", VALUES(1.25, -0.875, 0, 0.875)},
    {"s = @sin.default(x); t = @argsort.stable(s, stable = True, dim = 1); @take_along_dim.default(s, t, 1)", "2x3x4", VALUES(-0.997494996, -0.980893075, -0.948984623, -0.902267575, -0.841470957, -0.767543495, -0.681638777, -0.585097253, -0.47942555, -0.366272539, -0.247403964, -0.12467473, 0, 0.12467473, 0.247403964, 0.366272539, 0.47942555, 0.585097253, 0.681638777, 0.767543495, 0.841470957, 0.902267575, 0.948984623, 0.980893075)},
    {"t = @arange.default(2); @take_along_dim.default(x, t)", "2", VALUES(-1.5, -1.375)},
    {"t = @full.default([1, 1, 4], 2); @take_along_dim.default(x, t, 1)", "2x1x4", VALUES(-0.5, -0.375, -0.25, -0.125, 1, 1.125, 1.25, 1.375)},
    {"t = @arange.default(2); @index_fill.int_Scalar(x, 2, t, 9.0)", "2x3x4", VALUES(9, 9, -1.25, -1.125, 9, 9, -0.75, -0.625, 9, 9, -0.25, -0.125, 9, 9, 0.25, 0.375, 9, 9, 0.75, 0.875, 9, 9, 1.25, 1.375)},
    {"t = @gt.Scalar(x, 1.0); @masked_select.default(x, t)", "3", VALUES(1.125, 1.25, 1.375)},
    {"t = @gt.Scalar(v, 0.6); s = x[(slice(None, None, None), slice(0, 2, None), slice(0, 2, None))]; @masked_select.default(s, t)", "4", VALUES(-1.375, -0.875, 0.125, 0.625)},
    {"t = @arange.default(3); @one_hot.default(t, 4)", "3x4", VALUES(1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0)},
    {"t = @arange.start_step(0, 4, 2); @one_hot.default(t)", "2x3", VALUES(1, 0, 0, 0, 0, 1)},
    {"t = @arange.default(3); @repeat_interleave.self_Tensor(x, t, 1)", "2x3x4", VALUES(-1, -0.875, -0.75, -0.625, -0.5, -0.375, -0.25, -0.125, -0.5, -0.375, -0.25, -0.125, 0.5, 0.625, 0.75, 0.875, 1, 1.125, 1.25, 1.375, 1, 1.125, 1.25, 1.375)},
    {"t = @full.default([1], 2); @repeat_interleave.self_Tensor(v, t)", "4", VALUES(0.5, 0.5, 0.75, 0.75)},
    {"@flipud.default(x)", "2x3x4", VALUES(0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1, 1.125, 1.25, 1.375, -1.5, -1.375, -1.25, -1.125, -1, -0.875, -0.75, -0.625, -0.5, -0.375, -0.25, -0.125)},
    {"@fliplr.default(x)", "2x3x4", VALUES(-0.5, -0.375, -0.25, -0.125, -1, -0.875, -0.75, -0.625, -1.5, -1.375, -1.25, -1.125, 1, 1.125, 1.25, 1.375, 0.5, 0.625, 0.75, 0.875, 0, 0.125, 0.25, 0.375)},
    {"a = x[0]; @rot90.default(a)", "4x3", VALUES(-1.125, -0.625, -0.125, -1.25, -0.75, -0.25, -1.375, -0.875, -0.375, -1.5, -1, -0.5)},
    {"@rot90.default(x, 2, [1, 2])", "2x3x4", VALUES(-0.125, -0.25, -0.375, -0.5, -0.625, -0.75, -0.875, -1, -1.125, -1.25, -1.375, -1.5, 1.375, 1.25, 1.125, 1, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125, 0)},
    {"@rot90.default(x, -1, [2, 0])", "4x3x2", VALUES(-1.125, 0.375, -0.625, 0.875, -0.125, 1.375, -1.25, 0.25, -0.75, 0.75, -0.25, 1.25, -1.375, 0.125, -0.875, 0.625, -0.375, 1.125, -1.5, 0, -1, 0.5, -0.5, 1)},
    {"r = @hsplit.int(x, 3); r[1]", "2x1x4", VALUES(-1, -0.875, -0.75, -0.625, 0.5, 0.625, 0.75, 0.875)},
    {"r = @vsplit.array(x, [1]); r[0]", "1x3x4", VALUES(-1.5, -1.375, -1.25, -1.125, -1, -0.875, -0.75, -0.625, -0.5, -0.375, -0.25, -0.125)},
    {"r = @dsplit.array(x, [1, 3]); r[1]", "2x3x2", VALUES(-1.375, -1.25, -0.875, -0.75, -0.375, -0.25, 0.125, 0.25, 0.625, 0.75, 1.125, 1.25)},
    {"@sum_to_size.default(x, [3, 1])", "3x1", VALUES(-4.5, -0.5, 3.5)},
    {"t = @full.default([2], 1); @index_reduce.default(x, 0, t, x, 'amax')", "2x3x4", VALUES(-1.5, -1.375, -1.25, -1.125, -1, -0.875, -0.75, -0.625, -0.5, -0.375, -0.25, -0.125, 0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1, 1.125, 1.25, 1.375)},
    {"t = @arange.default(3); s = @mul.Scalar(x, 2.0); @index_reduce.default(x, 1, t, s, 'mean', include_self = False)", "2x3x4", VALUES(-3, -2.75, -2.5, -2.25, -2, -1.75, -1.5, -1.25, -1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75)},
    {"t = @arange.start_step(-2, 22, 12); @put.default(x, t, v)", "2x3x4", VALUES(-1.5, -1.375, -1.25, -1.125, -1, -0.875, -0.75, -0.625, -0.5, -0.375, 0.75, -0.125, 0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1, 1.125, 0.5, 1.375)},
    {"t = @full.default([2], 3); @put.default(x, t, v, True)", "2x3x4", VALUES(-1.5, -1.375, -1.25, 0.125, -1, -0.875, -0.75, -0.625, -0.5, -0.375, -0.25, -0.125, 0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1, 1.125, 1.25, 1.375)},
};
// clang-format on

static void picks_are_what_torch_picks(void **state) {
    (void)state;
    check_aten_cases(cases, sizeof cases / sizeof *cases);
}

static void wrong_calls_are_refused(void **state) {
    (void)state;
    refuse_aten("t = @arange.default(2); @one_hot.default(t, 1)", "not below num_classes");
    refuse_aten("t = @full.default([2], -1); @repeat_interleave.self_Tensor(x, t, 0)",
                "out of range");
    refuse_aten("t = @arange.default(2); @take_along_dim.default(x, t, 0)", "as many dimensions");
    refuse_aten("t = @full.default([1], 9); @take.default(x, t)", "outside");
    refuse_aten("@sum_to_size.default(x, [3, 2])", "does not fit");
    refuse_aten("t = @arange.default(1); @index_reduce.default(x, 0, t, x, 'amax')",
                "an index for each slice");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(picks_are_what_torch_picks),
        cmocka_unit_test(wrong_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
