// SPDX-License-Identifier: Apache-2.0
// Products of a few rows with weights of 4 or 8 bits and scales per group
// (ops/quantized/grouped.h). Reading the weights is what they cost: these lie in panels in the
// order in which they are read. Outputs are lanes, so that sums have one order for all instruction
// sets.
#ifndef RUNTIME_KERNELS_GROUPED_H
#define RUNTIME_KERNELS_GROUPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/kernels/isa.h"

/// Outputs of a panel, and how many inputs a line of 64 bytes has of each: 4 of 8 bits, 8 of 4.
/// A panel has for each group
///   float scales[16]
///   uint8 zero points[16]; not there without zero points
///   quantized[lines][16 outputs][4 bytes]: byte j has input j of its line; of 4 bits input j in
///   its low half and input j + 4 in the high one
/// one after the other, for what is read in one stream comes as fast as memory gives it. It begins
/// at a line of the cache. Outputs that are not there have scale 0.
enum { GROUPED_OUTPUTS = 16, GROUPED_LINE = 64, GROUPED_MOST_PANELS = 4, GROUPED_MOST_ROWS = 8 };

static inline size_t tare__grouped_line_inputs(int bits) {
    return bits == 4 ? 8 : 4;
}

typedef struct grouped_tile {
    const uint8_t *panels; // `panel_count` of them, at a distance of panel_bytes
    size_t panel_count, panel_bytes;
    size_t groups, group; // a group has whole lines
    int bits;
    bool has_zeros; // else zero points are 2^(bits - 1)
    size_t rows;
    const float *x;                // [rows][ins]; of products with floats
    const int8_t *quantized;       // [rows][ins]; of products with quantized rows
    const int32_t *quantized_sums; // of them [rows][groups]
    float *sums;                   // [rows][panel_count][GROUPED_OUTPUTS]
} grouped_tile;

typedef struct grouped_kernels {
    kernel_needs needs;
    const char *name;
    size_t rows; // at most, of a tile
    /// sums as ops/quantized/grouped.h defines them, before the row's scale and the bias.
    void (*floats)(const grouped_tile *t);
    void (*quantized)(const grouped_tile *t);
} grouped_kernels;

/// Best first; the last row is plain C and defines the bits.
extern const grouped_kernels tare__grouped_kernels[];
extern const size_t tare__grouped_kernel_count;
const grouped_kernels *tare__grouped_kernels_choose(isa_level isa);

/// The layout of a group: scales, zero points, weights.
enum { GROUPED_SCALE_BYTES = GROUPED_OUTPUTS * sizeof(float) };
static inline size_t tare__grouped_head_bytes(bool has_zeros) {
    return GROUPED_SCALE_BYTES + (has_zeros ? GROUPED_OUTPUTS : 0);
}
static inline size_t tare__grouped_bytes(size_t group, int bits, bool has_zeros) {
    return tare__grouped_head_bytes(has_zeros) +
           group / tare__grouped_line_inputs(bits) * GROUPED_LINE;
}
static inline const float *tare__grouped_scales(const uint8_t *group) {
    return (const float *)(const void *)group;
}
static inline const uint8_t *tare__grouped_zeros(const uint8_t *group) {
    return group + GROUPED_SCALE_BYTES;
}
static inline const uint8_t *tare__grouped_panel(const grouped_tile *t, size_t panel) {
    return t->panels + panel * t->panel_bytes;
}

#define KERNEL(suffix, level, most_rows)                                                           \
    void grouped_floats__##suffix(const grouped_tile *t);                                          \
    void grouped_quantized__##suffix(const grouped_tile *t);
#include "runtime/kernels/grouped_product/kernels.def"
#undef KERNEL

#endif
