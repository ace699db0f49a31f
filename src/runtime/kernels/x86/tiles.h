// SPDX-License-Identifier: Apache-2.0
// AMX: eight registers of a thread, tiles of 16 rows of 64 bytes, and what multiplies them. They
// are usable between TILES_BEGIN and TILES_END. Numbers of tiles are literals.
//
// Compilers' intrinsics are not used: gcc's do not say that they read memory, so that stores of
// what a tile is to load may move behind them. Private to runtime/kernels.
#ifndef RUNTIME_KERNELS_X86_TILES_H
#define RUNTIME_KERNELS_X86_TILES_H

#include <stddef.h>
#include <stdint.h>

enum { TILE_ROWS = 16, TILE_LINE = 64, TILE_LANES = TILE_LINE / 4, TILE_COUNT = 8 };

/// What ldtilecfg reads.
typedef struct tile_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t line_bytes[16]; // of tiles beyond the eighth 0
    uint8_t rows[16];
} tile_shapes;
_Static_assert(sizeof(tile_shapes) == 64, "ldtilecfg reads 64 bytes");

#define EIGHT_OF(x)                                                                                \
    { x, x, x, x, x, x, x, x }
static const tile_shapes whole_tiles = {
    .palette = 1, .line_bytes = EIGHT_OF(TILE_LINE), .rows = EIGHT_OF(TILE_ROWS)};

#ifdef TARE_EMULATED_ISA
#include "runtime/kernels/x86/tiles_emulated.h"
#else
#define CONFIGURE_TILES(shapes) __asm__ volatile("ldtilecfg %0" : : "m"(*(shapes)))
/// Tiles in their initial state are not saved when threads take turns.
#define RELEASE_TILES()         __asm__ volatile("tilerelease")
#define ZERO_TILE(tile)         __asm__ volatile("tilezero %%tmm" #tile:)
/// Rows lie `stride` bytes apart.
#define LOAD_TILE(tile, from, stride)                                                              \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile                                            \
                     :                                                                             \
                     : "r"((const void *)(from)), "r"((size_t)(stride))                            \
                     : "memory")
#define STORE_TILE(tile, to, stride)                                                               \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)"                                        \
                     :                                                                             \
                     : "r"((void *)(to)), "r"((size_t)(stride))                                    \
                     : "memory")
/// sums[m][n] += the four products of bytes of x[m][k], unsigned, and w[k][n], signed, over all k:
/// modulo 2^32, without saturation.
#define MULTIPLY_TILES(sums, x, w)                                                                 \
    __asm__ volatile("tdpbusd %%tmm" #w ", %%tmm" #x ", %%tmm" #sums:)
/// The same for signed x.
#define MULTIPLY_SIGNED_TILES(sums, x, w)                                                          \
    __asm__ volatile("tdpbssd %%tmm" #w ", %%tmm" #x ", %%tmm" #sums:)
#endif

#define TILES_BEGIN() CONFIGURE_TILES(&whole_tiles)
#define TILES_END()   RELEASE_TILES()

#endif
