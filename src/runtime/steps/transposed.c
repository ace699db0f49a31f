// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions of floats: each subconvolution is an ordinary convolution by a library's
// kernels (gemm/subconvolution.h), whose pixels are then copied to their positions in the result.
#include <string.h>

#include "runtime/gemm/strided_copy.h"
#include "runtime/gemm/subconvolution.h"
#include "runtime/steps/layer.h"
#include "runtime/steps/steps.h"

typedef struct float_subconvolution {
    float_layer *layer;
    strided_copy copy; // from the dense result of the subconvolution
    int64_t first;     // offset of its first pixel in y
} float_subconvolution;

typedef struct transposed_step {
    size_t x, y, dense; // buffers; dense NOTHING: there is one subconvolution, which writes y
    bool is_replica;    // with memory of its own
    size_t count;
    float_subconvolution subs[];
} transposed_step;

// --- running ---

static tare_status run_transposed(const plan_run_state *run, void *state) {
    const transposed_step *s = state;
    const float *x = tare__buffer_data(run, s->x);
    float *y = tare__buffer_data(run, s->y);
    if (s->dense == NOTHING) return tare__float_layer_run(s->subs[0].layer, x, y, run->err);
    float *dense = tare__buffer_data(run, s->dense);
    for (size_t i = 0; i < s->count; i++) {
        const float_subconvolution *sub = &s->subs[i];
        TARE_TRY(tare__float_layer_run(sub->layer, x, dense, run->err));
        tare__strided_copy_run(&sub->copy, run->kernels->space.pool, dense, y + sub->first);
    }
    return TARE_OK;
}

static void destroy_transposed(void *state) {
    transposed_step *s = state;
    for (size_t i = 0; i < s->count; i++) tare__float_layer_destroy(s->subs[i].layer);
    if (s->is_replica) tare__free(s);
}

static tare_status replicate_transposed(const plan *replica, const void *state, void **out,
                                        tare_error *err) {
    const transposed_step *s = state;
    const size_t bytes = sizeof *s + s->count * sizeof *s->subs;
    transposed_step *made = tare__alloc(bytes);
    if (made == NULL) return tare__out_of_memory(err);
    memcpy(made, s, bytes);
    made->is_replica = true;
    tare_status status = TARE_OK;
    for (made->count = 0; made->count < s->count && status == TARE_OK; made->count++) {
        float_subconvolution *sub = &made->subs[made->count];
        sub->layer = NULL;
        status = tare__float_layer_replica(s->subs[made->count].layer, replica->setting.layers,
                                           &sub->layer, err);
    }
    if (status == TARE_OK)
        *out = made;
    else
        destroy_transposed(made);
    return status;
}

static void describe_transposed(const plan *p, const void *state, step_note *out) {
    const transposed_step *s = state;
    (void)p;
    for (size_t i = 0; i < s->count; i++) {
        size_t bytes;
        out->kernel = tare__float_layer_kernel(s->subs[i].layer, &bytes);
        out->weight_bytes += bytes;
    }
    out->bits_may_differ = true;
    tare__step_say(out, "float: oneDNN, %zu convolutions; bits may differ between machines",
                   s->count);
}

// --- planning ---

static conv_geometry geometry_of(const float_conv *c) {
    conv_geometry g = {.is_transposed = true,
                       .groups = c->groups,
                       .in_channels = c->in_channels,
                       .out_channels = c->out_channels};
    for (int d = 0; d < SPATIAL; d++) {
        g.kernel[d] = c->kernel[d];
        g.stride[d] = c->stride[d];
        g.dilation[d] = c->dilation[d];
        g.pad_before[d] = c->pad[d];
    }
    return g;
}

static float_conv conv_of(const float_conv *whole, const subconvolution *p) {
    const conv_windows *w = &p->windows;
    float_conv c = {.batch = whole->batch,
                    .groups = whole->groups,
                    .in_channels = whole->in_channels,
                    .out_channels = whole->out_channels,
                    .out = {(int64_t)w->out_depth, (int64_t)w->out_height, (int64_t)w->out_width},
                    .kernel = {(int64_t)w->planes, (int64_t)w->rows, (int64_t)w->columns},
                    .pad = {w->front, w->above, w->before}};
    for (int d = 0; d < SPATIAL; d++) {
        c.in[d] = whole->in[d];
        c.stride[d] = (int64_t)w->stride[d];
        c.dilation[d] = (int64_t)w->step[d];
    }
    return c;
}

// Sets the copy from a subconvolution's dense pixels to their positions.
static void set_copy(const float_conv *whole, const float_conv *c, const subconvolution *p,
                     float_subconvolution *out) {
    const int64_t channels = c->out_channels;
    copy_loop loops[SPATIAL + 2] = {[SPATIAL + 1] = {channels, 1, 1}};
    int64_t from = channels, to = channels;
    out->first = 0;
    for (int d = SPATIAL - 1; d >= 0; d--) {
        loops[1 + d] = (copy_loop){c->out[d], from, to * (int64_t)p->apart[d]};
        out->first += to * (int64_t)p->origin[d];
        from *= c->out[d];
        to *= whole->out[d];
    }
    loops[0] = (copy_loop){c->batch, from, to};
    out->copy = tare__strided_copy_of(sizeof(float), 0, loops, SPATIAL + 2);
}

