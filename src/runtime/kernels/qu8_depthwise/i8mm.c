// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Depthwise convolution with Arm's dot product of unsigned and signed bytes.
#define DOT(acc, words, weights) OF_S32(vusdotq_s32(S32(acc), words, S8(weights)))
#include "runtime/kernels/qu8_depthwise/neon.h"

void qu8_depthwise__i8mm(const depthwise_tile *t) {
    run_depthwise_128(t);
}
