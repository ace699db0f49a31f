// SPDX-License-Identifier: Apache-2.0
// Sizes and windows of a planned convolution.
#include "runtime/kernels/conv_shape.h"

tare_status tare__conv_shape_of(const conv_geometry *g, const tare_tensor *x, conv_shape *out,
                                tare_error *err) {
    int64_t sizes[5], result[SPATIAL];
    if (!tare__conv_sizes(g, x, sizes) || !tare__conv_output_size(g, sizes + 2, result))
        return tare__fail(err, TARE_INTERNAL,
                          "a convolution was planned for an input that does not fit");
    *out = (conv_shape){
        .height = (size_t)sizes[2 + H],
        .width = (size_t)sizes[2 + W],
        .out_height = (size_t)result[H],
        .out_width = (size_t)result[W],
        .above = (size_t)g->pad_before[H],
        .before = (size_t)g->pad_before[W],
        .staged_height = (size_t)(sizes[2 + H] + g->pad_before[H] + g->pad_after[H]),
        .staged_width = (size_t)(sizes[2 + W] + g->pad_before[W] + g->pad_after[W]),
    };
    return TARE_OK;
}

bool tare__conv_windows_are_flat(const conv_windows *w) {
    return tare__conv_window_taps(w) == 1 && w->stride[D] == 1 && w->stride[H] == 1 &&
           w->stride[W] == 1 && w->front == 0 && w->above == 0 && w->before == 0 &&
           w->out_depth == w->depth && w->out_height == w->height && w->out_width == w->width;
}

// --- windows ---

// Where a window begins.
typedef struct corner {
    ptrdiff_t front, top, left;
} corner;

// The plane of an image that a window's meets; NULL: the border.
static const uint8_t *plane_of(const conv_windows *w, const uint8_t *image, ptrdiff_t front,
                               size_t plane) {
    const ptrdiff_t z = tare__conv_position(w, front + (ptrdiff_t)(plane * w->step[D]), w->depth);
    return z < 0 ? NULL : image + (size_t)z * w->height * w->width * w->channels;
}

// A plane of a window that may reach into the border.
static void list_at_border(const conv_windows *w, const window_list *list, const uint8_t *plane,
                           const corner *at, const uint8_t **to) {
    for (size_t i = 0; i < w->rows; i++) {
        const ptrdiff_t y =
            tare__conv_position(w, at->top + (ptrdiff_t)(i * w->step[H]), w->height);
        for (size_t j = 0; j < w->columns; j++, to += list->tap_step) {
            const ptrdiff_t x =
                tare__conv_position(w, at->left + (ptrdiff_t)(j * w->step[W]), w->width);
            const bool is_inside = plane != NULL && y >= 0 && x >= 0;
            *to =
                is_inside ? plane + ((size_t)y * w->width + (size_t)x) * w->channels : list->border;
        }
    }
}

// A plane of windows beside each other, from the one that begins at `at` on.
static void list_inside(const conv_windows *w, const window_list *list, const uint8_t *at,
                        size_t count, const uint8_t **to) {
    const size_t row = w->step[H] * w->width * w->channels, column = w->step[W] * w->channels;
    const size_t next = w->stride[W] * w->channels;
    for (size_t i = 0; i < w->rows; i++, at += row)
        for (size_t j = 0; j < w->columns; j++, to += list->tap_step) {
            const uint8_t *tap = at + j * column;
            for (size_t p = 0; p < count; p++, tap += next) to[p * list->pixel_step] = tap;
        }
}

