// SPDX-License-Identifier: Apache-2.0
// Linear algebra: values that PyTorch 2.15 computed for the same text.
#include "support/aten_cases.h"
#include "support/run.h"
#include "support/test.h"

// clang-format off
static const aten_case cases[] = {
    {"t = @arange.default(6); a = @view.default(t, [2, 3]); b = @view.default(t, [3, 2]); @mm.default(a, b)", "2x2", VALUES(10, 13, 28, 40)},
    {"t = @full.default([1, 2], 200, dtype = torch.uint8); s = @full.default([2, 2], 3, dtype = torch.uint8); @mm.default(t, s)", "1x2", VALUES(176, 176)},
    {"t = @full.default([1, 2], 1073741824, dtype = torch.int32); s = @full.default([2, 1], 3, dtype = torch.int32); @matmul.default(t, s)", "1x1", VALUES(-2.14748365e+09)},
    {"t = @arange.default(12); a = @view.default(t, [2, 2, 3]); b = @view.default(t, [2, 3, 2]); @bmm.default(a, b)", "2x2x2", VALUES(10, 13, 28, 40, 172, 193, 244, 274)},
    {"t = @arange.default(4); a = @view.default(t, [2, 2]); @addmm.default(a, a, a, beta = 2, alpha = 3)", "2x2", VALUES(6, 11, 22, 39)},
    {"a = @to.dtype(x, torch.float64); b = @transpose.int(a, 1, 2); @matmul.default(a, b)", "2x3x3", VALUES(6.96875, 4.34375, 1.71875, 4.34375, 2.71875, 1.09375, 1.71875, 1.09375, 0.46875, 0.21875, 0.59375, 0.96875, 0.59375, 1.96875, 3.34375, 0.96875, 3.34375, 5.71875)},
    {"t = @arange.default(3); @dot.default(t, t)", "", VALUES(5)},
};
// clang-format on

static void matrices_compute_what_torch_computes(void **state) {
    (void)state;
    check_aten_cases(cases, sizeof cases / sizeof *cases);
}

static void wrong_calls_are_refused(void **state) {
    (void)state;
    refuse_aten("t = @to.dtype(x, torch.int64); @mm.default(x, t)", "tensors of one dtype");
    refuse_aten("t = @to.dtype(x, torch.bool); @mm.default(t, t)", "floats or integers");
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
