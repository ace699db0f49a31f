// SPDX-License-Identifier: Apache-2.0
// Reads and sets the CPU affinity on Linux; other systems report no processors.
#define _GNU_SOURCE // sets of processors
#include "support/processors.h"

#ifdef __linux__

#include <sched.h>

size_t allowed_processors(int *out, size_t capacity) {
    cpu_set_t allowed;
    size_t count = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET((size_t)i, &allowed)) continue;
        if (count < capacity) out[count] = i;
        count++;
    }
    return count;
}

void allow_processors(const int *processors, size_t count) {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    for (size_t i = 0; i < count; i++) CPU_SET((size_t)processors[i], &allowed);
    (void)sched_setaffinity(0, sizeof allowed, &allowed);
}

int current_processor(void) {
    return sched_getcpu();
}

#else

size_t allowed_processors(int *out, size_t capacity) {
    (void)out, (void)capacity;
    return 0;
}

void allow_processors(const int *processors, size_t count) {
    (void)processors, (void)count;
}

int current_processor(void) {
    return -1;
}

#endif
