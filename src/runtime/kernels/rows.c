// SPDX-License-Identifier: Apache-2.0
// The table of kernels over rows of floats.
#include "runtime/kernels/rows.h"

const row_kernels tare__row_kernels[] = {
#define KERNEL(suffix, level)                                                                      \
    {.needs = {level},                                                                             \
     .name = #suffix,                                                                              \
     .add = f32_add__##suffix,                                                                     \
     .sum = f32_sum__##suffix,                                                                     \
     .max_into = f32_max_into__##suffix,                                                           \
     .softmax = f32_softmax__##suffix,                                                             \
     .log_softmax = f32_log_softmax__##suffix,                                                     \
     .moments = f32_moments__##suffix,                                                             \
     .blend = f32_blend__##suffix,                                                                 \
     .affine = f32_affine__##suffix,                                                               \
     .scale_shift = f32_scale_shift__##suffix,                                                     \
     .panel = f32_panel__##suffix,                                                                 \
     .normalize = f32_normalize__##suffix,                                                         \
     .rms_normalize = f32_rms_normalize__##suffix,                                                 \
     .columns = f32_columns__##suffix,                                                             \
     .elements = f32_elements__##suffix,                                                           \
     .binary = f32_binary__##suffix},
#include "runtime/kernels/f32_rows/kernels.def"
#undef KERNEL
};
const size_t tare__row_kernel_count = sizeof tare__row_kernels / sizeof *tare__row_kernels;

const row_kernels *tare__row_kernels_choose(isa_level isa) {
    return tare__kernel_choose(tare__row_kernels, sizeof *tare__row_kernels, isa);
}
