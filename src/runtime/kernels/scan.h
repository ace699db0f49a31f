// SPDX-License-Identifier: Apache-2.0
// Loops of observers over floats, for every level; all give the same counts and extremes.
#ifndef RUNTIME_KERNELS_SCAN_H
#define RUNTIME_KERNELS_SCAN_H

#include "observe/classes/scan.h"
#include "runtime/kernels/isa.h"

typedef struct scan_row {
    kernel_needs needs;
    scan_kernels kernels;
} scan_row;

/// Fastest first; the last row runs everywhere.
extern const scan_row tare__scan_rows[];
extern const size_t tare__scan_row_count;
const scan_kernels *tare__scan_choose(isa_level isa);

#define KERNEL(suffix, needs) SCAN_KERNELS(suffix)
#include "runtime/kernels/f32_scan/kernels.def"
#undef KERNEL

#endif
