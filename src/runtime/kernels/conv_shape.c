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

conv_windows tare__conv_windows_of(const conv_geometry *g, const conv_shape *s) {
    return (conv_windows){
        .height = s->height,
        .width = s->width,
        .channels = (size_t)g->in_channels,
        .out_height = s->out_height,
        .out_width = s->out_width,
        .above = s->above,
        .before = s->before,
        .rows = (size_t)g->kernel[H],
        .columns = (size_t)g->kernel[W],
        .stride = {(size_t)g->stride[H], (size_t)g->stride[W]},
        .step = {(size_t)g->dilation[H], (size_t)g->dilation[W]},
    };
}

// A window that may reach into the border.
static void list_at_border(const conv_windows *w, const window_list *list, const uint8_t *image,
                           ptrdiff_t top, ptrdiff_t left, const uint8_t **to) {
    for (size_t i = 0; i < w->rows; i++) {
        const ptrdiff_t y = top + (ptrdiff_t)(i * w->step[0]);
        for (size_t j = 0; j < w->columns; j++, to += list->tap_step) {
            const ptrdiff_t x = left + (ptrdiff_t)(j * w->step[1]);
            const bool is_inside =
                y >= 0 && y < (ptrdiff_t)w->height && x >= 0 && x < (ptrdiff_t)w->width;
            *to =
                is_inside ? image + ((size_t)y * w->width + (size_t)x) * w->channels : list->border;
        }
    }
}

// Windows beside each other, from the one that begins at `at` on.
static void list_inside(const conv_windows *w, const window_list *list, const uint8_t *at,
                        size_t count, const uint8_t **to) {
    const size_t row = w->step[0] * w->width * w->channels, column = w->step[1] * w->channels;
    const size_t next = w->stride[1] * w->channels;
    for (size_t i = 0; i < w->rows; i++, at += row)
        for (size_t j = 0; j < w->columns; j++, to += list->tap_step) {
            const uint8_t *tap = at + j * column;
            for (size_t p = 0; p < count; p++, tap += next) to[p * list->pixel_step] = tap;
        }
}

// How many of `count` windows from x on lie inside, in a row whose windows do.
static size_t count_inside(const conv_windows *w, size_t x, size_t count) {
    const ptrdiff_t last = (ptrdiff_t)w->width - 1 - (ptrdiff_t)((w->columns - 1) * w->step[1]);
    const ptrdiff_t left = (ptrdiff_t)(x * w->stride[1]) - (ptrdiff_t)w->before;
    if (left < 0 || left > last) return 0;
    const size_t inside = (size_t)(last - left) / w->stride[1] + 1;
    return inside < count ? inside : count;
}

void tare__conv_windows_list(const conv_windows *w, const window_list *list, const uint8_t **to) {
    const size_t pixels = w->out_height * w->out_width, image = w->height * w->width * w->channels;
    const ptrdiff_t last_top = (ptrdiff_t)w->height - (ptrdiff_t)((w->rows - 1) * w->step[0]);
    size_t n = list->first / pixels, y = list->first % pixels / w->out_width;
    size_t x = list->first % w->out_width, done;
    for (size_t left = list->count; left > 0; left -= done, to += done * list->pixel_step) {
        const uint8_t *at = list->images + n * image;
        const ptrdiff_t top = (ptrdiff_t)(y * w->stride[0]) - (ptrdiff_t)w->above;
        const ptrdiff_t first = (ptrdiff_t)(x * w->stride[1]) - (ptrdiff_t)w->before;
        const size_t of_row = w->out_width - x < left ? w->out_width - x : left;
        done = top >= 0 && top < last_top ? count_inside(w, x, of_row) : 0;
        if (done > 0)
            list_inside(w, list, at + ((size_t)top * w->width + (size_t)first) * w->channels, done,
                        to);
        else
            list_at_border(w, list, at, top, first, to);
        done += done == 0;
        x += done;
        if (x < w->out_width) continue;
        x = 0;
        if (++y < w->out_height) continue;
        y = 0;
        n++;
    }
}

// The columns of a row of the image; NULL: it lies in the border.
static void list_row(const conv_windows *w, const column_list *list, const uint8_t *row,
                     const uint8_t **to) {
    const ptrdiff_t left = (ptrdiff_t)(list->first * w->stride[1]) - (ptrdiff_t)w->before;
    for (size_t j = 0; j < list->column_count; j++, to += list->column_step) {
        const ptrdiff_t x = left + (ptrdiff_t)j;
        const bool is_inside = row != NULL && x >= 0 && x < (ptrdiff_t)w->width;
        *to = is_inside ? row + (size_t)x * w->channels : list->border;
    }
}

void tare__conv_columns_list(const conv_windows *w, const column_list *list, const uint8_t **to) {
    const ptrdiff_t top = (ptrdiff_t)(list->row * w->stride[0]) - (ptrdiff_t)w->above;
    for (size_t i = 0; i < list->column_step; i++) {
        const ptrdiff_t y = top + (ptrdiff_t)(i * w->step[0]);
        const bool is_inside = i < list->row_count && y >= 0 && y < (ptrdiff_t)w->height;
        list_row(w, list, is_inside ? list->image + (size_t)y * w->width * w->channels : NULL,
                 to + i);
    }
}
