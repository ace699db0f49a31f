// SPDX-License-Identifier: Apache-2.0
// XXH3 by the library xxHash.
#include "core/hash/checksum.h"

#include <xxhash.h>

uint64_t tare__checksum(const void *bytes, size_t size, uint64_t seed) {
    return XXH3_64bits_withSeed(size > 0 ? bytes : "", size, seed);
}
