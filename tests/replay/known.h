// SPDX-License-Identifier: Apache-2.0
// Cases in which the recorded values are known to be wrong.
#ifndef REPLAY_KNOWN_H
#define REPLAY_KNOWN_H

#include "core/error.h"
#include "core/memory/arena.h"

typedef struct known_difference {
    const char *pattern, *reason;
} known_difference;

typedef struct known_differences { // zero-initialized is empty
    known_difference *items;
    size_t count, capacity;
    arena memory;
} known_differences;

/// Lines `NAME: reason`, where NAME may hold `*` and `?`; empty lines and those that begin with `#`
/// are passed over.
tare_status known_read(const char *path, known_differences *out, tare_error *err);
const char *known_reason(const known_differences *known, const char *name); // NULL: none
void known_release(known_differences *known);

#endif
