// SPDX-License-Identifier: Apache-2.0
// The table of depthwise kernels.
#include "runtime/kernels/depthwise.h"

const depthwise_kernel tare__depthwise_kernels[] = {
#define KERNEL(name, needs, quads, moved) {{needs}, name, #name, moved, quads},
#include "runtime/kernels/qu8_depthwise/kernels.def"
#undef KERNEL
};

const depthwise_kernel *tare__depthwise_choose(isa_level isa) {
    return tare__kernel_choose(tare__depthwise_kernels, sizeof *tare__depthwise_kernels, isa);
}

#ifdef TARE_HAVE_X86_KERNELS
void qu8_depthwise__avxvnni(const depthwise_tile *t) {
    if (tare__isa_has_avx512_encoding())
        qu8_depthwise__avx512vl(t);
    else
        qu8_depthwise__avxvnni_vex(t);
}
#endif
