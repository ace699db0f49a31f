// SPDX-License-Identifier: Apache-2.0
// The table of kernels over rows of floats.
#include "runtime/kernels/rows.h"

const row_kernels tare__row_kernels[] = {
#define KERNEL(suffix, level)                                                                      \
    {.needs = {level},                                                                             \
     .name = #suffix,                                                                              \
     .functions = ROW_FUNCTIONS_OF(suffix),                                                        \
     .elements = f32_elements__##suffix,                                                           \
     .binary = f32_binary__##suffix},
#include "runtime/kernels/f32_rows/kernels.def"
#undef KERNEL
};
const size_t tare__row_kernel_count = sizeof tare__row_kernels / sizeof *tare__row_kernels;

const row_kernels *tare__row_kernels_choose(isa_level isa) {
    return tare__kernel_choose(tare__row_kernels, sizeof *tare__row_kernels, isa);
}
