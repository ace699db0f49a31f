// SPDX-License-Identifier: Apache-2.0
// FNV-1a (Fowler, Noll, Vo; http://www.isthe.com/chongo/tech/comp/fnv/) in 64 bits, for tables and
// fingerprints; hashes of names are salted.
#ifndef CORE_HASH_HASH_H
#define CORE_HASH_HASH_H

#include <stddef.h>
#include <stdint.h>

static const uint64_t tare__hash_of_nothing = UINT64_C(0xcbf29ce484222325);

/// Adds one item (a byte, or as here an integer) to a hash.
static inline uint64_t tare__hash_more(uint64_t hash, uint64_t item) {
    return (hash ^ item) * UINT64_C(0x100000001b3);
}

static inline uint64_t tare__hash_bytes(const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    uint64_t hash = tare__hash_of_nothing;
    for (size_t i = 0; i < count; i++) hash = tare__hash_more(hash, at[i]);
    return hash;
}

/// The hash of a name, for tables whose sizes are powers of two: upper bits are mixed into the
/// lower ones. Names come from files, which could contain thousands that collide; `table`, the
/// address of the slots, is part of the hash, and unknown to the file.
static inline size_t tare__hash_name(const char *name, size_t length, const void *table) {
    uint64_t hash =
        tare__hash_of_nothing ^ (uint64_t)(uintptr_t)table * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < length; i++) hash = tare__hash_more(hash, (unsigned char)name[i]);
    hash ^= hash >> 32;
    hash *= UINT64_C(0xd6e8feb86659fd93);
    return (size_t)(hash ^ (hash >> 32));
}

#endif
