// SPDX-License-Identifier: Apache-2.0
// build: -O3 -mprefer-vector-width=512
// The peak of AMX: products of tiles take 16 cycles each, and four sums hide the 52 that one waits
// for the one before.
#include "runtime/kernels/peak.h"
#include "runtime/kernels/x86/tiles.h"

uint32_t peak_quantized__amxint8(size_t rounds) {
    int32_t sums[TILE_ROWS][TILE_LANES];
    uint8_t x[TILE_ROWS][TILE_LINE], w[TILE_ROWS][TILE_LINE];
    for (size_t i = 0; i < sizeof x; i++) x[i / TILE_LINE][i % TILE_LINE] = 3;
    for (size_t i = 0; i < sizeof w; i++) w[i / TILE_LINE][i % TILE_LINE] = (uint8_t)-2;
    TILES_BEGIN();
    ZERO_TILE(0);
    ZERO_TILE(1);
    ZERO_TILE(2);
    ZERO_TILE(3);
    LOAD_TILE(4, x, TILE_LINE);
    LOAD_TILE(5, x, TILE_LINE);
    LOAD_TILE(6, w, TILE_LINE);
    LOAD_TILE(7, w, TILE_LINE);
    for (size_t r = 0; r < rounds; r++) {
        MULTIPLY_TILES(0, 4, 6);
        MULTIPLY_TILES(1, 4, 7);
        MULTIPLY_TILES(2, 5, 6);
        MULTIPLY_TILES(3, 5, 7);
    }
    STORE_TILE(0, sums, TILE_LINE);
    TILES_END();
    return (uint32_t)sums[0][0];
}
