// SPDX-License-Identifier: Apache-2.0
// Finds the files that are compiled into the library.
#include "config/embedded.h"

#include <string.h>

const embedded_file *tare__embedded_find(const char *name) {
    for (size_t i = 0; i < tare__embedded_file_count; i++)
        if (strcmp(tare__embedded_files[i].name, name) == 0) return &tare__embedded_files[i];
    return NULL;
}
