// SPDX-License-Identifier: Apache-2.0
// Products of float matrices are the sums of their definition, in its order, at every level of
// instructions, whatever the sizes, the steps and the way they are divided.
#include <math.h>

#include "support/test.h"

#include "runtime/gemm/floats/blocks.h"
#include "runtime/kernels/rows.h"

enum { MOST_ROWS = 11, MOST_INNER = 300, MOST_COLUMNS = 150, PAD = 3 };
enum {
    X_COUNT = MOST_ROWS * (MOST_INNER + PAD),
    W_COUNT = (MOST_INNER + PAD) * (MOST_COLUMNS + PAD),
    Y_COUNT = MOST_ROWS * (MOST_COLUMNS + PAD)
};

static float x[X_COUNT], w[W_COUNT], y[Y_COUNT], expected[Y_COUNT], memory[FLOAT_BLOCK_MEMORY];

static void fill(float *to, size_t count, uint64_t state) {
    for (size_t i = 0; i < count; i++) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        to[i] = (float)(int32_t)(uint32_t)(state >> 32) * 0x1p-30F;
    }
}

static void multiply_by_definition(const float_block *b) {
    const int64_t along_inner = b->transposed ? 1 : b->w_step,
                  along_columns = b->transposed ? b->w_step : 1;
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t c = 0; c < b->columns; c++) {
            float sum = 0;
            for (int64_t i = 0; i < b->inner; i++) {
                const float product = x[r * b->x_step + i] * w[i * along_inner + c * along_columns];
                sum += product;
            }
            expected[r * b->y_step + c] = sum;
        }
}

// What lies between the rows of y stays as it is.
static void check(const float_block *b) {
    memset(expected, 0xA5, sizeof expected);
    multiply_by_definition(b);
    for (size_t k = 0; k < tare__row_kernel_count; k++) {
        const row_kernels *level = &tare__row_kernels[k];
        if (!tare__kernel_suits(&level->needs, tare__isa_detect())) continue;
        memset(y, 0xA5, sizeof y);
        const float_multiplier m = {NULL, &level->functions, memory};
        assert_int_equal(tare__float_block_multiply(&m, b, x, w, y), TARE_OK);
        assert_memory_equal(y, expected, sizeof y);
    }
}

static void check_forms(int64_t rows, int64_t inner, int64_t columns, int64_t pad) {
    float_block b = {.rows = rows,
                     .inner = inner,
                     .columns = columns,
                     .x_step = inner + pad,
                     .w_step = columns + pad,
                     .y_step = columns + pad};
    check(&b);
    b.transposed = true;
    b.w_step = inner + pad;
    check(&b);
}

static void products_follow_their_definition(void **state) {
    (void)state;
    fill(x, X_COUNT, 1);
    fill(w, W_COUNT, 2);
    for (int64_t rows = 1; rows <= MOST_ROWS; rows++)
        for (int64_t columns = 1; columns <= 2 * PANEL_COLUMNS + 2; columns += columns % 15 + 1)
            check_forms(rows, 5 + columns % 7, columns, columns % 2 ? PAD : 0);
}

static void long_sums_are_continued(void **state) {
    (void)state;
    fill(x, X_COUNT, 3);
    fill(w, W_COUNT, 4);
    const int64_t block = FLOAT_BLOCK_MEMORY / PANEL_COLUMNS;
    const int64_t inners[] = {1, block - 1, block, block + 1, MOST_INNER};
    for (size_t i = 0; i < sizeof inners / sizeof *inners; i++) {
        check_forms(MOST_ROWS, inners[i], MOST_COLUMNS, 0);
        check_forms(3, inners[i], PANEL_COLUMNS, PAD);
        check_forms(3, inners[i], 17, 0);
    }
}

// Infinities and NaN reach the elements that they belong to, and no others: not those of the
// padding.
static void extremes_stay_in_their_rows_and_columns(void **state) {
    (void)state;
    const float_block b = {
        .rows = 5, .inner = 9, .columns = 19, .x_step = 9, .w_step = 19, .y_step = 19};
    fill(x, X_COUNT, 5);
    fill(w, W_COUNT, 6);
    x[2 * b.x_step + 4] = INFINITY;
    w[7 * b.w_step + 18] = -INFINITY;
    const float_multiplier m = {NULL, &tare__row_kernels_choose(tare__isa_detect())->functions,
                                memory};
    assert_int_equal(tare__float_block_multiply(&m, &b, x, w, y), TARE_OK);
    for (int64_t r = 0; r < b.rows; r++)
        for (int64_t c = 0; c < b.columns; c++)
            assert_true(!isfinite(y[r * b.y_step + c]) == (r == 2 || c == 18));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_follow_their_definition),
        cmocka_unit_test(long_sums_are_continued),
        cmocka_unit_test(extremes_stay_in_their_rows_and_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
