// SPDX-License-Identifier: Apache-2.0
// Quantize, dequantize, and elementwise steps on quantized values, in the layout that the tensors
// have.
#include <string.h>

#include "core/memory/short_copy.h"
#include "ops/quantized/broadcast.h"
#include "ops/quantized/call_table.h"
#include "ops/quantized/layer.h"
#include "ops/rules.h"
#include "runtime/kernels/schemes.h"
#include "runtime/plan/dispatch.h"
#include "runtime/plan/records.h"
#include "runtime/steps/quantized_elements.h"
#include "runtime/steps/steps.h"

enum {
    BLOCK = 1 << 14, // elements
    STRIP = 1 << 11, // pixels
    MOST_PLANES = 4,
    MOST_ELEMENTS = 16, // operators of a chain
    REPEATED = 1 << 10, // elements to which a broadcast operand is repeated
    FEW_CHANNELS = 64,  // pixels with fewer are brought together, or pushed apart, by blocks
    TOGETHER = 1 << 10, // elements of such a block
    FEW_BROADCAST = 8,  // shorter rows of broadcast operands are left to the reference
};

typedef struct quantized_step quantized_step;
typedef struct quantized_span {
    const unsigned char *a, *b; // base addresses; b NULL: unary
    unsigned char *y;
    size_t first, count; // elements
} quantized_span;
typedef void (*quantized_loop)(const quantized_step *s, const elementwise_kernels *k,
                               const quantized_span *at);

struct quantized_step {
    quantized_loop loop;
    size_t a, b, y; // buffers; b NOTHING: unary
    size_t count;
    size_t channels;                  // of pixels with gaps between them; 0: contiguous
    size_t a_pitch, b_pitch, y_pitch; // bytes from a pixel to the next
    const char *slice_of;             // as in plan_pixels
    size_t row, image;    // if b has rows of channels: elements of a row and of an image
    size_t next;          // from an image's row to the next: `row`, or 0 if all have the same
    size_t planes, plane; // for images converted to channels last: planes per image, and their
                          // elements; 0: none
    quantized_scheme scheme;
    quantized_binary binary;
    quantized_broadcast broadcast; // of broadcast operands
    uint8_t table[QUANTIZED_COUNT];
};

// --- loops ---

static void quantize(const quantized_step *s, const elementwise_kernels *k,
                     const quantized_span *at) {
    const float *x = (const float *)(const void *)at->a;
    k->quantize(&s->scheme, x + at->first, at->count, at->y + at->first);
}

static void dequantize(const quantized_step *s, const elementwise_kernels *k,
                       const quantized_span *at) {
    float *y = (float *)(void *)at->y;
    k->dequantize(&s->scheme, at->a + at->first, at->count, y + at->first);
}

static void combine(const quantized_step *s, const elementwise_kernels *k,
                    const quantized_span *at) {
    tare__quantized_binary_run(&s->binary, k, at->a + at->first, at->b + at->first, at->count,
                               at->y + at->first);
}

static void repeat_row(const uint8_t *row, size_t bytes, size_t count, uint8_t *to) {
    for (size_t i = 0; i < count; i++, to += bytes) tare__short_copy(to, row, bytes);
}

// b has a row of channels for each image, or for all. A short row is repeated.
static void combine_channels(const quantized_step *s, const elementwise_kernels *k,
                             const quantized_span *at) {
    const size_t last = at->first + at->count;
    const size_t times = s->row < FEW_CHANNELS ? TOGETHER / s->row : 1, most = times * s->row;
    const uint8_t *repeated = NULL; // row of b
    uint8_t block[TOGETHER];
    for (size_t i = at->first, count; i < last; i += count) {
        const size_t channel = i % s->row, image_end = (i / s->image + 1) * s->image;
        const uint8_t *row = at->b + i / s->image * s->next, *b = row;
        if (times > 1 && repeated != row) repeat_row(repeated = row, s->row, times, block);
        if (times > 1) b = block;
        count = tare__least(most - channel, tare__least(last, image_end) - i);
        tare__quantized_binary_run(&s->binary, k, at->a + i, b + channel, count, at->y + i);
    }
}

