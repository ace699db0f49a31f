// SPDX-License-Identifier: Apache-2.0
// The steps that round weights by the layers' inputs: GPTQ and AdaRound. A layer's weight is
// replaced by values on its quantization levels, with an observer that recovers these levels
// (tare.PerChannelMSEObserver and similar), so that convert does not round again.
#include "debug/improve/round_weights.h"

#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "core/system/clock.h"
#include "debug/improve/weight_observers.h"
#include "ops/op.h"
#include "tare/improve.h"

#define MOST_WORK  (INT64_C(1) << 25) // multiplications of a step of AdaRound
#define LEAST_WORK 1e6                // of a layer that tells how long others take

typedef struct rounder {
    pass base;
    layer_inputs inputs;
    weight_change weights;
    tare_round_method method;
    size_t count;
    double ns_per_work; // of a layer's weights times the length of its rows
    tare_error *err;
} rounder;

// The numbers of a layer as doubles: weight, scales, least, most, quantized, each [weight->count].
typedef struct numbers {
    double *memory;
    double *weights, *scales, *least, *most, *quantized;
} numbers;

static tare_status take_numbers(const rounder *x, const tare_tensor *w, const qparams *q,
                                numbers *out) {
    const size_t size = (size_t)w->count;
    out->memory = tare__alloc_zeroed(size + 1, 5 * sizeof *out->memory);
    if (out->memory == NULL) return tare__out_of_memory(x->err);
    out->weights = out->memory;
    out->scales = out->weights + size;
    out->least = out->scales + size;
    out->most = out->least + size;
    out->quantized = out->most + size;
    for (int64_t i = 0; i < w->count; i++) {
        const int64_t at = tare__qparams_index(w, q, i);
        out->weights[i] = (double)tare__f32(w)[i];
        out->scales[i] = q->scale[at];
        out->least[i] = (double)q->quant_min - q->zero_point[at];
        out->most[i] = (double)q->quant_max - q->zero_point[at];
    }
    return TARE_OK;
}

// Rows of one group of a convolution, or all rows.
static rounding rows_of(const rounder *x, const numbers *n, const input_stats *s, int64_t group,
                        int64_t rows) {
    const int64_t each = rows / s->groups, at = group * each * s->inner;
    return (rounding){.weights = n->weights + at,
                      .scales = n->scales + at,
                      .least = n->least + at,
                      .most = n->most + at,
                      .quantized = n->quantized + at,
                      .count = each,
                      .inner = s->inner,
                      .gram = s->gram + group * s->inner * s->inner,
                      .err = x->err};
}

tare_status tare__round_error(const rounding *r, double *out) {
    double *lost = tare__alloc_zeroed((size_t)r->inner + 1, sizeof *lost);
    if (lost == NULL) return tare__out_of_memory(r->err);
    *out = 0;
    for (int64_t row = 0; row < r->count; row++) {
        const int64_t at = row * r->inner;
        for (int64_t k = 0; k < r->inner; k++)
            lost[k] = r->weights[at + k] - r->quantized[at + k] * r->scales[at + k];
        for (int64_t i = 0; i < r->inner; i++)
            *out += lost[i] * tare__dot8(lost, r->gram + i * r->inner, r->inner);
    }
    tare__free(lost);
    return TARE_OK;
}

// The result is discarded unless it is better than rounding to nearest.
static tare_status round_rows(const rounder *x, const rounding *r, double *before, double *after) {
    double nearest = 0, error = 0;
    tare__round_nearest(r);
    TARE_TRY(tare__round_error(r, &nearest));
    TARE_TRY(x->method == TARE_ROUND_GPTQ ? tare__round_gptq(r) : tare__round_adaround(r));
    TARE_TRY(tare__round_error(r, &error));
    if (!(error < nearest)) {
        tare__round_nearest(r);
        error = nearest;
    }
    *before += nearest;
    *after += error;
    return TARE_OK;
}

static tare_status set_weight(rounder *x, observed_layer *l, const numbers *n) {
    tare_tensor *made = NULL;
    TARE_TRY(tare__tensor_copy(l->layer.tensor, &made, x->err));
    for (int64_t i = 0; i < made->count; i++)
        tare__f32(made)[i] = (float)(n->quantized[i] * n->scales[i]);
    const tare_status status = tare__layer_set_weight(&x->base, &l->layer, made);
    tare_tensor_release(made);
    return status;
}

