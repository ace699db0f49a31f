// SPDX-License-Identifier: Apache-2.0
// Padded rows. Memory holds a part for each phase: image rows 0, s, 2s, .. of all images, then 1, s
// + 1, .. where windows are s rows apart. Each output row is one slot further in every phase, and
// so windows go on at the distance they have, across the padding between two rows.
#include "runtime/gemm/padded_rows.h"

#include <string.h>

#include "runtime/kernels/scratch.h"

enum { ALIGNMENT = 64 };

struct padded_rows {
    const padded_form *f;
    const staging *g;
    size_t most;       // slots of a phase
    size_t first, end; // slots that are kept, counted over all images
    uint8_t *memory;
};

padded_form tare__padded_form_of(const conv_windows *from, bool joins) {
    padded_form f = {.stage = tare__conv_stage_of_rows(from)};
    conv_windows *w = &f.stage.to;
    const size_t stride = from->stride[H], covered = (from->rows - 1) * from->step[H];
    w->columns = joins ? 1 : from->columns;
    w->width = tare__round_up(
        (w->out_width - 1) * w->stride[W] + (from->columns - 1) * from->step[W] + 1, w->stride[W]);
    f.phases = tare__least(stride, covered + 1);
    f.reach = covered / stride + 1;
    f.image_slots = w->out_height + f.reach - 1;
    f.row_bytes = w->width * w->channels;
    return f;
}

// --- memory ---

// Slots of as many pixels, which may begin in the middle of an output row and of an image.
static size_t most_slots(const padded_form *f, size_t pixels) {
    const conv_windows *w = &f->stage.to;
    const size_t rows = tare__ceil_div(pixels - 1, w->out_width) + 1;
    const size_t images = tare__ceil_div(rows - 1, w->out_height) + 1;
    return rows + images * (f->reach - 1);
}

size_t tare__padded_rows_bytes(const padded_form *f, size_t pixels) {
    return tare__round_up(sizeof(padded_rows), ALIGNMENT) +
           tare__round_up(most_slots(f, pixels) * f->phases * f->row_bytes, ALIGNMENT);
}

bool tare__padded_rows_fit(const conv_windows *from, size_t pixels, size_t most) {
    // In floating point, where nothing overflows; what is less than `most` can be computed.
    const double width = (double)from->out_width * (double)from->stride[W] +
                         (double)from->columns * (double)from->step[W];
    const double reach = (double)from->rows * (double)from->step[H];
    if (width * reach * (double)from->channels > (double)most) return false;
    const padded_form f = tare__padded_form_of(from, false);
    return tare__padded_rows_bytes(&f, pixels) <= most;
}

padded_rows *tare__padded_rows_begin(const padded_form *f, const staging *g, size_t pixels,
                                     void *memory) {
    padded_rows *p = memory;
    *p =
        (padded_rows){.f = f,
                      .g = g,
                      .most = most_slots(f, pixels),
                      .memory = (uint8_t *)memory + tare__round_up(sizeof(padded_rows), ALIGNMENT)};
    return p;
}

static uint8_t *slot_at(const padded_rows *p, size_t phase, size_t slot) {
    return p->memory + (phase * p->most + slot - p->first) * p->f->row_bytes;
}

// --- rows ---

static void stage_slot(const padded_rows *p, size_t slot) {
    const padded_form *f = p->f;
    const size_t image = slot / f->image_slots, row = slot % f->image_slots;
    for (size_t phase = 0; phase < f->phases; phase++)
        tare__conv_stage_row(p->g, image, row * f->stage.from.stride[H] + phase,
                             slot_at(p, phase, slot));
}

// Slots [first, end), of which those that are kept move to the beginning where there is no room
// behind them.
static void reach(padded_rows *p, size_t first, size_t end) {
    if (first < p->first || first >= p->end) {
        p->first = p->end = first;
    } else if (end - p->first > p->most) {
        const size_t kept = (p->end - first) * p->f->row_bytes;
        for (size_t phase = 0; phase < p->f->phases; phase++) {
            uint8_t *to = slot_at(p, phase, p->first);
            memmove(to, slot_at(p, phase, first), kept);
        }
        p->first = first;
    }
    for (; p->end < end; p->end++) stage_slot(p, p->end);
}

static size_t slot_of(const padded_form *f, size_t output_row) {
    const size_t height = f->stage.to.out_height;
    return output_row / height * f->image_slots + output_row % height;
}

void tare__padded_rows_list(padded_rows *rows, size_t pixel, size_t count, const uint8_t **to) {
    const padded_form *f = rows->f;
    const conv_windows *w = &f->stage.to;
    const size_t apart = w->stride[W] * w->channels, last = pixel + count;
    reach(rows, slot_of(f, pixel / w->out_width), slot_of(f, (last - 1) / w->out_width) + f->reach);
    while (pixel < last) {
        const size_t column = pixel % w->out_width;
        const size_t end = tare__least(last, pixel - column + w->out_width);
        const uint8_t *at = slot_at(rows, 0, slot_of(f, pixel / w->out_width)) + column * apart;
        for (; pixel < end; pixel++, at += apart) *to++ = at;
    }
}

void tare__padded_rows_offsets(const padded_rows *rows, size_t *to) {
    const padded_form *f = rows->f;
    const conv_windows *w = &f->stage.to;
    const size_t stride = f->stage.from.stride[H];
    for (size_t i = 0; i < w->rows; i++) {
        const size_t row = i * w->step[H];
        const size_t at = (row % stride * rows->most + row / stride) * f->row_bytes;
        for (size_t j = 0; j < w->columns; j++) *to++ = at + j * w->step[W] * w->channels;
    }
}
