// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Groups of pixels: how many pay, and the addresses of their columns.
#include "runtime/gemm/pixel_groups.h"

#include <string.h>

#include "core/memory/short_copy.h"
#include "runtime/kernels/scratch.h"

enum {
    MOST_BYTES = 1 << 18, // of copied rows, which stay in the cache; and of a list of addresses
    BEHIND = 16,
};

// --- what pays, in cycles of a CPU whose shuffles and products share ports ---

static const double interleaving = 8, multiplying = 4, storing = 16, // of a word, of a pixel
    copying = 4, listing = 1, starting = 200, // of a pixel, of an address, of rows of groups
    narrow = 0.8,                             // registers of fewer channels
    least_gain = 1.25;                        // results may have to be copied, too

// A block of channels of a pixel of each output row, of whose columns as many are not shared with
// the pixel before.
static double block_cycles(const depthwise_form *f, size_t unshared) {
    const double words = (double)f->words, rows = (double)f->rows;
    return interleaving * words * (double)unshared +
           rows * (multiplying * words * (double)f->columns + storing);
}

static double single_cycles(const conv_windows *w, const depthwise_form *f) {
    const size_t span = (w->columns - 1) * w->step[W] + 1;
    const bool is_kept = tare__depthwise_keeps_columns(f->words, span, w->stride[W]);
    const size_t unshared = is_kept ? w->stride[W] : w->columns;
    return (double)w->out_width * (narrow * block_cycles(f, unshared) +
                                   listing * (double)(w->stride[W] * f->words * DEPTHWISE_WORD));
}

static bool is_copied(const conv_windows *w) {
    const size_t end = (w->out_width - 1) * w->stride[W] + (w->columns - 1) * w->step[W] + 1;
    return w->stride[W] > 1 || w->before > 0 || (size_t)-w->before + end > w->width;
}

// The rows that no other output rows have copied before.
static double copied_rows(const conv_windows *w, const depthwise_form *f) {
    const size_t rows = f->taps + f->rows - 1, next = w->stride[H] * f->rows;
    return (double)(w->step[H] == 1 && next < rows ? next : rows);
}

static double group_cycles(const conv_windows *w, const depthwise_form *f, const pixel_groups *g) {
    const double copies = copying * (double)(g->phases * w->out_width) * copied_rows(w, f);
    return (double)g->count * (block_cycles(f, w->columns) +
                               listing * (double)(w->columns * f->words * DEPTHWISE_WORD)) +
           starting + (is_copied(w) ? copies : 0);
}

// --- sizes ---

static bool fits(const conv_windows *w, const depthwise_form *f) {
    const double row = (double)w->out_width * (double)w->stride[W] +
                       (double)w->columns * (double)w->step[W] + BEHIND;
    return w->out_width > 0 && !w->reflects && 2 * f->channels <= f->block &&
           row * (double)f->channels * (double)(f->words * DEPTHWISE_WORD) <= MOST_BYTES;
}

pixel_groups tare__pixel_groups_of(const conv_windows *w, const depthwise_form *f) {
    const pixel_groups none = {.channels = f->channels, .pixels = 1};
    if (!fits(w, f)) return none;
    const size_t span = (w->columns - 1) * w->step[W] + 1;
    pixel_groups g = {.channels = f->channels,
                      .pixels = tare__least(f->block / f->channels, w->out_width),
                      .columns = w->columns,
                      .step = w->step[W],
                      .phases = tare__least(w->stride[W], span)};
    g.count = tare__ceil_div(w->out_width, g.pixels);
    if (tare__pixel_groups_addresses(&g, f) > MOST_BYTES / sizeof(uint8_t *)) return none;
    g.phase_bytes = (w->out_width + (span - 1) / w->stride[W]) * g.channels;
    g.row_bytes = g.phases * g.phase_bytes + BEHIND;
    return g.pixels > 1 && least_gain * group_cycles(w, f, &g) < single_cycles(w, f) ? g : none;
}

