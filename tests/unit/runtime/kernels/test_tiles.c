// SPDX-License-Identifier: Apache-2.0
// The emulation of tiles that tests compile kernels with: shapes, and sums modulo 2^32.
#include "support/test.h"

#ifndef TARE_EMULATED_ISA
#define TARE_EMULATED_ISA
#endif
#include "runtime/kernels/x86/tiles.h"

enum { ROWS = 3, WORDS = 2, LANES = 5, STRIDE = 20 }; // of a product that does not fill its tiles

static const tile_shapes few = {
    .palette = 1, .line_bytes = {LANES * 4, WORDS * 4, LANES * 4}, .rows = {ROWS, ROWS, WORDS}};

static void products_have_the_shape_of_their_tiles(void **state) {
    uint8_t x[ROWS][WORDS * 4], w[WORDS][STRIDE + 7];
    int32_t sums[ROWS + 1][LANES + 1], before[ROWS][LANES];
    (void)state;
    for (int i = 0; i < ROWS * WORDS * 4; i++) x[i / 8][i % 8] = (uint8_t)(i * 37 + 200);
    for (int k = 0; k < WORDS; k++)
        for (int i = 0; i < STRIDE + 7; i++) w[k][i] = (uint8_t)(i * 59 + k * 101 + 120);
    for (int i = 0; i < (ROWS + 1) * (LANES + 1); i++) sums[i / 6][i % 6] = INT32_MAX - 1000 * i;
    for (int i = 0; i < ROWS * LANES; i++) before[i / 5][i % 5] = sums[i / 5][i % 5];
    CONFIGURE_TILES(&few);
    LOAD_TILE(0, sums, sizeof *sums);
    LOAD_TILE(1, x, sizeof *x);
    LOAD_TILE(2, w, sizeof *w);
    MULTIPLY_TILES(0, 1, 2);
    STORE_TILE(0, sums, sizeof *sums);
    RELEASE_TILES();
    for (int m = 0; m < ROWS; m++)
        for (int n = 0; n < LANES; n++) {
            int64_t sum = before[m][n];
            for (int k = 0; k < WORDS * 4; k++)
                sum += (int64_t)x[m][k] * (int8_t)w[k / 4][n * 4 + k % 4];
            assert_int_equal((uint32_t)sums[m][n], (uint32_t)sum);
        }
    assert_int_equal(sums[0][LANES], INT32_MAX - 1000 * LANES); // beyond a line nothing is stored
    assert_int_equal(sums[ROWS][0], INT32_MAX - 1000 * ROWS * (LANES + 1));
}

static void configuring_clears_all_tiles(void **state) {
    uint8_t ones[TILE_ROWS][TILE_LINE], found[TILE_ROWS][TILE_LINE];
    (void)state;
    memset(ones, 1, sizeof ones);
    TILES_BEGIN();
    LOAD_TILE(7, ones, TILE_LINE);
    STORE_TILE(7, found, TILE_LINE);
    assert_memory_equal(found, ones, sizeof ones);
    TILES_BEGIN();
    STORE_TILE(7, found, TILE_LINE);
    for (size_t i = 0; i < sizeof found; i++) assert_int_equal(found[i / 64][i % 64], 0);
    LOAD_TILE(7, ones, TILE_LINE);
    ZERO_TILE(7);
    STORE_TILE(7, found, TILE_LINE);
    for (size_t i = 0; i < sizeof found; i++) assert_int_equal(found[i / 64][i % 64], 0);
    TILES_END();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_have_the_shape_of_their_tiles),
        cmocka_unit_test(configuring_clears_all_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
