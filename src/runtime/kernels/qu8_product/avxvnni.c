// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Products for CPUs with AVX-VNNI but without AVX-512.
#define QU8_PRODUCT    qu8_product__avxvnni_vex
#define DOT(acc, x, w) _mm256_dpbusd_avx_epi32(acc, x, w)
#include "runtime/kernels/qu8_product/avxvnni.h"
