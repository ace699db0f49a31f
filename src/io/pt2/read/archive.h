// SPDX-License-Identifier: Apache-2.0
// The zip archive of an exported program. When it is opened, every member's name is checked to lie
// in the archive's root folder.
#ifndef IO_PT2_READ_ARCHIVE_H
#define IO_PT2_READ_ARCHIVE_H

#include "core/memory/arena.h"
#include "core/memory/budget.h"
#include "core/memory/map.h"
#include "core/tensor/tensor.h"
#include "io/zip/read.h"

typedef struct pt2_member {
    const char *name, *full_name; // without and with the root folder
    zip_entry info;
} pt2_member;

typedef struct pt2_archive {
    storage *store; // lent: the storage of the bytes
    const unsigned char *data;
    size_t size;
    zip_directory directory;
    map members; // name -> pt2_member *, in the archive's order
    arena names;
    memory_budget budget; // for decompressed and copied bytes
    tare_error *err;
} pt2_archive;

/// `size` bytes at `data`, which belong to `store` and outlive the archive. memory_limit: as of
/// tare__file_budget; an archive whose members would exceed it together is refused at once. On
/// failure nothing is left to close.
tare_status tare__pt2_open(storage *store, const unsigned char *data, size_t size,
                           uint64_t memory_limit, tare_error *err, pt2_archive *out);
void tare__pt2_close(pt2_archive *a);

/// A member's bytes. Uncompressed members point into the mapped file, and store is the archive's;
/// compressed ones are inflated into a new storage. The caller releases store.
typedef struct pt2_bytes {
    storage *store;
    const unsigned char *data;
    size_t size;
} pt2_bytes;
tare_status tare__pt2_read_member(pt2_archive *a, const char *name, pt2_bytes *out);
bool tare__pt2_has(const pt2_archive *a, const char *name);

#endif
