// SPDX-License-Identifier: Apache-2.0
// FNV-1a (Fowler, Noll, Vo; http://www.isthe.com/chongo/tech/comp/fnv/) in 64 bits, for tables and
// fingerprints of what nobody chose with ill intent.
#ifndef CORE_HASH_H
#define CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

static const uint64_t tare__hash_of_nothing = UINT64_C(0xcbf29ce484222325);

/// The hash of what `hash` is one of, with one item behind it: a byte, or as here a whole number.
static inline uint64_t tare__hash_more(uint64_t hash, uint64_t item) {
    return (hash ^ item) * UINT64_C(0x100000001b3);
}

static inline uint64_t tare__hash_bytes(const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    uint64_t hash = tare__hash_of_nothing;
    for (size_t i = 0; i < count; i++) hash = tare__hash_more(hash, at[i]);
    return hash;
}

/// Of a name, for tables whose sizes are powers of two: upper bits count in the lower ones.
static inline size_t tare__hash_name(const char *name, size_t length) {
    const uint64_t hash = tare__hash_bytes(name, length);
    return (size_t)(hash ^ (hash >> 32));
}

#endif
