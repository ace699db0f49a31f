// SPDX-License-Identifier: Apache-2.0
// A monotonic clock.
#ifndef CORE_SYSTEM_CLOCK_H
#define CORE_SYSTEM_CLOCK_H

#include <stdint.h>

/// Nanoseconds since a fixed moment.
uint64_t tare__now_ns(void);

#endif
