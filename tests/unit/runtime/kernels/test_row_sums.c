// SPDX-License-Identifier: Apache-2.0
// Sums of columns in torch's order, of every level. Expected: torch.sum(x, -1) of PyTorch 2.15, by
// one thread.
#include "runtime/kernels/rows.h"
#include "support/run.h"
#include "support/test.h"

enum { MOST = 300007, FEW = 5003 };

static float element(size_t i) {
    return (float)((i * 7919 + 13) % 1000) / 999.0F - 0.3F;
}

static const struct {
    size_t count;
    float sum;
} lines[] = {
    {0, 0},
    {1, -0x1.25dfecp-2F},
    {3, 0x1.cbac26p-1F},
    {5, 0x1.c21d38p+0F},
    {7, 0x1.25aeb6p+1F},
    {8, 0x1.386d7ap+1F},
    {15, 0x1.994e26p+1F},
    {36, 0x1.ea036p+2F},
    {49, 0x1.3692acp+3F},
    {100, 0x1.46680ap+4F},
    {511, 0x1.9f94aap+6F},
    {512, 0x1.a0df0ap+6F},
    {784, 0x1.3d23b6p+7F},
    {FEW, 0x1.f472e8p+9F},
    {20011, 0x1.f44c96p+11F}, // a level is handed on
    {MOST, 0x1.d4c494p+15F},
};

static void check_levels(void (*check)(const row_kernels *level)) {
    for (size_t k = 0; k < tare__row_kernel_count; k++)
        if (tare__kernel_suits(&tare__row_kernels[k].needs, tare__isa_detect()))
            check(&tare__row_kernels[k]);
}

static void check_lines(const row_kernels *level) {
    static float x[MOST];
    for (size_t i = 0; i < MOST; i++) x[i] = element(i);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        float y = NAN, total = NAN;
        level->functions.columns(x, lines[i].count, 1, 1, &y);
        level->functions.total(x, lines[i].count, &total);
        if (y != lines[i].sum || total != y)
            fail_msg("%s: %zu elements are %a and %a, expected %a", level->name, lines[i].count,
                     (double)y, (double)total, (double)lines[i].sum);
    }
}

static void check_total(const row_kernels *level) {
    enum { COUNT = 1200, FIRST_STEP = 16 * 32 };
    for (size_t count = 0; count <= COUNT; count += count < FIRST_STEP + 40 ? 1 : 13) {
        // No element beyond the row is read.
        float *x = malloc((count + 1) * sizeof *x), y = NAN, expected;
        assert_non_null(x);
        for (size_t i = 0; i < count; i++) x[i] = element(i) - 0.3F;
        f32_columns__scalar(x, count, 1, 1, &expected);
        level->functions.total(x, count, &y);
        if (y != expected) fail_msg("%s: a row of %zu elements", level->name, count);
        level->functions.square_total(x, count, &y);
        for (size_t i = 0; i < count; i++) x[i] = x[i] * x[i];
        f32_columns__scalar(x, count, 1, 1, &expected);
        if (y != expected) fail_msg("%s: squares of %zu elements", level->name, count);
        free(x);
    }
}

static void a_rows_total_is_its_columns_sum(void **state) {
    (void)state;
    check_levels(check_total);
}

static void lines_are_summed_in_torchs_order(void **state) {
    (void)state;
    check_levels(check_lines);
}

// Column c begins behind c elements of the line. Nothing beyond the columns is written.
static void check_width(const row_kernels *level, const float *x, size_t stride, size_t width) {
    static const float mark = 7;
    for (size_t i = 0; i < sizeof lines / sizeof *lines && lines[i].count <= FEW; i++) {
        float y[150], expected;
        for (size_t c = 0; c < 150; c++) y[c] = mark;
        level->functions.columns(x, lines[i].count, stride, width, y);
        for (size_t c = 0; c < width; c += c % 3 + 1) {
            f32_columns__scalar(x + c, lines[i].count, stride, 1, &expected);
            if (y[c] != expected || (c == 0 && y[c] != lines[i].sum))
                fail_msg("%s: column %zu of %zu over %zu lines", level->name, c, width,
                         lines[i].count);
        }
        assert_true(y[width] == mark && y[149] == mark);
    }
}

static void check_columns(const row_kernels *level) {
    static const size_t widths[] = {1, 2, 5, 15, 16, 17, 63, 64, 65, 77, 128, 147};
    for (size_t k = 0; k < sizeof widths / sizeof *widths; k++) {
        // No element of the last line is read beyond its columns.
        const size_t width = widths[k], stride = width + k % 3, size = (FEW - 1) * stride + width;
        float *x = malloc(size * sizeof *x);
        assert_non_null(x);
        for (size_t i = 0; i < size; i++) x[i] = element(i / stride + i % stride);
        check_width(level, x, stride, width);
        free(x);
    }
}

static void columns_are_summed_as_lines(void **state) {
    (void)state;
    check_levels(check_columns);
}

static void no_sum_is_negative_zero(void **state) {
    (void)state;
    static const float x[40] = {-0.0F, -0.0F, [30] = -0.0F};
    for (size_t k = 0; k < tare__row_kernel_count; k++) {
        float y = NAN;
        if (!tare__kernel_suits(&tare__row_kernels[k].needs, tare__isa_detect())) continue;
        for (size_t count = 1; count <= 40; count++) {
            tare__row_kernels[k].functions.columns(x, count, 1, 1, &y);
            assert_true(y == 0 && !signbit(y));
            tare__row_kernels[k].functions.total(x, count, &y);
            assert_true(y == 0 && !signbit(y));
        }
    }
}

static void means_and_adaptive_pools_use_them(void **state) {
    (void)state;
    const int64_t shape[] = {1, 1, 7, 7};
    tare_tensor *x = counting(0, 0, 4, shape);
    for (int64_t i = 0; i < 49; i++) tare__tensor_set(x, i, (double)element((size_t)i));
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
        cmocka_unit_test(a_rows_total_is_its_columns_sum),
        cmocka_unit_test(no_sum_is_negative_zero),
        cmocka_unit_test(means_and_adaptive_pools_use_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
