// SPDX-License-Identifier: Apache-2.0
// minizip on memory: archives are read from a mapping, and written to a buffer.
#ifndef REPLAY_ZIP_MEMORY_H
#define REPLAY_ZIP_MEMORY_H

#include <minizip/unzip.h>
#include <minizip/zip.h>
#include <stdbool.h>
#include <stddef.h>

/// Bytes behind an archive and where minizip stands in them. For reading: set data and size. For
/// writing: zero-initialize; data grows and belongs to the caller (tare__free).
typedef struct zip_memory {
    unsigned char *data;
    size_t size, capacity, position;
    bool failed; // memory ran out while writing: data is incomplete; look after zipClose
} zip_memory;

/// NULL when the bytes are not an archive. `memory` must outlive it; unzClose ends it.
unzFile unzip_open(zip_memory *memory);
zipFile zip_open(zip_memory *memory); // zipClose ends it

#endif