// All planes of `count` windows beside each other, which lie inside but for some planes, from the
// one at `at` on; 0: of one that may not.
static void list_planes(const conv_windows *w, const window_list *list, const uint8_t *image,
                        const corner *at, size_t count, const uint8_t **to) {
    const size_t taps = w->rows * w->columns * list->tap_step;
    for (size_t i = 0; i < w->pieces * w->planes; i++, to += taps) {
        const uint8_t *plane = plane_of(w, image, at->front, i % w->planes);
        if (count == 0) {
            list_at_border(w, list, plane, at, to);
        } else if (plane != NULL) {
            const size_t first = (size_t)at->top * w->width + (size_t)at->left;
            list_inside(w, list, plane + first * w->channels, count, to);
        } else {
            for (size_t p = 0; p < count; p++)
                list_at_border(w, list, NULL, at, to + p * list->pixel_step);
        }
    }
}

// How many of `count` windows from x on lie inside, in a row whose windows do.
static size_t count_inside(const conv_windows *w, size_t x, size_t count) {
    const ptrdiff_t last = (ptrdiff_t)w->width - 1 - (ptrdiff_t)((w->columns - 1) * w->step[W]);
    const ptrdiff_t left = (ptrdiff_t)(x * w->stride[W]) - w->before;
    if (left < 0 || left > last) return 0;
    const size_t inside = (size_t)(last - left) / w->stride[W] + 1;
    return inside < count ? inside : count;
}

void tare__conv_windows_list(const conv_windows *w, const window_list *list, const uint8_t **to) {
    const size_t pixels = tare__conv_window_pixels(w), image = tare__conv_image_codes(w);
    const ptrdiff_t last_top = (ptrdiff_t)w->height - (ptrdiff_t)((w->rows - 1) * w->step[H]);
    const size_t row = list->first % pixels / w->out_width; // of all planes
    size_t n = list->first / pixels, z = row / w->out_height, y = row % w->out_height;
    size_t x = list->first % w->out_width, done;
    for (size_t left = list->count; left > 0; left -= done, to += done * list->pixel_step) {
        const corner at = {.front = (ptrdiff_t)(z * w->stride[D]) - w->front,
                           .top = (ptrdiff_t)(y * w->stride[H]) - w->above,
                           .left = (ptrdiff_t)(x * w->stride[W]) - w->before};
        const size_t of_row = w->out_width - x < left ? w->out_width - x : left;
        done = at.top >= 0 && at.top < last_top ? count_inside(w, x, of_row) : 0;
        list_planes(w, list, list->images + n * image, &at, done, to);
        done += done == 0;
        x += done;
        if (x < w->out_width) continue;
        x = 0;
        if (++y < w->out_height) continue;
        y = 0;
        if (++z < w->out_depth) continue;
        z = 0;
        n++;
    }
}

// --- columns ---

// The columns of a row of the image; NULL: it lies in the border.
static void list_row(const conv_windows *w, const column_list *list, const uint8_t *row,
                     const uint8_t **to) {
    const ptrdiff_t left = (ptrdiff_t)(list->first * w->stride[W]) - w->before;
    for (size_t j = 0; j < list->column_count; j++, to += list->column_step) {
        const ptrdiff_t x = tare__conv_position(w, left + (ptrdiff_t)j, w->width);
        *to = row != NULL && x >= 0 ? row + (size_t)x * w->channels : list->border;
    }
}

void tare__conv_columns_list(const conv_windows *w, const column_list *list, const uint8_t **to) {
    const ptrdiff_t front = (ptrdiff_t)(list->plane * w->stride[D]) - w->front;
    const ptrdiff_t top = (ptrdiff_t)(list->row * w->stride[H]) - w->above;
    const bool has_planes = w->pieces * w->planes > 1;
    for (size_t i = 0; i < list->column_step; i++) {
        const size_t row = has_planes ? i % w->rows : i;
        const uint8_t *plane =
            plane_of(w, list->image, front, has_planes ? i / w->rows % w->planes : 0);
        const ptrdiff_t y = tare__conv_position(w, top + (ptrdiff_t)(row * w->step[H]), w->height);
        const bool is_inside = i < list->row_count && plane != NULL && y >= 0;
        list_row(w, list, is_inside ? plane + (size_t)y * w->width * w->channels : NULL, to + i);
    }
}
