// SPDX-License-Identifier: Apache-2.0
// Finds ranges of output pixels whose windows cover the same taps of the image.
#include "runtime/gemm/conv_ranges.h"

#include "core/memory/alloc.h"
#include "runtime/kernels/scratch.h"

enum {
    // In wider images too few taps are padding to pay for shorter runs of pixels.
    MOST_WIDTH = 64,
    LEAST_ROWS = 3, // below that a kernel reads the weights again for too few rows
};

// Output positions [first, end) of a dimension whose windows cover the same taps of that dimension,
// starting at position 0. The last group ends with the dimension.
struct tap_group {
    size_t first, end;
    size_t tap, taps;
};

// A dimension of the windows.
typedef struct window_axis {
    size_t size, out_size;
    ptrdiff_t padding; // before the image
    size_t stride, step, taps;
} window_axis;

static tap_group taps_at(const window_axis *a, size_t position) {
    const ptrdiff_t at = (ptrdiff_t)(position * a->stride) - a->padding;
    const inner_positions in = tare__conv_inner(a->size, at, a->step, a->taps);
    return (tap_group){position, position + 1, in.first < in.end ? in.first : 0, in.end - in.first};
}

static bool meet_the_same(const tap_group *a, const tap_group *b) {
    return a->tap == b->tap && a->taps == b->taps;
}

// *out is NULL if all positions cover all taps.
static tare_status find_groups(const window_axis *a, tap_group **out, tare_error *err) {
    tap_group *groups = tare__alloc_zeroed(a->out_size + 1, sizeof *groups);
    size_t count = 0;
    if (groups == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < a->out_size; i++) {
        const tap_group next = taps_at(a, i);
        if (count > 0 && meet_the_same(&groups[count - 1], &next))
            groups[count - 1].end++;
        else
            groups[count++] = next;
    }
    if (groups[0].taps == a->taps && count == 1)
        tare__free(groups);
    else
        *out = groups;
    return TARE_OK;
}

static tare_status find_all_groups(const conv_windows *w, tap_group *groups[SPATIAL],
                                   tare_error *err) {
    const window_axis axes[SPATIAL] = {
        {w->depth, w->out_depth, w->front, w->stride[D], w->step[D], w->planes},
        {w->height, w->out_height, w->above, w->stride[H], w->step[H], w->rows},
        {w->width, w->out_width, w->before, w->stride[W], w->step[W], w->columns}};
    for (int d = 0; d < SPATIAL; d++) TARE_TRY(find_groups(&axes[d], &groups[d], err));
    return TARE_OK;
}

tare_status tare__conv_ranges_create(const conv_windows *w, bool leaves_out, bool by_row,
                                     conv_ranges *out, tare_error *err) {
    tap_group *groups[SPATIAL] = {NULL};
    const tare_status status = find_all_groups(w, groups, err);
    const bool is_plane = w->addends * w->planes * w->out_depth == 1 && groups[D] == NULL;
    const bool takes_rows = leaves_out && is_plane && !w->reflects;
    const bool takes_columns = takes_rows && !by_row && w->out_width <= MOST_WIDTH;
    *out = (conv_ranges){.width = w->out_width,
                         .pixels = tare__conv_window_pixels(w),
                         .rows = w->addends * w->planes * w->rows,
                         .columns = w->columns,
                         .by_row = by_row,
                         .is_inside = groups[D] == NULL && groups[H] == NULL && groups[W] == NULL,
                         .row_groups = takes_rows ? groups[H] : NULL,
                         .column_groups = takes_columns ? groups[W] : NULL};
    for (int d = 0; d < SPATIAL; d++)
        if (groups[d] != out->row_groups && groups[d] != out->column_groups) tare__free(groups[d]);
    return status;
}

void tare__conv_ranges_release(conv_ranges *r) {
    tare__free(r->row_groups);
    tare__free(r->column_groups);
    *r = (conv_ranges){0};
}

