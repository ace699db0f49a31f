// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Depthwise convolution with Arm's dot product of signed bytes.
#define DOT(acc, words, weights) OF_S32(vdotq_s32(S32(acc), S8(words), S8(weights)))
#include "runtime/kernels/qu8_depthwise/neon.h"

void qu8_depthwise__neondot(const depthwise_tile *t) {
    run_depthwise_128(t);
}
