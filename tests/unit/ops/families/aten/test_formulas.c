// SPDX-License-Identifier: Apache-2.0
// Formulas of elements: values that PyTorch 2.15 computed for the same text.
#include "support/aten_cases.h"
#include "support/run.h"
#include "support/test.h"

// clang-format off
static const aten_case cases[] = {
    {"@erfc.default(x)", "2x3x4", VALUES(1.9661051, 1.94817007, 1.92290008, 1.88838828, 1.84270084, 1.78407502, 1.71115565, 1.62324095, 1.52049994, 1.40411687, 1.27632642, 1.14031625, 1, 0.859683812, 0.723673582, 0.595883071, 0.479500115, 0.376759112, 0.288844377, 0.215924934, 0.157299206, 0.111611769, 0.0770998746, 0.0518299267)},
    {"@special_ndtr.default(x)", "2x3x4", VALUES(0.0668072104, 0.0845657289, 0.105649769, 0.130294532, 0.158655256, 0.190786958, 0.22662735, 0.265985548, 0.308537543, 0.353830218, 0.401293665, 0.450261772, 0.5, 0.549738228, 0.598706305, 0.646169782, 0.691462457, 0.734014452, 0.77337265, 0.809213042, 0.841344714, 0.869705439, 0.894350231, 0.915434241)},
    {"@special_entr.default(x)", "2x3x4", VALUES(-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, 0, 0.259930193, 0.346573591, 0.367810965, 0.346573591, 0.293752283, 0.215761572, 0.116839968, 0, -0.132505909, -0.278929442, -0.43787387)},
    {"@special_xlog1py.default(x, x)", "2x3x4", VALUES(NAN, NAN, NAN, NAN, INFINITY, 1.81951141, 1.03972077, 0.613018274, 0.346573591, 0.176251367, 0.0719205141, 0.016691424, 0, 0.014722879, 0.0557858869, 0.119420148, 0.202732548, 0.303442389, 0.419711828, 0.550032556, 0.693147182, 0.847993255, 1.0136627, 1.18937147)},
    {"@ldexp.Tensor(x, x)", "2x3x4", VALUES(-0.530330062, -0.530134976, -0.52556026, -0.515814781, -0.5, -0.477097154, -0.445952654, -0.405262381, -0.353553385, -0.289164543, -0.210224107, -0.114625506, 0, 0.136313468, 0.297301769, 0.486314833, 0.707106769, 0.963881731, 1.26134467, 1.60475707, 2, 2.45364237, 2.97301769, 3.56630898)},
    {"@logaddexp2.default(x, x)", "2x3x4", VALUES(-0.5, -0.375, -0.25, -0.125000015, -1.06019229e-08, 0.124999993, 0.249999985, 0.375, 0.5, 0.625, 0.75, 0.875, 1, 1.125, 1.25, 1.375, 1.5, 1.625, 1.75, 1.875, 2, 2.125, 2.25, 2.375)},
    {"@round.decimals(x, decimals = 1)", "2x3x4", VALUES(-1.5, -1.39999998, -1.20000005, -1.10000002, -1, -0.899999976, -0.800000012, -0.600000024, -0.5, -0.400000006, -0.200000003, -0.100000001, 0, 0.100000001, 0.200000003, 0.400000006, 0.5, 0.600000024, 0.800000012, 0.899999976, 1, 1.10000002, 1.20000005, 1.39999998)},
    {"t = @mul.Scalar(x, 100.0); @round.decimals(t, decimals = -1)", "2x3x4", VALUES(-150, -140, -120, -110, -100, -90, -80, -60, -50, -40, -20, -10, 0, 10, 20, 40, 50, 60, 80, 90, 100, 110, 120, 140)},
    {"t = @sin.default(x); @dist.default(x, t, 1.5)", "", VALUES(1.39507186)},
    {"s = @clamp_min.default(x, 0.0); t = @log.default(s); @_safe_softmax.default(t, 2)", "2x3x4", VALUES(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.166666657, 0.333333313, 0.5, 0.181818187, 0.227272734, 0.272727281, 0.318181813, 0.210526317, 0.236842096, 0.263157874, 0.289473683)},
};
// clang-format on

static void formulas_give_what_torch_gives(void **state) {
    (void)state;
    check_aten_cases(cases, sizeof cases / sizeof *cases);
}

static void wrong_calls_are_refused(void **state) {
    (void)state;
    refuse_aten("@round.decimals(x, decimals = 99)", "out of range");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_give_what_torch_gives),
        cmocka_unit_test(wrong_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
