// SPDX-License-Identifier: Apache-2.0
// The two decoders under io/images/image.c.
// Private to io/images.
#ifndef IO_IMAGES_CODEC_H
#define IO_IMAGES_CODEC_H

#include "io/images/image.h"

/// Both: as tare__image_decode, for their format.
tare_status tare__png_decode(const unsigned char *bytes, size_t size, int64_t most_pixels,
                             image *out, tare_error *err);
tare_status tare__jpeg_decode(const unsigned char *bytes, size_t size, int64_t most_pixels,
                              image *out, tare_error *err);

/// Refuses an empty picture and one of more than most_pixels.
tare_status tare__image_check_size(int64_t height, int64_t width, int64_t most_pixels,
                                   tare_error *err);

#endif
