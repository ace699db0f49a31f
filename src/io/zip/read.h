// SPDX-License-Identifier: Apache-2.0
// The directory of a zip archive in memory. Every offset and size is checked against the available
// bytes; no memory is allocated.
#ifndef IO_ZIP_READ_H
#define IO_ZIP_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ZIP_STORED = 0, ZIP_DEFLATED = 8, ZIP_ENCRYPTED = 1 }; // methods; a flag

/// An archive's directory, and the entry to read next; a copy keeps that position.
typedef struct zip_directory {
    const unsigned char *data; // lent: of the file
    size_t size;
    size_t at, end;            // of the entries that were not read yet
    uint64_t shift;            // bytes in front of the archive, which its offsets do not count
    uint64_t count;            // remaining entries, according to the archive
    bool ends_with_its_record; // there are no bytes after the archive
} zip_directory;

typedef struct zip_entry {
    const char *name; // lent from the archive: name_length bytes, without a NUL at the end
    size_t name_length;
    uint64_t packed_size, size;
    uint64_t offset; // in the file, of the local header
    unsigned method, flags;
    uint32_t checksum;
} zip_entry;

/// False when the bytes do not hold an archive's directory.
bool tare__zip_open(const unsigned char *data, size_t size, zip_directory *out);

typedef enum zip_step {
    ZIP_ENTRY, // *out is the next one
    ZIP_END,
    ZIP_BROKEN,     // the directory ends before its last entry
    ZIP_LACKS_SIZES // *out has sizes of 64 bits, and no field that holds them
} zip_step;
zip_step tare__zip_next(zip_directory *d, zip_entry *out);

/// The member's first byte, packed_size of which are within the file; NULL when there is no header
/// with the member's name at the directory's offset.
const unsigned char *tare__zip_find_data(const zip_directory *d, const zip_entry *e);

#endif
