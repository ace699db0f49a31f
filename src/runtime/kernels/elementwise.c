// SPDX-License-Identifier: Apache-2.0
// The table of elementwise kernels.
#include "runtime/kernels/elementwise.h"

const elementwise_kernels tare__elementwise_kernels[] = {
#define KERNEL(suffix, needs)                                                                      \
    {#suffix,                                                                                      \
     needs,                                                                                        \
     qu8_quantize__##suffix,                                                                       \
     qu8_dequantize__##suffix,                                                                     \
     qu8_add__##suffix,                                                                            \
     qu8_mul__##suffix,                                                                            \
     qu8_sum__##suffix,                                                                            \
     qu8_look_up__##suffix,                                                                        \
     qu8_raise__##suffix},
#include "runtime/kernels/qu8_elementwise/kernels.def"
#undef KERNEL
};
const size_t tare__elementwise_kernel_count =
    sizeof tare__elementwise_kernels / sizeof *tare__elementwise_kernels;

const elementwise_kernels *tare__elementwise_choose(isa_level isa) {
    const elementwise_kernels *k = tare__elementwise_kernels;
    while (k->needs > isa) k++; // ends: the last row needs nothing
    return k;
}
