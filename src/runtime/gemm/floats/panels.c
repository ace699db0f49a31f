// SPDX-License-Identifier: Apache-2.0
// Packs weights of floats into panels of columns, and multiplies a few rows with them.
#include "runtime/gemm/floats/panels.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "ops/rules.h"

// Distinguishes the panels from other data that is derived from a tensor.
#define WEIGHTS_TAG UINT64_C(0x726f7770616e656c)

static size_t count_of(const panel_weights *w) {
    return tare__ceil_div(w->columns, PANEL_COLUMNS);
}

static size_t columns_of(const panel_weights *w, size_t panel) {
    return tare__remaining(w->columns, panel * PANEL_COLUMNS, PANEL_COLUMNS);
}

static size_t width_of(const panel_weights *w, size_t panel) {
    return tare__round_up(columns_of(w, panel), PANEL_STEP);
}

static void destroy(derived_item *item) {
    panel_weights *w = (panel_weights *)(void *)item;
    tare__derived_memory_release(w->memory);
    tare__free(w);
}

// A cache line of each column at a time.
enum { INNER_BLOCK = 16 };

static void pack_panel(const float *from, const panel_weights *w, size_t panel) {
    const size_t columns = columns_of(w, panel), width = width_of(w, panel);
    const size_t before = panel * PANEL_COLUMNS * w->inner;
    float *to = w->panels + before;
    from += before;
    if (width > columns) memset(to, 0, width * w->inner * sizeof *to);
    for (size_t first = 0; first < w->inner; first += INNER_BLOCK) {
        const size_t end = tare__least(first + INNER_BLOCK, w->inner);
        for (size_t c = 0; c < columns; c++)
            for (size_t i = first; i < end; i++) to[i * width + c] = from[c * w->inner + i];
    }
}

static tare_status fill(panel_weights *w, const tare_tensor *weight, tare_error *err) {
    size_t count, bytes;
    if (!tare__mul_size(tare__panel_bias_count(w), w->inner, &count) ||
        !tare__mul_size(count, sizeof(float), &bytes))
        return tare__out_of_memory(err);
    w->panels = tare__derived_alloc(weight->store, bytes, &w->memory);
    if (w->panels == NULL) return tare__out_of_memory(err);
    for (size_t p = 0; p < count_of(w); p++) pack_panel(tare__f32(weight), w, p);
    tare__tensor_forget(weight);
    return TARE_OK;
}

static tare_status make(void *user, derived_offer offer, derived_item **out, tare_error *err) {
    const tare_tensor *weight = user;
    (void)offer; // files never offer them
    panel_weights *w = tare__alloc_zeroed(1, sizeof *w);
    if (w == NULL) return tare__out_of_memory(err);
    w->base.destroy = destroy;
    w->columns = (size_t)weight->shape[0];
    w->inner = (size_t)tare__inner_count(weight, 0);
    const tare_status status = fill(w, weight, err);
    if (status == TARE_OK)
        *out = &w->base;
    else
        destroy(&w->base);
    return status;
}

tare_status tare__panel_weights_get(const tare_tensor *weight, panel_weights **out,
                                    tare_error *err) {
    const derived_key key = {.data = weight->data,
                             .numbers = {WEIGHTS_TAG, (uint64_t)weight->shape[0],
                                         (uint64_t)tare__inner_count(weight, 0)}};
    derived_item *item = NULL;
    TARE_TRY(tare__derive(weight->store, &key, make, (void *)weight, &item, err));
    *out = (panel_weights *)(void *)item;
    return TARE_OK;
}

void tare__panel_weights_release(panel_weights *w) {
    if (w != NULL) tare__derived_release(&w->base);
}

// --- products ---

enum { ROW_BLOCK = 4 };

// Sums are finished before they are stored, because y may be what `finish` adds.
static void multiply_panel(const panel_product *p, size_t panel) {
    const panel_weights *w = p->weights;
    const size_t first = panel * PANEL_COLUMNS, columns = columns_of(w, panel);
    float sums[ROW_BLOCK][PANEL_COLUMNS];
    for (size_t row = 0; row < p->rows; row += ROW_BLOCK) {
        const float_tile tile = {.x = p->x + row * w->inner,
                                 .w = w->panels + first * w->inner,
                                 .y = sums[0],
                                 .rows = tare__remaining(p->rows, row, ROW_BLOCK),
                                 .inner = w->inner,
                                 .columns = width_of(w, panel),
                                 .x_step = w->inner,
                                 .w_step = width_of(w, panel),
                                 .y_step = PANEL_COLUMNS};
        p->functions->tile(&tile);
        for (size_t i = 0; i < tile.rows; i++) {
            const size_t at = (row + i) * w->columns + first;
            p->functions->add(p->bias + first, columns, sums[i]);
            if (p->finish != NULL) p->finish(p->user, at, columns, sums[i]);
            memcpy(p->y + at, sums[i], columns * sizeof **sums);
        }
    }
}

static void multiply_panels(void *user, size_t first, size_t end, size_t worker) {
    (void)worker;
    for (size_t i = first; i < end; i++) multiply_panel(user, i);
}

void tare__panels_multiply(const panel_product *p, thread_pool *pool) {
    enum {
        LEAST_SHARED = 1 << 17
    }; // multiply-accumulates that are done in the time a thread takes to wake up
    const panel_weights *w = p->weights;
    const size_t panels = count_of(w);
    if (p->rows * w->inner * w->columns < LEAST_SHARED) pool = NULL;
    tare__thread_pool_run_ranges(pool, panels, (thread_grain){1, tare__most(panels, 1)},
                                 multiply_panels, (void *)p);
}
