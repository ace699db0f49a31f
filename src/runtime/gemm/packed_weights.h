// SPDX-License-Identifier: Apache-2.0
// Weights of quantized values in the order of a kernel: words of quantized values, and each
// channel's sum behind them. They are packed once for all who read the same tensor, or lie in a
// file as they are.
// Private to runtime/gemm.
#ifndef RUNTIME_GEMM_PACKED_WEIGHTS_H
#define RUNTIME_GEMM_PACKED_WEIGHTS_H

#include "core/tensor/derived.h"

typedef struct packed_weights {
    derived_thing base;
    const uint32_t *words;  // 64-byte aligned
    const int32_t *sums;    // of each channel's weights, modulo 2^32
    bool is_mapped;         // they are a file's
    derived_memory *memory; // of those that are shared and packed
    void *own;              // of those that are not shared
} packed_weights;

/// Bytes of words, and of all: sums follow the words, and the whole ends with a line of the cache.
typedef struct packed_size {
    size_t word_bytes, channels, bytes;
} packed_size;
/// False where that exceeds what can be counted.
bool tare__packed_size_of(size_t blocks, size_t block_words, size_t channels, packed_size *out);

/// Fills words and sums; both hold anything before.
typedef tare_status (*weights_packer)(void *user, uint32_t *words, int32_t *sums, tare_error *err);

/// Those of this key, which bytes that a file offers may be. Mapped weights leave memory when they
/// are packed. The caller releases *out.
tare_status tare__packed_weights_get(const tare_tensor *weight, const derived_key *key,
                                     const packed_size *size, weights_packer pack, void *user,
                                     packed_weights **out, tare_error *err);
/// The same for the caller alone.
tare_status tare__packed_weights_make(const packed_size *size, weights_packer pack, void *user,
                                      packed_weights **out, tare_error *err);
/// A copy as files hold them and offer them again: bytes [size]. The caller releases *out.
tare_status tare__packed_weights_bytes(const packed_weights *w, const packed_size *size,
                                       tare_tensor **out, tare_error *err);
void tare__packed_weights_release(packed_weights *w); // NULL is fine

#endif
