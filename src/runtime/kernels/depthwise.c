// SPDX-License-Identifier: Apache-2.0
// The table of depthwise kernels.
#include "runtime/kernels/depthwise.h"

const depthwise_kernel tare__depthwise_kernels[] = {
#define KERNEL(name, needs, quads) {name, #name, needs, quads},
#include "runtime/kernels/qu8_depthwise/kernels.def"
#undef KERNEL
};

const depthwise_kernel *tare__depthwise_choose(isa_level isa) {
    const depthwise_kernel *k = tare__depthwise_kernels;
    while (k->needs > isa) k++; // ends: the last row needs nothing
    return k;
}
