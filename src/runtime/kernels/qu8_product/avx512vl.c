// SPDX-License-Identifier: Apache-2.0
// build: -O3
// The products of level avxvnni in AVX-512's encoding.
#define QU8_PRODUCT    qu8_product__avx512vl
#define DOT(acc, x, w) _mm256_dpbusd_epi32(acc, x, w)
#include "runtime/kernels/qu8_product/avxvnni.h"