// Combines a row of broadcast operands; a step of 0 repeats an element.
static void combine_row(const quantized_step *s, const elementwise_kernels *k, const uint8_t *a,
                        const uint8_t *b, size_t count, uint8_t *y) {
    const bool steps_a = s->broadcast.step_a != 0, steps_b = s->broadcast.step_b != 0;
    uint8_t same[REPEATED];
    if (!steps_a || !steps_b) memset(same, steps_a ? b[0] : a[0], tare__least(count, REPEATED));
    for (size_t i = 0; i < count; i += REPEATED)
        tare__quantized_binary_run(&s->binary, k, steps_a ? a + i : same, steps_b ? b + i : same,
                                   tare__remaining(count, i, REPEATED), y + i);
}

static void combine_broadcast(const quantized_step *s, const elementwise_kernels *k,
                              const quantized_span *at) {
    const quantized_broadcast *p = &s->broadcast;
    const size_t row = (size_t)p->count, last = at->first + at->count;
    for (size_t i = at->first, count; i < last; i += count) {
        const size_t within = i % row;
        int64_t a, b;
        count = tare__least(row - within, last - i);
        tare__quantized_broadcast_locate(p, (int64_t)(i / row), &a, &b);
        combine_row(s, k, at->a + a + (int64_t)within * p->step_a,
                    at->b + b + (int64_t)within * p->step_b, count, at->y + i);
    }
}

static void look_up(const quantized_step *s, const elementwise_kernels *k,
                    const quantized_span *at) {
    k->look_up(s->table, at->a + at->first, at->count, at->y + at->first);
}

// --- running ---

typedef struct quantized_job {
    const quantized_step *s;
    const elementwise_kernels *kernels;
    quantized_span all;
} quantized_job;

static void run_block(void *user, size_t first, size_t end, size_t worker) {
    const quantized_job *job = user;
    quantized_span at = job->all;
    (void)worker;
    at.first = first;
    at.count = end - first;
    job->s->loop(job->s, job->kernels, &at);
}

// The pixels of an operand from `first` on, beside each other: where they are, or in `block`.
static const unsigned char *together(const unsigned char *x, size_t pitch, size_t first,
                                     size_t pixels, size_t bytes, unsigned char *block) {
    const unsigned char *at = x + first * pitch;
    if (pitch == bytes) return at;
    tare__short_copies(block, bytes, at, pitch, pixels, bytes);
    return block;
}

// Pixels of few channels, by blocks of many pixels.
static void run_few_channels(const quantized_job *job, size_t first, size_t end) {
    const quantized_step *s = job->s;
    const size_t most = TOGETHER / s->channels;
    const size_t a_bytes = s->channels * (s->loop == quantize ? sizeof(float) : 1);
    const size_t y_bytes = s->channels * (s->loop == dequantize ? sizeof(float) : 1);
    _Alignas(64) unsigned char a[TOGETHER * sizeof(float)], b[TOGETHER];
    _Alignas(64) unsigned char y[TOGETHER * sizeof(float)] = {0};
    for (size_t i = first, pixels; i < end; i += pixels) {
        pixels = tare__least(most, end - i);
        unsigned char *to = job->all.y + i * s->y_pitch;
        const quantized_span at = {
            .a = together(job->all.a, s->a_pitch, i, pixels, a_bytes, a),
            .b = s->b != NOTHING ? together(job->all.b, s->b_pitch, i, pixels, s->channels, b)
                                 : NULL,
            .y = s->y_pitch == y_bytes ? to : y,
            .count = pixels * s->channels};
        s->loop(s, job->kernels, &at);
        if (at.y != to) tare__short_copies(to, s->y_pitch, y, y_bytes, pixels, y_bytes);
    }
}

// Runs the loop pixel by pixel.
static void run_pixels(void *user, size_t first, size_t end, size_t worker) {
    const quantized_job *job = user;
    const quantized_step *s = job->s;
    (void)worker;
    if (s->channels < FEW_CHANNELS) {
        run_few_channels(job, first, end);
        return;
    }
    for (size_t i = first; i < end; i++) {
        const quantized_span at = {.a = job->all.a + i * s->a_pitch,
                                   .b = s->b != NOTHING ? job->all.b + i * s->b_pitch : NULL,
                                   .y = job->all.y + i * s->y_pitch,
                                   .count = s->channels};
        s->loop(s, job->kernels, &at);
    }
}

