// SPDX-License-Identifier: Apache-2.0
// Monotonic clocks.
#ifndef CORE_SYSTEM_CLOCK_H
#define CORE_SYSTEM_CLOCK_H

#include <stdint.h>

/// Nanoseconds since a fixed moment.
uint64_t tare__now_ns(void);

/// The same, for jobs that a caller gives a number of seconds. Tests may hold this clock, so that
/// what a job does in its time depends on no machine.
uint64_t tare__job_now_ns(void);
/// From now on the clock of jobs moves by tare__job_clock_pass only, in the whole process.
void tare__job_clock_hold(void);
void tare__job_clock_pass(uint64_t nanoseconds); // no effect unless it is held

#endif
