// SPDX-License-Identifier: Apache-2.0
// Sums in torch's order. Expected: torch.sum(x, -1) of PyTorch 2.15.
#include "ops/line_sum.h"
#include "support/run.h"
#include "support/test.h"

enum { MOST = 5003 };

static float element(int64_t i) {
    return (float)((i * 7919 + 13) % 1000) / 999.0F - 0.3F;
}

static const struct {
    int64_t count;
    float sum;
} lines[] = {
    {1, -0x1.25dfecp-2F},  {3, 0x1.cbac26p-1F},   {5, 0x1.c21d38p+0F},    {7, 0x1.25aeb6p+1F},
    {8, 0x1.386d7ap+1F},   {15, 0x1.994e26p+1F},  {36, 0x1.ea036p+2F},    {49, 0x1.3692acp+3F},
    {100, 0x1.46680ap+4F}, {784, 0x1.3d23b6p+7F}, {5003, 0x1.f472e8p+9F},
};

static void lines_are_summed_in_torchs_order(void **state) {
    (void)state;
    static float x[MOST];
    for (int64_t i = 0; i < MOST; i++) x[i] = element(i);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        float y = NAN;
        tare__line_sum(x, lines[i].count, 1, 1, &y);
        assert_true(y == lines[i].sum);
    }
}

static void columns_are_summed_as_lines(void **state) {
    (void)state;
    enum { STRIDE = 7, WIDTH = 5 };
    static float x[MOST * STRIDE];
    for (int64_t i = 0; i < MOST; i++)
        for (int64_t c = 0; c < STRIDE; c++) x[i * STRIDE + c] = c == 3 ? element(i) : -1;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        float y[WIDTH];
        tare__line_sum(x + 1, lines[i].count, STRIDE, WIDTH, y);
        assert_true(y[2] == lines[i].sum);
        assert_true(y[0] == -(float)lines[i].count);
    }
}

static void means_and_adaptive_pools_use_them(void **state) {
    (void)state;
    const int64_t shape[] = {1, 1, 7, 7};
    tare_tensor *x = counting(0, 0, 4, shape);
    for (int64_t i = 0; i < 49; i++) tare__tensor_set(x, i, (double)element(i));
    const float mean = 0x1.3692acp+3F / 49.0F;
    tare_tensor *y = run_expression("x", "torch.mean(x, [2, 3])", INPUTS(tare_tensor_retain(x)));
    assert_true(tare__f32(y)[0] == mean);
    tare_tensor_release(y);
    y = run_expression("x", "torch.nn.functional.adaptive_avg_pool2d(x, 1)", INPUTS(x));
    assert_true(tare__f32(y)[0] == mean);
    tare_tensor_release(y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_summed_in_torchs_order),
        cmocka_unit_test(columns_are_summed_as_lines),
        cmocka_unit_test(means_and_adaptive_pools_use_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