// Quantizes a strip of the planes of an image and transposes it to pixels while it is in the cache.
static void run_planes(void *user, size_t image, size_t first, size_t end, size_t worker) {
    const quantized_job *job = user;
    const quantized_step *s = job->s;
    const size_t count = end - first, at = image * s->planes * s->plane;
    const float *x = (const float *)(const void *)job->all.a + at + first;
    uint8_t quantized[MOST_PLANES * STRIP];
    (void)worker;
    for (size_t k = 0; k < s->planes; k++)
        job->kernels->quantize(&s->scheme, x + k * s->plane, count, quantized + k * STRIP);
    job->kernels->interleave(quantized, STRIP, s->planes, count,
                             job->all.y + at + first * s->planes);
}

static tare_status run_quantized(const plan_run_state *run, void *state) {
    const quantized_step *s = state;
    quantized_job job = {.s = s,
                         .kernels = run->kernels->elementwise,
                         .all = {.a = tare__buffer_data(run, s->a),
                                 .b = s->b != NOTHING ? tare__buffer_data(run, s->b) : NULL,
                                 .y = tare__buffer_data(run, s->y)}};
    thread_pool *pool = tare__threads_for(run, (int64_t)s->count);
    if (s->planes > 0)
        tare__parallel_nest(pool, s->count / s->planes / s->plane, s->plane, STRIP, run_planes,
                            &job);
    else if (s->channels > 0)
        tare__parallel(pool, s->count / s->channels, tare__grain_of(BLOCK, s->channels), run_pixels,
                       &job);
    else
        tare__parallel(pool, s->count, BLOCK, run_block, &job);
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    static const struct {
        quantized_loop loop;
        const char *kernel, *why;
    } loops[] = {
        {quantize, .kernel = "quantize", .why = "floats to integers"},
        {dequantize, .kernel = "dequantize", .why = "integers to floats"},
        {combine, .kernel = "combine", .why = "integers: two values"},
        {combine_channels, .kernel = "combine",
         .why = "integers: two values, one of them per channel"},
        {combine_broadcast, .kernel = "combine", .why = "integers: two values, broadcast"},
        {look_up, .kernel = "look_up", .why = "integers: a table of a function of one value"},
    };
    const quantized_step *s = state;
    (void)p;
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        if (loops[i].loop != s->loop) continue;
        out->kernel = loops[i].kernel;
        tare__step_say(out, "%s", loops[i].why);
    }
    if (s->planes > 0) tare__step_say(out, ", planes to pixels");
    tare__step_say_slice(out, &(plan_pixels){.slice_of = s->slice_of});
}

// --- planning ---

// A call with quantized operands a and b; b NULL: unary.
typedef struct quantized_call {
    const plan_record *record;
    const tare_tensor *a, *b, *y;
} quantized_call;

static tare_status set_quantize(plan_builder *b, quantized_call *c, quantized_step *s,
                                bool *known) {
    (void)b;
    *known = c->a->dtype == TARE_FLOAT32 && tare__is_byte_quantized(c->y);
    s->loop = quantize;
    if (*known) s->scheme = tare__quantized_scheme_of(c->y);
    return TARE_OK;
}

static tare_status set_dequantize(plan_builder *b, quantized_call *c, quantized_step *s,
                                  bool *known) {
    (void)b;
    *known = tare__is_byte_quantized(c->a) && c->y->dtype == TARE_FLOAT32;
    s->loop = dequantize;
    if (*known) s->scheme = tare__quantized_scheme_of(c->a);
    return TARE_OK;
}

static bool have_result_shape(const quantized_call *c) {
    return tare__same_shape(c->a, c->y) && tare__same_shape(c->b, c->y);
}

