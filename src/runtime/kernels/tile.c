// SPDX-License-Identifier: Apache-2.0
// The tables of kernels.
#include "runtime/kernels/tile.h"

const conv_kernel tare__conv_kernels[] = {
#define KERNEL(name, needs, tile, words)                                                           \
    {name, name##_interleave, name##_slide, #name, needs, tile, words},
#include "runtime/kernels/qu8_conv/kernels.def"
#undef KERNEL
};

const linear_kernel tare__linear_kernels[] = {
#define KERNEL(name, needs, lanes, words) {name, #name, needs, lanes, words},
#include "runtime/kernels/qu8_linear/kernels.def"
#undef KERNEL
};

const depthwise_kernel tare__depthwise_kernels[] = {
#define KERNEL(name, needs, words, reach) {name, #name, needs, words, reach},
#include "runtime/kernels/qu8_depthwise/kernels.def"
#undef KERNEL
};
