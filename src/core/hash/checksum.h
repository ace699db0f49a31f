// SPDX-License-Identifier: Apache-2.0
// XXH3 (Collet, https://xxhash.com) in 64 bits: fast enough to check everything that is read, and
// the same on every machine. It detects accidental differences, not intended ones.
// (core/hash/digest.h is older and slower; calibration files contain its values.)
#ifndef CORE_HASH_CHECKSUM_H
#define CORE_HASH_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/// XXH3_64bits_withSeed. bytes may be NULL where size is 0.
uint64_t tare__checksum(const void *bytes, size_t size, uint64_t seed);

#endif
