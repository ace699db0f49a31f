// SPDX-License-Identifier: Apache-2.0
// What the instructions of tiles.h do, in C, as Intel's manual (Software Developer's Manual, volume
// 2) writes it; what raises #UD or #GP there ends the program here. Only tests are compiled with
// it. Private to runtime/kernels.
#ifndef RUNTIME_KERNELS_X86_TILES_EMULATED_H
#define RUNTIME_KERNELS_X86_TILES_EMULATED_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// Private to a thread, as registers are.
static _Thread_local struct {
    tile_shapes shapes; // palette 0: tiles are not usable
    uint8_t data[TILE_COUNT][TILE_ROWS][TILE_LINE];
} tile_state;

static inline void require_of_tiles(bool holds) {
    if (!holds) abort();
}

// Which line of bytes a tile may have: of eight tiles, and 0 of the others, which the palette
// lacks.
static inline void check_shape(const tile_shapes *s, size_t tile) {
    const bool exists = tile < TILE_COUNT;
    require_of_tiles(s->rows[tile] <= (exists ? TILE_ROWS : 0));
    require_of_tiles(s->line_bytes[tile] <= (exists ? TILE_LINE : 0));
    require_of_tiles((s->rows[tile] == 0) == (s->line_bytes[tile] == 0));
}

static inline void configure_tiles(const tile_shapes *s) {
    memset(&tile_state, 0, sizeof tile_state);
    if (s->palette == 0) return;
    // Only a load that was interrupted starts elsewhere than in the first row.
    require_of_tiles(s->palette == 1 && s->start_row == 0);
    for (size_t i = 0; i < sizeof s->reserved; i++) require_of_tiles(s->reserved[i] == 0);
    for (size_t i = 0; i < sizeof s->rows; i++) check_shape(s, i);
    tile_state.shapes = *s;
}

static inline void release_tiles(void) {
    memset(&tile_state, 0, sizeof tile_state);
}

static inline void require_tile(size_t tile) {
    require_of_tiles(tile_state.shapes.palette == 1 && tile < TILE_COUNT &&
                     tile_state.shapes.rows[tile] > 0);
}

static inline void zero_tile(size_t tile) {
    require_tile(tile);
    memset(tile_state.data[tile], 0, sizeof tile_state.data[tile]);
}

// What lies beyond a tile's shape becomes zero.
static inline void load_tile(size_t tile, const void *from, size_t stride) {
    require_tile(tile);
    const tile_shapes *s = &tile_state.shapes;
    memset(tile_state.data[tile], 0, sizeof tile_state.data[tile]);
    for (size_t row = 0; row < s->rows[tile]; row++)
        memcpy(tile_state.data[tile][row], (const uint8_t *)from + row * stride,
               s->line_bytes[tile]);
}

static inline void store_tile(size_t tile, void *to, size_t stride) {
    require_tile(tile);
    const tile_shapes *s = &tile_state.shapes;
    for (size_t row = 0; row < s->rows[tile]; row++)
        memcpy((uint8_t *)to + row * stride, tile_state.data[tile][row], s->line_bytes[tile]);
}

static inline uint32_t add_products_of_bytes(uint32_t sum, const uint8_t *x, bool is_signed,
                                             const uint8_t *w) {
    for (size_t i = 0; i < 4; i++)
        sum += (uint32_t)((is_signed ? (int8_t)x[i] : (int32_t)x[i]) * (int8_t)w[i]);
    return sum;
}

static inline void multiply_tiles(size_t sums, size_t x, bool is_signed, size_t w) {
    const tile_shapes *s = &tile_state.shapes;
    require_tile(sums), require_tile(x), require_tile(w);
    require_of_tiles(sums != x && sums != w && x != w);
    require_of_tiles(s->line_bytes[sums] % 4 == 0 && s->line_bytes[x] % 4 == 0 &&
                     s->line_bytes[w] % 4 == 0);
    require_of_tiles(s->line_bytes[sums] == s->line_bytes[w] && s->rows[sums] == s->rows[x] &&
                     s->line_bytes[x] / 4 == s->rows[w]);
    for (size_t m = 0; m < s->rows[sums]; m++) {
        uint32_t row[TILE_LANES];
        memcpy(row, tile_state.data[sums][m], sizeof row);
        for (size_t k = 0; k < s->line_bytes[x] / 4; k++)
            for (size_t n = 0; n < s->line_bytes[sums] / 4; n++)
                row[n] = add_products_of_bytes(row[n], tile_state.data[x][m] + 4 * k, is_signed,
                                               tile_state.data[w][k] + 4 * n);
        memcpy(tile_state.data[sums][m], row, sizeof row);
    }
}

#define CONFIGURE_TILES(shapes)           configure_tiles(shapes)
#define RELEASE_TILES()                   release_tiles()
#define ZERO_TILE(tile)                   zero_tile(tile)
#define LOAD_TILE(tile, from, stride)     load_tile(tile, from, stride)
#define STORE_TILE(tile, to, stride)      store_tile(tile, to, stride)
#define MULTIPLY_TILES(sums, x, w)        multiply_tiles(sums, x, false, w)
#define MULTIPLY_SIGNED_TILES(sums, x, w) multiply_tiles(sums, x, true, w)

#endif
