// SPDX-License-Identifier: Apache-2.0
// Integer layers: quantized linear and convolution modules, with a following residual sum, by
// kernels on channels-last quantized values.
#include "ops/quantized/layer.h"
#include "ops/quantized/table.h"
#include "runtime/gemm/qlayer.h"
#include "runtime/gemm/transpose.h"
#include "runtime/kernels/schemes.h"
#include "runtime/plan/dispatch.h"
#include "runtime/plan/records.h"
#include "runtime/steps/steps.h"
#include "runtime/tune/tuner.h"

// --- the step ---

typedef struct quantized_layer_step {
    qlayer *layer;
    size_t batch;
    plan_pixels x, y, other;  // other: quantized values of the addend; NOTHING: none
    size_t scratch;           // a buffer
    const tare_tensor *added; // result of the addition; NULL: none
    // Without a batch dimension, tensors are converted to channels last and back here, because
    // values have their channels in the second dimension. own_bytes: scratch of the layer; x_bytes,
    // y_bytes: the converted tensors behind it.
    bool is_moved;
    transposition from, to; // of the input, and of the result
    size_t own_bytes, x_bytes, y_bytes;
    product_addend addend;
    bool gives_floats;
    const char *why; // the tuner's reason; NULL: there was no choice
} quantized_layer_step;

static void run_moved(const elementwise_kernels *k, const quantized_layer_step *s,
                      const qlayer_run *given) {
    unsigned char *x = (unsigned char *)given->scratch + s->own_bytes, *y = x + s->x_bytes;
    void *result = given->y != NULL ? (void *)given->y : (void *)given->real;
    const transposition back = s->to;
    const transposition there = {back.batch, back.columns, back.rows, 1};
    product_addend addend;
    qlayer_run run = *given;
    tare__transpose(k, &s->from, given->x, x);
    run.x = x;
    run.y = given->y != NULL ? y : NULL;
    run.real = given->real != NULL ? (void *)y : NULL;
    if (given->addend != NULL) {
        addend = *given->addend;
        tare__transpose(k, &there, addend.quantized, y);
        addend.quantized = y;
        run.addend = &addend;
    }
    tare__qlayer_run(s->layer, &run);
    tare__transpose(k, &back, y, result);
}

static tare_status run_layer(const plan_run_state *run, void *state) {
    const quantized_layer_step *s = state;
    product_addend addend = s->addend;
    if (s->other.buffer != NOTHING) addend.quantized = tare__buffer_data(run, s->other.buffer);
    addend.stride = s->other.pitch;
    void *y = tare__buffer_data(run, s->y.buffer);
    const qlayer_run of_layer = {.batch = s->batch,
                                 .x = tare__buffer_data(run, s->x.buffer),
                                 .y = s->gives_floats ? NULL : y,
                                 .x_stride = s->x.pitch,
                                 .y_stride = s->y.pitch,
                                 .real = s->gives_floats ? y : NULL,
                                 .addend = s->other.buffer != NOTHING ? &addend : NULL,
                                 .scratch = tare__buffer_data(run, s->scratch),
                                 .space = &run->kernels->space};
    if (s->is_moved)
        run_moved(run->kernels->elementwise, s, &of_layer);
    else
        tare__qlayer_run(s->layer, &of_layer);
    return TARE_OK;
}

static void destroy_layer(void *state) {
    const quantized_layer_step *s = state;
    tare__qlayer_destroy(s->layer);
}

static void describe_layer(const plan *p, const void *state, step_note *out) {
    const quantized_layer_step *s = state;
    const qlayer_form form = tare__qlayer_form(s->layer);
    (void)p;
    out->kernel = form.kernel;
    out->multiplies_quantized = true;
    out->weight_bytes = form.weight_bytes;
    out->macs = (int64_t)(s->batch * form.macs);
    if (form.is_depthwise)
        tare__step_say(out, "integers: one input channel per output channel%s",
                       form.pixels > 1 ? ", several pixels at a time" : "");
    else
        tare__step_say(out, "integers: product, tiles of %zu x %zu channels", form.tile_rows,
                       form.tile_channels);
    if (form.subconvolution_count > 1)
        tare__step_say(out, ", in %zu convolutions", form.subconvolution_count);
    if (s->addend.kind != 0) tare__step_say(out, ", with a sum");
    if (s->gives_floats) tare__step_say(out, ", to floats");
    tare__step_say_slice(out, &s->y);
    if (s->why != NULL) tare__step_say(out, "; %s", s->why);
}

