// SPDX-License-Identifier: Apache-2.0
// The table of attention's kernels.
#include "runtime/kernels/attention.h"

const attention_kernels tare__attention_kernels[] = {
#define KERNEL(suffix, needs)                                                                      \
    {{needs},                                                                                      \
     #suffix,                                                                                      \
     qu8_pack_rows__##suffix,                                                                      \
     qu8_pack_columns__##suffix,                                                                   \
     qu8_sum_rows__##suffix,                                                                       \
     qu8_weigh__##suffix,                                                                          \
     f32_scale__##suffix},
#include "runtime/kernels/qu8_attention/kernels.def"
#undef KERNEL
};

const size_t tare__attention_kernel_count =
    sizeof tare__attention_kernels / sizeof *tare__attention_kernels;

const attention_kernels *tare__attention_choose(isa_level isa) {
    return tare__kernel_choose(tare__attention_kernels, sizeof *tare__attention_kernels, isa);
}