static tare_status round_numbers(rounder *x, observed_layer *l, const numbers *n) {
    const input_stats *s = &x->inputs.stats[l->stats];
    double before = 0, after = 0;
    for (int64_t group = 0; group < s->groups; group++) {
        const rounding r = rows_of(x, n, s, group, l->layer.tensor->shape[0]);
        TARE_TRY(round_rows(x, &r, &before, &after));
    }
    if (!(after < before)) return TARE_OK;
    TARE_TRY(set_weight(x, l, n));
    TARE_TRY(tare__weight_change_layer(&x->weights, &l->layer));
    x->count++;
    return TARE_DECIDE(&x->base, l->layer.node, "rounded", x->weights.rule,
                       "its weight is rounded to suit its input: the squared error of its result "
                       "is %.0f %% of that with the nearest levels",
                       100 * after / before);
}

static const char *fault_of(const rounder *x, const observed_layer *l) {
    const input_stats *s = &x->inputs.stats[l->stats];
    const tare_tensor *w = l->layer.tensor;
    if (s->gram == NULL) return "its rows are too long, or its input was not observed";
    if (w->ndim < 2 || w->shape[0] % s->groups != 0 || w->count != w->shape[0] * s->inner)
        return "its weight is not made of such rows";
    if (x->method == TARE_ROUND_ADAROUND && w->count * s->inner > MOST_WORK)
        return "it is too large for adaptive rounding";
    return NULL;
}

static tare_status round_layer(rounder *x, observed_layer *l) {
    const char *fault = fault_of(x, l);
    const qparams *q = NULL;
    numbers n = {0};
    if (fault != NULL)
        return TARE_DECIDE(&x->base, l->layer.node, "not rounded", x->weights.rule, "%s", fault);
    TARE_TRY(tare__layer_qparams(&x->inputs, l, l->layer.tensor, true, &q));
    tare_status status = take_numbers(x, l->layer.tensor, q, &n);
    if (status == TARE_OK) status = round_numbers(x, l, &n);
    tare__free(n.memory);
    tare__qparams_release(q);
    return status;
}

static double work_of(const rounder *x, const observed_layer *l) {
    return (double)l->layer.tensor->count * (double)x->inputs.stats[l->stats].inner;
}

// By the slowest layer so far; layers that are not rounded take no time.
static bool has_time_for(const rounder *x, const observed_layer *l) {
    if (x->inputs.end_ns == 0 || fault_of(x, l) != NULL) return true;
    const double needed = work_of(x, l) * x->ns_per_work;
    return (double)tare__job_now_ns() + needed < (double)x->inputs.end_ns;
}

static tare_status round_timed(rounder *x, observed_layer *l) {
    const uint64_t begin = tare__job_now_ns();
    const double work = work_of(x, l);
    TARE_TRY(round_layer(x, l));
    const double rate = work > 0 ? (double)(tare__job_now_ns() - begin) / work : 0;
    if (work > LEAST_WORK && rate > x->ns_per_work) x->ns_per_work = rate;
    return TARE_OK;
}

static tare_status run(rounder *x, tare_data *data, const tare_round_options *options) {
    TARE_TRY(tare__layer_inputs_find(&x->base, &x->inputs));
    tare__layer_inputs_set_limit(&x->inputs, options->seconds);
    if (x->inputs.count == 0) return TARE_OK;
    TARE_TRY(tare__weight_change_begin(&x->weights));
    TARE_TRY(tare__layer_inputs_run(&x->inputs, data, true, options->sample_limit,
                                    options->thread_count));
    for (size_t i = 0; i < x->inputs.count; i++) {
        observed_layer *l = &x->inputs.layers[i];
        if (has_time_for(x, l))
            TARE_TRY(round_timed(x, l));
        else
            TARE_TRY(TARE_DECIDE(&x->base, l->layer.node, "not rounded", x->weights.rule,
                                 "no time was left for it"));
    }
    return TARE_OK;
}

tare_status tare_round_weights(const tare_model *prepared, tare_data *data,
                               const tare_round_options *options, size_t *count, tare_model **out,
                               tare_error *err) {
    tare_round_options o = {0};
    if (options != NULL) tare__struct_copy(&o, sizeof o, options);
    if (data == NULL || o.thread_count < 0 || o.sample_limit < 0 ||
        (o.method != TARE_ROUND_GPTQ && o.method != TARE_ROUND_ADAROUND))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "round weights: expected data, samples, threads and a method");
    rounder x = {.method = o.method,
                 .weights = {.rule = o.method == TARE_ROUND_GPTQ ? "gptq" : "adaround",
                             .why = "its weight lies on quantization levels, which convert keeps",
                             .make = tare__make_by_error},
                 .err = err};
    TARE_TRY(tare__improve_begin(&x.base, prepared, out, err));
    x.weights.p = &x.base;
    const tare_status status = run(&x, data, &o);
    if (status == TARE_OK && count != NULL) *count = x.count;
    tare__layer_inputs_release(&x.inputs);
    return tare__pass_end(&x.base, status, out);
}
