// SPDX-License-Identifier: Apache-2.0
// Chains of float convolutions in row blocks: a block of the last convolution's rows is computed
// from the rows it needs of the one before, and so on, while these are in the caches. Each thread
// has a share of the last convolution's rows, and its own windows on the values between; rows that
// two blocks need are kept, rows that two threads need are computed by both.
#ifdef TARE_HAVE_DNNL
#include <assert.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "dnnl/primitive.h"

// The most that the windows of a thread hold together: much of the second-level cache, which also
// holds weights and the last convolution's rows.
enum { WINDOW_BYTES = 384 << 10 };

// Runs a primitive, or moves the rows of a window that are still needed to its beginning.
typedef struct row_block_op {
    bool moves;
    size_t index;                    // of the primitive that runs; of those that move: the window
    size_t from, to;                 // windows, from 1 on; 0: the layer's x, and its y
    int64_t x_first, y_first, count; // elements
} row_block_op;

typedef struct float_row_blocks {
    size_t lane_count, window_count;
    int64_t elements[MOST_LINKS - 1]; // of windows
    size_t *first;                    // [lane_count + 1]: ops of lanes
    row_block_op *ops;
} float_row_blocks;

void tare__float_row_blocks_destroy(float_row_blocks *row_blocks) {
    if (row_blocks == NULL) return;
    tare__free(row_blocks->first);
    tare__free(row_blocks->ops);
    tare__free(row_blocks);
}

// --- what runs when ---

// The shape of a primitive: those of one shape in one lane are the same.
typedef struct row_block_form {
    size_t lane, link;
    float_conv conv;
} row_block_form;

typedef struct schedule {
    const float_link *links;
    size_t link_count;
    float_row_blocks *row_blocks;
    size_t op_count, op_capacity;
    row_block_form *forms;
    size_t form_count, form_capacity;
    // For the present thread, and each convolution: rows computed so far, and the first row in its
    // window.
    int64_t made[MOST_LINKS], base[MOST_LINKS];
    size_t lane;
} schedule;

static int64_t row_elements(const float_conv *c) {
    return c->out[2] * c->out_channels;
}

// The rows of its input, from *first to *last, that some rows of a link see.
static void seen(const float_conv *c, int64_t *first, int64_t *last) {
    const float_conv block = tare__float_conv_rows(c, *first, *last, first);
    *last = *first + block.in[1];
}

static bool is_same(const row_block_form *f, const row_block_form *g) {
    return f->lane == g->lane && f->link == g->link && f->conv.in[1] == g->conv.in[1] &&
           f->conv.out[1] == g->conv.out[1] && f->conv.pad[1] == g->conv.pad[1];
}

static tare_status find_primitive(schedule *s, const row_block_form *form, size_t *out,
                                  tare_error *err) {
    for (*out = 0; *out < s->form_count; (*out)++)
        if (is_same(&s->forms[*out], form)) return TARE_OK;
    if (!tare__grow((void **)&s->forms, &s->form_capacity, s->form_count, sizeof *s->forms))
        return tare__out_of_memory(err);
    s->forms[s->form_count++] = *form;
    return TARE_OK;
}

static tare_status add_op(schedule *s, row_block_op op, tare_error *err) {
    if (!tare__grow((void **)&s->row_blocks->ops, &s->op_capacity, s->op_count,
                    sizeof *s->row_blocks->ops))
        return tare__out_of_memory(err);
    s->row_blocks->ops[s->op_count++] = op;
    return TARE_OK;
}

// Moves a window on to the first row that the next link still wants.
static tare_status move_window(schedule *s, size_t link, tare_error *err) {
    int64_t wanted = s->made[link + 1], unused = wanted + 1;
    seen(&s->links[link + 1].conv, &wanted, &unused);
    const int64_t row = row_elements(&s->links[link].conv), base = s->base[link];
    const int64_t kept = s->made[link] - wanted;
    if (wanted <= base) return TARE_OK;
    s->base[link] = wanted;
    if (kept < 0) s->made[link] = wanted; // rows in between are not needed
    if (kept <= 0) return TARE_OK;
    return add_op(
        s,
        (row_block_op){
            .moves = true, .index = link, .x_first = (wanted - base) * row, .count = kept * row},
        err);
}

