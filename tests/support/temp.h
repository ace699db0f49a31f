// SPDX-License-Identifier: Apache-2.0
// A folder for a test program's files: made before its tests, removed with everything in it after.
#ifndef SUPPORT_TEMP_H
#define SUPPORT_TEMP_H

#include <stdbool.h>
#include <stddef.h>

/// A new folder in $TMPDIR, or in /tmp, whose name begins with `stem`. False: it could not be made.
bool temp_make_folder(const char *stem, char *path, size_t size);
int temp_make(void **state);   // group setup
int temp_remove(void **state); // group teardown

const char *temp_folder(void);
/// FOLDER/name; static storage, good for the next four calls.
const char *temp_path(const char *name);
void temp_write(const char *path, const void *bytes, size_t size);
/// The whole file (free); its size into *size.
unsigned char *temp_read(const char *path, size_t *size);

#endif
