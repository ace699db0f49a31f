// SPDX-License-Identifier: Apache-2.0
// The preprocessing of images. It is declared once and stored in the model's file.
#ifndef IO_IMAGES_PREPROCESS_H
#define IO_IMAGES_PREPROCESS_H

#include "core/json/json.h"
#include "core/tensor/tensor.h"
#include "io/images/image.h"

typedef enum interpolation {
    INTERPOLATION_BILINEAR,
    INTERPOLATION_BICUBIC,
    INTERPOLATION_NEAREST
} interpolation;
typedef enum color_order { COLOR_RGB, COLOR_BGR, COLOR_GRAY } color_order;

/// The steps in order; include/tare/preprocess.h describes them.
typedef struct preprocess {
    int64_t resize_shorter;              // 0: see the next two
    int64_t resize_height, resize_width; // 0: no resize
    interpolation interpolation;
    bool antialias;
    int64_t crop_height, crop_width; // 0: no crop
    color_order color;
    double scale;
    double mean[3], std[3]; // of the channels in the order of `color`; applied as float32
    bool is_normalized;     // mean and std are given
    bool is_channels_last;  // NHWC
    bool is_uint8;          // bytes as they are; no scale, no mean
} preprocess;

/// Reads a JSON object. Unknown keys are errors, which name the path.
tare_status tare__preprocess_from_json(const json_at *at, preprocess *out, tare_error *err);
/// Reads a preset's name, `key=value,..`, or a JSON object as text.
tare_status tare__preprocess_from_text(const char *spec, preprocess *out, tare_error *err);
void tare__preprocess_to_json(const preprocess *p, text *out);
bool tare__preprocess_equal(const preprocess *a, const preprocess *b);
const char *tare__preprocess_preset_at(size_t index); // NULL past the end
int tare__preprocess_channels(const preprocess *p);   // 1 or 3

/// Applies all steps: *out is one sample, [C][H][W] or [H][W][C]. Consumes the image's pixels.
tare_status tare__preprocess_apply(const preprocess *p, image *picture, tare_tensor **out,
                                   tare_error *err);

/// Resamples each channel to height x width, with the same bytes as Pillow.
tare_status tare__image_resize(const image *from, int64_t height, int64_t width, interpolation how,
                               bool antialias, image *out, tare_error *err);

#endif
