// SPDX-License-Identifier: Apache-2.0
// A digest of bytes: 64 bits, the same on every machine. It finds what differs by accident, not by
// intent.
#ifndef CORE_HASH_DIGEST_H
#define CORE_HASH_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/// Goes on from the digest of what came before; 0 at the beginning. Pieces count: two of them give
/// another digest than both in one.
uint64_t tare__digest(uint64_t before, const void *bytes, size_t size);

#endif
