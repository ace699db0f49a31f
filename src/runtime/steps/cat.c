// SPDX-License-Identifier: Apache-2.0
// Concatenations, and stacks in the plain layout. The inputs are slices of the result if the steps
// that compute them can write them there. Other inputs are copied, and quantized values with other
// parameters than the result's are converted by a table. This works in the plain layout if only
// dimensions of size 1 precede the concatenated one, and for quantized values also channels last,
// pixel by pixel.
#include <string.h>

#include "ops/layer_call.h"
#include "ops/quantized/layer.h"
#include "ops/quantized/table.h"
#include "ops/rules.h"
#include "runtime/plan/records.h"
#include "runtime/steps/steps.h"

enum { GRAIN = 1 << 15 }; // bytes of the result per task, roughly

typedef struct cat_input {
    size_t x, pitch;      // pitch: elements from a row to the next
    size_t at, row;       // elements: offset in a row of the result, and length of a row
    const uint8_t *table; // converts each quantized value; NULL: copies them
} cat_input;

typedef struct cat_step {
    cat_input *inputs; // those that are copied
    size_t count, y, in_place;
    size_t rows, pitch, element; // rows of the result, their distance in bytes, bytes of an element
} cat_step;

// --- running ---

typedef struct cat_job {
    const plan_run_state *run;
    const cat_step *s;
} cat_job;

// For rows with a constant number of bytes.
static inline __attribute__((always_inline)) void copy_rows(const uint8_t *x, size_t x_pitch,
                                                            uint8_t *y, size_t y_pitch,
                                                            size_t count, size_t bytes) {
    for (size_t i = 0; i < count; i++) memcpy(y + i * y_pitch, x + i * x_pitch, bytes);
}

static void copy_any_rows(const uint8_t *x, size_t x_pitch, uint8_t *y, size_t y_pitch,
                          size_t count, size_t bytes) {
    switch (bytes) {
    case 1:
        copy_rows(x, x_pitch, y, y_pitch, count, 1);
        break;
    case 4:
        copy_rows(x, x_pitch, y, y_pitch, count, 4);
        break;
    case 8:
        copy_rows(x, x_pitch, y, y_pitch, count, 8);
        break;
    default:
        copy_rows(x, x_pitch, y, y_pitch, count, bytes);
    }
}

static void put(const cat_job *job, const cat_input *p, const uint8_t *x, size_t count,
                uint8_t *y) {
    if (p->table != NULL)
        job->run->kernels->elementwise->look_up(p->table, x, count, y);
    else
        memcpy(y, x, count * job->s->element);
}

static void put_rows(const cat_job *job, const cat_input *p, size_t first, size_t last) {
    const cat_step *s = job->s;
    const size_t x_pitch = p->pitch * s->element, y_pitch = s->pitch * s->element;
    const uint8_t *x = (const uint8_t *)tare__buffer_data(job->run, p->x) + first * x_pitch;
    uint8_t *y = tare__buffer_data(job->run, s->y);
    y += first * y_pitch + p->at * s->element;
    if (p->table == NULL) copy_any_rows(x, x_pitch, y, y_pitch, last - first, p->row * s->element);
    for (size_t i = first; p->table != NULL && i < last; i++, x += x_pitch, y += y_pitch)
        put(job, p, x, p->row, y);
}

static void run_rows(void *user, size_t first, size_t end, size_t worker) {
    const cat_job *job = user;
    (void)worker;
    for (size_t i = 0; i < job->s->count; i++) put_rows(job, &job->s->inputs[i], first, end);
}

// Copies elements [first, end) of the single row, from the inputs that hold them.
static void run_elements(void *user, size_t first, size_t end, size_t worker) {
    const cat_job *job = user;
    const cat_step *s = job->s;
    (void)worker;
    for (size_t i = 0; i < s->count; i++) {
        const cat_input *p = &s->inputs[i];
        const size_t from = tare__most(first, p->at), to = tare__least(end, p->at + p->row);
        if (from >= to) continue;
        const uint8_t *x = tare__buffer_data(job->run, p->x);
        uint8_t *y = tare__buffer_data(job->run, s->y);
        put(job, p, x + (from - p->at) * s->element, to - from, y + from * s->element);
    }
}

