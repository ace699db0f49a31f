// SPDX-License-Identifier: Apache-2.0
// Kernels over rows of floats. Every level gives the same bits, which core/math/rows.h and
// core/math/elements.def define.
#ifndef RUNTIME_KERNELS_ROWS_H
#define RUNTIME_KERNELS_ROWS_H

#include <stddef.h>

#include "core/math/elements.h"
#include "core/math/rows.h"
#include "runtime/kernels/isa.h"

typedef struct row_kernels {
    kernel_needs needs;
    const char *name;
    row_functions functions;
    const element_loop *elements; // by element_kind
    const binary_loop *binary;    // by binary_kind
} row_kernels;

/// Fastest first; the last row runs everywhere.
extern const row_kernels tare__row_kernels[];
extern const size_t tare__row_kernel_count;
const row_kernels *tare__row_kernels_choose(isa_level isa);

#define KERNEL(suffix, level)                                                                      \
    ROW_FUNCTIONS(suffix)                                                                          \
    extern const element_loop f32_elements__##suffix[ELEMENT_COUNT];                               \
    extern const binary_loop f32_binary__##suffix[BINARY_COUNT];
#include "runtime/kernels/f32_rows/kernels.def"
#undef KERNEL

#endif
