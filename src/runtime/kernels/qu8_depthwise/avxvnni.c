// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Depthwise convolution for CPUs with AVX-VNNI but without AVX-512.
#define QU8_DEPTHWISE            qu8_depthwise__avxvnni_vex
#define DOT(acc, words, weights) V(dpbusd_avx_epi32)(acc, words, weights)
#define DEFINE_DOT
#include "runtime/kernels/qu8_depthwise/ymm.h"