static tare_status run_cat(const plan_run_state *run, void *state) {
    const cat_step *s = state;
    thread_pool *pool = tare__threads_for(run, (int64_t)(s->rows * s->pitch));
    cat_job job = {run, s};
    if (s->rows == 1)
        tare__parallel(pool, s->pitch, GRAIN / s->element, run_elements, &job);
    else
        tare__parallel(pool, s->rows, tare__grain_of(GRAIN, s->pitch * s->element), run_rows, &job);
    return TARE_OK;
}

static void describe_rows(const plan *p, const void *state, step_note *out) {
    const cat_step *s = state;
    (void)p;
    tare__step_say(out, "rows: %zu copied, %zu in place", s->count, s->in_place);
}

static void describe_floats(const plan *p, const void *state, step_note *out) {
    (void)p, (void)state;
    tare__step_say(out, "float: pixels as rows of channels");
}

static void describe_quantized(const plan *p, const void *state, step_note *out) {
    const cat_step *s = state;
    (void)p;
    tare__step_say(out,
                   "integers: %zu copied, or looked up where the parameters differ, %zu in place",
                   s->count, s->in_place);
}

// --- calls ---

typedef struct cat_call {
    const tare_tensor **x, *y;
    size_t count;
    int64_t outer,
        inner; // outer: rows of the result; inner: elements of one index of the dimension
    int dim;
    bool stacks; // stack: along a new dimension
} cat_call;

static bool read_call(plan_builder *b, const plan_record *r, cat_call *c) {
    op_call call = r->call;
    call.err = NULL;
    call.memory = &b->scratch;
    c->y = r->result != NOTHING ? b->values[r->result].tensor : NULL;
    c->stacks = tare__record_is(r, TARE_OP_STACK);
    if (b->setting->kernels == NULL || c->y == NULL || c->y->count == 0 ||
        (c->stacks ? tare__call_tensor_list(&call, 0, &c->x, &c->count)
                   : tare__cat_inputs(&call, &c->x, &c->count)) != TARE_OK ||
        tare__call_dim(&call, 1, 0, c->y->ndim, &c->dim) != TARE_OK)
        return false;
    for (size_t i = 0; i < c->count; i++)
        if (c->x[i]->count == 0 || c->x[i]->ndim != c->y->ndim - (c->stacks ? 1 : 0) ||
            c->x[i]->dtype != c->y->dtype || tare__plan_find_value(b, c->x[i]) == NOTHING)
            return false;
    c->inner = tare__inner_count(c->y, c->dim);
    c->outer = c->y->count / (c->inner * c->y->shape[c->dim]);
    return true;
}

static bool has_one_scheme(const cat_call *c) {
    for (size_t i = 0; i < c->count; i++)
        if (c->x[i]->q != c->y->q &&
            (c->x[i]->q == NULL || c->y->q == NULL || !tare__qparams_equal(c->x[i]->q, c->y->q)))
            return false;
    return true;
}

static bool are_bytes(const cat_call *c) {
    for (size_t i = 0; i < c->count; i++)
        if (!tare__is_byte_quantized(c->x[i])) return false;
    return tare__is_byte_quantized(c->y);
}

// Channels of images; quantized values are bytes.
static bool has_pixels(const cat_call *c) {
    return c->dim == 1 && c->y->ndim >= 3 && (c->y->q == NULL || are_bytes(c));
}

static size_t row_of(const cat_call *c, const tare_tensor *t) {
    return (size_t)((c->stacks ? 1 : t->shape[c->dim]) * c->inner);
}

// A step without inputs.
static tare_status new_step(plan_builder *b, const cat_call *c, size_t rows, cat_step **out) {
    cat_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = (cat_step){.inputs = tare__arena_array(&b->plan->memory, c->count, sizeof *s->inputs),
                    .rows = rows,
                    .element = tare_dtype_size(c->y->dtype)};
    *out = s;
    return s->inputs != NULL ? TARE_OK : tare__out_of_memory(b->err);
}

