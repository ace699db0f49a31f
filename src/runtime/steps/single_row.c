// SPDX-License-Identifier: Apache-2.0
// Layers with a single row: a linear layer of one sample, a convolution with one pixel, by tare's
// kernels with fixed bits (gemm/floats/panels.h). Convolutions with one pixel use these kernels for
// batches, too, so that an image gives the same result alone and in a batch.
#include <string.h>

#include "runtime/gemm/floats/panels.h"
#include "runtime/steps/layer.h"
#include "runtime/steps/steps.h"

// --- the step ---

// An operation on the sums; loop NULL: the residual addition.
typedef struct row_function {
    element_loop loop;
    float p[ELEMENT_MAX_PARAMETERS];
} row_function;

typedef struct row_step {
    size_t rows;
    panel_weights *weights; // reference owned
    const float *bias;      // as wide as the panels; zeros if the layer has none
    layer_buffers at;
    size_t function_count;
    row_function functions[MOST_EPILOGUES];
} row_step;

// The operands of the functions in a run.
typedef struct row_run {
    const row_step *s;
    const row_functions *rows;
    const float *addend;
} row_run;

static void run_functions(const void *user, size_t at, size_t columns, float *row) {
    const row_run *r = user;
    for (size_t i = 0; i < r->s->function_count; i++) {
        const row_function *f = &r->s->functions[i];
        if (f->loop != NULL)
            f->loop(row, row, (int64_t)columns, f->p);
        else
            r->rows->add(r->addend + at, columns, row);
    }
}

static tare_status run_row(const plan_run_state *run, void *state) {
    const row_step *s = state;
    const layer_buffers *at = &s->at;
    const row_run r = {.s = s,
                       .rows = &run->kernels->rows->functions,
                       .addend = at->addend != NOTHING ? tare__buffer_data(run, at->addend) : NULL};
    const panel_product product = {.functions = &run->kernels->rows->functions,
                                   .weights = s->weights,
                                   .bias = s->bias,
                                   .rows = s->rows,
                                   .x = tare__buffer_data(run, at->x),
                                   .y = tare__buffer_data(run, at->y),
                                   .finish = run_functions,
                                   .user = &r};
    tare__panels_multiply(&product, run->kernels->space.pool);
    return TARE_OK;
}

static void destroy_row(void *state) {
    const row_step *s = state;
    tare__panel_weights_release(s->weights);
}

static void describe_row(const plan *p, const void *state, step_note *out) {
    const row_step *s = state;
    out->kernel = p->setting.kernels->rows->name;
    out->weight_bytes = tare__panel_bias_count(s->weights) * s->weights->inner * sizeof(float);
    tare__step_say(out, "float: panels of columns, sums in a fixed order");
}

// --- planning ---

static bool is_one(const int64_t size[3]) {
    return size[0] == 1 && size[1] == 1 && size[2] == 1;
}

static bool is_row_of_each(const plan_builder *b, const tare_tensor *y) {
    return y->ndim == 2 && y->shape[0] > 1 && y->shape[0] == b->setting->samples;
}

// The weight that a call multiplies its rows with; *weight NULL: it is no layer of single rows.
static tare_status read_row(plan_builder *b, size_t head, const tare_tensor **weight,
                            const tare_tensor **bias) {
    op_call call = b->records[head].call;
    call.err = b->err;
    *weight = NULL;
    if (tare__record_is(&b->records[head], TARE_OP_LINEAR)) {
        linear_call c;
        TARE_TRY(tare__linear_read(&call, &c));
        *bias = c.bias;
        if (tare__call_out(&call)->count == c.w->shape[0] ||
            is_row_of_each(b, tare__call_out(&call)))
            *weight = c.w;
        return TARE_OK;
    }
    conv_call c;
    TARE_TRY(tare__conv_read(&call, &c));
    *bias = c.bias;
    const float_conv *f = &c.conv;
    if (c.is_plain && f->groups == 1 && is_one(f->in) && is_one(f->out) && is_one(f->kernel) &&
        f->pad[0] == 0 && f->pad[1] == 0 && f->pad[2] == 0) // otherwise the pixel may be padding
        *weight = c.w;
    return TARE_OK;
}

// Reads the chain up to a layer that is linked with it (steps/links.c).
static bool read_functions(const plan_builder *b, size_t head, const layer_chain *chain,
                           row_step *s) {
    for (size_t i = b->records[head].next; i != chain->next; i = b->records[i].next) {
        row_function *f = &s->functions[s->function_count++];
        if (tare__plan_is_sum(b, &b->records[i])) continue;
        if (!tare__plan_element_loop(b, &b->records[i], &f->loop, f->p)) return false;
    }
    return true;
}

static tare_status copy_bias(plan_builder *b, const tare_tensor *bias, row_step *s) {
    const size_t count = tare__panel_bias_count(s->weights);
    float *copy = tare__arena_array(&b->plan->memory, count, sizeof *copy);
    if (copy == NULL) return tare__out_of_memory(b->err);
    if (bias != NULL) memcpy(copy, tare__f32(bias), s->weights->columns * sizeof *copy);
    s->bias = copy;
    return TARE_OK;
}

// bfloat16 weights take half the memory.
static bool is_rounded(const plan_builder *b) {
    return b->setting->layers != NULL && tare__float_layers_use_bf16(b->setting->layers);
}

static bool heads(const plan_builder *b, const plan_record *r) {
    return tare__layer_kind_of(r) != NULL && !tare__layer_is_transposed(r) &&
           tare__plan_is_float(b, r);
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    const tare_tensor *weight = NULL, *bias = NULL;
    layer_chain chain;
    if (!tare__layer_read(b, head, &chain) || chain.norm != NULL || b->setting->kernels == NULL ||
        is_rounded(b))
        return TARE_OK;
    TARE_TRY(read_row(b, head, &weight, &bias));
    if (weight == NULL || weight->count == 0) return TARE_OK;
    row_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    s->rows = (size_t)(b->values[chain.result].tensor->count / weight->shape[0]);
    if (s->rows == 0 || !read_functions(b, head, &chain, s)) return TARE_OK;
    TARE_TRY(tare__panel_weights_get(weight, &s->weights, b->err));
    tare_status status = copy_bias(b, bias, s);
    if (status == TARE_OK) status = tare__layer_assign_buffers(b, head, &chain, &s->at);
    if (status != TARE_OK) {
        destroy_row(s);
        return status;
    }
    *done = true;
    b->plan->joins_rows = b->plan->joins_rows || is_row_of_each(b, b->values[chain.result].tensor);
    return tare__plan_add_step(b, &tare__single_row_step, s, b->records[head].node);
}

const step_class tare__single_row_step = {
    .name = "layer",
    .heads = heads,
    .plan = plan_chain,
    .run = run_row,
    .destroy = destroy_row,
    .describe = describe_row,
    .replicate = tare__step_share,
};