// Rows of a link up to `end`, of rows of the link before that are there.
static tare_status make_rows(schedule *s, size_t link, int64_t end, tare_error *err) {
    const bool is_first = link == 0, is_last = link + 1 == s->link_count;
    const float_conv *c = &s->links[link].conv;
    int64_t begin = 0;
    if (end <= s->made[link]) return TARE_OK;
    if (!is_last) TARE_TRY(move_window(s, link, err));
    row_block_form form = {s->lane, link, tare__float_conv_rows(c, s->made[link], end, &begin)};
    row_block_op op = {.from = link, .to = is_last ? 0 : link + 1};
    TARE_TRY(find_primitive(s, &form, &op.index, err));
    assert(is_first ||
           (begin >= s->base[link - 1] && begin + form.conv.in[1] <= s->made[link - 1]));
    op.x_first = (begin - (is_first ? 0 : s->base[link - 1])) * c->in[2] * c->in_channels;
    op.y_first = (s->made[link] - (is_last ? 0 : s->base[link])) * row_elements(c);
    s->made[link] = end;
    int64_t *size = is_last ? NULL : &s->row_blocks->elements[link];
    const int64_t filled = (end - s->base[link]) * row_elements(c);
    if (size != NULL && filled > *size) *size = filled;
    return add_op(s, op, err);
}

static tare_status make_row_block(schedule *s, int64_t end, tare_error *err) {
    int64_t ends[MOST_LINKS] = {0};
    ends[s->link_count - 1] = end;
    for (size_t i = s->link_count - 1; i > 0; i--) {
        int64_t first = ends[i] - 1;
        ends[i - 1] = ends[i];
        seen(&s->links[i].conv, &first, &ends[i - 1]);
    }
    for (size_t i = 0; i < s->link_count; i++) TARE_TRY(make_rows(s, i, ends[i], err));
    return TARE_OK;
}

// Rows of the last link whose windows fit.
static int64_t rows_of_block(const schedule *s, int64_t rows) {
    int64_t bytes = 0, times = 1;
    for (size_t i = s->link_count - 1; i > 0; i--) {
        times *= s->links[i].conv.stride[1];
        bytes += times * row_elements(&s->links[i - 1].conv) * (int64_t)sizeof(float);
    }
    const int64_t most = bytes > 0 && bytes < WINDOW_BYTES ? WINDOW_BYTES / bytes : 1;
    const int64_t count = (rows + most - 1) / most;
    return (rows + count - 1) / count;
}

static tare_status make_lane(schedule *s, int64_t first, int64_t last, tare_error *err) {
    int64_t begin = first, end = last;
    for (size_t i = s->link_count; i-- > 0;) {
        s->made[i] = s->base[i] = begin;
        if (i > 0) seen(&s->links[i].conv, &begin, &end);
    }
    const int64_t step = rows_of_block(s, last - first);
    for (int64_t row = first; row < last; row += step)
        TARE_TRY(make_row_block(s, row + step < last ? row + step : last, err));
    return TARE_OK;
}

static tare_status make_lanes(schedule *s, size_t count, tare_error *err) {
    float_row_blocks *b = s->row_blocks;
    const int64_t rows = s->links[s->link_count - 1].conv.out[1];
    b->lane_count = count;
    b->window_count = s->link_count - 1;
    b->first = tare__alloc_zeroed(count + 1, sizeof *b->first);
    if (b->first == NULL) return tare__out_of_memory(err);
    for (s->lane = 0; s->lane < count; s->lane++) {
        const share_range lane = tare__share_range(rows, count, s->lane);
        TARE_TRY(make_lane(s, lane.first, lane.end, err));
        b->first[s->lane + 1] = s->op_count;
    }
    return TARE_OK;
}

// --- compiling ---

tare_status tare__float_row_blocks_reserve(const float_layer *layer, tare_error *err) {
    const float_row_blocks *b = layer->row_blocks;
    for (size_t lane = 0; lane < b->lane_count; lane++)
        for (size_t i = 0; i < b->window_count; i++)
            TARE_TRY(tare__work_reserve(&layer->shared->memory[lane].windows[i],
                                        (size_t)b->elements[i] * sizeof(float), err));
    return TARE_OK;
}

