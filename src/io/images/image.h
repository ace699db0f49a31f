// SPDX-License-Identifier: Apache-2.0
// Images from PNG and JPEG files with 8 bits per sample, grey or RGB, equal to those of Pillow's
// convert("RGB").
//
// Palettes become RGB; alpha and transparency are dropped, not blended; 16-bit samples keep their
// upper 8 bits; samples of 1, 2 and 4 bits are scaled to 0..255; CMYK and YCCK are interpreted as
// Adobe writes them (inverted). Colour profiles, gamma and the EXIF orientation are ignored, as by
// torchvision's loader. JPEG: the accurate integer DCT and smooth upsampling, libjpeg's defaults.
// Private to io/images.
#ifndef IO_IMAGES_IMAGE_H
#define IO_IMAGES_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

/// The most pixels of an image that is read from a file: 192 MiB of RGB.
#define IMAGE_MOST_PIXELS (INT64_C(1) << 26)

typedef struct image {
    uint8_t *pixels; // [height][width][channels]
    int64_t height, width;
    int channels; // 1: grey, 3: RGB
} image;

/// True if a file's name ends like an image's: .png, .jpg, .jpeg, in any case.
bool tare__image_name(const char *path);
/// Decodes `size` bytes, PNG or JPEG by their first bytes. TARE_MALFORMED_FILE for truncated and
/// broken files and for images with more than most_pixels, TARE_UNSUPPORTED if the build lacks the
/// library. tare__image_release frees *out.
tare_status tare__image_decode(const unsigned char *bytes, size_t size, int64_t most_pixels,
                               image *out, tare_error *err);
tare_status tare__image_read(const char *path, image *out, tare_error *err);
void tare__image_release(image *i); // fine twice

/// Pixels for height x width x channels, whose product is checked.
tare_status tare__image_create(int64_t height, int64_t width, int channels, image *out,
                               tare_error *err);

#endif