size_t tare__pixel_groups_addresses(const pixel_groups *g, const depthwise_form *f) {
    return g->count * g->columns * f->words * DEPTHWISE_WORD;
}

// Which row of the images each copy is of, and the copies.
static size_t tag_bytes(const depthwise_form *f) {
    return f->words * DEPTHWISE_WORD * sizeof(uint8_t *);
}

size_t tare__pixel_groups_bytes(const pixel_groups *g, const depthwise_form *f) {
    return tag_bytes(f) + g->row_bytes * f->words * DEPTHWISE_WORD;
}

void tare__pixel_groups_begin(const depthwise_form *f, void *memory) {
    memset(memory, 0, tag_bytes(f));
}

// --- addresses ---

typedef struct group_copies {
    void *memory;
    size_t count;
    uint8_t padding;
} group_copies;

// Pixels that are stride[W] apart, from column `at` of the image on.
static void copy_phase(const pixel_groups *g, const conv_windows *w, const uint8_t *row,
                       ptrdiff_t at, uint8_t padding, uint8_t *to) {
    const size_t stride = w->stride[W], count = g->phase_bytes / g->channels;
    const inner_positions in = tare__conv_inner(w->width, at, stride, count);
    const uint8_t *from = row;
    if (in.first < in.end) from += (size_t)(at + (ptrdiff_t)(in.first * stride)) * w->channels;
    memset(to, padding, in.first * g->channels);
    if (stride == 1 && w->channels == g->channels)
        memcpy(to + in.first * g->channels, from, (in.end - in.first) * g->channels);
    else
        for (size_t i = in.first; i < in.end; i++, from += stride * w->channels)
            tare__short_copy(to + i * g->channels, from, g->channels);
    memset(to + in.end * g->channels, padding, (count - in.end) * g->channels);
}

static void list_row(const pixel_groups *g, const conv_windows *w, const uint8_t *row, size_t step,
                     const uint8_t **to) {
    for (size_t j = 0; j < g->columns; j++, to += step) {
        const size_t tap = j * g->step, phase = tap % w->stride[W];
        const uint8_t *at = row + phase * g->phase_bytes + tap / w->stride[W] * g->channels;
        for (size_t k = 0; k < g->count; k++, at += g->pixels * g->channels)
            to[k * g->columns * step] = at;
    }
}

static void list_padding(const pixel_groups *g, const column_list *list, const uint8_t **to) {
    for (size_t k = 0; k < g->count * g->columns; k++) to[k * list->column_step] = list->padding;
}

// The place of a copy: rows of windows that overlap keep theirs.
static size_t place_of(const conv_windows *w, const column_list *list, size_t i) {
    const bool overlap = w->step[H] == 1 && w->addends * w->planes == 1;
    return (overlap ? list->row * w->stride[H] + i : i) % list->column_step;
}

static const uint8_t *copy_row(const pixel_groups *g, const conv_windows *w, const uint8_t *row,
                               const group_copies *c, size_t place) {
    const uint8_t **tags = c->memory;
    uint8_t *copy = (uint8_t *)(tags + c->count) + place * g->row_bytes;
    if (tags[place] == row) return copy;
    tags[place] = row;
    for (size_t phase = 0; phase < g->phases; phase++)
        copy_phase(g, w, row, (ptrdiff_t)phase - w->before, c->padding,
                   copy + phase * g->phase_bytes);
    return copy;
}

void tare__pixel_groups_list(const pixel_groups *g, const conv_windows *w, const column_list *list,
                             uint8_t padding, void *memory, const uint8_t **to) {
    const group_copies c = {memory, list->column_step, padding};
    const bool copies = is_copied(w) || w->channels != g->channels;
    for (size_t i = 0; i < list->column_step; i++, to++) {
        const uint8_t *row = tare__conv_window_row(w, list, i);
        if (row == NULL)
            list_padding(g, list, to);
        else if (copies)
            list_row(g, w, copy_row(g, w, row, &c, place_of(w, list, i)), list->column_step, to);
        else
            list_row(g, w, row - w->before * (ptrdiff_t)g->channels, list->column_step, to);
    }
}
