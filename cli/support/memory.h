// SPDX-License-Identifier: Apache-2.0
// Memory of the commands: the library's (tare/memory.h), so that one seam has all of it.
#ifndef CLI_MEMORY_H
#define CLI_MEMORY_H

#include <string.h>

#include "tare/memory.h"

/// For tare_memory_release. NULL: memory is gone.
static inline char *copy_text(const char *text) {
    const size_t size = strlen(text) + 1;
    char *copy = tare_memory_allocate(size, 1);
    if (copy != NULL) memcpy(copy, text, size);
    return copy;
}

#endif
