// SPDX-License-Identifier: Apache-2.0
// Between the plain layout and channels last: a transposition of [C][pixels] for every image.
#include "ops/rules.h"
#include "runtime/plan_steps.h"

enum { TILE = 16 };

typedef struct reorder {
    size_t from, to; // places
    int64_t batch, rows, columns;
} reorder;

static void transpose(const float *x, int64_t rows, int64_t columns, float *y) {
    for (int64_t r = 0; r < rows; r += TILE)
        for (int64_t c = 0; c < columns; c += TILE) {
            const int64_t last_row = r + TILE < rows ? r + TILE : rows;
            const int64_t last_column = c + TILE < columns ? c + TILE : columns;
            for (int64_t k = c; k < last_column; k++)
                for (int64_t i = r; i < last_row; i++) y[k * rows + i] = x[i * columns + k];
        }
}

static tare_status run_reorder(const plan_run_state *run, void *state) {
    const reorder *r = state;
    const float *x = tare__place_data(run, r->from);
    float *y = tare__place_data(run, r->to);
    const int64_t size = r->rows * r->columns;
    for (int64_t n = 0; n < r->batch; n++)
        transpose(x + n * size, r->rows, r->columns, y + n * size);
    return TARE_OK;
}

const step_class tare__reorder_class = {"reorder", run_reorder, NULL};

tare_status tare__reorder_state(plan_builder *b, const tare_tensor *t, plan_layout to, size_t from,
                                size_t place, void **out) {
    reorder *r = tare__arena_alloc(&b->plan->memory, sizeof *r);
    if (r == NULL) return tare__out_of_memory(b->err);
    const int64_t channels = t->shape[1], pixels = tare__inner_count(t, 1);
    const bool is_plain = to == LAYOUT_PLAIN;
    *r = (reorder){.from = from,
                   .to = place,
                   .batch = t->shape[0],
                   .rows = is_plain ? pixels : channels,
                   .columns = is_plain ? channels : pixels};
    *out = r;
    return TARE_OK;
}
