// SPDX-License-Identifier: Apache-2.0
// The sizes of a processor's caches.
#ifndef CORE_SYSTEM_CACHES_H
#define CORE_SYSTEM_CACHES_H

#include <stddef.h>

/// Bytes of the first-level cache of data and of the second-level cache, as the C library has them
/// from cpuid; 32 KiB and 1 MiB where it does not tell.
size_t tare__l1_bytes(void);
size_t tare__l2_bytes(void);

#endif
