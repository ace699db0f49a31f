// SPDX-License-Identifier: Apache-2.0
// Sums of int8 weights, eight at a time in one machine word.
// Private to runtime/gemm.
#ifndef RUNTIME_GEMM_WEIGHT_SUM_H
#define RUNTIME_GEMM_WEIGHT_SUM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/math/requant.h"

/// The sum of `count` weights, modulo 2^32. 128 is added to each, so that they can be summed as
/// unsigned bytes in four lanes of 16 bits, which hold the sum of 128 pairs.
static inline int32_t tare__weight_sum(const int8_t *w, size_t count) {
    const uint64_t low_bytes = UINT64_C(0x00ff00ff00ff00ff);
    const uint64_t sign_bits = UINT64_C(0x8080808080808080);
    uint64_t shifted = 0;
    size_t i = 0;
    while (count - i >= 8) {
        uint64_t lanes = 0;
        for (size_t left = 128; left > 0 && count - i >= 8; left--, i += 8) {
            uint64_t word;
            memcpy(&word, w + i, 8);
            word ^= sign_bits;
            lanes += (word & low_bytes) + (word >> 8 & low_bytes);
        }
        lanes =
            (lanes & UINT64_C(0x0000ffff0000ffff)) + (lanes >> 16 & UINT64_C(0x0000ffff0000ffff));
        shifted += (lanes & UINT32_MAX) + (lanes >> 32);
    }
    int64_t sum = (int64_t)shifted - 128 * (int64_t)i;
    for (; i < count; i++) sum += w[i];
    return tare__wrap_int32(sum);
}

#endif
