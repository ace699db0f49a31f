// SPDX-License-Identifier: Apache-2.0
// The clock of POSIX, CLOCK_MONOTONIC.
#include "core/system/clock.h"

#include <time.h>

uint64_t tare__now_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