// --- other parameters than the result's ---

static void fill_table(const qparams *x, const qparams *y, bool is_signed,
                       uint8_t table[QUANTIZED_COUNT]) {
    const float inverse = tare__inverse_scale(y->scale[0]);
    for (int i = 0; i < QUANTIZED_COUNT; i++) {
        const int q = is_signed ? (int8_t)(uint8_t)i : i;
        const float real = tare__dequantize(q, (int64_t)x->zero_point[0], (float)x->scale[0]);
        table[i] = (uint8_t)tare__quantize(real, inverse, (int64_t)y->zero_point[0], y->quant_min,
                                           y->quant_max);
    }
}

static tare_status make_table(plan_builder *b, const tare_tensor *x, const tare_tensor *y,
                              const uint8_t **out) {
    uint8_t *table = tare__arena_alloc(&b->plan->memory, QUANTIZED_COUNT);
    if (table == NULL) return tare__out_of_memory(b->err);
    fill_table(x->q, y->q, y->dtype == TARE_QINT8, table);
    *out = table;
    return TARE_OK;
}

// --- the plain layout ---

static bool heads_rows(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_CAT, TARE_OP_QUANTIZED_CAT, TARE_OP_STACK, TARE_OP_NONE};
    (void)b;
    return tare__record_is_one_of(r, ids) && r->result != NOTHING && !r->is_view && !r->is_observer;
}

// The value whose step writes it: the base of a view.
static size_t made_as(const plan_builder *b, size_t v) {
    const size_t base = b->values[v].base;
    const bool is_all =
        tare__tensor_bytes(b->values[base].tensor) == tare__tensor_bytes(b->values[v].tensor);
    return is_all ? base : NOTHING;
}

// A value can be a slice of only one concatenation: the last one that reads it.
static void reserve_rows(plan_builder *b, size_t record) {
    const plan_record *r = &b->records[record];
    cat_call c = {0};
    if (!read_call(b, r, &c) || !has_one_scheme(&c) || c.outer != 1) return;
    for (size_t i = 0, at = 0; i < c.count; at += row_of(&c, c.x[i++])) {
        const size_t v = made_as(b, tare__plan_find_value(b, c.x[i]));
        if (v == NOTHING) continue;
        const plan_value *x = &b->values[v];
        plan_placement *own = &b->values[v].placement[LAYOUT_PLAIN];
        if (own->slice_of != NOTHING || x->is_constant || x->is_input) continue;
        own->slice_of = r->result;
        own->slice_at = at * tare_dtype_size(c.y->dtype);
    }
}

static bool is_slice_at(const plan_builder *b, size_t x, size_t whole, size_t at) {
    const plan_buffer *slice = &b->plan->buffers[x], *y = &b->plan->buffers[whole];
    const size_t root = y->whole != NOTHING ? y->whole : whole;
    return slice->whole == root && slice->pitch == 0 && slice->shift == y->shift + at;
}

static tare_status add_rows(plan_builder *b, const cat_call *c, const tare_tensor *x, size_t at,
                            cat_step *s) {
    const size_t v = tare__plan_find_value(b, x), row = row_of(c, x);
    const size_t buffer = b->values[v].placement[LAYOUT_PLAIN].buffer;
    const bool differs = x->q != NULL && !tare__qparams_equal(x->q, c->y->q);
    cat_input *p = &s->inputs[s->count];
    if (!differs && buffer != NOTHING && is_slice_at(b, buffer, s->y, at * s->element)) {
        s->in_place++;
        return TARE_OK;
    }
    *p = (cat_input){.pitch = row, .at = at, .row = row};
    s->count++;
    if (differs) TARE_TRY(make_table(b, x, c->y, &p->table));
    return tare__plan_read(b, v, LAYOUT_PLAIN, &p->x);
}

