// SPDX-License-Identifier: Apache-2.0
// Preprocesses an image. Sizes and rounding follow torchvision (0.29: transforms/functional.py),
// resampling follows Pillow, and the conversion to floats follows ToTensor and Normalize.
#include <math.h>
#include <string.h>

#include "io/images/preprocess.h"

static void replace(image *old, const image *next) {
    tare__image_release(old);
    *old = *next;
}

// --- colours ---

// Pillow's L: ITU-R 601-2 with 16 fractional bits.
static uint8_t grey_of(const uint8_t *rgb) {
    return (uint8_t)((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

static tare_status choose_channels(image *i, int channels, tare_error *err) {
    if (i->channels == channels) return TARE_OK;
    image next = {0};
    TARE_TRY(tare__image_create(i->height, i->width, channels, &next, err));
    const int64_t count = i->height * i->width;
    for (int64_t p = 0; p < count; p++) {
        if (channels == 1)
            next.pixels[p] = grey_of(i->pixels + 3 * p);
        else
            memset(next.pixels + 3 * p, i->pixels[p], 3);
    }
    replace(i, &next);
    return TARE_OK;
}

// --- sizes ---

static tare_status resize(const preprocess *p, image *i, tare_error *err) {
    int64_t height = p->resize_height, width = p->resize_width;
    if (p->resize_shorter > 0) {
        const bool is_wide = i->width > i->height;
        const int64_t shorter = is_wide ? i->height : i->width;
        const int64_t longer = is_wide ? i->width : i->height;
        const int64_t scaled = (int64_t)((double)(p->resize_shorter * longer) /
                                         (double)shorter); // truncated, not rounded
        height = is_wide ? p->resize_shorter : scaled;
        width = is_wide ? scaled : p->resize_shorter;
    }
    if (height == 0 || (height == i->height && width == i->width)) return TARE_OK;
    if (width > IMAGE_MOST_PIXELS / height)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "a picture %lld wide and %lld high would become %lld wide and %lld high",
                          (long long)i->width, (long long)i->height, (long long)width,
                          (long long)height);
    image next = {0};
    TARE_TRY(tare__image_resize(i, height, width, p->interpolation, p->antialias, &next, err));
    replace(i, &next);
    return TARE_OK;
}

// The first position of a centered crop of `size` in `whole`. Halves are rounded to even, as in
// Python. If the image is smaller, the result is negative: black is added on both sides, with the
// odd row at the end.
static int64_t crop_begin(int64_t whole, int64_t size) {
    if (size > whole) return -((size - whole) / 2);
    const int64_t twice = whole - size, half = twice / 2;
    return twice % 2 == 0 ? half : half + half % 2;
}

static tare_status crop(const preprocess *p, image *i, tare_error *err) {
    if (p->crop_height == 0) return TARE_OK;
    image next = {0};
    TARE_TRY(tare__image_create(p->crop_height, p->crop_width, i->channels, &next, err));
    const int64_t top = crop_begin(i->height, next.height), left = crop_begin(i->width, next.width);
    const int64_t from = left > 0 ? left : 0, to = left > 0 ? 0 : -left;
    const int64_t columns = next.width < i->width ? next.width : i->width;
    memset(next.pixels, 0, (size_t)(next.height * next.width * next.channels));
    for (int64_t y = 0; y < next.height; y++)
        if (y + top >= 0 && y + top < i->height)
            memcpy(next.pixels + (y * next.width + to) * i->channels,
                   i->pixels + ((y + top) * i->width + from) * i->channels,
                   (size_t)(columns * i->channels));
    replace(i, &next);
    return TARE_OK;
}

// --- numbers ---

// Fills the table with the float of each byte in channel c.
static void fill_table(const preprocess *p, int c, float table[256]) {
    for (int byte = 0; byte < 256; byte++) {
        table[byte] = (float)(byte * p->scale);
        if (p->is_normalized) table[byte] = (table[byte] - (float)p->mean[c]) / (float)p->std[c];
    }
}

typedef struct strides {
    int64_t pixel, channel; // of the tensor, in elements
} strides;

static void put_floats(const preprocess *p, const image *i, strides step, float *out) {
    const int64_t count = i->height * i->width;
    for (int c = 0; c < i->channels; c++) {
        const int source = p->color == COLOR_BGR ? 2 - c : c;
        float table[256];
        fill_table(p, c, table);
        for (int64_t k = 0; k < count; k++)
            out[k * step.pixel + c * step.channel] = table[i->pixels[k * i->channels + source]];
    }
}

static void put_bytes(const preprocess *p, const image *i, strides step, uint8_t *out) {
    const int64_t count = i->height * i->width;
    for (int c = 0; c < i->channels; c++) {
        const int source = p->color == COLOR_BGR ? 2 - c : c;
        for (int64_t k = 0; k < count; k++)
            out[k * step.pixel + c * step.channel] = i->pixels[k * i->channels + source];
    }
}

static tare_status make_tensor(const preprocess *p, const image *i, tare_tensor **out,
                               tare_error *err) {
    const int64_t chw[] = {i->channels, i->height, i->width};
    const int64_t hwc[] = {i->height, i->width, i->channels};
    const strides step = {p->is_channels_last ? i->channels : 1,
                          p->is_channels_last ? 1 : i->height * i->width};
    TARE_TRY(tare_tensor_create(p->is_uint8 ? TARE_UINT8 : TARE_FLOAT32, 3,
                                p->is_channels_last ? hwc : chw, out, err));
    if (p->is_uint8)
        put_bytes(p, i, step, (*out)->data);
    else
        put_floats(p, i, step, tare__f32(*out));
    return TARE_OK;
}

tare_status tare__preprocess_apply(const preprocess *p, image *picture, tare_tensor **out,
                                   tare_error *err) {
    tare_status status = choose_channels(picture, tare__preprocess_channels(p), err);
    if (status == TARE_OK) status = resize(p, picture, err);
    if (status == TARE_OK) status = crop(p, picture, err);
    if (status == TARE_OK) status = make_tensor(p, picture, out, err);
    tare__image_release(picture);
    return status;
}
