// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Chains of elementwise operators: all loops run over one block before the next, so that
// intermediate values stay in the first-level cache.
#include <string.h>

#include "ops/rules.h"
#include "runtime/kernels/schemes.h"
#include "runtime/plan/records.h"
#include "runtime/steps/matrices.h"
#include "runtime/steps/steps.h"

enum {
    BLOCK = 2048,       // elements: 8 KiB
    MOST_ELEMENTS = 16, // operators of a chain
};

// The buffer of floats, or of quantized values that are dequantized when they are read.
typedef struct source {
    size_t buffer;
    const quantized_scheme *scheme; // of quantized values; NULL: floats
} source;

// The second operand of a binary loop. It consists of runs, whose offsets follow from the outer
// dimensions.
typedef struct operand {
    enum { OPERAND_NONE, OPERAND_NUMBER, OPERAND_SELF, OPERAND_TENSOR } kind;
    bool is_first; // it is the first operand, and the chain's value the second
    float number;
    size_t value;
    source from;
    int64_t run, step; // length of a run, and its stride (0 or 1)
    int outer_ndim;
    int64_t size[TARE_MAX_DIMS], stride[TARE_MAX_DIMS];
} operand;

typedef struct element_step {
    element_loop loop; // unary, or NULL
    binary_loop two;   // binary, or NULL; with a mask: selects the first operand where it is true,
                       // else the second
    float p[ELEMENT_MAX_PARAMETERS];
    operand other, mask;
    operand first; // instead of the chain's value, where no input has the result's shape
} element_step;

typedef struct elements {
    source x; // unset if the first step has operands only
    size_t y; // buffer
    int64_t count;
    size_t step_count, quantized_count; // quantized_count: operands that are quantized
    element_step *steps;
} elements;

// --- running ---

// Consecutive elements of an operand, with their stride.
typedef struct span {
    const void *data;
    int64_t step;
} span;

// The floats from element `at` on. room: memory for dequantized values.
static const float *floats_at(const source *s, const plan_run_state *run, int64_t at, int64_t count,
                              float *room) {
    const void *data = tare__buffer_data(run, s->buffer);
    if (s->scheme == NULL) return (const float *)data + at;
    run->kernels->elementwise->dequantize(s->scheme, (const uint8_t *)data + at, (size_t)count,
                                          room);
    return room;
}

// The operand's elements for result element `at` and at most *count following ones. self: the value
// of the chain. Quantized operands have the result's shape.
static span operand_at(const operand *o, const plan_run_state *run, size_t size, int64_t at,
                       const float *self, int64_t *count, float *room) {
    if (o->from.scheme != NULL && o->kind == OPERAND_TENSOR)
        return (span){floats_at(&o->from, run, at, *count, room), 1};
    if (o->kind == OPERAND_SELF) return (span){self, 1};
    if (o->kind == OPERAND_NUMBER) return (span){&o->number, 0};
    const int64_t within = at % o->run;
    const int64_t from =
        within * o->step + tare__strided_offset(o->outer_ndim, o->size, o->stride, at / o->run);
    if (o->run - within < *count) *count = o->run - within;
    return (span){(const char *)tare__buffer_data(run, o->from.buffer) + (size_t)from * size,
                  o->step};
}

static void choose(span mask, span yes, span no, float *y, int64_t count) {
    const uint8_t *is_yes = mask.data;
    const float *a = yes.data, *b = no.data;
    for (int64_t i = 0; i < count; i++) {
        const float first = a[i * yes.step], second = b[i * no.step];
        y[i] = is_yes[i * mask.step] != 0 ? first : second;
    }
}

static void run_two(const element_step *s, const plan_run_state *run, int64_t begin, int64_t count,
                    const float *x, float *y) {
    float room[BLOCK];
    for (int64_t done = 0, n; done < count; done += n) {
        n = count - done;
        const float *from = x != NULL ? x + done : NULL;
        span self = {from, 1};
        span mask = {0}; // first, because dequantizes no more than the mask's span
        if (s->two == NULL) mask = operand_at(&s->mask, run, 1, begin + done, from, &n, room);
        if (s->first.kind != OPERAND_NONE)
            self = operand_at(&s->first, run, sizeof(float), begin + done, from, &n, room);
        const span other = operand_at(&s->other, run, sizeof(float), begin + done, from, &n, room);
        const span a = s->other.is_first ? other : self, b = s->other.is_first ? self : other;
        if (s->two != NULL)
            s->two(a.data, a.step, b.data, b.step, y + done, n);
        else
            choose(mask, a, b, y + done, n);
    }
}