// The primitives of a link share the weights of its first one.
static tare_status compile_primitives(const schedule *s, float_layer *layer, bool *fits,
                                      tare_error *err) {
    const float_primitive *first[MOST_LINKS] = {NULL};
    *fits = true;
    for (size_t i = 0; i < s->form_count && *fits; i++) {
        const row_block_form *form = &s->forms[i];
        const float_link *link = &s->links[form->link];
        const float_conv c = tare__float_conv_flat(&form->conv);
        primitive_form f = tare__primitive_form_of(&link->weights);
        f.lender = first[form->link];
        layer->primitives[i].at.memory = form->lane;
        TARE_TRY(tare__float_conv_compile(layer, i, &c, &link->epilogue, f, fits, err));
        if (first[form->link] == NULL) first[form->link] = &layer->primitives[i];
    }
    return TARE_OK;
}

static tare_status create(float_layers *l, schedule *s, float_layer **out, tare_error *err) {
    float_layer *layer = NULL;
    bool fits = false;
    TARE_TRY(tare__float_layer_create(l, s->form_count, &layer, err));
    layer->row_blocks = s->row_blocks;
    s->row_blocks = NULL;
    tare_status status = tare__float_row_blocks_reserve(layer, err);
    if (status == TARE_OK) status = compile_primitives(s, layer, &fits, err);
    return tare__float_layer_finish(layer, status, fits, out);
}

static bool is_image(const float_conv *c) {
    return c->batch == 1 && tare__float_conv_has_rows(c);
}

static double cost_of(const float_link *links, size_t count) {
    double cost = 0;
    for (size_t i = 0; i < count; i++) {
        const float_conv *c = &links[i].conv;
        cost += (double)c->out[1] * (double)row_elements(c) * (double)c->in_channels /
                (double)c->groups * (double)c->kernel[1] * (double)c->kernel[2];
    }
    return cost;
}

tare_status tare__float_layer_chain(float_layers *l, const float_link *links, size_t count,
                                    float_layer **out, tare_error *err) {
    schedule s = {.links = links, .link_count = count};
    *out = NULL;
    for (size_t i = 0; i < count; i++)
        if (!is_image(&links[i].conv)) return TARE_OK;
    s.row_blocks = tare__alloc_zeroed(1, sizeof *s.row_blocks);
    if (s.row_blocks == NULL) return tare__out_of_memory(err);
    tare_status status = make_lanes(
        &s, tare__float_share_count(l, cost_of(links, count), links[count - 1].conv.out[1]), err);
    if (status == TARE_OK) status = create(l, &s, out, err);
    tare__float_row_blocks_destroy(s.row_blocks);
    tare__free(s.forms);
    return status;
}

// --- running ---

typedef struct row_blocks_run {
    const float_layer *layer;
    const float *x;
    float *y;
    dnnl_status_t statuses[MOST_PRIMITIVES];
} row_blocks_run;

static float *window_of(const primitive_memory *m, size_t window) {
    return m->windows[window].data;
}

static dnnl_status_t run_op(const row_blocks_run *r, const primitive_memory *m,
                            const row_block_op *op) {
    if (op->moves) {
        float *window = window_of(m, op->index);
        memmove(window, window + op->x_first, (size_t)op->count * sizeof *window);
        return dnnl_success;
    }
    const float *x = op->from > 0 ? window_of(m, op->from - 1) : r->x;
    float *y = op->to > 0 ? window_of(m, op->to - 1) : r->y;
    return tare__float_primitive_run(r->layer, op->index, x + op->x_first, y + op->y_first);
}

// A lane has its own memory, which lane numbers, not workers, choose.
static void run_lane(void *user, size_t lane, size_t worker) {
    row_blocks_run *r = user;
    const float_row_blocks *b = r->layer->row_blocks;
    dnnl_status_t status = dnnl_success;
    (void)worker;
    for (size_t i = b->first[lane]; i < b->first[lane + 1] && status == dnnl_success; i++)
        status = run_op(r, &r->layer->shared->memory[lane], &b->ops[i]);
    r->statuses[lane] = status;
}

dnnl_status_t tare__float_row_blocks_run(const float_layer *layer, const float *x, float *y) {
    row_blocks_run r = {.layer = layer, .x = x, .y = y};
    const size_t count = layer->row_blocks->lane_count;
    tare__thread_pool_run(count > 1 ? layer->shared->pool : NULL, count, run_lane, &r);
    for (size_t i = 0; i < count; i++)
        if (r.statuses[i] != dnnl_success) return r.statuses[i];
    return dnnl_success;
}
#else
typedef int tare__no_dnnl_row_blocks; // a file must not be empty
#endif