// The consecutive pixels from one on that cover the same rows of taps.
static conv_range rows_at(const conv_ranges *r, size_t pixel, size_t last) {
    const size_t image = pixel / r->pixels * r->pixels;
    conv_range out = {.first = pixel,
                      .image_rows = 1,
                      .pixel_stride = 1,
                      .rows = r->rows,
                      .columns = r->columns,
                      .is_inside = r->is_inside};
    size_t end = last;
    if (r->row_groups != NULL) {
        const tap_group *g = r->row_groups;
        while ((pixel - image) / r->width >= g->end) g++;
        out.row = g->tap;
        out.rows = g->taps;
        end = tare__least(end, image + g->end * r->width);
    }
    if (r->column_groups != NULL) end = tare__least(end, image + r->pixels);
    if (r->by_row) end = tare__least(end, pixel - pixel % r->width + r->width);
    out.count = end - pixel;
    return out;
}

// Image rows without the pixels outside a group of columns. The longer side becomes the inner loop.
static void take_columns(const conv_ranges *r, const tap_group *g, conv_range *range) {
    const size_t image_rows = range->count / r->width, count = g->end - g->first;
    const bool goes_down = count < image_rows;
    range->first += g->first;
    range->column = g->tap;
    range->columns = g->taps;
    range->is_inside = true;
    range->goes_down = goes_down;
    range->image_rows = goes_down ? count : image_rows;
    range->image_row_stride = goes_down ? 1 : r->width;
    range->count = goes_down ? image_rows : count;
    range->pixel_stride = goes_down ? r->width : 1;
}

bool tare__conv_ranges_next(range_walk *walk, conv_range *out) {
    const conv_ranges *r = walk->ranges;
    if (walk->pixel >= walk->last) return false;
    *out = rows_at(r, walk->pixel, walk->last);
    const size_t end = out->first + out->count;
    const bool is_parted = r->column_groups != NULL && out->first % r->width == 0 &&
                           out->count % r->width == 0 && out->count >= LEAST_ROWS * r->width;
    if (is_parted) {
        const tap_group *g = &r->column_groups[walk->column_group++];
        take_columns(r, g, out);
        if (g->end < r->width) return true;
    }
    walk->column_group = 0;
    walk->pixel = end;
    return true;
}

// The position in the images of a pixel's first tap.
static size_t tap_at(const conv_windows *w, const conv_range *range, const output_position *at) {
    const size_t plane =
        at->plane * w->stride[D] - (size_t)w->front; // negative padding moves it inward
    const size_t row = at->row * w->stride[H] + range->row * w->step[H] - (size_t)w->above;
    const size_t column =
        at->column * w->stride[W] + range->column * w->step[W] - (size_t)w->before;
    return at->image * tare__conv_image_quantized(w) +
           ((plane * w->height + row) * w->width + column) * w->channels;
}

void tare__conv_range_list(const conv_windows *w, const conv_range *range, const uint8_t *images,
                           size_t pixel, size_t count, const uint8_t **to) {
    const size_t down = w->stride[H] * w->width, right = w->stride[W];
    const size_t apart = (range->goes_down ? down : right) * w->channels;
    output_position at = tare__conv_output_position(w, pixel);
    for (; count > 0; tare__conv_next_row(w, &at)) {
        const uint8_t *from = images + tap_at(w, range, &at);
        const size_t here = range->goes_down ? count : tare__least(count, w->out_width - at.column);
        for (size_t i = 0; i < here; i++) to[i] = from + i * apart;
        to += here;
        count -= here;
    }
}

void tare__conv_range_offsets(const conv_windows *w, const conv_range *range, size_t *to) {
    for (size_t i = 0; i < range->rows; i++) {
        const size_t plane = i / w->rows % w->planes, row = i % w->rows; // from the first pixel's
        for (size_t j = 0; j < range->columns; j++)
            *to++ =
                ((plane * w->step[D] * w->height + row * w->step[H]) * w->width + j * w->step[W]) *
                w->channels;
    }
}
