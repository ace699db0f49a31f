// SPDX-License-Identifier: Apache-2.0
// Where threads may run, and do.
#ifndef SUPPORT_PROCESSORS_H
#define SUPPORT_PROCESSORS_H

#include <stddef.h>

/// The first `capacity` processors that the calling thread may use; how many there are. 0 where the
/// system does not tell.
size_t allowed_processors(int *out, size_t capacity);
/// Lets the calling thread run on these only.
void allow_processors(const int *processors, size_t count);
/// Where the calling thread runs.
int current_processor(void);

#endif