// --- planning ---

// Reads the sum `next` of the layer's result and other quantized values.
static bool read_sum(const plan_builder *b, size_t layer_result, const plan_record *next,
                     product_addend *out, size_t *other) {
    const op_call *call = &next->call;
    const tare_tensor *own = b->values[layer_result].tensor;
    const tare_tensor *first = tare__call_tensor(call, 0), *second = tare__call_tensor(call, 1);
    const tare_tensor *added = first == own ? second : first;
    const tare_tensor *y = b->values[next->result].tensor;
    *other = tare__plan_find_value(b, added);
    if (*other == NOTHING) return false;
    const quantized_binary op = tare__quantized_binary_of(call, own, added, y);
    *out = (product_addend){.kind = ADDEND_OF_QUANTIZED, .add = op.add, .is_signed = op.is_signed};
    return true;
}

// The sum overwrites the addend if that is not needed any more, unless the layer also reads the
// addend as its input.
static tare_status place_pixels(plan_builder *b, size_t x, size_t result, size_t other,
                                quantized_layer_step *s) {
    bool is_same;
    TARE_TRY(tare__qlayer_takes_stride(s->layer)
                 ? tare__plan_read_pixels(b, x, &s->x)
                 : tare__plan_read(b, x, LAYOUT_CHANNELS_LAST, &s->x.buffer));
    if (other != NOTHING) TARE_TRY(tare__plan_read_pixels(b, other, &s->other));
    if (other == NOTHING || s->other.buffer == s->x.buffer ||
        tare__plan_is_slice(b, result, LAYOUT_CHANNELS_LAST))
        return tare__plan_write_pixels(b, result, &s->y);
    return tare__plan_write_over(b, result, other, LAYOUT_CHANNELS_LAST, &s->y.buffer, &is_same);
}

static tare_status place_rows(plan_builder *b, size_t x, size_t result, size_t other,
                              quantized_layer_step *s) {
    bool is_same;
    TARE_TRY(tare__plan_read(b, x, LAYOUT_PLAIN, &s->x.buffer));
    if (other == NOTHING) return tare__plan_write(b, result, LAYOUT_PLAIN, &s->y.buffer);
    TARE_TRY(tare__plan_read(b, other, LAYOUT_PLAIN, &s->other.buffer));
    return s->other.buffer == s->x.buffer
               ? tare__plan_write(b, result, LAYOUT_PLAIN, &s->y.buffer)
               : tare__plan_write_over(b, result, other, LAYOUT_PLAIN, &s->y.buffer, &is_same);
}

static tare_status assign_buffers(plan_builder *b, const plan_record *layer, size_t result,
                                  size_t other, quantized_layer_step *s) {
    const size_t x = tare__plan_find_value(b, tare__call_layer_input(&layer->call));
    const size_t threads = tare__thread_count(b->setting->kernels->space.pool);
    const bool is_plain = s->is_moved || tare__plan_layer_is_linear(layer);
    s->other = (plan_pixels){.buffer = NOTHING};
    TARE_TRY(is_plain ? place_rows(b, x, result, other, s) : place_pixels(b, x, result, other, s));
    s->own_bytes =
        tare__round_up(tare__qlayer_scratch_bytes(s->layer, threads, s->batch), BUFFER_ALIGNMENT);
    return tare__plan_new_scratch(b, s->own_bytes + s->x_bytes + s->y_bytes, &s->scratch);
}

