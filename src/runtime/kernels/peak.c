// SPDX-License-Identifier: Apache-2.0
// The table of peak kernels.
#include "runtime/kernels/peak.h"

static const peak_kernels rows[] = {
#define KERNEL(needs, of_quantized, of_floats, integers, floats)                                   \
    {{needs},                                                                                      \
     peak_quantized__##of_quantized,                                                               \
     peak_floats__##of_floats,                                                                     \
     peak_read__##of_floats,                                                                       \
     integers,                                                                                     \
     floats},
#include "runtime/kernels/peak/kernels.def"
#undef KERNEL
};

const peak_kernels *tare__peak_choose(isa_level isa) {
    return tare__kernel_choose(rows, sizeof *rows, isa);
}
