// SPDX-License-Identifier: Apache-2.0
/// Preprocessing of pictures. It is declared once, stored in the model's file and copied by every
/// pass, so calibrating, running and comparing use the same tensors. Arrays are not preprocessed.
///
/// The steps, in their order:
///   1. color: rgb, bgr or gray (ITU-R 601-2). Files are read as by Pillow's convert("RGB"):
///      alpha is dropped, the upper 8 of 16 bits are kept, the EXIF orientation is ignored.
///   2. resize: the shorter side to a size (the longer one in proportion, rounded down), or both
///      sides. interpolation: bilinear, bicubic or nearest. antialias: true (the default, and what
///      Pillow always does) widens the filter when the picture shrinks. The resulting bytes equal
///      those of Pillow 13.
///   3. center_crop: height and width; a picture that is too small gets black margins.
///   4. dtype: float32 computes x * scale (1/255), then (x - mean) / std per channel, in float32,
///      as torchvision's ToTensor and Normalize do; uint8 keeps the bytes.
///   5. layout: NCHW or NHWC.
#ifndef TARE_PREPROCESS_H
#define TARE_PREPROCESS_H

#include <stdbool.h>

#include "tare/model.h"
#include "tare/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Immutable.
typedef struct tare_preprocess tare_preprocess;

/// Parses a preprocessing. The caller destroys *out. spec:
/// - a preset: "imagenet" (shorter side 256, crop 224, ImageNet's mean and standard deviation) or
///   "to_tensor" (only conversion to floats from 0 to 1)
/// - "resize=256,crop=224,interpolation=bicubic,antialias=true,color=rgb,scale=1/255,
///   mean=0.5:0.5:0.5,std=0.5:0.5:0.5,layout=NCHW,dtype=float32": any of these settings; sizes are
///   N or HEIGHTxWIDTH; a preset may come first, and the settings after it change it
/// - JSON: {"resize": {"shorter": 256} or {"size": [H, W]}, both with "interpolation" and
///   "antialias"; "center_crop": [H, W], "color", "scale", "mean": [..], "std": [..], "layout",
///   "dtype"}
///
/// TARE_MALFORMED_FILE for unknown names and for settings that would have no effect.
TARE_API tare_status tare_preprocess_parse(const char *spec, tare_preprocess **out,
                                           tare_error *err);
/// The name of the index-th preset; NULL past the end. Static storage.
TARE_API const char *tare_preprocess_preset_at(size_t index);
/// As tare_preprocess_parse, from a file with the JSON form ("-": standard input). Errors also name
/// the file.
TARE_API tare_status tare_preprocess_read(const char *path, tare_preprocess **out, tare_error *err);
/// Frees a preprocessing. NULL is allowed.
TARE_API void tare_preprocess_destroy(tare_preprocess *preprocess);
/// Writes the JSON form. The caller frees *out with tare_string_free.
TARE_API tare_status tare_preprocess_to_json(const tare_preprocess *preprocess, char **out,
                                             tare_error *err);
/// Do both have the same steps?
TARE_API bool tare_preprocess_equal(const tare_preprocess *a, const tare_preprocess *b);

/// Reads a PNG or JPEG file and applies all steps. *out is a batch of one picture,
/// [1][channels][height][width] or as `layout` says; the caller releases it. TARE_MALFORMED_FILE
/// for broken files, TARE_UNSUPPORTED if tare was built without the format.
TARE_API tare_status tare_preprocess_picture(const tare_preprocess *preprocess, const char *path,
                                             tare_tensor **out, tare_error *err);

/// As tare_preprocess_picture, from the bytes of a PNG or JPEG file in memory, lent for the call.
TARE_API tare_status tare_preprocess_bytes(const tare_preprocess *preprocess, const void *bytes,
                                           size_t size, tare_tensor **out, tare_error *err);

/// The order of a pixel's channels, 8 bits each. Alpha is dropped, not blended.
typedef enum tare_pixel_format {
    TARE_PIXELS_GRAY = 1,
    TARE_PIXELS_RGB = 2,
    TARE_PIXELS_BGR = 3,
    TARE_PIXELS_RGBA = 4,
    TARE_PIXELS_BGRA = 5,
} tare_pixel_format;
/// A decoded picture, as cameras and decoders deliver it; lent for the call.
typedef struct tare_pixels {
    uint32_t struct_size;
    tare_pixel_format format;
    const uint8_t *data;   // [height][width][channels], the top row first
    int64_t height, width; // >= 1 each; height x width at most 2^26
    int64_t row_bytes;     // the distance between rows; 0: width x channels
} tare_pixels;
/// As tare_preprocess_picture, from a decoded picture. A file with these pixels gives the same
/// tensor. TARE_INVALID_ARGUMENT for sizes out of range and for overlapping rows.
TARE_API tare_status tare_preprocess_pixels(const tare_preprocess *preprocess,
                                            const tare_pixels *pixels, tare_tensor **out,
                                            tare_error *err);

/// The preprocessing that the model declares, lent by the model; NULL if none.
TARE_API const tare_preprocess *tare_model_preprocess(const tare_model *model);
/// Declares a preprocessing, which is copied into the model; NULL removes the declaration.
TARE_API tare_status tare_model_set_preprocess(tare_model *model, const tare_preprocess *preprocess,
                                               tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
