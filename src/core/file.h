// SPDX-License-Identifier: Apache-2.0
// Files: mapped in, and written to a temporary name that is renamed when all is well.
#ifndef CORE_FILE_H
#define CORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"
#include "core/tensor.h"

/// Maps a regular file read-only ("-" reads standard input into memory instead). *out is a storage
/// whose bytes are *data, *size; the caller releases it.
tare_status tare__file_map(const char *path, storage **out, const unsigned char **data,
                           size_t *size, tare_error *err);

/// Is there a file of this name?
bool tare__file_exists(const char *path);

/// A file in the making: everything goes to PATH.tmp-XXXXXX until commit renames it.
typedef struct file_writer {
    FILE *stream;
    char *path, *temporary; // temporary is NULL when path is "-" (standard output)
} file_writer;
tare_status tare__file_begin(file_writer *w, const char *path, tare_error *err);
tare_status tare__file_write(file_writer *w, const void *data, size_t size, tare_error *err);
tare_status tare__file_commit(file_writer *w, tare_error *err); // also releases the writer
void tare__file_abort(file_writer *w);                          // fine after commit, fine twice

#endif