// True if b is [N, C, 1, ..] or [1, C, 1, ..]: one row of channels for all pixels of an image.
static bool is_per_channel(const tare_tensor *b, const tare_tensor *y) {
    return b->ndim == y->ndim && y->ndim >= 3 && (b->shape[0] == y->shape[0] || b->shape[0] == 1) &&
           b->shape[1] == y->shape[1] && b->count == b->shape[0] * b->shape[1];
}

// Finds rows along which both operands are contiguous, or one has a single element.
static bool set_broadcast(const quantized_call *c, tare_tensor *y, quantized_step *s) {
    s->broadcast = tare__quantized_broadcast_of(c->a, c->b, y);
    s->loop = combine_broadcast;
    return s->broadcast.step_a + s->broadcast.step_b > 0 && s->broadcast.count >= FEW_BROADCAST;
}

// Sums and products do not depend on the order of operands.
static void order_operands(quantized_call *c) {
    const tare_tensor *a = c->a;
    if (tare__same_shape(a, c->y)) return;
    c->a = c->b;
    c->b = a;
}

// The other operand is a number that the plan knows: what is left is a function of one value.
static bool combines_with_number(const plan_builder *b, const quantized_call *c) {
    const size_t v = tare__plan_find_value(b, c->b);
    return c->b->count == 1 && tare__same_shape(c->a, c->y) && v != NOTHING &&
           b->values[v].is_constant && c->b->data != NULL;
}

static void combine_all(const quantized_call *c, const elementwise_kernels *k, quantized_step *s) {
    uint8_t all[QUANTIZED_COUNT], number[QUANTIZED_COUNT];
    for (size_t i = 0; i < QUANTIZED_COUNT; i++) all[i] = (uint8_t)i;
    memset(number, *(const uint8_t *)c->b->data, sizeof number);
    tare__quantized_binary_run(&s->binary, k, all, number, QUANTIZED_COUNT, s->table);
    s->loop = look_up;
}

static tare_status set_binary(plan_builder *b, quantized_call *c, quantized_step *s, bool *known) {
    if (c->b == NULL || !tare__is_quantized_binary(&c->record->call) ||
        !tare__is_byte_quantized(c->a) || !tare__is_byte_quantized(c->b) ||
        !tare__is_byte_quantized(c->y))
        return TARE_OK;
    order_operands(c);
    s->loop = combine;
    if (!have_result_shape(c) && tare__same_shape(c->a, c->y) && is_per_channel(c->b, c->y)) {
        s->loop = combine_channels;
        s->row = (size_t)c->y->shape[1];
        s->next = c->b->shape[0] > 1 ? s->row : 0;
        s->image = (size_t)(c->y->count / c->y->shape[0]);
    } else if (!have_result_shape(c) && !set_broadcast(c, b->values[c->record->result].tensor, s)) {
        return TARE_OK;
    }
    s->binary = tare__quantized_binary_of(&c->record->call, c->a, c->b, c->y);
    if (combines_with_number(b, c)) combine_all(c, b->setting->kernels->elementwise, s);
    *known = true;
    return TARE_OK;
}

// A tensor of all quantized values, of the kind of `like`, to compute tables with.
static tare_status all_quantized(const tare_tensor *like, tare_tensor **out, tare_error *err) {
    const int64_t shape[] = {QUANTIZED_COUNT};
    TARE_TRY(tare__tensor_meta(like->dtype, 1, shape, like->q, out, err));
    return tare__tensor_allocate(*out, err);
}

static tare_status run_chain(plan_builder *b, size_t head, tare_tensor **at) {
    for (size_t i = head; i != NOTHING; i = b->records[i].next) {
        const plan_record *r = &b->records[i];
        op_call call = r->call;
        tare_tensor *y = NULL;
        call.err = b->err;
        call.memory = &b->scratch;
        tare_status status = all_quantized(b->values[r->result].tensor, &y, b->err);
        if (status == TARE_OK) status = tare__call_on(&call, r->compute, *at, y);
        tare_tensor_release(*at);
        *at = y;
        TARE_TRY(status);
    }
    return TARE_OK;
}

