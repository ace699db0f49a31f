// SPDX-License-Identifier: Apache-2.0
// The clock of POSIX, CLOCK_MONOTONIC.
#include "core/system/clock.h"

#include <stdatomic.h>
#include <time.h>

uint64_t tare__now_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static _Atomic uint64_t held; // 0: the clock of jobs is not held

uint64_t tare__job_now_ns(void) {
    const uint64_t now = atomic_load(&held);
    return now > 0 ? now : tare__now_ns();
}

void tare__job_clock_hold(void) {
    atomic_store(&held, tare__now_ns());
}

void tare__job_clock_pass(uint64_t nanoseconds) {
    if (atomic_load(&held) > 0) atomic_fetch_add(&held, nanoseconds);
}
