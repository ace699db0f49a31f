// SPDX-License-Identifier: Apache-2.0
// torch's cascade sum of columns for all kinds of vectors, documented in core/math/rows.h. Included
// after core/math/vector_rows.h.
#include <stdbool.h>

#include "core/math/rows.h"

// Columns that are summed at a time, and their vectors. Rows are assigned to the slots of a group
// in turn, four times as many as lanes. A slot's sum stays in registers for some rows, and is then
// added to the levels.
enum { COLUMNS = 64, COLUMN_VECS = COLUMNS / WIDTH, MOST_LANES = 8, LANE_SLOTS = 4, LEVELS = 3 };
#define COLUMNS_INLINE static inline __attribute__((always_inline))

typedef struct columns {
    const float *x;
    size_t count, stride; // rows, and distance of rows in elements
    size_t lanes, slots;
    size_t rows, done; // full groups, and those already added to the levels
} columns;

typedef vec column_level[LANE_SLOTS * MOST_LANES][COLUMN_VECS];

COLUMNS_INLINE void add_vecs(const vec *x, size_t vecs, vec *sums) {
    for (size_t k = 0; k < vecs; k++) sums[k] = v_add(sums[k], x[k]);
}

// Adds `width` columns of every step-th row from `row` on.
COLUMNS_INLINE void add_rows(const columns *c, size_t row, size_t end, size_t step, size_t width,
                              vec *sums) {
    for (; row < end; row += step) {
        const float *x = c->x + row * c->stride;
        for (size_t k = 0; k * WIDTH < width; k++)
            sums[k] = v_add(sums[k], take(x + k * WIDTH, width - k * WIDTH));
    }
}

// As in torch: the number of rows that a level sums before it is carried, as a power of two.
static size_t level_power(size_t rows) {
    size_t log = 1;
    while (log < 62 && ((size_t)1 << log) < rows) log++;
    return log / 4 > 4 ? log / 4 : 4;
}

// Adds the sum of the level below to this level.
static void carry(column_level *level, size_t slots) {
    for (size_t slot = 0; slot < slots; slot++) {
        add_vecs(level[-1][slot], COLUMN_VECS, level[0][slot]);
        clear(level[-1][slot], COLUMN_VECS);
    }
}

// Adds all full groups.
static void fill_levels(columns *c, size_t width, column_level levels[LEVELS]) {
    const size_t power = level_power(c->rows), step = (size_t)1 << power, mask = step - 1;
    for (size_t i = 0; i < LEVELS * c->slots; i++)
        clear(levels[i / c->slots][i % c->slots], COLUMN_VECS);
    for (size_t end = step; end <= c->rows; end += step) {
        for (size_t slot = 0; slot < c->slots; slot++) {
            vec sums[COLUMN_VECS];
            clear(sums, COLUMN_VECS);
            add_rows(c, c->done * c->slots + slot, end * c->slots, c->slots, width, sums);
            add_vecs(sums, COLUMN_VECS, levels[0][slot]);
        }
        c->done = end;
        for (size_t k = 1; k < LEVELS && (end & (mask << (k * power))) == 0; k++)
            carry(levels + k, c->slots);
    }
}

// A sum is never -0, so adding an empty level changes nothing.
COLUMNS_INLINE void sum_slot(const columns *c, size_t slot, const column_level *levels,
                             size_t width, vec *sums) {
    const size_t vecs = (width + WIDTH - 1) / WIDTH;
    clear(sums, vecs);
    add_rows(c, c->done * c->slots + slot, c->rows * c->slots, c->slots, width, sums);
    for (size_t k = 0; c->done > 0 && k < LEVELS; k++) add_vecs(levels[k][slot], vecs, sums);
}

// Rows that do not fill a group are added to the first slot of a lane, those that do not fill the
// lanes to the sum itself.
COLUMNS_INLINE void sum_columns(columns c, size_t width, float *y) {
    const size_t vecs = (width + WIDTH - 1) / WIDTH, whole = c.count / c.lanes * c.lanes;
    column_level levels[LEVELS];
    vec sums[COLUMN_VECS], lane_sums[COLUMN_VECS], slot_sums[COLUMN_VECS];
    if (c.rows >= 16) fill_levels(&c, width, levels);
    clear(sums, vecs);
    add_rows(&c, whole, c.count, 1, width, sums);
    for (size_t lane = 0; lane < c.lanes; lane++) {
        sum_slot(&c, lane, levels, width, lane_sums);
        add_rows(&c, c.rows * c.slots + lane, whole, c.lanes, width, lane_sums);
        for (size_t slot = lane + c.lanes; slot < c.slots; slot += c.lanes) {
            sum_slot(&c, slot, levels, width, slot_sums);
            add_vecs(slot_sums, vecs, lane_sums);
        }
        add_vecs(lane_sums, vecs, sums);
    }
    for (size_t k = 0; k < vecs; k++) give(y + k * WIDTH, sums[k], width - k * WIDTH);
}

