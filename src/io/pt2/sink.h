// SPDX-License-Identifier: Apache-2.0
// A program's archive in the making.
#ifndef IO_PT2_SINK_H
#define IO_PT2_SINK_H

#include "core/arena.h"
#include "core/file.h"

typedef struct sink_member {
    const char *name;
    uint64_t size, offset; // of the local header
    uint32_t checksum;
} sink_member;

/// Members are stored as torch stores them: uncompressed, their data at multiples of 64. Nothing is
/// written twice, so that the output may be a pipe.
typedef struct pt2_sink {
    file_writer file;
    const char *root; // the folder that all members stand in
    uint64_t position;
    sink_member *members;
    size_t count, capacity;
    arena names;
    tare_error *err;
} pt2_sink;

/// The root folder is the file's name without its last ending; "archive" for standard output.
tare_status tare__pt2_sink_open(pt2_sink *s, const char *path, tare_error *err);
/// name: below the root folder. size 0: an empty member.
tare_status tare__pt2_sink_put(pt2_sink *s, const char *name, const void *data, size_t size);
/// Writes the directory and lets the file appear under its name.
tare_status tare__pt2_sink_commit(pt2_sink *s);
void tare__pt2_sink_close(pt2_sink *s); // what was not committed is removed

#endif
