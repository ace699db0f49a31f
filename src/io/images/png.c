// SPDX-License-Identifier: Apache-2.0
// Decodes PNG with libpng. libpng reports errors by longjmp, so everything that changes after
// setjmp is in a struct, not in local variables.
#include "io/images/codec.h"

#ifdef TARE_HAVE_PNG

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"

// The largest compression ratio of deflate.
enum { MOST_INFLATION = 1032 };

typedef struct decoder {
    png_structp png;
    png_infop info;
    const unsigned char *bytes;
    size_t size, at;
    int64_t most_pixels;
    int passes; // 7 for interlaced images, else 1
    image made;
    bool is_out_of_memory;
    tare_status status; // of checks that are not libpng's
    char message[160];
    tare_error *err;
} decoder;

static void keep_error(png_structp png, png_const_charp message) {
    decoder *d = png_get_error_ptr(png);
    (void)snprintf(d->message, sizeof d->message, "%s", message);
    png_longjmp(png, 1);
}

// libpng's warnings (for example of a wrong color profile) do not affect the pixels.
static void drop_warning(png_structp png, png_const_charp message) {
    (void)png, (void)message;
}

static png_voidp allocate(png_structp png, png_alloc_size_t size) {
    decoder *d = png_get_mem_ptr(png);
    void *memory = tare__alloc(size);
    if (memory == NULL) d->is_out_of_memory = true;
    return memory;
}

static void release(png_structp png, png_voidp memory) {
    (void)png;
    tare__free(memory);
}

static void read_bytes(png_structp png, png_bytep out, size_t size) {
    decoder *d = png_get_io_ptr(png);
    if (size > d->size - d->at) png_error(png, "the file ends in the middle of the picture");
    memcpy(out, d->bytes + d->at, size);
    d->at += size;
}

// Requests grey or RGB with 8 bits and without alpha.
static void ask_for_bytes(decoder *d) {
    png_set_strip_16(d->png);
    png_set_packing(d->png);
    if (png_get_color_type(d->png, d->info) == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(d->png);
    else if (png_get_bit_depth(d->png, d->info) < 8)
        png_set_expand_gray_1_2_4_to_8(d->png);
    png_set_strip_alpha(d->png); // palette_to_rgb adds alpha if there is transparency
}

static tare_status begin_picture(decoder *d) {
    const int64_t height = png_get_image_height(d->png, d->info);
    const int64_t width = png_get_image_width(d->png, d->info);
    TARE_TRY(tare__image_check_size(height, width, d->most_pixels, d->err));
    const size_t stored = png_get_rowbytes(d->png, d->info);
    if (stored * (size_t)height / MOST_INFLATION > d->size)
        return tare__fail(d->err, TARE_MALFORMED_FILE,
                          "the file is too short for a picture of %lld x %lld pixels",
                          (long long)width, (long long)height);
    ask_for_bytes(d);
    d->passes = png_set_interlace_handling(d->png);
    png_read_update_info(d->png, d->info);
    const int channels = png_get_channels(d->png, d->info);
    if ((channels != 1 && channels != 3) ||
        png_get_rowbytes(d->png, d->info) != (size_t)width * (size_t)channels)
        return tare__fail(d->err, TARE_INTERNAL, "libpng gave %d channels", channels);
    return tare__image_create(height, width, channels, &d->made, d->err);
}

static void read_rows(decoder *d) {
    const size_t row_bytes = (size_t)d->made.width * (size_t)d->made.channels;
    for (int pass = 0; pass < d->passes; pass++)
        for (int64_t y = 0; y < d->made.height; y++)
            png_read_row(d->png, d->made.pixels + (size_t)y * row_bytes, NULL);
    png_read_end(d->png, NULL);
}

// Returns false if libpng left by longjmp, or if d->status is a failure.
static bool run(decoder *d) {
    if (setjmp(png_jmpbuf(d->png)) != 0) return false;
    d->info = png_create_info_struct(d->png);
    if (d->info == NULL) return false;
    png_set_read_fn(d->png, d, read_bytes);
    png_set_user_limits(d->png, 0x7fffffff, 0x7fffffff); // begin_picture has its own limit
    png_set_keep_unknown_chunks(d->png, PNG_HANDLE_CHUNK_NEVER, NULL, 0);
    png_read_info(d->png, d->info);
    d->status = begin_picture(d);
    if (d->status != TARE_OK) return false;
    read_rows(d);
    return true;
}

static tare_status failure(const decoder *d) {
    if (d->is_out_of_memory) return tare__out_of_memory(d->err);
    if (d->status != TARE_OK) return d->status;
    return tare__fail(d->err, TARE_MALFORMED_FILE, "the PNG is broken: %s", d->message);
}

tare_status tare__png_decode(const unsigned char *bytes, size_t size, int64_t most_pixels,
                             image *out, tare_error *err) {
    decoder d = {.bytes = bytes, .size = size, .most_pixels = most_pixels, .err = err};
    d.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &d, keep_error, drop_warning, &d,
                                     allocate, release);
    if (d.png == NULL)
        return d.is_out_of_memory
                   ? tare__out_of_memory(err)
                   : tare__fail(err, TARE_UNSUPPORTED,
                                "libpng %s does not fit tare, which was built with libpng %s",
                                png_get_libpng_ver(NULL), PNG_LIBPNG_VER_STRING);
    const bool is_read = run(&d);
    png_destroy_read_struct(&d.png, &d.info, NULL);
    if (is_read) {
        *out = d.made;
        return TARE_OK;
    }
    tare__image_release(&d.made);
    return failure(&d);
}

#else

tare_status tare__png_decode(const unsigned char *bytes, size_t size, int64_t most_pixels,
                             image *out, tare_error *err) {
    (void)bytes, (void)size, (void)most_pixels, (void)out;
    return tare__fail(err, TARE_UNSUPPORTED, "a PNG, but tare was built without libpng");
}

#endif
