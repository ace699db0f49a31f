// SPDX-License-Identifier: Apache-2.0
// The table of kernels over lines of floats.
#include "runtime/kernels/lines.h"

const line_kernels tare__line_kernels[] = {
#define KERNEL(suffix, needs)                                                                      \
    {#suffix,                                                                                      \
     needs,                                                                                        \
     f32_add__##suffix,                                                                            \
     f32_raise__##suffix,                                                                          \
     f32_softmax__##suffix,                                                                        \
     f32_normalize__##suffix},
#include "runtime/kernels/f32_lines/kernels.def"
#undef KERNEL
};
const size_t tare__line_kernel_count = sizeof tare__line_kernels / sizeof *tare__line_kernels;

const line_kernels *tare__lines_choose(isa_level isa) {
    const line_kernels *k = tare__line_kernels;
    while (k->needs > isa) k++; // ends: the last row needs nothing
    return k;
}