typedef struct elements_run {
    const plan_run_state *run;
    const elements *e;
} elements_run;

static void run_block(void *user, size_t first, size_t end, size_t worker) {
    const elements_run *r = user;
    const elements *e = r->e;
    const int64_t at = (int64_t)first, count = (int64_t)(end - first);
    float *y = (float *)tare__buffer_data(r->run, e->y) + at;
    const float *from =
        e->steps->first.kind == OPERAND_NONE ? floats_at(&e->x, r->run, at, count, y) : NULL;
    (void)worker;
    for (size_t i = 0; i < e->step_count; i++, from = y) {
        const element_step *s = &e->steps[i];
        if (s->loop != NULL)
            s->loop(from, y, count, s->p);
        else
            run_two(s, r->run, at, count, from, y);
    }
}

static tare_status run_elements(const plan_run_state *run, void *state) {
    elements_run r = {run, state};
    tare__parallel(tare__threads_for(run, r.e->count), (size_t)r.e->count, BLOCK, run_block, &r);
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    const elements *e = state;
    (void)p;
    tare__step_say(out, "float: %zu loop%s in a row over blocks that stay in the cache",
                   e->step_count, e->step_count == 1 ? "" : "s");
    if (e->quantized_count > 0) tare__step_say(out, ", dequantized on the way");
}

// --- planning ---

// The dimensions in the order of a layout.
static void order_dims(const tare_tensor *t, plan_layout layout, int order[TARE_MAX_DIMS]) {
    for (int d = 0; d < t->ndim; d++) order[d] = d;
    if (layout == LAYOUT_PLAIN || t->ndim < 3) return;
    for (int d = 1; d + 1 < t->ndim; d++) order[d] = d + 1;
    order[t->ndim - 1] = 1;
}

// Strides of `t`, broadcast to the result's shape, in the order of its layout.
static void order_strides(const tare_tensor *t, const tare_tensor *y, plan_layout layout,
                          int64_t *size, int64_t *stride) {
    int order[TARE_MAX_DIMS] = {0};
    int64_t step = 1;
    order_dims(y, layout, order);
    for (int i = y->ndim - 1; i >= 0; i--) {
        const int d = order[i], own = d - (y->ndim - t->ndim);
        const int64_t own_size = own >= 0 ? t->shape[own] : 1;
        size[i] = y->shape[d];
        stride[i] = own_size == 1 ? 0 : step;
        step *= own_size;
    }
}

// A run covers the last dimensions as long as the operand has one stride, 0 or 1, through them.
static void find_run(operand *o, int ndim, const int64_t *size, const int64_t *stride) {
    o->run = 1;
    o->step = 0;
    o->outer_ndim = ndim;
    bool begun = false;
    while (o->outer_ndim > 0) {
        const int d = o->outer_ndim - 1;
        if (size[d] != 1) {
            if (begun && stride[d] != o->step * o->run) break;
            if (!begun) o->step = stride[d];
            begun = true;
        }
        o->run *= size[d];
        o->outer_ndim--;
    }
    memcpy(o->size, size, sizeof o->size);
    memcpy(o->stride, stride, sizeof o->stride);
}

static bool is_full(const tare_tensor *t, const tare_tensor *y) {
    return t->ndim == y->ndim && t->count == y->count;
}

// An operand with another number of dimensions has no channel dimension to move.
static bool fits_layout(const tare_tensor *t, const tare_tensor *y, plan_layout layout) {
    return layout == LAYOUT_PLAIN || t->ndim == y->ndim || t->ndim <= 1;
}

static plan_layout operand_layout(const tare_tensor *t, const tare_tensor *y, plan_layout layout) {
    return t->ndim == y->ndim ? layout : LAYOUT_PLAIN;
}

typedef struct element_chain {
    plan_layout layout;
    size_t x, result;
    size_t count;
    element_step *steps;
} element_chain;

static bool read_number(const value *v, float *out) {
    double number;
    if (v == NULL || v->kind == VALUE_TENSOR || !tare__value_number(v, &number)) return false;
    *out = (float)number;
    return true;
}

static bool read_operand(const plan_builder *b, const value *v, size_t self, operand *o) {
    if (read_number(v, &o->number)) {
        o->kind = OPERAND_NUMBER;
        return true;
    }
    if (v == NULL || v->kind != VALUE_TENSOR) return false;
    o->value = tare__plan_find_value(b, v->as.tensor);
    o->kind = o->value == self ? OPERAND_SELF : OPERAND_TENSOR;
    return o->value != NOTHING;
}

