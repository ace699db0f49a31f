// SPDX-License-Identifier: Apache-2.0
// The table of products with weights in groups.
#include "runtime/kernels/grouped.h"

const grouped_kernels tare__grouped_kernels[] = {
#define KERNEL(suffix, level, most_rows)                                                           \
    {{level}, #suffix, most_rows, grouped_floats__##suffix, grouped_quantized__##suffix},
#include "runtime/kernels/grouped_product/kernels.def"
#undef KERNEL
};
const size_t tare__grouped_kernel_count =
    sizeof tare__grouped_kernels / sizeof *tare__grouped_kernels;

const grouped_kernels *tare__grouped_kernels_choose(isa_level isa) {
    return tare__kernel_choose(tare__grouped_kernels, sizeof *tare__grouped_kernels, isa);
}
