// SPDX-License-Identifier: Apache-2.0
// Compressed members of zip archives, by zlib. zlib uses tare's allocator, so that lack of memory
// is distinguished from damaged bytes.
#ifndef IO_ZIP_DEFLATE_H
#define IO_ZIP_DEFLATE_H

#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "core/error.h"
#include "core/text/text.h"

/// The state of decompression.
typedef struct inflater {
    z_stream stream;
    const unsigned char *next; // packed bytes that the stream has not got yet
    uint64_t left;
    uint32_t checksum; // of what came out so far
} inflater;

/// On failure nothing is left to end. The bytes outlive the inflater.
tare_status tare__inflate_begin(inflater *f, const unsigned char *packed, uint64_t packed_size,
                                tare_error *err);
/// The next `size` bytes. TARE_MALFORMED_FILE, without a sentence, when there are not as many or
/// they are damaged: the caller knows whose they are. TARE_OUT_OF_MEMORY.
tare_status tare__inflate(inflater *f, unsigned char *out, size_t size, tare_error *err);
void tare__inflate_end(inflater *f);

/// The state of compression.
typedef struct deflater {
    z_stream stream;
    uint32_t checksum; // of what went in so far
    uint64_t size;
    text packed;
} deflater;

/// On failure nothing is left to end.
tare_status tare__deflate_begin(deflater *d, tare_error *err);
tare_status tare__deflate(deflater *d, const void *bytes, size_t size, tare_error *err);
/// d->packed is complete afterwards.
tare_status tare__deflate_finish(deflater *d, tare_error *err);
void tare__deflate_end(deflater *d); // also frees the compressed bytes

#endif
