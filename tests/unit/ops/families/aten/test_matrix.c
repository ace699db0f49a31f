// SPDX-License-Identifier: Apache-2.0
// Linear algebra: values that PyTorch 2.15 computed for the same text.
#include "support/aten_cases.h"
#include "support/run.h"
#include "support/test.h"

// clang-format off
static const aten_case cases[] = {

};
// clang-format on

static void matrices_compute_what_torch_computes(void **state) {
    (void)state;
    check_aten_cases(cases, sizeof cases / sizeof *cases);
}

static void wrong_calls_are_refused(void **state) {
    (void)state;
    refuse_aten("t = @zeros.default([2, 2]); @linalg_inv.default(t)", "matrix 0 is singular");
    refuse_aten("@linalg_solve.default(x, x, left = False)", "transpose both sides");
    refuse_aten("t = @zeros.default([3]); @linalg_solve.default(x, t)", "do not fit");
    refuse_aten("@linalg_matrix_norm.default(x, 2)", "singular values");
    refuse_aten("@linalg_matrix_norm.str_ord(x, 'nuc')", "'nuc' is not supported");
    refuse_aten("@linalg_cross.default(x, x)", "3 elements");
    refuse_aten("@diag_embed.default(x, 0, 1, 1)", "two different dimensions");
    refuse_aten("@diag_embed.default(x, 9223372036854775807)", "two different dimensions");
    refuse_aten("@tril_indices.default(-1, 2)", "out of range");
    refuse_aten("@linalg_matrix_power.default(x, 100000)", "a power of");
    refuse_aten("@linalg_qr.default(x)", "decompositions of matrices are not supported");
    refuse_aten("t = @zeros.default([2, 3]); @linalg_det.default(t)", "square matrices");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_compute_what_torch_computes),
        cmocka_unit_test(wrong_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
