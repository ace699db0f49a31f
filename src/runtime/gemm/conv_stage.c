// SPDX-License-Identifier: Apache-2.0
// Staged images. Most rows of a row of windows are also in the row of windows before, which has
// already arranged them.
#include "runtime/gemm/conv_stage.h"

#include <string.h>

#include "core/memory/short_copy.h"
#include "runtime/kernels/scratch.h"

enum {
    WORD = 4, // of quantized values, which may be read beyond an end
    ALIGNMENT = 64,
};

// --- sizes ---

// The size of a row with its padding.
static size_t row_bytes(const conv_stage *s) {
    return tare__round_up(s->to.width * s->from.channels + COLUMNS_BEHIND, ALIGNMENT);
}

// The images with the padding that windows reach.
conv_stage tare__conv_stage_of_rows(const conv_windows *from) {
    conv_stage s = {.from = *from, .to = *from, .rows = 1, .moved = 1};
    conv_windows *w = &s.to;
    w->depth = (w->out_depth - 1) * w->stride[D] + (w->planes - 1) * w->step[D] + 1;
    w->height = (w->out_height - 1) * w->stride[H] + (w->rows - 1) * w->step[H] + 1;
    w->width = (w->out_width - 1) * w->stride[W] + w->columns; // windows side by side
    w->front = w->above = w->before = 0;
    w->columns = 1;
    w->reflects = false;
    return s;
}

conv_stage tare__conv_stage_of_windows(const conv_windows *from, const column_kernel *columns) {
    conv_stage s = tare__conv_stage_of_rows(from);
    conv_windows *w = &s.to;
    s.columns = columns;
    s.rows = from->rows;
    s.moved = tare__least(from->stride[H], from->rows);
    s.first = tare__column_form_of(from->channels, s.rows, 0, row_bytes(&s));
    s.next = tare__column_form_of(from->channels, s.rows, s.moved, row_bytes(&s));
    w->depth = from->out_depth;
    w->height = from->out_height;
    w->channels = from->rows * from->channels;
    w->rows = 1;
    w->stride[D] = w->stride[H] = 1;
    return s;
}

size_t tare__conv_stage_bytes(const conv_stage *s) {
    return tare__round_up(tare__conv_image_quantized(&s->to) + WORD, ALIGNMENT);
}

static size_t windows_bytes(const conv_stage *s) {
    return s->to.width * s->to.channels;
}

// --- rows of the image ---

// Copies pixels with gaps between them, and reflected padding.
static void stage_pixels(const staging *g, const uint8_t *row, uint8_t *to) {
    const conv_windows *w = &g->stage->from;
    const size_t ins = w->channels;
    for (size_t i = 0; i < g->stage->to.width; i++, to += ins) {
        const ptrdiff_t at = tare__conv_position(w, (ptrdiff_t)i - w->before, w->width);
        if (at < 0)
            memset(to, g->padding, ins);
        else
            tare__short_copy(to, row + (size_t)at * g->stride, ins);
    }
}

// Copies contiguous pixels, with padding on both sides.
static void stage_quantized(const staging *g, const uint8_t *row, uint8_t *to) {
    const conv_windows *w = &g->stage->from;
    const size_t width = g->stage->to.width, ins = w->channels;
    const inner_positions in = tare__conv_inner(w->width, -w->before, 1, width);
    memset(to, g->padding, in.first * ins);
    if (in.first < in.end)
        memcpy(to + in.first * ins, row + (size_t)((ptrdiff_t)in.first - w->before) * ins,
               (in.end - in.first) * ins);
    memset(to + in.end * ins, g->padding, (width - in.end) * ins);
}

// An image row with its padding.
typedef struct row_position {
    size_t image, plane, row;
} row_position;

static void stage_row(const staging *g, const row_position *at, uint8_t *to) {
    const conv_windows *w = &g->stage->from;
    const ptrdiff_t z = tare__conv_position(w, (ptrdiff_t)at->plane - w->front, w->depth);
    const ptrdiff_t y = tare__conv_position(w, (ptrdiff_t)at->row - w->above, w->height);
    if (z < 0 || y < 0) {
        memset(to, g->padding, g->stage->to.width * w->channels);
        return;
    }
    const size_t row = (at->image * w->depth + (size_t)z) * w->height + (size_t)y;
    const uint8_t *from = g->images + row * w->width * g->stride;
    if (w->reflects || g->stride != w->channels)
        stage_pixels(g, from, to);
    else
        stage_quantized(g, from, to);
}

