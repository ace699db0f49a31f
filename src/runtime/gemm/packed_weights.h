// SPDX-License-Identifier: Apache-2.0
// Packed weights: words of quantized values in the order of a kernel, followed by the sum of each
// channel. They are packed once for all readers of a tensor, or used from a file.
// Private to runtime/gemm.
#ifndef RUNTIME_GEMM_PACKED_WEIGHTS_H
#define RUNTIME_GEMM_PACKED_WEIGHTS_H

#include "core/tensor/derived.h"

typedef struct packed_weights {
    derived_item base;
    const uint32_t *words;  // 64-byte aligned
    const int32_t *sums;    // of each channel, modulo 2^32
    bool is_mapped;         // they are part of a file
    derived_memory *memory; // if they are packed and shared
    void *own;              // if they are not shared
} packed_weights;

/// Bytes of the words, and in all: sums follow the words; rounded up to a cache line.
typedef struct packed_size {
    size_t word_bytes, channels, bytes;
} packed_size;
/// False if the size overflows.
bool tare__packed_size_of(size_t blocks, size_t block_words, size_t channels, packed_size *out);

/// Fills words and sums, which are uninitialized.
typedef tare_status (*weights_packer)(void *user, uint32_t *words, int32_t *sums, tare_error *err);

/// The packed weights with this key. Bytes that a file offers are used if they fit. If the weights
/// are packed, the pages of a mapped tensor are released. The caller releases *out.
tare_status tare__packed_weights_get(const tare_tensor *weight, const derived_key *key,
                                     const packed_size *size, weights_packer pack, void *user,
                                     packed_weights **out, tare_error *err);
/// The same without sharing.
tare_status tare__packed_weights_make(const packed_size *size, weights_packer pack, void *user,
                                      packed_weights **out, tare_error *err);
/// A copy as files store and offer them: bytes [size]. The caller releases *out.
tare_status tare__packed_weights_bytes(const packed_weights *w, const packed_size *size,
                                       tare_tensor **out, tare_error *err);
void tare__packed_weights_release(packed_weights *w); // NULL is allowed

#endif
