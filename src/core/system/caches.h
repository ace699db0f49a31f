// SPDX-License-Identifier: Apache-2.0
// The sizes of a processor's caches.
#ifndef CORE_SYSTEM_CACHES_H
#define CORE_SYSTEM_CACHES_H

#include <stddef.h>

/// Bytes of the first-level data cache and of the second-level cache, according to the C library;
/// 32 KiB and 1 MiB if they are unknown.
size_t tare__l1_bytes(void);
size_t tare__l2_bytes(void);

#endif
