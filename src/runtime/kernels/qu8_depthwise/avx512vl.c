// SPDX-License-Identifier: Apache-2.0
// build: -O3
// The depthwise convolution of level avxvnni in AVX-512's encoding.
#define QU8_DEPTHWISE            qu8_depthwise__avx512vl
#define DOT(acc, words, weights) V(dpbusd_epi32)(acc, words, weights)
#define DEFINE_DOT
#include "runtime/kernels/qu8_depthwise/ymm.h"
