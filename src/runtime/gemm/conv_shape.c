// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Sizes and windows of a planned convolution.
#include "runtime/gemm/conv_shape.h"

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

static bool is_inside(size_t size, size_t out_size, ptrdiff_t padding, size_t stride, size_t step,
                      size_t taps) {
    const size_t end = (out_size - 1) * stride + (taps - 1) * step + 1; // from the first tap on
    return padding <= 0 && end <= size && size - end >= (size_t)-padding;
}

bool tare__conv_windows_are_inside(const conv_windows *w) {
    return is_inside(w->height, w->out_height, w->above, w->stride[H], w->step[H], w->rows) &&
           is_inside(w->width, w->out_width, w->before, w->stride[W], w->step[W], w->columns);
}

inner_positions tare__conv_inner(size_t size, ptrdiff_t at, size_t step, size_t count) {
    const ptrdiff_t behind = (ptrdiff_t)size - 1 - at;
    size_t first = 0, end = 0;
    if (at < 0) first = ((size_t)-at + step - 1) / step;
    if (behind >= 0) end = (size_t)behind / step + 1;
    if (end > count) end = count;
    return (inner_positions){first < end ? first : end, end};
}

// --- windows ---

output_position tare__conv_output_position(const conv_windows *w, size_t pixel) {
    const size_t row = pixel / w->out_width, plane = row / w->out_height;
    return (output_position){.image = plane / w->out_depth,
                             .plane = plane % w->out_depth,
                             .row = row % w->out_height,
                             .column = pixel % w->out_width};
}

void tare__conv_next_row(const conv_windows *w, output_position *at) {
    at->column = 0;
    if (++at->row < w->out_height) return;
    at->row = 0;
    if (++at->plane < w->out_depth) return;
    at->plane = 0;
    at->image++;
}

// The plane of an image that a window's plane covers; NULL: padding.
static const uint8_t *plane_of(const conv_windows *w, const uint8_t *image, ptrdiff_t front,
                               size_t plane) {
    const ptrdiff_t z = tare__conv_position(w, front + (ptrdiff_t)(plane * w->step[D]), w->depth);
    return z < 0 ? NULL : image + (size_t)z * w->height * w->width * w->channels;
}

// A row of such a plane; NULL: padding.
static const uint8_t *row_of(const conv_windows *w, const uint8_t *plane, ptrdiff_t at) {
    const ptrdiff_t y = tare__conv_position(w, at, w->height);
    return plane != NULL && y >= 0 ? plane + (size_t)y * w->width * w->channels : NULL;
}

// What a row of adjacent windows covers: `count` windows, the first of which begins at `left`.
typedef struct window_row {
    ptrdiff_t top, left;
    size_t count;
} window_row;

// `count` columns of an image row, `stride` apart, the first one at `left`.
typedef struct column_row {
    const uint8_t *row; // NULL: padding
    ptrdiff_t left;
    size_t stride, count;
    inner_positions inner;
} column_row;

// Stores the address of column i in to[i * step]. Steps are constants in the common cases.
static inline __attribute__((always_inline)) void list_columns(const conv_windows *w,
                                                               const uint8_t *padding,
                                                               const column_row *c, size_t step,
                                                               const uint8_t **to) {
    const size_t count = c->count, apart = c->stride * w->channels;
    const size_t end = c->row != NULL ? c->inner.end : 0;
    const size_t first = c->inner.first < end ? c->inner.first : end;
    if (c->row != NULL && w->reflects) {
        for (size_t i = 0; i < count; i++) {
            const ptrdiff_t x = c->left + (ptrdiff_t)(i * c->stride);
            const ptrdiff_t inside = tare__conv_position(w, x, w->width);
            to[i * step] = inside >= 0 ? c->row + (size_t)inside * w->channels : padding;
        }
        return;
    }
    for (size_t i = 0; i < first; i++) to[i * step] = padding;
    if (first < end) {
        const uint8_t *at =
            c->row + (size_t)(c->left + (ptrdiff_t)(first * c->stride)) * w->channels;
        for (size_t i = first; i < end; i++, at += apart) to[i * step] = at;
    }
    for (size_t i = end; i < count; i++) to[i * step] = padding;
}

// Lists a plane of a row of windows; NULL: padding.
static void list_plane(const conv_windows *w, const window_list *list, const uint8_t *plane,
                       const window_row *windows, const uint8_t **to) {
    for (size_t j = 0; j < w->columns; j++) {
        column_row c = {.left = windows->left + (ptrdiff_t)(j * w->step[W]),
                        .stride = w->stride[W],
                        .count = windows->count};
        c.inner = tare__conv_inner(w->width, c.left, c.stride, c.count);
        for (size_t i = 0; i < w->rows; i++) {
            c.row = row_of(w, plane, windows->top + (ptrdiff_t)(i * w->step[H]));
            list_columns(w, list->padding, &c, 1, to + (i * w->columns + j) * list->tap_step);
        }
    }
}

void tare__conv_windows_list(const conv_windows *w, const window_list *list, const uint8_t **to) {
    const size_t plane_taps = w->rows * w->columns * list->tap_step;
    output_position at = tare__conv_output_position(w, list->first);
    for (size_t left = list->count; left > 0; tare__conv_next_row(w, &at)) {
        const uint8_t *image = list->images + at.image * tare__conv_image_quantized(w);
        const ptrdiff_t front = (ptrdiff_t)(at.plane * w->stride[D]) - w->front;
        const size_t here = w->out_width - at.column;
        const window_row row = {.top = (ptrdiff_t)(at.row * w->stride[H]) - w->above,
                                .left = (ptrdiff_t)(at.column * w->stride[W]) - w->before,
                                .count = here < left ? here : left};
        for (size_t i = 0; i < w->addends * w->planes; i++)
            list_plane(w, list, plane_of(w, image, front, i % w->planes), &row,
                       to + i * plane_taps);
        left -= row.count;
        to += row.count;
    }
}

// --- columns ---

const uint8_t *tare__conv_window_row(const conv_windows *w, const column_list *list, size_t i) {
    const ptrdiff_t front = (ptrdiff_t)(list->plane * w->stride[D]) - w->front;
    const ptrdiff_t top = (ptrdiff_t)(list->row * w->stride[H]) - w->above;
    const bool has_planes = w->addends * w->planes > 1;
    if (i >= list->row_count) return NULL;
    const size_t row = has_planes ? i % w->rows : i;
    const uint8_t *plane =
        plane_of(w, list->image, front, has_planes ? i / w->rows % w->planes : 0);
    return row_of(w, plane, top + (ptrdiff_t)(row * w->step[H]));
}

void tare__conv_columns_list(const conv_windows *w, const column_list *list, const uint8_t **to) {
    column_row c = {.left = (ptrdiff_t)(list->first * w->stride[W]) - w->before,
                    .stride = 1,
                    .count = list->column_count};
    c.inner = tare__conv_inner(w->width, c.left, c.stride, c.count);
    for (size_t i = 0; i < list->column_step; i++) {
        c.row = tare__conv_window_row(w, list, i);
        list_columns(w, list->padding, &c, list->column_step, to + i);
    }
}
