// SPDX-License-Identifier: Apache-2.0
// Processes eight bytes at a time. Each word is mixed by multiplications and shifts, so that its
// high bits affect low ones, and combined with the digest. The constants are arbitrary odd numbers.
#include "core/hash/digest.h"

static const uint64_t factor = 0x9e3779b97f4a7c15U, other_factor = 0xd6e8feb86659fd93U;

static uint64_t mix(uint64_t x) {
    x ^= x >> 32;
    x *= other_factor;
    return x ^ x >> 29;
}

// Little-endian, whatever the machine is.
static uint64_t load(const unsigned char *at, size_t size) {
    uint64_t word = 0;
    for (size_t i = 0; i < size; i++) word |= (uint64_t)at[i] << (8 * i);
    return word;
}

uint64_t tare__digest(uint64_t before, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    uint64_t sum = mix(before + factor * (size + 1));
    size_t left = size;
    for (; left >= 8; left -= 8, at += 8) sum = (sum ^ mix(load(at, 8) + factor)) * factor;
    if (left > 0) sum = (sum ^ mix(load(at, left) + factor)) * factor;
    return mix(sum);
}