static tare_status add_step(plan_builder *b, const plan_record *r, size_t result, size_t other,
                            quantized_layer_step *s) {
    const tare_status status = assign_buffers(b, r, result, other, s);
    if (status == TARE_OK) return tare__plan_add_step(b, &tare__quantized_layer_step, s, r->node);
    tare__qlayer_destroy(s->layer);
    return status;
}

typedef struct quantized_bounds {
    int32_t least, most;
} quantized_bounds;

// True if the table leaves quantized values between two bounds unchanged and clamps the others.
static bool is_clamp(const uint8_t *table, bool is_signed, quantized_bounds *out) {
    const int32_t low = is_signed ? -128 : 0;
    const uint8_t first = table[(uint8_t)low], last = table[(uint8_t)(low + QUANTIZED_COUNT - 1)];
    *out = (quantized_bounds){is_signed ? (int8_t)first : first, is_signed ? (int8_t)last : last};
    for (int32_t q = low; q < low + QUANTIZED_COUNT; q++)
        if (table[(uint8_t)q] != (uint8_t)tare__clamp_int(q, out->least, out->most)) return false;
    return out->least <= out->most;
}

// What follows the layer in its chain.
typedef struct layer_epilogue {
    size_t result, rest; // rest: the next record; NOTHING: none
    bool has_bounds;
    quantized_bounds bounds;
} layer_epilogue;

// A function that only clamps becomes the layer's own bounds, as both have the same parameters.
static tare_status read_epilogue(plan_builder *b, size_t head, layer_epilogue *out) {
    const plan_record *r = &b->records[head];
    uint8_t table[QUANTIZED_COUNT];
    bool known = false;
    *out = (layer_epilogue){.result = r->result, .rest = r->next};
    if (r->next == NOTHING || tare__plan_is_quantized_sum(b, &b->records[r->next])) return TARE_OK;
    const plan_record *next = &b->records[r->next];
    const tare_tensor *x = b->values[r->result].tensor, *y = b->values[next->result].tensor;
    TARE_TRY(tare__plan_quantized_table(b, next, table, &known));
    if (!known || y->q == NULL || !tare__qparams_equal(x->q, y->q) ||
        !is_clamp(table, x->dtype == TARE_QINT8, &out->bounds) ||
        out->bounds.least > (int32_t)x->q->zero_point[0] ||
        out->bounds.most <
            (int32_t)x->q->zero_point[0]) // the zero point is limited to a quantized value
        return TARE_OK;
    out->has_bounds = true;
    out->result = next->result;
    out->rest = next->next;
    return TARE_OK;
}

// Intersects the bounds.
static void narrow(quantized_layer *layer, const quantized_bounds *bounds) {
    layer->quantized_min = tare__clamp_int(layer->quantized_min, bounds->least, bounds->most);
    layer->quantized_max = tare__clamp_int(layer->quantized_max, bounds->least, bounds->most);
}

static tare_status add_rest(plan_builder *b, size_t rest) {
    for (; rest != NOTHING; rest = b->records[rest].next) TARE_TRY(tare__plan_one(b, rest));
    return TARE_OK;
}

// True if the rest of the chain is a sum that the layer can add.
static bool takes_sum(const plan_builder *b, const layer_epilogue *epilogue,
                      quantized_layer_step *s, size_t *other) {
    if (epilogue->rest == NOTHING || !tare__qlayer_adds(s->layer)) return false;
    const plan_record *sum = &b->records[epilogue->rest];
    return tare__plan_is_quantized_sum(b, sum) &&
           read_sum(b, epilogue->result, sum, &s->addend, other);
}

static tare_status add_steps(plan_builder *b, size_t head, const layer_epilogue *epilogue,
                             quantized_layer_step *s) {
    const plan_record *r = &b->records[head];
    size_t other = NOTHING;
    if (s->addend.kind == ADDEND_OF_VALUES)
        other = tare__plan_find_value(b, s->added);
    else if (takes_sum(b, epilogue, s, &other))
        return add_step(b, r, b->records[epilogue->rest].result, other, s);
    TARE_TRY(add_step(b, r, epilogue->result, other, s));
    return add_rest(b, epilogue->rest);
}