// The table of a chain from quantized values through floats to quantized values.
static tare_status chain_table(plan_builder *b, size_t head, const tare_tensor *x,
                               uint8_t table[QUANTIZED_COUNT]) {
    tare_tensor *at = NULL;
    tare_status status = all_quantized(x, &at, b->err);
    for (int i = 0; status == TARE_OK && i < QUANTIZED_COUNT; i++)
        ((uint8_t *)at->data)[i] = (uint8_t)i;
    if (status == TARE_OK) status = run_chain(b, head, &at);
    if (status == TARE_OK) memcpy(table, at->data, QUANTIZED_COUNT);
    tare_tensor_release(at);
    return status;
}

// Every element is read before it is written, so the result may overwrite an operand.
static tare_status write_result(plan_builder *b, size_t y, size_t first, size_t second,
                                plan_layout layout, size_t *buffer) {
    const size_t over =
        second != NOTHING && !tare__plan_may_write_over(b, y, first, layout) ? second : first;
    bool is_same;
    return tare__plan_write_over(b, y, over, layout, buffer, &is_same);
}

// The distance in bytes between pixels of a value.
static size_t pitch_of(const plan_builder *b, size_t v, const plan_pixels *pixels) {
    return pixels->pitch * tare_dtype_size(b->values[v].tensor->dtype);
}

static tare_status read_pixels(plan_builder *b, size_t v, size_t *buffer, size_t *pitch) {
    plan_pixels pixels;
    TARE_TRY(tare__plan_read_pixels(b, v, &pixels));
    *buffer = pixels.buffer;
    *pitch = pitch_of(b, v, &pixels);
    return TARE_OK;
}

// Assigns the buffers if an operand or the result has gaps between pixels.
static tare_status place_pixels(plan_builder *b, size_t y, size_t first, size_t second,
                                quantized_step *s) {
    plan_pixels pixels = {.pitch = (size_t)b->values[y].tensor->shape[1]};
    s->channels = pixels.pitch;
    TARE_TRY(read_pixels(b, first, &s->a, &s->a_pitch));
    if (second != NOTHING) TARE_TRY(read_pixels(b, second, &s->b, &s->b_pitch));
    if (tare__plan_is_slice(b, y, LAYOUT_CHANNELS_LAST))
        TARE_TRY(tare__plan_write_pixels(b, y, &pixels));
    else
        TARE_TRY(write_result(b, y, first, second, LAYOUT_CHANNELS_LAST, &pixels.buffer));
    s->y = pixels.buffer;
    s->y_pitch = pitch_of(b, y, &pixels);
    s->slice_of = pixels.slice_of;
    return TARE_OK;
}

static tare_status assign_buffers(plan_builder *b, size_t y, size_t first, size_t second,
                                  plan_layout layout, quantized_step *s) {
    const bool is_apart = tare__plan_lies_apart(b, first) ||
                          (second != NOTHING && tare__plan_lies_apart(b, second)) ||
                          tare__plan_is_slice(b, y, LAYOUT_CHANNELS_LAST);
    if (layout == LAYOUT_CHANNELS_LAST && is_apart && s->loop != combine_channels)
        return place_pixels(b, y, first, second, s);
    TARE_TRY(tare__plan_read(b, first, layout, &s->a));
    if (second != NOTHING) TARE_TRY(tare__plan_read(b, second, layout, &s->b));
    return write_result(b, y, first, second, layout, &s->y);
}

static tare_status add_chain(plan_builder *b, size_t head, const quantized_call *c,
                             quantized_step *s, bool *done) {
    size_t last = head;
    while (b->records[last].next != NOTHING) last = b->records[last].next;
    const size_t x = tare__plan_find_value(b, c->a), y = b->records[last].result;
    const plan_layout layout = tare__plan_layout(b, x);
    if (!tare__is_byte_quantized(c->a) || !tare__is_byte_quantized(b->values[y].tensor))
        return TARE_OK;
    s->loop = look_up;
    TARE_TRY(chain_table(b, head, c->a, s->table));
    TARE_TRY(assign_buffers(b, y, x, NOTHING, layout, s));
    *done = true;
    return tare__plan_add_step(b, &tare__quantized_elements_step, s, c->record->node);
}

