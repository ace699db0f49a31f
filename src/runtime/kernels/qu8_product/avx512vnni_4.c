// SPDX-License-Identifier: Apache-2.0
// build: -O3 -mprefer-vector-width=512
// Products with AVX512-VNNI, of blocks of 4 vectors.
#define VECTORS 4
#include "runtime/kernels/qu8_product/avx512_block.h"
