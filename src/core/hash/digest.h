// SPDX-License-Identifier: Apache-2.0
// A digest of bytes: 64 bits, the same on every machine. It detects accidental differences, not
// intended ones.
#ifndef CORE_HASH_DIGEST_H
#define CORE_HASH_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/// Continues the digest `before`; 0 at the beginning. Two calls give another digest than one call
/// with the bytes of both.
uint64_t tare__digest(uint64_t before, const void *bytes, size_t size);

#endif