static void set_batch(const plan_record *r, const quantized_layer *layer, const tare_tensor *x,
                      const tare_tensor *y, quantized_layer_step *s) {
    const bool is_linear = tare__plan_layer_is_linear(r);
    *s = (quantized_layer_step){.is_moved = !is_linear && x->ndim != layer->weight->ndim};
    s->batch = is_linear ? (size_t)(y->count / layer->out_channels) : (size_t)x->shape[0];
    if (!s->is_moved) return;
    s->batch = 1;
    s->from = tare__channels_moved(x, false, true);
    s->to = tare__channels_moved(y, false, false);
    s->x_bytes = tare__round_up(tare__tensor_bytes(x), BUFFER_ALIGNMENT);
    s->y_bytes = tare__round_up(tare__tensor_bytes(y), BUFFER_ALIGNMENT);
}

// Chooses the fastest of the kernels that give the same bits.
static tare_status tune(plan_builder *b, const quantized_layer *layer, const tare_tensor *x,
                        const tare_tensor *y, isa_level isa, quantized_layer_step *s) {
    const tuned_layer wanted = {.layer = s->layer,
                                .of = layer,
                                .x = x,
                                .y = y,
                                .isa = isa,
                                .batch = s->batch,
                                .space = &b->setting->kernels->space};
    if (b->setting->tuner == NULL) return TARE_OK;
    const tare_status status = tare__tuner_choose(b->setting->tuner, &wanted, &s->why, b->err);
    if (status != TARE_OK) tare__qlayer_destroy(s->layer);
    return status;
}

static bool heads(const plan_builder *b, const plan_record *r) {
    return tare__plan_is_quantized_layer(r) && tare__plan_may_be_quantized(b, r);
}

// Adds a function of the layer's quantized values, and a sum with other quantized values of the
// same shape.
static bool extend(plan_builder *b, size_t head) {
    size_t last = head, next = tare__plan_sole_reader(b, head);
    if (next != NOTHING && b->records[next].result != NOTHING &&
        tare__plan_is_quantized_function(b, &b->records[next])) {
        tare__plan_append(b, head, &last, next);
        next = tare__plan_sole_reader(b, last);
    }
    if (next != NOTHING && b->records[next].result != NOTHING &&
        tare__plan_is_quantized_sum(b, &b->records[next]))
        tare__plan_append(b, head, &last, next);
    return last != head;
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    op_call call = r->call;
    quantized_layer layer;
    layer_epilogue epilogue;
    call.err = b->err;
    TARE_TRY(tare__call_layer_read(&call, &layer));
    const tare_tensor *x = tare__call_layer_input(&call), *y = b->values[r->result].tensor;
    const tare_tensor *added = layer.adds ? tare__call_layer_addend(&call) : NULL;
    if (y->count == 0 || tare__plan_find_value(b, x) == NOTHING ||
        (layer.adds && (added == NULL || tare__plan_find_value(b, added) == NOTHING)))
        return TARE_OK;
    TARE_TRY(read_epilogue(b, head, &epilogue));
    quantized_layer_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    set_batch(r, &layer, x, y, s);
    s->gives_floats = y->q == NULL;
    s->added = added;
    if (added != NULL) s->addend = tare__value_addend_of(added);
    if (epilogue.has_bounds) narrow(&layer, &epilogue.bounds);
    const isa_level isa = tare__qlayer_level(&layer, y, b->setting->kernels->isa);
    TARE_TRY(tare__qlayer_create(&layer, x, y, isa, &s->layer, b->err));
    if (s->layer != NULL) TARE_TRY(tune(b, &layer, x, y, isa, s));
    if (s->layer == NULL) return tare__plan_decline(b, tare__qlayer_refusal(&layer, x));
    *done = true;
    return add_steps(b, head, &epilogue, s);
}

const step_class tare__quantized_layer_step = {
    .name = "quantized layer",
    .heads = heads,
    .extend = extend,
    .plan = plan_chain,
    .run = run_layer,
    .destroy = destroy_layer,
    .describe = describe_layer,
    .replicate = tare__step_share,
};