static tare_status plan_rows(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    cat_call c = {0};
    cat_step *s;
    if (r->next != NOTHING || !read_call(b, r, &c) || !(has_one_scheme(&c) || are_bytes(&c)))
        return TARE_OK;
    TARE_TRY(new_step(b, &c, (size_t)c.outer, &s));
    s->pitch = (size_t)(c.y->count / c.outer);
    TARE_TRY(tare__plan_place_whole(b, r->result, LAYOUT_PLAIN, &s->y));
    for (size_t i = 0, at = 0; i < c.count; at += row_of(&c, c.x[i++]))
        TARE_TRY(add_rows(b, &c, c.x[i], at, s));
    *done = true;
    TARE_TRY(tare__plan_write_whole(b, r->result, LAYOUT_PLAIN, s->count > 0));
    return s->count > 0 ? tare__plan_add_step(b, &tare__cat_step, s, r->node) : TARE_OK;
}

// --- channels last ---

static plan_placement *placement_of(const plan_builder *b, size_t v) {
    return &b->values[v].placement[LAYOUT_CHANNELS_LAST];
}

// True if all inputs are consecutive slices of a larger value, so that the result is a slice of it,
// too.
static bool follow_each_other(const plan_builder *b, const cat_call *c) {
    const plan_placement *first = placement_of(b, tare__plan_find_value(b, c->x[0]));
    size_t at = first->slice_at;
    for (size_t i = 0; i < c->count; i++) {
        const plan_placement *x = placement_of(b, tare__plan_find_value(b, c->x[i]));
        if (x->slice_of == NOTHING || x->slice_of != first->slice_of || x->slice_at != at ||
            !tare__qparams_equal(c->x[i]->q, c->y->q))
            return false;
        at += (size_t)c->x[i]->shape[1];
    }
    return true;
}

// A value is a slice of the last concatenation that reads it. Earlier concatenations can become
// slices of that.
static void join(plan_builder *b, size_t result, const cat_call *c) {
    plan_placement *y = placement_of(b, result);
    if (y->slice_of == NOTHING && follow_each_other(b, c)) {
        const plan_placement *first = placement_of(b, tare__plan_find_value(b, c->x[0]));
        y->slice_of = first->slice_of;
        y->slice_at = first->slice_at;
    }
    size_t at = y->slice_at;
    for (size_t i = 0; i < c->count; i++) {
        const size_t v = tare__plan_find_value(b, c->x[i]);
        const plan_value *x = &b->values[v];
        plan_placement *own = placement_of(b, v);
        if (own->slice_of == NOTHING && !x->is_constant && !x->is_input && x->base == v &&
            tare__qparams_equal(c->x[i]->q, c->y->q)) {
            own->slice_of = y->slice_of != NOTHING ? y->slice_of : result;
            own->slice_at = at;
        }
        at += (size_t)c->x[i]->shape[1];
    }
}

static bool heads_floats(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_CAT, TARE_OP_NONE};
    return tare__plan_is_float_op(b, r, ids);
}

static bool heads_quantized(const plan_builder *b, const plan_record *r) {
    static const op_id ids[] = {TARE_OP_CAT, TARE_OP_QUANTIZED_CAT, TARE_OP_NONE};
    return tare__plan_is_quantized_op(b, r, ids);
}

// Reserves slices for the inputs whose steps can write channels last.
static void reserve_pixels(plan_builder *b, size_t record) {
    const plan_record *r = &b->records[record];
    cat_call c = {0};
    if (read_call(b, r, &c) && has_pixels(&c) && c.y->q != NULL && c.count > 0)
        join(b, r->result, &c);
}

// True if an input that needs no table is a slice at channel `at` of the result.
static bool belongs_at(const plan_builder *b, size_t v, size_t result, size_t at) {
    const plan_placement *x = placement_of(b, v), *y = placement_of(b, result);
    return x->slice_of != NOTHING &&
           x->slice_of == (y->slice_of != NOTHING ? y->slice_of : result) &&
           x->slice_at == y->slice_at + at;
}

