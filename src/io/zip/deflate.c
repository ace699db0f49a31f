// SPDX-License-Identifier: Apache-2.0
// Inflating and deflating of members by zlib.
#include "io/zip/deflate.h"

#include <limits.h>

#include "core/memory/alloc.h"

static voidpf allocate(voidpf user, uInt count, uInt size) {
    (void)user;
    return tare__realloc_array(NULL, count, size);
}

static void release(voidpf user, voidpf memory) {
    (void)user;
    tare__free(memory);
}

static uInt at_most_int(uint64_t size) {
    return size < INT_MAX ? (uInt)size : INT_MAX;
}

// Zip members have no zlib header, which negative bits express.
enum { BARE = -MAX_WBITS };

static tare_status begin_status(int result, tare_error *err) {
    if (result == Z_OK) return TARE_OK;
    if (result == Z_MEM_ERROR) return tare__out_of_memory(err);
    return tare__fail(err, TARE_UNSUPPORTED,
                      "zlib %s does not fit tare, which was built with zlib %s", zlibVersion(),
                      ZLIB_VERSION);
}

// --- inflating ---

tare_status tare__inflate_begin(inflater *f, const unsigned char *packed, uint64_t packed_size,
                                tare_error *err) {
    *f = (inflater){.stream = {.zalloc = allocate, .zfree = release},
                    .next = packed,
                    .left = packed_size,
                    .checksum = (uint32_t)crc32_z(0, NULL, 0)};
    return begin_status(inflateInit2(&f->stream, BARE), err);
}

static void feed(inflater *f) {
    if (f->stream.avail_in > 0) return;
    f->stream.next_in = (Bytef *)f->next; // only ever read
    f->stream.avail_in = at_most_int(f->left);
    f->next += f->stream.avail_in;
    f->left -= f->stream.avail_in;
}

tare_status tare__inflate(inflater *f, unsigned char *out, size_t size, tare_error *err) {
    z_stream *s = &f->stream;
    while (size > 0) {
        const uInt wished = at_most_int(size);
        feed(f);
        s->next_out = out;
        s->avail_out = wished;
        const int result = inflate(s, Z_SYNC_FLUSH);
        const size_t count = wished - s->avail_out;
        const bool is_stuck = count == 0 && f->left == 0;
        f->checksum = (uint32_t)crc32_z(f->checksum, out, count);
        out += count;
        size -= count;
        if (result == Z_MEM_ERROR) return tare__out_of_memory(err);
        const bool goes_on = result == Z_OK || result == Z_BUF_ERROR;
        if (size > 0 && (!goes_on || is_stuck)) return TARE_MALFORMED_FILE;
    }
    return TARE_OK;
}

void tare__inflate_end(inflater *f) {
    (void)inflateEnd(&f->stream);
}

// --- deflating ---

enum { USUAL_MEMORY = 8, CHUNK = 1 << 14 };

tare_status tare__deflate_begin(deflater *d, tare_error *err) {
    *d = (deflater){.stream = {.zalloc = allocate, .zfree = release},
                    .checksum = (uint32_t)crc32_z(0, NULL, 0)};
    return begin_status(deflateInit2(&d->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, BARE,
                                     USUAL_MEMORY, Z_DEFAULT_STRATEGY),
                        err);
}

// Until all that was handed in is taken and, with Z_FINISH, given out.
static tare_status pump(deflater *d, int flush, tare_error *err) {
    unsigned char chunk[CHUNK];
    do {
        d->stream.next_out = chunk;
        d->stream.avail_out = sizeof chunk;
        (void)deflate(&d->stream, flush); // all of its memory was there when it began
        tare__text_append_n(&d->packed, (const char *)chunk, sizeof chunk - d->stream.avail_out);
    } while (d->stream.avail_out == 0);
    return tare__text_status(&d->packed, err);
}

tare_status tare__deflate(deflater *d, const void *bytes, size_t size, tare_error *err) {
    const unsigned char *at = bytes;
    d->checksum = (uint32_t)crc32_z(d->checksum, at, size);
    d->size += size;
    while (size > 0) {
        const uInt count = at_most_int(size);
        d->stream.next_in = (Bytef *)at; // only ever read
        d->stream.avail_in = count;
        TARE_TRY(pump(d, Z_NO_FLUSH, err));
        at += count;
        size -= count;
    }
    return TARE_OK;
}

tare_status tare__deflate_finish(deflater *d, tare_error *err) {
    return pump(d, Z_FINISH, err);
}

void tare__deflate_end(deflater *d) {
    (void)deflateEnd(&d->stream);
    tare__text_release(&d->packed);
}