void tare__conv_stage_row(const staging *g, size_t image, size_t row, uint8_t *to) {
    stage_row(g, &(row_position){image, 0, row}, to);
}

void tare__conv_stage_image(const staging *g, size_t image, uint8_t *to) {
    const conv_stage *s = g->stage;
    const unsigned char *end = to + tare__conv_stage_bytes(s);
    for (size_t i = 0; i < s->to.depth * s->to.height; i++, to += windows_bytes(s))
        stage_row(g, &(row_position){image, i / s->to.height, i % s->to.height}, to);
    memset(to, 0, (size_t)(end - to)); // the last words read beyond the quantized values
}

// --- rows of windows ---

struct staged_rows {
    const staging *g;
    size_t most;       // capacity
    size_t first, end; // rows that are kept, counted over all images
    unsigned char *memory;
};

// The rows of `pixels` pixels, one that was used before, and those from which new ones are made.
static size_t most_rows(const conv_stage *s, size_t pixels) {
    return tare__ceil_div(pixels - 1, s->to.out_width) + 2;
}

static size_t kept_bytes(const conv_stage *s, size_t most) {
    return tare__round_up(most * windows_bytes(s) + WORD, ALIGNMENT);
}

size_t tare__staged_rows_bytes(const conv_stage *s, size_t pixels) {
    return tare__round_up(sizeof(staged_rows), ALIGNMENT) + kept_bytes(s, most_rows(s, pixels)) +
           s->rows * row_bytes(s);
}

staged_rows *tare__staged_rows_begin(const staging *g, size_t pixels, void *memory) {
    staged_rows *l = memory;
    *l = (staged_rows){.g = g,
                       .most = most_rows(g->stage, pixels),
                       .memory = (unsigned char *)memory +
                                 tare__round_up(sizeof(staged_rows), ALIGNMENT)};
    return l;
}

static uint8_t *windows_at(const staged_rows *l, size_t index) {
    return l->memory + index % l->most * windows_bytes(l->g->stage);
}

// Stages the row of windows after those that are kept, or the first one.
static void stage_windows(const staged_rows *l, size_t index) {
    const conv_stage *s = l->g->stage;
    const size_t plane = index / s->to.height, row = index % s->to.height;
    const size_t kept = l->first < index && row > 0 ? s->rows - s->moved : 0;
    unsigned char *rows = l->memory + kept_bytes(s, l->most);
    row_position at = {plane / s->to.depth, plane % s->to.depth * s->from.stride[D],
                       row * s->from.stride[H] + kept};
    for (size_t r = kept; r < s->rows; r++, at.row++)
        stage_row(l->g, &at, rows + (r - kept) * row_bytes(s));
    const column_sources sources = {kept > 0 ? &s->next : &s->first,
                                    windows_at(l, index + l->most - 1), rows};
    s->columns->put(&sources, s->to.width, windows_at(l, index));
}

// Stages rows of windows [first, end), and the one before if it was used.
static void reach(staged_rows *l, size_t first, size_t end) {
    if (first < l->first || first > l->end) l->first = l->end = first;
    for (; l->end < end; l->end++) stage_windows(l, l->end);
    if (l->end - l->first > l->most) l->first = l->end - l->most;
}

void tare__staged_rows_list(staged_rows *staged, size_t pixel, size_t count, const uint8_t **to) {
    const conv_windows *w = &staged->g->stage->to;
    const size_t apart = w->stride[W] * w->channels, last = pixel + count;
    reach(staged, pixel / w->out_width, tare__ceil_div(last, w->out_width));
    while (pixel < last) {
        const size_t column = pixel % w->out_width;
        const size_t end = tare__least(last, pixel - column + w->out_width);
        const uint8_t *at = windows_at(staged, pixel / w->out_width) + column * apart;
        for (; pixel < end; pixel++, at += apart) *to++ = at;
    }
}
