// SPDX-License-Identifier: Apache-2.0
// torch's cascade sum.
#include "ops/line_sum.h"

#include <string.h>

enum { LANES = 8, ROWS = 4, LEVELS = 4, SLOTS = ROWS * LANES };

// Partial sums [level][slot][width]; a slot is a row and a lane. Levels above the first are sums of
// nothing until they take over something: short lines never touch them.
typedef struct cascade {
    size_t width, levels;
    float at[LEVELS * SLOTS * LINE_SUM_WIDTH];
} cascade;

static float *slot_of(cascade *s, size_t level, size_t slot) {
    return s->at + (level * SLOTS + slot) * s->width;
}

// Full lines whose ends cannot overlap are what compilers make vectors of.
static void add(const float *restrict x, size_t width, float *restrict y) {
    if (width == LINE_SUM_WIDTH)
        for (size_t c = 0; c < LINE_SUM_WIDTH; c++) y[c] += x[c];
    else
        for (size_t c = 0; c < width; c++) y[c] += x[c];
}

static void add_slots(cascade *s, size_t from, size_t to, size_t slots) {
    for (size_t slot = 0; slot < slots; slot++)
        add(slot_of(s, from, slot), s->width, slot_of(s, to, slot));
}

static void clear(cascade *s, size_t level, size_t slots) {
    memset(slot_of(s, level, 0), 0, slots * s->width * sizeof(float));
}

// Level `level` takes over what the one below has.
static void carry(cascade *s, size_t level, size_t slots) {
    for (; s->levels <= level; s->levels++) clear(s, s->levels, slots);
    add_slots(s, level - 1, level, slots);
    clear(s, level - 1, slots);
}

static int64_t step_power(int64_t rows) {
    int64_t log = 1;
    while (log < 62 && ((int64_t)1 << log) < rows) log++;
    return log / LEVELS > 4 ? log / LEVELS : 4;
}

static void carry_over(cascade *s, int64_t done, int64_t power, size_t slots) {
    const int64_t mask = ((int64_t)1 << power) - 1;
    if ((done & mask) != 0) return;
    for (size_t level = 1; level < LEVELS; level++) {
        carry(s, level, slots);
        if ((done & (mask << ((int64_t)level * power))) != 0) return;
    }
}

// The first `rows` times four vectors of `lanes` elements. A sum is never -0, so that adding a
// level of nothing would change none.
static void sum_rows(cascade *s, const float *x, int64_t rows, size_t lanes, size_t stride) {
    const int64_t power = step_power(rows);
    const size_t slots = ROWS * lanes;
    for (int64_t r = 0; r < rows; r++) {
        for (size_t slot = 0; slot < slots; slot++, x += stride)
            add(x, s->width, slot_of(s, 0, slot));
        carry_over(s, r + 1, power, slots);
    }
    for (size_t level = 1; level < s->levels; level++) add_slots(s, level, 0, slots);
}

void tare__line_sum(const float *x, int64_t count, size_t stride, size_t width, float *y) {
    const size_t lanes = count >= LANES ? LANES : 1;
    const int64_t vectors = count / (int64_t)lanes, rows = vectors / ROWS;
    cascade s;
    s.width = width;
    s.levels = 1;
    clear(&s, 0, ROWS * lanes);
    sum_rows(&s, x, rows, lanes, stride);
    // What does not fill four vectors goes to the first row.
    const float *rest = x + (size_t)rows * ROWS * lanes * stride;
    for (size_t i = 0; i < (size_t)(vectors - rows * ROWS) * lanes; i++, rest += stride)
        add(rest, width, slot_of(&s, 0, i % lanes));
    for (size_t slot = lanes; slot < ROWS * lanes; slot++)
        add(slot_of(&s, 0, slot), width, slot_of(&s, 0, slot % lanes));
    memset(y, 0, width * sizeof *y);
    for (int64_t i = vectors * (int64_t)lanes; i < count; i++, rest += stride) add(rest, width, y);
    for (size_t lane = 0; lane < lanes; lane++) add(slot_of(&s, 0, lane), width, y);
}