// For functions of one quantized value: the reference computes a table of all values.
static tare_status set_table(plan_builder *b, quantized_call *c, quantized_step *s, bool *known) {
    s->loop = look_up;
    return tare__plan_quantized_table(b, c->record, s->table, known);
}

static const struct {
    op_id op;
    tare_status (*set)(plan_builder *b, quantized_call *c, quantized_step *s, bool *known);
} rows[] = {
    {TARE_OP_QUANTIZE_PER_TENSOR, set_quantize}, {TARE_OP_DEQUANTIZE, set_dequantize},
    {TARE_OP_QUANTIZED_ADD, set_binary},         {TARE_OP_QUANTIZED_ADD_RELU, set_binary},
    {TARE_OP_QUANTIZED_MUL, set_binary},         {TARE_OP_QUANTIZED_MUL_RELU, set_binary},
};

static bool read_call(const plan_builder *b, const plan_record *r, quantized_call *out) {
    if (r->result == NOTHING || r->is_observer || r->is_view) return false;
    *out = (quantized_call){
        .record = r, .a = tare__plan_quantized_input(r), .y = b->values[r->result].tensor};
    if (r->call.param_count > 1 && tare__call_tensor(&r->call, 0) != NULL)
        out->b = tare__call_tensor(&r->call, 1);
    return out->a != NULL && out->y->count > 0 && tare__plan_find_value(b, out->a) != NOTHING;
}

static bool is_dequantize(const plan_builder *b, const plan_record *r) {
    quantized_call c;
    return tare__record_is(r, TARE_OP_DEQUANTIZE) && r->input_count == 1 && read_call(b, r, &c) &&
           tare__is_byte_quantized(c.a) && c.y->dtype == TARE_FLOAT32;
}

static tare_status choose(plan_builder *b, quantized_call *c, quantized_step *s, bool *known) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (tare__record_is(c->record, rows[i].op)) TARE_TRY(rows[i].set(b, c, s, known));
    if (*known) return TARE_OK;
    c->b = NULL;
    return set_table(b, c, s, known);
}

static bool is_binary(const quantized_step *s) {
    return s->loop == combine || s->loop == combine_channels || s->loop == combine_broadcast;
}

// If one operand is channels last, the other one is converted.
static plan_layout choose_layout(const plan_builder *b, const quantized_step *s, size_t a,
                                 size_t other) {
    const plan_layout first = tare__plan_layout(b, a);
    if (s->loop == combine_channels) return LAYOUT_CHANNELS_LAST;
    if (s->loop == combine_broadcast) return LAYOUT_PLAIN;
    return first == LAYOUT_CHANNELS_LAST || other == NOTHING ? first : tare__plan_layout(b, other);
}

// True for an image with few planes that is only read by a convolution, which takes pixels.
static bool becomes_pixels(const plan_builder *b, const quantized_call *c) {
    const plan_value *y = &b->values[c->record->result];
    const int64_t planes = c->y->ndim >= 4 ? c->y->shape[1] : 0;
    if (planes < 2 || planes > MOST_PLANES || tare__plan_layouts_agree(c->y)) return false;
    if (y->uses_left != 1 || y->consumer == NOTHING ||
        tare__plan_is_slice(b, c->record->result, LAYOUT_PLAIN) ||
        tare__plan_is_slice(b, c->record->result, LAYOUT_CHANNELS_LAST))
        return false;
    const plan_record *next = &b->records[y->consumer];
    return tare__plan_is_quantized_layer(next) && !tare__plan_layer_is_linear(next);
}

static tare_status place_planes(plan_builder *b, size_t y, size_t x, quantized_step *s) {
    const tare_tensor *t = b->values[y].tensor;
    s->planes = (size_t)t->shape[1];
    s->plane = (size_t)tare__inner_count(t, 1);
    TARE_TRY(tare__plan_read(b, x, LAYOUT_PLAIN, &s->a));
    return tare__plan_write(b, y, LAYOUT_CHANNELS_LAST, &s->y);
}

static bool has_bytes(const tare_tensor *t) {
    return t->q != NULL && tare__is_byte_quantized(t);
}

static bool meets_bytes(const plan_builder *b, const plan_record *r) {
    const tare_tensor *x = tare__plan_quantized_input(r);
    return x != NULL && (has_bytes(b->values[r->result].tensor) || has_bytes(x));
}

