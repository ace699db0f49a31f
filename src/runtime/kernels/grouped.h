// SPDX-License-Identifier: Apache-2.0
// Products of a few rows with 4- or 8-bit weights and group-wise scales (ops/quantized/grouped.h).
// They are limited by reading the weights, so these are packed into panels in the order in which
// they are read. Outputs are lanes, so that all instruction sets add in the same order.
#ifndef RUNTIME_KERNELS_GROUPED_H
#define RUNTIME_KERNELS_GROUPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/kernels/isa.h"

/// Outputs of a panel, and inputs of each in a line of 64 bytes: 4 of 8 bits, 8 of 4 bits.
/// For each group a panel has
///   float scales[16]
///   uint8 zero points[16], if the weights have zero points
///   quantized[lines][16 outputs][4 bytes]: byte j is input j of its line; with 4 bits input j is
///   in the low half and input j + 4 in the high half
/// in this order, because a single stream is read fastest. A panel begins at a cache line.
/// Missing outputs have scale 0.
enum { GROUPED_OUTPUTS = 16, GROUPED_LINE = 64, GROUPED_MOST_PANELS = 4, GROUPED_MOST_ROWS = 8 };

static inline size_t tare__grouped_line_inputs(int bits) {
    return bits == 4 ? 8 : 4;
}

typedef struct grouped_tile {
    const uint8_t *panels; // `panel_count` panels, panel_bytes apart
    size_t panel_count, panel_bytes;
    size_t groups, group; // a group consists of whole lines
    int bits;
    bool has_zeros; // otherwise all zero points are 2^(bits - 1)
    size_t rows;
    const float *x;                // [rows][ins], for products with floats
    const int8_t *quantized;       // [rows][ins], for products with quantized rows
    const int32_t *quantized_sums; // sums of the quantized rows [rows][groups]
    float *sums;                   // [rows][panel_count][GROUPED_OUTPUTS]
} grouped_tile;

typedef struct grouped_kernels {
    kernel_needs needs;
    const char *name;
    size_t rows; // largest number of rows in a tile
    /// sums as defined in ops/quantized/grouped.h, before the row's scale and the bias.
    void (*floats)(const grouped_tile *t);
    void (*quantized)(const grouped_tile *t);
} grouped_kernels;

/// Fastest first; the last row is plain C and defines the bits.
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