// Reads parameters a and b, one of which is `self`, the value of the chain.
static bool read_operands(const plan_builder *b, const plan_record *r, const size_t choices[2],
                          size_t self, operand *other) {
    for (int i = 0; i < 2; i++) {
        const value *v = r->call.param[choices[i]];
        if (v == NULL || v->kind != VALUE_TENSOR || tare__plan_find_value(b, v->as.tensor) != self)
            continue;
        other->is_first = i == 1;
        return read_operand(b, r->call.param[choices[1 - i]], self, other);
    }
    return false;
}

// --- choices between two ---

// Which parameters are the mask, the value where it is true, and the other value.
static const struct choice_row {
    op_id op;
    size_t mask, choices[2];
} choices[] = {{TARE_OP_MASKED_FILL, 1, {2, 0}}, {TARE_OP_WHERE, 0, {1, 2}}};

static const struct choice_row *choice_of(const plan_record *r) {
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (tare__record_is(r, choices[i].op)) return &choices[i];
    return NULL;
}

static bool is_float_or_number(const value *v) {
    float unused;
    return read_number(v, &unused) ||
           (v != NULL && v->kind == VALUE_TENSOR && v->as.tensor->dtype == TARE_FLOAT32);
}

static bool is_choice(const plan_builder *b, const plan_record *r) {
    const struct choice_row *row = choice_of(r);
    if (row == NULL || r->result == NOTHING || r->is_observer || r->is_view) return false;
    const tare_tensor *mask = tare__call_tensor(&r->call, row->mask);
    const tare_tensor *y = b->values[r->result].tensor;
    return mask != NULL && (mask->dtype == TARE_BOOL || mask->dtype == TARE_UINT8) &&
           is_float_or_number(r->call.param[row->choices[0]]) &&
           is_float_or_number(r->call.param[row->choices[1]]) && y->dtype == TARE_FLOAT32 &&
           y->count > 0;
}

static bool read_choice(const plan_builder *b, const plan_record *r, size_t self, element_step *s) {
    const struct choice_row *row = choice_of(r);
    return read_operand(b, r->call.param[row->mask], self, &s->mask) &&
           read_operands(b, r, row->choices, self, &s->other);
}

static binary_loop pair_loop(const plan_builder *b, const op_binary *op) {
    const bool has_kernel = op->binary != BINARY_OTHER && b->setting->kernels != NULL;
    return has_kernel ? b->setting->kernels->rows->binary[op->binary] : tare__binary_loop(op);
}

static bool read_step(const plan_builder *b, const plan_record *r, size_t self, element_step *s) {
    if (tare__plan_is_element(r)) return tare__plan_element_loop(b, r, &s->loop, s->p);
    if (!tare__plan_is_binary(r)) return read_choice(b, r, self, s);
    s->two = pair_loop(b, r->call.op->binary);
    return read_operands(b, r, (const size_t[]){0, 1}, self, &s->other);
}

// Preferred as first input: a value that is channels last, then floats, which may be overwritten.
static int rank_of(const plan_builder *b, size_t v) {
    const bool is_last = tare__plan_layout(b, v) == LAYOUT_CHANNELS_LAST;
    return (is_last ? 2 : 0) + (tare__plan_quantized_of(b, v) == NOTHING ? 1 : 0);
}

// The input of the chain that has the result's shape.
static size_t choose_input(const plan_builder *b, const plan_record *r) {
    const tare_tensor *y = b->values[r->result].tensor;
    size_t found = NOTHING;
    for (size_t i = 0; i < r->input_count; i++) {
        const size_t v = r->inputs[i];
        if (!is_full(b->values[v].tensor, y) || b->values[v].tensor->dtype != TARE_FLOAT32)
            continue;
        if (found == NOTHING || rank_of(b, v) > rank_of(b, found)) found = v;
    }
    return found;
}

// A chain may start with two tensors of which each is repeated along other dimensions: then the
// result is plain.
static bool read_two(const plan_builder *b, const plan_record *r, element_step *s) {
    if (!tare__plan_is_binary(r)) return false;
    s->two = pair_loop(b, r->call.op->binary);
    return read_operand(b, r->call.param[0], NOTHING, &s->first) &&
           read_operand(b, r->call.param[1], NOTHING, &s->other) &&
           s->first.kind == OPERAND_TENSOR && s->other.kind == OPERAND_TENSOR;
}

static bool check_operand(const plan_builder *b, const element_chain *c, const operand *o) {
    return o->kind != OPERAND_TENSOR ||
           fits_layout(b->values[o->value].tensor, b->values[c->result].tensor, c->layout);
}

static bool check_operands(const plan_builder *b, const element_chain *c) {
    bool fit = true;
    for (size_t i = 0; i < c->count; i++)
        fit = fit && check_operand(b, c, &c->steps[i].other) &&
              check_operand(b, c, &c->steps[i].mask);
    return fit;
}

