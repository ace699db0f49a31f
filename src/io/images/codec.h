// SPDX-License-Identifier: Apache-2.0
// The two decoders that io/images/image.c uses.
// Private to io/images.
#ifndef IO_IMAGES_CODEC_H
#define IO_IMAGES_CODEC_H

#include "io/images/image.h"

/// As tare__image_decode, for one format.
tare_status tare__png_decode(const unsigned char *bytes, size_t size, int64_t most_pixels,
                             image *out, tare_error *err);
tare_status tare__jpeg_decode(const unsigned char *bytes, size_t size, int64_t most_pixels,
                              image *out, tare_error *err);

/// Refuses images without pixels and those with more than most_pixels.
tare_status tare__image_check_size(int64_t height, int64_t width, int64_t most_pixels,
                                   tare_error *err);

#endif
