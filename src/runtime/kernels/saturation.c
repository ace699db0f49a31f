// SPDX-License-Identifier: Apache-2.0
// Proves from packed weights, chunk by chunk, that sums of two products fit 16 bits.
#include "runtime/kernels/saturation.h"

// A word holds two pairs for one channel.
static bool word_fits(uint32_t word) {
    const int8_t *w = (const int8_t *)(const void *)&word;
    return tare__product_pair_fits(w[0], w[1]) && tare__product_pair_fits(w[2], w[3]);
}

static bool chunk_fits(const uint32_t *w, size_t step, size_t words) {
    bool fits = true;
    for (size_t d = 0; d < words; d++)
        for (size_t lane = 0; lane < PRODUCT_LANES; lane++) fits &= word_fits(w[d * step + lane]);
    return fits;
}

void tare__product_prove_unsaturated(const uint32_t *w, size_t channels, size_t depth, bool *out) {
    const size_t vectors = tare__product_vectors(channels), step = vectors * PRODUCT_LANES;
    for (size_t v = 0; v < vectors; v++)
        for (size_t d = 0; d < depth; d += PRODUCT_CHUNK) {
            const size_t words = depth - d < PRODUCT_CHUNK ? depth - d : PRODUCT_CHUNK;
            *out++ = chunk_fits(w + d * step + v * PRODUCT_LANES, step, words);
        }
}
