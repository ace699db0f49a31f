// SPDX-License-Identifier: Apache-2.0
// Pooling of codes that lie channels last: a pixel is a line of channels. Codes are ordered as the
// values that they stand for, and sums of them are exact.
#include <string.h>

#include "ops/layer_call.h"
#include "ops/memory_order.h"
#include "ops/quantized_layer.h"
#include "ops/rules.h"
#include "runtime/plan_steps.h"

typedef struct code_pool {
    pool_call call;
    size_t x, y, sums; // places; sums: of averages
    size_t channels;
    int64_t batch;
    bool is_signed;
    average_rule average;
} code_pool;

static const uint8_t *pixel_at(const code_pool *s, const uint8_t *image, int64_t i, int64_t j,
                               int64_t l) {
    const pool_call *p = &s->call;
    return image + (size_t)((i * p->in[1] + j) * p->in[2] + l) * s->channels;
}

// The greatest codes of a window, which is never empty.
static void take_greatest(const code_pool *s, const elementwise_kernels *k, const pool_window *w,
                          const uint8_t *image, uint8_t *y) {
    const pool_call *p = &s->call;
    bool is_first = true;
    for (int64_t i = w->begin[0]; i < w->end[0]; i += p->dilation[0])
        for (int64_t j = w->begin[1]; j < w->end[1]; j += p->dilation[1])
            for (int64_t l = w->begin[2]; l < w->end[2]; l += p->dilation[2]) {
                const uint8_t *pixel = pixel_at(s, image, i, j, l);
                if (is_first)
                    memcpy(y, pixel, s->channels);
                else
                    k->raise(s->is_signed, pixel, s->channels, y);
                is_first = false;
            }
}

static void take_average(const code_pool *s, const elementwise_kernels *k, const pool_window *w,
                         const uint8_t *image, int32_t *sums, uint8_t *y) {
    int64_t count = 0;
    memset(sums, 0, s->channels * sizeof *sums);
    for (int64_t i = w->begin[0]; i < w->end[0]; i++)
        for (int64_t j = w->begin[1]; j < w->end[1]; j++)
            for (int64_t l = w->begin[2]; l < w->end[2]; l++, count++)
                k->sum(s->is_signed, pixel_at(s, image, i, j, l), s->channels, sums);
    for (size_t c = 0; c < s->channels; c++) y[c] = tare__average_code(&s->average, sums[c], count);
}

static tare_status run_pool(const plan_run_state *run, void *state) {
    const code_pool *s = state;
    const pool_call *p = &s->call;
    const int64_t in = p->in[0] * p->in[1] * p->in[2], out = p->out[0] * p->out[1] * p->out[2];
    const uint8_t *x = tare__place_data(run, s->x);
    uint8_t *y = tare__place_data(run, s->y);
    int32_t *sums = p->is_max ? NULL : tare__place_data(run, s->sums);
    for (int64_t n = 0; n < s->batch; n++, x += (size_t)in * s->channels)
        for (int64_t i = 0; i < out; i++, y += s->channels) {
            const int64_t at[] = {i / p->out[2] / p->out[1], i / p->out[2] % p->out[1],
                                  i % p->out[2]};
            const pool_window w = tare__pool_window_at(p, at);
            if (p->is_max)
                take_greatest(s, run->fast->elementwise, &w, x, y);
            else
                take_average(s, run->fast->elementwise, &w, x, sums, y);
        }
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    (void)p, (void)state;
    tare__step_say(out, "integers: pixels as lines of channels");
}

static const step_class pool_class = {"code pool", run_pool, NULL, describe};

// Rows read floats: a tensor of them stands for the codes.
static tare_status read_pool(op_call *call, const tare_tensor *x, pool_call *out, bool *known) {
    value in = {.kind = VALUE_TENSOR};
    TARE_TRY(tare__tensor_meta(TARE_FLOAT32, x->ndim, x->shape, NULL, &in.as.tensor, call->err));
    call->param[0] = &in;
    const tare_status status = tare__pool_read(call, out, known);
    tare_tensor_release(in.as.tensor);
    out->x = x;
    return status;
}

// Averages over whole windows, as torch's adaptive ones are; the others' divisors vary.
static bool is_known(const code_pool *s, const tare_tensor *y) {
    const pool_call *p = &s->call;
    if (!tare__is_byte_quantized(p->x) || !tare__is_byte_quantized(y) || y->count == 0 ||
        p->x->ndim != p->dims + 2)
        return false;
    return p->is_max || (p->is_adaptive && p->dims == 2 && tare__average_is_exact(p->x));
}

tare_status tare__plan_code_pool(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    op_call call = r->call;
    bool known = false;
    code_pool *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    call.err = b->err;
    const tare_tensor *x = tare__plan_code_input(r);
    if (x == NULL) return TARE_OK;
    TARE_TRY(read_pool(&call, x, &s->call, &known));
    if (!known || !is_known(s, b->values[r->result].tensor)) return TARE_OK;
    const size_t v = tare__plan_find_value(b, x);
    if (v == NOTHING || tare__plan_layout(b, v) != LAYOUT_CHANNELS_LAST) return TARE_OK;
    s->batch = x->shape[0];
    s->channels = (size_t)x->shape[1];
    s->is_signed = x->dtype == TARE_QINT8;
    s->average = tare__average_rule_of(&r->call, x);
    TARE_TRY(tare__plan_read(b, v, LAYOUT_CHANNELS_LAST, &s->x));
    TARE_TRY(tare__plan_write(b, r->result, LAYOUT_CHANNELS_LAST, &s->y));
    if (!s->call.is_max)
        TARE_TRY(tare__plan_new_scratch(b, s->channels * sizeof(int32_t), &s->sums));
    *done = true;
    return tare__plan_add_step(b, &pool_class, s, r->node);
}
