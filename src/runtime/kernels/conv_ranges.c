// SPDX-License-Identifier: Apache-2.0
// Ranges of output pixels that meet the same taps.
#include "runtime/kernels/conv_ranges.h"

#include "core/alloc.h"
#include "runtime/kernels/scratch.h"

enum {
    // Beyond, too few taps lie beside the image to pay for shorter runs of pixels.
    MOST_WIDTH = 32,
    LEAST_LINES = 3, // for which a kernel reads weights once more
};

// Positions [first, end) of a dimension of the output, and the taps of that dimension with which
// their windows meet the image. The last group of a dimension ends where that does.
struct tap_group {
    size_t first, end;
    size_t tap, taps;
};

// A dimension.
typedef struct window_axis {
    size_t size, out_size;
    ptrdiff_t border; // in front
    size_t stride, step, taps;
} window_axis;

static tap_group taps_at(const window_axis *a, size_t position) {
    const ptrdiff_t at = (ptrdiff_t)(position * a->stride) - a->border;
    size_t first = 0, end = a->taps;
    while (first < end && at + (ptrdiff_t)(first * a->step) < 0) first++;
    while (end > first && at + (ptrdiff_t)((end - 1) * a->step) >= (ptrdiff_t)a->size) end--;
    return (tap_group){position, position + 1, first, end - first};
}

static bool meet_the_same(const tap_group *a, const tap_group *b) {
    return a->tap == b->tap && a->taps == b->taps;
}

// *out is NULL if all positions meet all taps.
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

tare_status tare__conv_ranges_create(const conv_windows *w, bool leaves_out, bool by_line,
                                     conv_ranges *out, tare_error *err) {
    const window_axis lines = {w->height,    w->out_height, w->above,
                               w->stride[H], w->step[H],    w->rows};
    const window_axis columns = {w->width,     w->out_width, w->before,
                                 w->stride[W], w->step[W],   w->columns};
    const bool is_plane =
        w->pieces * w->planes * w->out_depth == 1 && w->front == 0 && !w->reflects;
    *out = (conv_ranges){.width = w->out_width,
                         .pixels = tare__conv_window_pixels(w),
                         .rows = w->pieces * w->planes * w->rows,
                         .columns = w->columns,
                         .by_line = by_line};
    if (!is_plane || !leaves_out) return TARE_OK;
    TARE_TRY(find_groups(&lines, &out->line_groups, err));
    if (by_line || w->out_width > MOST_WIDTH) return TARE_OK;
    return find_groups(&columns, &out->column_groups, err);
}

void tare__conv_ranges_release(conv_ranges *r) {
    tare__free(r->line_groups);
    tare__free(r->column_groups);
    *r = (conv_ranges){0};
}

// Pixels from one on that meet the same rows of taps, as many as follow each other.
static conv_range rows_at(const conv_ranges *r, size_t pixel, size_t last) {
    const size_t image = pixel / r->pixels * r->pixels;
    conv_range out = {
        .first = pixel, .lines = 1, .apart = 1, .rows = r->rows, .columns = r->columns};
    size_t end = last;
    if (r->line_groups != NULL) {
        const tap_group *g = r->line_groups;
        while ((pixel - image) / r->width >= g->end) g++;
        out.row = g->tap;
        out.rows = g->taps;
        end = tare__least(end, image + g->end * r->width);
    }
    if (r->column_groups != NULL) end = tare__least(end, image + r->pixels);
    if (r->by_line) end = tare__least(end, pixel - pixel % r->width + r->width);
    out.count = end - pixel;
    return out;
}

// Whole lines without what is beside a group of columns; they go along the longer side.
static void take_columns(const conv_ranges *r, const tap_group *g, conv_range *range) {
    const size_t lines = range->count / r->width, count = g->end - g->first;
    const bool goes_down = count < lines;
    range->first += g->first;
    range->column = g->tap;
    range->columns = g->taps;
    range->is_inside = true;
    range->goes_down = goes_down;
    range->lines = goes_down ? count : lines;
    range->line_apart = goes_down ? 1 : r->width;
    range->count = goes_down ? lines : count;
    range->apart = goes_down ? r->width : 1;
}

bool tare__conv_ranges_next(range_walk *walk, conv_range *out) {
    const conv_ranges *r = walk->ranges;
    if (walk->pixel >= walk->last) return false;
    *out = rows_at(r, walk->pixel, walk->last);
    const size_t end = out->first + out->count;
    const bool is_parted = r->column_groups != NULL && out->first % r->width == 0 &&
                           out->count % r->width == 0 && out->count >= LEAST_LINES * r->width;
    if (is_parted) {
        const tap_group *g = &r->column_groups[walk->column_group++];
        take_columns(r, g, out);
        if (g->end < r->width) return true;
    }
    walk->column_group = 0;
    walk->pixel = end;
    return true;
}

void tare__conv_range_list(const conv_windows *w, const conv_range *range, const uint8_t *images,
                           size_t pixel, size_t count, const uint8_t **to) {
    const size_t pixels = tare__conv_window_pixels(w), at = pixel % pixels;
    const size_t y = at / w->out_width * w->stride[H] + range->row * w->step[H];
    const size_t x = at % w->out_width * w->stride[W] + range->column * w->step[W];
    const size_t line = w->width * w->channels;
    const size_t apart = range->goes_down ? w->stride[H] * line : w->stride[W] * w->channels;
    const uint8_t *image = images + pixel / pixels * tare__conv_image_codes(w);
    const ptrdiff_t top = (ptrdiff_t)y - w->above, left = (ptrdiff_t)x - w->before;
    for (size_t i = 0; i < range->rows; i++)
        for (size_t j = 0; j < range->columns; j++) {
            const ptrdiff_t inside_y = top + (ptrdiff_t)(i * w->step[H]);
            const ptrdiff_t inside_x = left + (ptrdiff_t)(j * w->step[W]);
            const uint8_t *from = image + (size_t)inside_y * line + (size_t)inside_x * w->channels;
            for (size_t k = 0; k < count; k++) *to++ = from + k * apart;
        }
}