static bool read_chain(plan_builder *b, size_t head, element_chain *c) {
    size_t self = c->x = choose_input(b, &b->records[head]);
    for (size_t i = head; i != NOTHING; i = b->records[i].next) {
        const plan_record *r = &b->records[i];
        element_step *s = &c->steps[c->count++];
        if (!(self != NOTHING ? read_step(b, r, self, s) : read_two(b, r, s))) return false;
        self = c->result = r->result;
    }
    c->layout = c->x != NOTHING ? tare__plan_layout(b, c->x) : LAYOUT_PLAIN;
    if (!check_operands(b, c)) c->layout = LAYOUT_PLAIN;
    return true;
}

static tare_status read_source(plan_builder *b, size_t v, plan_layout layout, source *out) {
    const size_t quantized = tare__plan_quantized_of(b, v);
    out->scheme = NULL;
    if (quantized == NOTHING) return tare__plan_read(b, v, layout, &out->buffer);
    quantized_scheme *scheme = tare__arena_alloc(&b->plan->memory, sizeof *scheme);
    if (scheme == NULL) return tare__out_of_memory(b->err);
    *scheme = tare__quantized_scheme_of(b->values[quantized].tensor);
    out->scheme = scheme;
    return tare__plan_read(b, quantized, layout, &out->buffer);
}

static tare_status place_operand(plan_builder *b, const element_chain *c, operand *o) {
    const tare_tensor *y = b->values[c->result].tensor;
    int64_t size[TARE_MAX_DIMS] = {0}, stride[TARE_MAX_DIMS] = {0};
    if (o->kind != OPERAND_TENSOR) return TARE_OK;
    const tare_tensor *t = b->values[o->value].tensor;
    order_strides(t, y, c->layout, size, stride);
    find_run(o, y->ndim, size, stride);
    return read_source(b, o->value, operand_layout(t, y, c->layout), &o->from);
}

static tare_status assign_buffers(plan_builder *b, const element_chain *c, elements *e) {
    bool unused;
    if (c->x != NOTHING) TARE_TRY(read_source(b, c->x, c->layout, &e->x));
    e->quantized_count = e->x.scheme != NULL ? 1 : 0;
    for (size_t i = 0; i < c->count; i++) {
        TARE_TRY(place_operand(b, c, &c->steps[i].first));
        TARE_TRY(place_operand(b, c, &c->steps[i].other));
        TARE_TRY(place_operand(b, c, &c->steps[i].mask));
        if (c->steps[i].other.from.scheme != NULL) e->quantized_count++;
    }
    TARE_TRY(c->x == NOTHING || e->x.scheme != NULL
                 ? tare__plan_write(b, c->result, c->layout, &e->y)
                 : tare__plan_write_over(b, c->result, c->x, c->layout, &e->y, &unused));
    e->count = b->values[c->result].tensor->count;
    e->steps = c->steps;
    e->step_count = c->count;
    return TARE_OK;
}

static bool heads(const plan_builder *b, const plan_record *r) {
    return is_choice(b, r) ||
           (tare__plan_is_float(b, r) && (tare__plan_is_element(r) || tare__plan_is_binary(r)));
}

static bool extend(plan_builder *b, size_t head) {
    size_t last = head;
    for (size_t count = 1; count < MOST_ELEMENTS; count++) {
        const size_t next = tare__plan_sole_reader(b, last);
        if (next == NOTHING || !heads(b, &b->records[next]) ||
            !tare__plan_keeps_shape(b, last, next))
            break;
        tare__plan_append(b, head, &last, next);
    }
    return last != head;
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    element_chain c = {0};
    size_t count = 0;
    for (size_t i = head; i != NOTHING; i = b->records[i].next) count++;
    c.steps = tare__arena_array(&b->plan->memory, count, sizeof *c.steps);
    elements *e = tare__arena_alloc(&b->plan->memory, sizeof *e);
    if (c.steps == NULL || e == NULL) return tare__out_of_memory(b->err);
    if (!read_chain(b, head, &c)) return TARE_OK;
    TARE_TRY(assign_buffers(b, &c, e));
    *done = true;
    return tare__plan_add_step(b, &tare__elements_step, e, b->records[head].node);
}

const step_class tare__elements_step = {
    .name = "elements",
    .heads = heads,
    .extend = extend,
    .defer = tare__attention_defers,
    .plan = plan_chain,
    .reads_quantized = true,
    .run = run_elements,
    .describe = describe,
    .replicate = tare__step_share,
};