static tare_status compile_subconvolution(plan_builder *b, const layer_chain *chain,
                                          const conv_call *call, const folded_norm *folded,
                                          const subconvolution *p, float_subconvolution *out) {
    const float_conv c = conv_of(&call->conv, p);
    float_weights weights = tare__layer_weights(call->w, call->bias, folded);
    const int64_t count =
        tare__size_product((int64_t)p->taps.outs, (int64_t)tare__weight_taps_count(&p->taps));
    tare_tensor *taps = NULL;
    for (int d = 0; d < SPATIAL; d++)
        if (c.pad[d] < 0) return TARE_OK; // libraries do not support negative padding
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, 1, &count, &taps, b->err));
    tare__weight_taps_gather_floats(&p->taps, tare__f32(weights.w), tare__f32(taps));
    weights.w = taps;
    weights.is_model = false;
    const tare_status status = tare__float_layer_conv(b->setting->layers, &c, &chain->epilogue,
                                                      &weights, &out->layer, b->err);
    tare_tensor_release(taps);
    set_copy(&call->conv, &c, p, out);
    return status;
}

// *fits is false if the library has no fast form of a subconvolution.
static tare_status compile(plan_builder *b, size_t head, const layer_chain *chain,
                           const conv_call *call, const conv_split *split, transposed_step *s,
                           bool *fits) {
    folded_norm folded = {0};
    tare_status status = TARE_OK;
    if (chain->norm != NULL) TARE_TRY(tare__layer_fold(b, &b->records[head].call, chain, &folded));
    for (*fits = true;
         s->count < tare__subconvolution_count(split) && *fits && status == TARE_OK;) {
        const subconvolution p = tare__subconvolution_of(split, s->count);
        float_subconvolution *sub = &s->subs[s->count++];
        status = compile_subconvolution(b, chain, call, &folded, &p, sub);
        *fits = sub->layer != NULL;
    }
    tare__folded_norm_release(&folded);
    return status;
}

// The first subconvolution is the largest.
static tare_status assign_buffers(plan_builder *b, size_t head, const layer_chain *chain,
                                  const conv_split *split, transposed_step *s) {
    const subconvolution first = tare__subconvolution_of(split, 0);
    const size_t pixels = (size_t)b->values[chain->result].tensor->shape[0] *
                          tare__conv_window_pixels(&first.windows);
    layer_buffers at;
    TARE_TRY(tare__layer_assign_buffers(b, head, chain, &at));
    s->x = at.x;
    s->y = at.y;
    s->dense = NOTHING;
    if (!tare__subconvolution_is_scattered(&first)) return TARE_OK;
    return tare__plan_new_scratch(b, pixels * (size_t)split->g.out_channels * sizeof(float),
                                  &s->dense);
}

static bool heads(const plan_builder *b, const plan_record *r) {
    return tare__layer_is_transposed(r) && tare__plan_is_float(b, r);
}

static bool extend(plan_builder *b, size_t head) {
    size_t last = head;
    bool unused;
    (void)tare__layer_extend(b, head, &last, &unused);
    return last != head;
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    layer_chain chain;
    op_call call = b->records[head].call;
    conv_call c;
    conv_split split;
    bool fits = false;
    call.err = b->err;
    if (!tare__layer_read(b, head, &chain))
        return tare__plan_decline(b, "float: its weights are not constant");
    if (b->setting->layers == NULL)
        return tare__plan_decline(b, "float: no library compiles float layers here");
    TARE_TRY(tare__transposed_conv_read(&call, &c));
    const conv_geometry g = geometry_of(&c.conv);
    if (!c.is_plain || !tare__conv_split_of_floats(&g, c.conv.in, c.conv.out, &split))
        return tare__plan_decline(b, "float: a transposed convolution without a batch");
    const size_t count = tare__subconvolution_count(&split);
    transposed_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s + count * sizeof *s->subs);
    if (s == NULL) return tare__out_of_memory(b->err);
    tare_status status = compile(b, head, &chain, &c, &split, s, &fits);
    if (status == TARE_OK && fits) status = assign_buffers(b, head, &chain, &split, s);
    if (status != TARE_OK || !fits) {
        destroy_transposed(s);
        return status != TARE_OK ? status
                                 : tare__plan_decline(b, "float: oneDNN has no fast form of it");
    }
    *done = true;
    return tare__plan_add_step(b, &tare__transposed_step, s, b->records[head].node);
}

const step_class tare__transposed_step = {
    .name = "layer",
    .heads = heads,
    .extend = extend,
    .plan = plan_chain,
    .run = run_transposed,
    .destroy = destroy_transposed,
    .describe = describe_transposed,
    .replicate = replicate_transposed,
};
