// SPDX-License-Identifier: Apache-2.0
// The sizes of a processor's caches, from sysconf.
#include "core/system/caches.h"

#include <stdatomic.h>
#include <unistd.h>

static const size_t usual_l1 = 32 << 10, usual_l2 = 1 << 20;

// Queries the size once, because cpuid takes microseconds in a virtual machine.
static size_t ask_once(atomic_size_t *kept, int name, size_t usual) {
    size_t bytes = atomic_load_explicit(kept, memory_order_relaxed);
    if (bytes != 0) return bytes;
    const long found = name != 0 ? sysconf(name) : 0;
    bytes = found > 0 ? (size_t)found : usual;
    atomic_store_explicit(kept, bytes, memory_order_relaxed);
    return bytes;
}

#ifdef _SC_LEVEL2_CACHE_SIZE
enum { L1_NAME = _SC_LEVEL1_DCACHE_SIZE, L2_NAME = _SC_LEVEL2_CACHE_SIZE };
#else
enum { L1_NAME = 0, L2_NAME = 0 };
#endif

size_t tare__l1_bytes(void) {
    static atomic_size_t kept;
    return ask_once(&kept, L1_NAME, usual_l1);
}

size_t tare__l2_bytes(void) {
    static atomic_size_t kept;
    return ask_once(&kept, L2_NAME, usual_l2);
}
