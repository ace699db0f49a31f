// SPDX-License-Identifier: Apache-2.0
// Memory of the commands: uses the library's allocator (tare/memory.h), so that tests can make
// every allocation fail.
#ifndef CLI_MEMORY_H
#define CLI_MEMORY_H

#include <string.h>

#include "tare/memory.h"

/// Released by tare_memory_release. NULL: memory ran out.
static inline char *copy_text(const char *text) {
    const size_t size = strlen(text) + 1;
    char *copy = tare_memory_allocate(size, 1);
    if (copy != NULL) memcpy(copy, text, size);
    return copy;
}

#endif