void ROWS(f32_columns)(const float *x, size_t count, size_t stride, size_t width, float *y) {
    columns c = {.x = x, .count = count, .stride = stride};
    c.lanes = count >= MOST_LANES ? MOST_LANES : 1;
    c.slots = LANE_SLOTS * c.lanes;
    c.rows = count / c.slots;
    for (; width >= COLUMNS; width -= COLUMNS, c.x += COLUMNS, y += COLUMNS)
        sum_columns(c, COLUMNS, y);
    for (size_t now; width > 0; width -= now, c.x += now, y += now) {
        now = width < WIDTH ? width : WIDTH;
        sum_columns(c, now, y);
    }
}

// --- one contiguous row, whose slots are lanes ---

enum { ROW_SLOTS = LANE_SLOTS * MOST_LANES, ROW_VECS = ROW_SLOTS / WIDTH };

typedef vec row_level[ROW_VECS];

typedef struct row {
    const float *x;
    size_t count, rows; // rows: full ones of all slots
    bool squares;       // sum the squares of elements
} row;

COLUMNS_INLINE float element_of(row r, size_t i) {
    return r.squares ? r.x[i] * r.x[i] : r.x[i];
}

COLUMNS_INLINE void add_slots(row r, size_t at, vec *sums) {
    for (size_t k = 0; k < ROW_VECS; k++) {
        const vec x = v_load(r.x + at * ROW_SLOTS + k * WIDTH);
        sums[k] = v_add(sums[k], r.squares ? v_mul(x, x) : x);
    }
}

// As fill_levels; returns how many rows the levels have.
COLUMNS_INLINE size_t fill_row_levels(row r, row_level levels[LEVELS]) {
    const size_t power = level_power(r.rows), step = (size_t)1 << power, mask = step - 1;
    size_t done = 0;
    for (size_t k = 0; k < LEVELS; k++) clear(levels[k], ROW_VECS);
    for (size_t end = step; end <= r.rows; end += step) {
        row_level sums;
        clear(sums, ROW_VECS);
        for (; done < end; done++) add_slots(r, done, sums);
        add_vecs(sums, ROW_VECS, levels[0]);
        for (size_t k = 1; k < LEVELS && (end & (mask << (k * power))) == 0; k++) {
            add_vecs(levels[k - 1], ROW_VECS, levels[k]);
            clear(levels[k - 1], ROW_VECS);
        }
    }
    return done;
}

// The sum of each slot, over full rows.
COLUMNS_INLINE void sum_slots(row r, float slots[ROW_SLOTS]) {
    row_level levels[LEVELS], sums;
    const size_t done = r.rows >= 16 ? fill_row_levels(r, levels) : 0;
    clear(sums, ROW_VECS);
    for (size_t at = done; at < r.rows; at++) add_slots(r, at, sums);
    for (size_t k = 0; done > 0 && k < LEVELS; k++) add_vecs(levels[k], ROW_VECS, sums);
    for (size_t k = 0; k < ROW_VECS; k++) v_store(slots + k * WIDTH, sums[k]);
}

COLUMNS_INLINE float total_of(row r) {
    const size_t whole = r.count / MOST_LANES * MOST_LANES;
    float slots[ROW_SLOTS], sum = 0;
    sum_slots(r, slots);
    for (size_t i = whole; i < r.count; i++) sum += element_of(r, i);
    for (size_t lane = 0; lane < MOST_LANES; lane++) {
        float of_lane = slots[lane];
        for (size_t i = r.rows * ROW_SLOTS + lane; i < whole; i += MOST_LANES)
            of_lane += element_of(r, i);
        for (size_t slot = lane + MOST_LANES; slot < ROW_SLOTS; slot += MOST_LANES)
            of_lane += slots[slot];
        sum += of_lane;
    }
    return sum;
}

// A row of a few elements has one lane.
COLUMNS_INLINE void sum_row(row r, float *y) {
    float few[MOST_LANES];
    r.rows = r.count / ROW_SLOTS;
    if (r.count >= MOST_LANES) {
        *y = total_of(r);
        return;
    }
    for (size_t i = 0; i < r.count; i++) few[i] = element_of(r, i);
    ROWS(f32_columns)(few, r.count, 1, 1, y);
}

void ROWS(f32_total)(const float *x, size_t count, float *y) {
    sum_row((row){.x = x, .count = count}, y);
}
void ROWS(f32_square_total)(const float *x, size_t count, float *y) {
    sum_row((row){.x = x, .count = count, .squares = true}, y);
}
