// SPDX-License-Identifier: Apache-2.0
// Finds where a kernel may add two products in 16 bits. AVX2's vpmaddubsw adds products of unsigned
// quantized values and signed weights pairwise, and saturates for some weights. The weights of a
// chunk (16 channels by a few words of depth) prove that it does not, or they do not.
#ifndef RUNTIME_KERNELS_SATURATION_H
#define RUNTIME_KERNELS_SATURATION_H

#include "runtime/kernels/product.h"

enum { PRODUCT_CHUNK = 8 }; // words: few, because large weights are rare and occur anywhere

/// Number of chunks in a vector of channels.
static inline size_t tare__product_chunks(size_t depth) {
    return (depth + PRODUCT_CHUNK - 1) / PRODUCT_CHUNK;
}

/// True if a * x + b * y fits 16 bits for all quantized values x, y in 0 .. 255. If the signs
/// differ, the sum is between the products, and 255 * -128 fits. Otherwise it is extreme for x = y
/// = 255: 255 * 128 = 32640 fits, 255 * 129 = 32895 does not, which are conditions on a + b.
static inline bool tare__product_pair_fits(int8_t a, int8_t b) {
    const int sum = a + b;
    return sum >= -128 && sum <= 128;
}

/// Computes out[vectors][chunks] for the packed weights of a block; depth: words.
void tare__product_prove_unsaturated(const uint32_t *w, size_t channels, size_t depth, bool *out);

#endif
