// SPDX-License-Identifier: Apache-2.0
// Writes a zip archive.
#ifndef IO_ZIP_SINK_H
#define IO_ZIP_SINK_H

#include "core/memory/arena.h"
#include "core/system/file.h"
#include "io/zip/deflate.h"

typedef struct sink_member {
    const char *name;
    unsigned method;
    uint64_t size, packed_size, offset; // of the local header
    uint32_t checksum;
} sink_member;

/// Nothing is written twice, so that the output may be a pipe. All members have the same date: the
/// time of writing does not show.
typedef struct zip_sink {
    file_writer file;
    const char *root; // the folder of all members; NULL: none
    size_t alignment; // of members' data, in bytes
    uint64_t position;
    sink_member *members;
    size_t count, capacity;
    arena names;
    tare_error *err;
} zip_sink;

/// alignment: 1 to 64. On failure too, tare__zip_sink_close ends it.
tare_status tare__zip_sink_open(zip_sink *s, const char *path, const char *root, size_t alignment,
                                tare_error *err);
/// Stores a member as it is. name: below the root folder. size 0: an empty member.
tare_status tare__zip_sink_put(zip_sink *s, const char *name, const void *data, size_t size);
/// A member in packed form, of a finished deflater.
tare_status tare__zip_sink_put_packed(zip_sink *s, const char *name, const deflater *d);
/// Writes the directory and lets the file appear under its name.
tare_status tare__zip_sink_commit(zip_sink *s);
void tare__zip_sink_close(zip_sink *s); // removes what was not committed

#endif