// True if an input that is to be a slice is stored there.
static bool is_in_place(const plan_builder *b, size_t v) {
    const plan_placement *x = placement_of(b, v);
    const size_t whole = placement_of(b, x->slice_of)->whole;
    return x->buffer != NOTHING && whole != NOTHING && b->plan->buffers[x->buffer].whole == whole;
}

// Inputs that are copied to their slices are used from there afterwards.
static tare_status add_pixels(plan_builder *b, const cat_call *c, size_t v, size_t at, bool belongs,
                              cat_input *p) {
    const tare_tensor *x = b->values[v].tensor;
    plan_pixels from, there;
    *p = (cat_input){.at = at, .row = (size_t)x->shape[1]};
    if (x->q != NULL && !tare__qparams_equal(x->q, c->y->q))
        TARE_TRY(make_table(b, x, c->y, &p->table));
    TARE_TRY(tare__plan_read_pixels(b, v, &from));
    p->x = from.buffer;
    p->pitch = from.pitch;
    if (!belongs) return TARE_OK;
    TARE_TRY(tare__plan_place_pixels(b, v, &there));
    return tare__plan_touch(b, there.buffer);
}

static tare_status add_inputs(plan_builder *b, const cat_call *c, size_t result, cat_step *s) {
    for (size_t i = 0, at = 0; i < c->count; at += (size_t)c->x[i++]->shape[1]) {
        const size_t v = tare__plan_find_value(b, c->x[i]);
        const bool belongs = belongs_at(b, v, result, at);
        if (belongs && is_in_place(b, v))
            s->in_place++;
        else
            TARE_TRY(add_pixels(b, c, v, at, belongs, &s->inputs[s->count++]));
    }
    return TARE_OK;
}

// If one input is channels last, the others are converted, because layers follow.
static bool any_channels_last(const plan_builder *b, const cat_call *c) {
    for (size_t i = 0; i < c->count; i++)
        if (tare__plan_layout(b, tare__plan_find_value(b, c->x[i])) == LAYOUT_CHANNELS_LAST)
            return true;
    return false;
}

static tare_status plan_pixels_of(plan_builder *b, size_t head, const step_class *class,
                                  bool *done) {
    const plan_record *r = &b->records[head];
    cat_call c = {0};
    plan_pixels y;
    cat_step *s;
    if (!read_call(b, r, &c) || !has_pixels(&c) || !any_channels_last(b, &c)) return TARE_OK;
    TARE_TRY(new_step(b, &c, (size_t)(c.y->count / c.y->shape[1]), &s));
    TARE_TRY(add_inputs(b, &c, r->result, s));
    *done = true;
    if (s->count == 0) return tare__plan_place_pixels(b, r->result, &y);
    TARE_TRY(tare__plan_write_pixels(b, r->result, &y));
    s->y = y.buffer;
    s->pitch = y.pitch;
    return tare__plan_add_step(b, class, s, r->node);
}

static tare_status plan_floats(plan_builder *b, size_t head, bool *done) {
    return plan_pixels_of(b, head, &tare__pixel_cat_step, done);
}

static tare_status plan_quantized(plan_builder *b, size_t head, bool *done) {
    return plan_pixels_of(b, head, &tare__quantized_cat_step, done);
}

const step_class tare__cat_step = {
    .name = "cat",
    .heads = heads_rows,
    .reserve = reserve_rows,
    .plan = plan_rows,
    .run = run_cat,
    .describe = describe_rows,
    .replicate = tare__step_share,
    .only_joins = true,
};

const step_class tare__pixel_cat_step = {
    .name = "cat",
    .heads = heads_floats,
    .plan = plan_floats,
    .run = run_cat,
    .describe = describe_floats,
    .replicate = tare__step_share,
};

const step_class tare__quantized_cat_step = {
    .name = "quantized cat",
    .heads = heads_quantized,
    .reserve = reserve_pixels,
    .plan = plan_quantized,
    .run = run_cat,
    .describe = describe_quantized,
    .replicate = tare__step_share,
};
