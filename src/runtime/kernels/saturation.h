// SPDX-License-Identifier: Apache-2.0
// Where may a kernel add two products in 16 bits? An instruction that adds products of unsigned
// quantized values and signed weights pairwise, as AVX2's vpmaddubsw does, saturates for some
// weights. Those of a chunk, 16 channels by some words of the depth, prove that it does not, or do
// not.
#ifndef RUNTIME_KERNELS_SATURATION_H
#define RUNTIME_KERNELS_SATURATION_H

#include "runtime/kernels/product.h"

enum { PRODUCT_CHUNK = 8 }; // words: few, because weights that are large are rare and anywhere

/// Chunks of a vector of channels.
static inline size_t tare__product_chunks(size_t depth) {
    return (depth + PRODUCT_CHUNK - 1) / PRODUCT_CHUNK;
}

/// Is a * x + b * y within 16 bits for all quantized values x, y of 0 .. 255? Where the signs
/// differ, the sum lies between the products, and 255 * -128 fits. Else it is largest for x = y =
/// 255, and 255 * 128 = 32640 fits, 255 * 129 = 32895 does not. Both are said of a + b.
static inline bool tare__product_pair_fits(int8_t a, int8_t b) {
    const int sum = a + b;
    return sum >= -128 && sum <= 128;
}

/// out[vectors][chunks] of the packed weights of a block; depth: words.
void tare__product_prove_unsaturated(const uint32_t *w, size_t channels, size_t depth, bool *out);

#endif
