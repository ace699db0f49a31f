// SPDX-License-Identifier: Apache-2.0
// A monotonic clock.
#ifndef CORE_SYSTEM_CLOCK_H
#define CORE_SYSTEM_CLOCK_H

#include <stdint.h>

/// Nanoseconds since some moment that stays the same while the program runs.
uint64_t tare__now_ns(void);

#endif
