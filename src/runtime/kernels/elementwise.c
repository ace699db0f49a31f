// SPDX-License-Identifier: Apache-2.0
// The table of elementwise kernels.
#include "runtime/kernels/elementwise.h"

const elementwise_kernels tare__elementwise_kernels[] = {
#define KERNEL_WITH(name, suffix, needs, has, look_up, quantize_gelu)                              \
    {{needs, has},           #name,                                                                \
     qu8_quantize__##suffix, qu8_dequantize__##suffix,                                             \
     qu8_add__##suffix,      qu8_mul__##suffix,                                                    \
     qu8_sum__##suffix,      qu8_look_up__##look_up,                                               \
     qu8_greatest__##suffix, qu8_interleave__##suffix,                                             \
     qu8_affine__##suffix,   qu8_average__##suffix,                                                \
     qu8_blend__##suffix,    qu8_expand__##suffix,                                                 \
     quantize_gelu},
#define KERNEL(suffix, needs) KERNEL_WITH(suffix, suffix, needs, NULL, suffix, NULL)
#include "runtime/kernels/qu8_elementwise/kernels.def"
#undef KERNEL
#undef KERNEL_WITH
};
const size_t tare__elementwise_kernel_count =
    sizeof tare__elementwise_kernels / sizeof *tare__elementwise_kernels;

const elementwise_kernels *tare__elementwise_choose(isa_level isa) {
    return tare__kernel_choose(tare__elementwise_kernels, sizeof *tare__elementwise_kernels, isa);
}