static bool heads(const plan_builder *b, const plan_record *r) {
    return tare__plan_may_be_quantized(b, r) &&
           (tare__record_is(r, TARE_OP_DEQUANTIZE) || meets_bytes(b, r));
}

static int defer(const plan_builder *b, const plan_record *r) {
    const bool waits = b->setting->kernels != NULL && is_dequantize(b, r) &&
                       tare__plan_reader_takes_quantized(b, r);
    return waits ? SOURCE_QUANTIZED : SOURCE_NONE;
}

// False for calls that another step is responsible for.
static bool is_by_element(const plan_record *r) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (tare__record_is(r, rows[i].op)) return true;
    const tare_tensor *x = tare__plan_quantized_input(r);
    return x != NULL && tare__is_function_of_one_value(&r->call, x);
}

// Adds functions of one number between dequantize and quantize to the chain.
static bool extend(plan_builder *b, size_t head) {
    if (!tare__record_is(&b->records[head], TARE_OP_DEQUANTIZE)) return false;
    size_t chain[MOST_ELEMENTS], count = 0, next = tare__plan_sole_reader(b, head);
    for (size_t before = head; next != NOTHING && count < MOST_ELEMENTS; count++) {
        const plan_record *r = &b->records[next];
        const bool is_end = tare__record_is(r, TARE_OP_QUANTIZE_PER_TENSOR);
        if (r->result == NOTHING || r->is_observer || !tare__plan_keeps_shape(b, before, next) ||
            (!is_end && !(tare__plan_is_float(b, r) && tare__plan_is_element(r))))
            return false;
        chain[count] = next;
        if (is_end && count > 0) break;
        before = next;
        next = tare__plan_sole_reader(b, next);
    }
    if (next == NOTHING || count == MOST_ELEMENTS) return false;
    for (size_t i = 0, last = head; i <= count; i++) tare__plan_append(b, head, &last, chain[i]);
    return true;
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    quantized_call c;
    bool known = false;
    if (!meets_bytes(b, &b->records[head])) return tare__plan_decline_operator(b);
    if (b->setting->kernels == NULL || !is_by_element(&b->records[head]) ||
        !read_call(b, &b->records[head], &c))
        return TARE_OK;
    quantized_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = (quantized_step){.b = NOTHING, .count = (size_t)c.y->count};
    if (b->records[head].head == head && b->records[head].next != NOTHING)
        return add_chain(b, head, &c, s, done);
    TARE_TRY(choose(b, &c, s, &known));
    if (!known) return TARE_OK;
    const size_t first = tare__plan_find_value(b, c.a);
    const size_t second = is_binary(s) ? tare__plan_find_value(b, c.b) : NOTHING;
    const plan_layout layout = choose_layout(b, s, first, second);
    if (s->loop == quantize && layout == LAYOUT_PLAIN && becomes_pixels(b, &c))
        TARE_TRY(place_planes(b, c.record->result, first, s));
    else
        TARE_TRY(assign_buffers(b, c.record->result, first, second, layout, s));
    *done = true;
    return tare__plan_add_step(b, &tare__quantized_elements_step, s, c.record->node);
}

tare_status tare__plan_convert(plan_builder *b, size_t x, size_t y, const node *n) {
    const tare_tensor *from = b->values[x].tensor, *to = b->values[y].tensor;
    quantized_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = (quantized_step){.b = NOTHING,
                          .count = (size_t)to->count,
                          .loop = from->q != NULL ? dequantize : quantize,
                          .scheme = tare__quantized_scheme_of(from->q != NULL ? from : to)};
    TARE_TRY(assign_buffers(b, y, x, NOTHING, tare__plan_layout(b, x), s));
    return tare__plan_add_step(b, &tare__quantized_elements_step, s, n);
}

const step_class tare__quantized_elements_step = {
    .name = "quantized elements",
    .heads = heads,
    .extend = extend,
    .defer = defer,
    .plan = plan_chain,
    .run = run_quantized,
    .describe = describe,
    .replicate = tare__step_share,
};
