// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution on Arm: 16 channels at a time. A file of a level defines DOT of
// qu8_depthwise.h.
#include "runtime/kernels/neon_lanes.h"

#define LOAD_SOME(x, count)     load_quantized(x, count)
#define STORE_SOME(y, count, v) store_quantized(y, count, v)
#define WIDTH(name)             name##_128
#define VEC                     neon_bytes
#define FLOATS                  float32x4_t
#define V(op)                   neon_##op
#define V_INT(op)               neon_##op##_all
#define BYTES                   16
#include "runtime/kernels/qu8_depthwise.h"
