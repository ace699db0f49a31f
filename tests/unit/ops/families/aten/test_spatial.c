// SPDX-License-Identifier: Apache-2.0
// Unpooling and affine grids: values that PyTorch 2.15 computed for the same text.
#include "support/aten_cases.h"
#include "support/run.h"
#include "support/test.h"

// clang-format off
static const aten_case cases[] = {
    {"r = @max_pool2d_with_indices.default(i, [2, 2]); a = r[0]; b = r[1]; @max_unpool2d.default(a, b, [4, 5])", "1x2x4x5", VALUES(0, 0, 0, 0, 0, -0.25, 0, 0.25, 0, 0, 0, 0, 0, 1.75, 0, 2.25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3.75, 0, 4.25, 0, 0, 0, 0, 0, 5.75, 0, 6.25, 0, 0, 0, 0)},
    {"t = @unsqueeze.default(i, 0); r = @max_pool3d_with_indices.default(t, [1, 2, 2]); a = r[0]; b = r[1]; @max_unpool3d.default(a, b, [2, 4, 4], [1, 2, 2], [0, 0, 0])", "1x1x2x4x4", VALUES(0, 0, 0, 0, 0, -0.25, 0, 0.25, 0, 0, 0, 0, 0, 1.75, 0, 2.25, 0, 0, 0, 0, 0, 3.75, 0, 4.25, 0, 0, 0, 0, 0, 5.75, 0, 6.25)},
    {"t = x[(slice(None, None, None), slice(0, 2, None), slice(0, 3, None))]; @affine_grid_generator.default(t, [2, 1, 2, 3], False)", "2x2x3x2", VALUES(0.4375, 0.354166746, -0.5625, -0.3125, -1.5625, -0.979166687, -0.9375, -0.520833313, -1.9375, -1.1875, -2.9375, -1.85416675, 0.1875, 0.104166627, 0.1875, 0.4375, 0.1875, 0.770833373, 0.3125, 0.729166627, 0.3125, 1.0625, 0.3125, 1.39583337)},
    {"t = x[(slice(None, None, None), slice(0, 2, None), slice(0, 3, None))]; @affine_grid_generator.default(t, [2, 1, 3, 1], True)", "2x3x1x2", VALUES(0.125, 0.125, -1.25, -0.75, -2.625, -1.625, 0.125, 0.125, 0.25, 0.75, 0.375, 1.375)},
    {"@affine_grid_generator.default(x, [2, 1, 2, 2, 1], False)", "2x2x2x1x3", VALUES(0.1875, 0.1875, 0.1875, -1.1875, -0.6875, -0.1875, -1.0625, -0.5625, -0.0625, -2.4375, -1.4375, -0.4375, 0.1875, 0.1875, 0.1875, 0.3125, 0.8125, 1.3125, 0.4375, 0.9375, 1.4375, 0.5625, 1.5625, 2.5625)},
    {"a = x[0]; @block_diag.default([v, a, v])", "5x8", VALUES(0.5, 0.75, 0, 0, 0, 0, 0, 0, 0, 0, -1.5, -1.375, -1.25, -1.125, 0, 0, 0, 0, -1, -0.875, -0.75, -0.625, 0, 0, 0, 0, -0.5, -0.375, -0.25, -0.125, 0, 0, 0, 0, 0, 0, 0, 0, 0.5, 0.75)},
    {"@block_diag.default([v])", "1x2", VALUES(0.5, 0.75)},
    {"t = @arange.default(3); s = @mul.Scalar(t, 0.5); @cartesian_prod.default([v, s])", "6x2", VALUES(0.5, 0, 0.5, 0.5, 0.5, 1, 0.75, 0, 0.75, 0.5, 0.75, 1)},
    {"@cartesian_prod.default([v])", "2", VALUES(0.5, 0.75)},
    {"t = @view.default(x, [1, 3, 4, 2]); torch.nn.functional.grid_sample(i, t, mode = 'nearest', padding_mode = 'border', align_corners = True)", "1x2x3x4", VALUES(-1.5, -1.5, -1.5, -0.5, -0.25, -0.25, 1, 1, 1, 2.25, 2.25, 2.25, 2.5, 2.5, 2.5, 3.5, 3.75, 3.75, 5, 5, 5, 6.25, 6.25, 6.25)},
    {"t = @view.default(x, [1, 3, 4, 2]); torch.nn.functional.grid_sample(i, t, align_corners = False)", "1x2x3x4", VALUES(0, 0, -0.5625, -1.25, -0.625, 0, 0.625, 1.25, 1.875, 1.6875, 0.28125, 0, 0, 0, 0.9375, 2.75, 3.375, 4, 4.625, 5.25, 5.875, 4.6875, 0.78125, 0)},
    {"s = @arange.start_step(0.5, 2, 0.5); r = torch.functional.meshgrid(v, s, indexing = 'xy'); r[0]", "3x2", VALUES(0.5, 0.75, 0.5, 0.75, 0.5, 0.75)},
    {"s = @arange.start_step(0.5, 2, 0.5); r = torch.functional.meshgrid(v, s, indexing = 'ij'); r[1]", "2x3", VALUES(0.5, 1, 1.5, 0.5, 1, 1.5)},
};
// clang-format on

static void images_are_put_together_as_torch_does(void **state) {
    (void)state;
    check_aten_cases(cases, sizeof cases / sizeof *cases);
}

static void wrong_calls_are_refused(void **state) {
    (void)state;
    refuse_aten("@max_unpool2d.default(x, x, [2, 2])", "needs an image");
    refuse_aten("@affine_grid_generator.default(x, [1, 1, 2, 2], False)", "theta");
    refuse_aten("t = @zeros.default([1, 2, 2]); @block_diag.default([x, t])", "takes matrices");
    refuse_aten("@cartesian_prod.default([x, x])", "expected vectors");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_put_together_as_torch_does),
        cmocka_unit_test(wrong_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
