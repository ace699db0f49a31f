// SPDX-License-Identifier: Apache-2.0
// Resamples 8-bit images with Pillow's arithmetic, so that calibration gets the same bytes as
// training. Source: Pillow 13, src/libImaging/Resample.c and Geometry.c (ImagingScaleAffine): a
// pass over rows and one over columns, each with weights of 22 fractional bits and results rounded
// to 8 bits.
#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "io/images/preprocess.h"

enum { WEIGHT_BITS = 32 - 8 - 2 };

// --- filters ---

static double bilinear(double x) {
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

// Keys' cubic with a = -0.5, in the order of operations of the source.
static double bicubic(double x) {
    const double a = -0.5;
    x = fabs(x);
    if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
    return 0.0;
}

typedef struct filter {
    double (*at)(double x);
    double support;
} filter;

static const filter filters[] = {
    [INTERPOLATION_BILINEAR] = {bilinear, 1.0},
    [INTERPOLATION_BICUBIC] = {bicubic, 2.0},
};

// --- weights of one direction ---

typedef struct window {
    int64_t first, count; // source pixels
} window;

typedef struct weights {
    window *windows; // [out_size]
    int32_t *values; // [out_size][stride]
    int64_t stride;
} weights;

static void release_weights(weights *w) {
    tare__free(w->windows);
    tare__free(w->values);
}

static void fill_window(const filter *f, double scale, double stretch, int64_t in_size, int64_t out,
                        double *real, const weights *w) {
    const double center = ((double)out + 0.5) * scale, support = f->support * stretch;
    const double inverse = 1.0 / stretch;
    int64_t first = (int64_t)(center - support + 0.5);
    int64_t end = (int64_t)(center + support + 0.5);
    if (first < 0) first = 0;
    if (end > in_size) end = in_size;
    double sum = 0;
    for (int64_t i = 0; i < end - first; i++) {
        real[i] = f->at(((double)(i + first) - center + 0.5) * inverse);
        sum += real[i];
    }
    int32_t *values = w->values + out * w->stride;
    for (int64_t i = 0; i < end - first; i++) {
        const double weight = (sum != 0 ? real[i] / sum : real[i]) * (1 << WEIGHT_BITS);
        values[i] = (int32_t)(weight < 0 ? weight - 0.5 : weight + 0.5);
    }
    w->windows[out] = (window){first, end - first};
}

static tare_status make_weights(const filter *f, int64_t in_size, int64_t out_size, bool antialias,
                                weights *out, tare_error *err) {
    const double scale = (double)in_size / (double)out_size;
    const double stretch = antialias && scale > 1.0 ? scale : 1.0;
    weights w = {.stride = (int64_t)ceil(f->support * stretch) * 2 + 1};
    size_t count = 0;
    double *real = tare__alloc_zeroed((size_t)w.stride, sizeof *real);
    w.windows = tare__alloc_zeroed((size_t)out_size, sizeof *w.windows);
    if (tare__mul_size((size_t)out_size, (size_t)w.stride, &count))
        w.values = tare__alloc_zeroed(count, sizeof *w.values);
    const bool is_made = real != NULL && w.windows != NULL && w.values != NULL;
    for (int64_t i = 0; is_made && i < out_size; i++)
        fill_window(f, scale, stretch, in_size, i, real, &w);
    tare__free(real);
    if (is_made) {
        *out = w;
        return TARE_OK;
    }
    release_weights(&w);
    return tare__out_of_memory(err);
}

static uint8_t clamp_byte(int32_t sum) {
    const int32_t value = sum >> WEIGHT_BITS; // an arithmetic shift with all supported compilers
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/// One result: the weighted sum of `count` bytes with stride `step`.
static uint8_t weigh(const uint8_t *from, int64_t step, const int32_t *values, int64_t count) {
    int32_t sum = 1 << (WEIGHT_BITS - 1);
    for (int64_t i = 0; i < count; i++) sum += from[i * step] * values[i];
    return clamp_byte(sum);
}

static void resize_rows(const image *from, const weights *w, const image *to) {
    const int channels = from->channels;
    for (int64_t y = 0; y < to->height; y++) {
        const uint8_t *row = from->pixels + y * from->width * channels;
        uint8_t *out = to->pixels + y * to->width * channels;
        for (int64_t x = 0; x < to->width; x++)
            for (int c = 0; c < channels; c++)
                *out++ = weigh(row + w->windows[x].first * channels + c, channels,
                               w->values + x * w->stride, w->windows[x].count);
    }
}

static void resize_columns(const image *from, const weights *w, const image *to) {
    const int64_t row_bytes = from->width * from->channels;
    uint8_t *out = to->pixels;
    for (int64_t y = 0; y < to->height; y++) {
        const uint8_t *first = from->pixels + w->windows[y].first * row_bytes;
        for (int64_t i = 0; i < row_bytes; i++)
            *out++ = weigh(first + i, row_bytes, w->values + y * w->stride, w->windows[y].count);
    }
}

typedef void (*resize_pass)(const image *from, const weights *w, const image *to);

static tare_status run_pass(const image *from, int64_t height, int64_t width, const filter *f,
                            bool antialias, resize_pass pass, image *out, tare_error *err) {
    weights w = {0};
    const bool is_rows = pass == resize_rows;
    TARE_TRY(make_weights(f, is_rows ? from->width : from->height, is_rows ? width : height,
                          antialias, &w, err));
    const tare_status status = tare__image_create(height, width, from->channels, out, err);
    if (status == TARE_OK) pass(from, &w, out);
    release_weights(&w);
    return status;
}

static tare_status copy(const image *from, image *out, tare_error *err) {
    TARE_TRY(tare__image_create(from->height, from->width, from->channels, out, err));
    memcpy(out->pixels, from->pixels,
           (size_t)from->height * (size_t)from->width * (size_t)from->channels);
    return TARE_OK;
}

static tare_status resample(const image *from, int64_t height, int64_t width, const filter *f,
                            bool antialias, image *out, tare_error *err) {
    if (from->width == width && from->height == height) return copy(from, out, err);
    if (from->height == height)
        return run_pass(from, height, width, f, antialias, resize_rows, out, err);
    if (from->width == width)
        return run_pass(from, height, width, f, antialias, resize_columns, out, err);
    // The order of the passes matters, because the first one rounds. Rows come first, unless the
    // height shrinks by more than twice as much (Pillow 12 and older: always rows first).
    const bool is_columns_first =
        height < from->height && from->height - height > 2 * (from->width - width);
    image half = {0};
    TARE_TRY(is_columns_first
                 ? run_pass(from, height, from->width, f, antialias, resize_columns, &half, err)
                 : run_pass(from, from->height, width, f, antialias, resize_rows, &half, err));
    const tare_status status = run_pass(&half, height, width, f, antialias,
                                        is_columns_first ? resize_rows : resize_columns, out, err);
    tare__image_release(&half);
    return status;
}

// --- nearest ---

// The source index of each output index. As in Pillow, the step is accumulated, with its rounding,
// instead of multiplied.
static tare_status nearest_sources(int64_t in_size, int64_t out_size, int64_t **out,
                                   tare_error *err) {
    const double step = (double)in_size / (double)out_size;
    int64_t *sources = tare__alloc_zeroed((size_t)out_size, sizeof *sources);
    if (sources == NULL) return tare__out_of_memory(err);
    double at = step * 0.5;
    for (int64_t i = 0; i < out_size; i++, at += step) {
        sources[i] = (int64_t)at;
        if (sources[i] >= in_size) sources[i] = in_size - 1;
    }
    *out = sources;
    return TARE_OK;
}

static void pick(const image *from, const int64_t *rows, const int64_t *columns, const image *to) {
    uint8_t *out = to->pixels;
    for (int64_t y = 0; y < to->height; y++)
        for (int64_t x = 0; x < to->width; x++)
            for (int c = 0; c < from->channels; c++)
                *out++ = from->pixels[(rows[y] * from->width + columns[x]) * from->channels + c];
}

static tare_status resize_nearest(const image *from, int64_t height, int64_t width, image *out,
                                  tare_error *err) {
    int64_t *rows = NULL, *columns = NULL;
    tare_status status = nearest_sources(from->height, height, &rows, err);
    if (status == TARE_OK) status = nearest_sources(from->width, width, &columns, err);
    if (status == TARE_OK) status = tare__image_create(height, width, from->channels, out, err);
    if (status == TARE_OK) pick(from, rows, columns, out);
    tare__free(rows);
    tare__free(columns);
    return status;
}

tare_status tare__image_resize(const image *from, int64_t height, int64_t width, interpolation how,
                               bool antialias, image *out, tare_error *err) {
    if (how == INTERPOLATION_NEAREST) return resize_nearest(from, height, width, out, err);
    return resample(from, height, width, &filters[how], antialias, out, err);
}
