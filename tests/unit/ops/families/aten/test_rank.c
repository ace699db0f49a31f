// SPDX-License-Identifier: Apache-2.0
// Elements of a rank: values that PyTorch 2.15 computed for the same text.
#include "support/aten_cases.h"
#include "support/run.h"
#include "support/test.h"

// clang-format off
static const aten_case cases[] = {
    {"s = @sin.default(x); r = @kthvalue.default(s, 2, 1); r[0]", "2x4", VALUES(-0.841470957, -0.767543495, -0.681638777, -0.585097253, 0.47942555, 0.585097253, 0.681638777, 0.767543495)},
    {"s = @sin.default(x); r = @kthvalue.default(s, 3, 2, True); r[1]", "2x3x1", VALUES(2, 2, 2, 2, 2, 2)},
    {"s = @sin.default(x); @median.default(s)", "", VALUES(-0.12467473)},
    {"s = @sin.default(x); r = @median.dim(s, 2); r[0]", "2x3", VALUES(-0.980893075, -0.767543495, -0.366272539, 0.12467473, 0.585097253, 0.902267575)},
    {"s = @sin.default(x); r = @median.dim(s, 1, True); r[1]", "2x1x4", VALUES(1, 1, 1, 1, 1, 1, 1, 1)},
    {"s = @log.default(x); r = @median.dim(s, 2); r[0]", "2x3", VALUES(NAN, NAN, NAN, -2.07944155, -0.470003635, 0.117783032)},
    {"s = @log.default(x); r = @nanmedian.dim(s, 0); r[0]", "3x4", VALUES(-INFINITY, -2.07944155, -1.38629436, -0.980829239, -0.693147182, -0.470003635, -0.287682056, -0.133531392, 0, 0.117783032, 0.223143548, 0.318453729)},
    {"s = @log.default(x); @nanmedian.default(s)", "", VALUES(-0.470003635)},
    {"s = @sin.default(x); @msort.default(s)", "2x3x4", VALUES(-0.997494996, -0.980893075, -0.948984623, -0.902267575, -0.841470957, -0.767543495, -0.681638777, -0.585097253, -0.47942555, -0.366272539, -0.247403964, -0.12467473, 0, 0.12467473, 0.247403964, 0.366272539, 0.47942555, 0.585097253, 0.681638777, 0.767543495, 0.841470957, 0.902267575, 0.948984623, 0.980893075)},
    {"s = @sin.default(x); @quantile.scalar(s, 0.3, 1, True)", "2x1x4", VALUES(-0.903880596, -0.852883339, -0.78857708, -0.711965382, 0.287655354, 0.400928259, 0.507944882, 0.6070351)},
    {"s = @sin.default(x); @quantile.default(s, v)", "2", VALUES(-0.062337365, 0.609232664)},
    {"s = @sin.default(x); @quantile.scalar(s, 0.4, 2, interpolation = 'higher')", "2x3", VALUES(-0.948984623, -0.681638777, -0.247403964, 0.247403964, 0.681638777, 0.948984623)},
    {"s = @sin.default(x); @quantile.default(s, v, 2, interpolation = 'nearest')", "2x2x3", VALUES(-0.948984623, -0.681638777, -0.247403964, 0.247403964, 0.681638777, 0.948984623, -0.948984623, -0.681638777, -0.247403964, 0.247403964, 0.681638777, 0.948984623)},
};
// clang-format on

static void ranks_are_what_torch_finds(void **state) {
    (void)state;
    check_aten_cases(cases, sizeof cases / sizeof *cases);
}

static void wrong_calls_are_refused(void **state) {
    (void)state;
    refuse_aten("@kthvalue.default(x, 3)", "not within");
    refuse_aten("@quantile.default(x, x)", "a number or a vector");
    refuse_aten("t = @zeros.default([0]); @median.default(t)", "with elements");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_what_torch_finds),
        cmocka_unit_test(wrong_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
