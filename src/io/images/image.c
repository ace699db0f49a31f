// SPDX-License-Identifier: Apache-2.0
// Reads images of any supported format.
#define _XOPEN_SOURCE 700 // strcasecmp
#include "io/images/image.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "core/memory/alloc.h"
#include "core/system/file.h"
#include "io/images/codec.h"

bool tare__image_name(const char *path) {
    static const char *const endings[] = {".png", ".jpg", ".jpeg"};
    const size_t length = strlen(path);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t ending = strlen(endings[i]);
        if (length > ending && strcasecmp(path + length - ending, endings[i]) == 0) return true;
    }
    return false;
}

tare_status tare__image_create(int64_t height, int64_t width, int channels, image *out,
                               tare_error *err) {
    size_t size = 0;
    uint8_t *pixels = NULL;
    if (height > 0 && width > 0 && tare__mul_size((size_t)height, (size_t)width, &size) &&
        tare__mul_size(size, (size_t)channels, &size))
        pixels = tare__alloc(size);
    if (pixels == NULL) return tare__out_of_memory(err);
    *out = (image){.pixels = pixels, .height = height, .width = width, .channels = channels};
    return TARE_OK;
}

void tare__image_release(image *i) {
    tare__free(i->pixels);
    *i = (image){0};
}

tare_status tare__image_check_size(int64_t height, int64_t width, int64_t most_pixels,
                                   tare_error *err) {
    if (height < 1 || width < 1)
        return tare__fail(err, TARE_MALFORMED_FILE, "the picture has no pixels");
    if (width <= most_pixels / height) return TARE_OK;
    return tare__fail(err, TARE_MALFORMED_FILE,
                      "the picture is %" PRId64 " wide and %" PRId64 " high; at most %" PRId64
                      " pixels are read",
                      width, height, most_pixels);
}

tare_status tare__image_decode(const unsigned char *bytes, size_t size, int64_t most_pixels,
                               image *out, tare_error *err) {
    static const unsigned char png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    static const unsigned char jpeg[] = {0xff, 0xd8, 0xff};
    if (size == 0) return tare__fail(err, TARE_MALFORMED_FILE, "the file is empty");
    if (size >= sizeof png && memcmp(bytes, png, sizeof png) == 0)
        return tare__png_decode(bytes, size, most_pixels, out, err);
    if (size >= sizeof jpeg && memcmp(bytes, jpeg, sizeof jpeg) == 0)
        return tare__jpeg_decode(bytes, size, most_pixels, out, err);
    return tare__fail(err, TARE_MALFORMED_FILE, "the file is neither PNG nor JPEG");
}

tare_status tare__image_read(const char *path, image *out, tare_error *err) {
    storage *file = NULL;
    const unsigned char *bytes = NULL;
    size_t size = 0;
    TARE_TRY(tare__file_map(path, &file, &bytes, &size, err));
    const tare_status status = tare__image_decode(bytes, size, IMAGE_MOST_PIXELS, out, err);
    tare__storage_release(file);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "%s", path);
}
