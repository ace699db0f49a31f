// SPDX-License-Identifier: Apache-2.0
// Bias correction. Each sample runs through the float model, and the outputs of the layers are
// summed per channel. Then all samples run through the quantized model side by side, layer by
// layer: in front of each layer its outputs are summed, and its bias is corrected before any sample
// continues. Sums are double, in the order of the samples.
#include "tare/bias_correction.h"

#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "core/system/clock.h"
#include "core/threads/item_failure.h"
#include "core/threads/threads.h"
#include "dnnl/float_kernels.h"
#include "flow/calibrate/calibrate.h"
#include "flow/layer_bias.h"
#include "model/data.h"
#include "ops/interpret.h"
#include "ops/op.h"
#include "ops/rules.h"
#include "runtime/plan/samples.h"
#include "runtime/tune/bias_correction.h"

#define RULE     "bias correction"
#define SKIPPED  "not corrected"
#define TOO_LATE "the time was over"

enum { DEFAULT_SAMPLES = 32, MOST_THREADS = 1024, LANES = 8 };

// A layer to correct, in the order of both graphs.
typedef struct target {
    biased_layer prepared, reference;
    tare_tensor *bias; // of the reference model, to which nothing else refers: corrected in place
    double largest_shift, rms_shift;
} target;

// For one sample and layer: the float outputs minus the quantized ones.
typedef struct layer_sums {
    double *sum; // [channels]
    int64_t channels, count;
} layer_sums;

// One run: a sample, or a batch if the model's samples are not independent.
typedef struct item {
    tare_tensor **inputs;
    value *values;        // the same as interpreter values
    arena memory;         // of the run
    interpretation *run;  // through the reference model
    layer_sums *by_layer; // [target_count]
    int64_t sample_count;
} item;

typedef struct worker {
    float_kernels *kernels;
    item_failure failure;
} worker;

typedef struct corrector {
    const tare_model *prepared;
    pass base; // its model is the copy that is returned
    pass edit; // editing the reference model
    tare_data *data;
    tare_bias_correction_options options;
    target *targets;
    size_t target_count, target_capacity, skipped_count;
    size_t done_count; // targets that were corrected: the first ones
    size_t at;         // the next target: all samples are in front of it
    item *items;
    size_t item_count, item_capacity, input_count;
    size_t part_first, part_count; // items that run side by side
    int64_t sample_count;
    bool is_sliced;
    worker *workers;
    size_t worker_count;
    thread_pool *pool;
    uint64_t begin_ns;
    double floats_begin; // seconds after begin_ns: before it the model is quantized, and data read
    tare_error *err;
} corrector;

// --- which layers ---

static tare_status skip(corrector *c, const node *n, const char *why) {
    c->skipped_count++;
    return TARE_DECIDE(&c->base, n, SKIPPED, RULE, "%s", why);
}

static tare_status add_target(corrector *c, const biased_layer *prepared,
                              const biased_layer *reference) {
    if (!tare__grow((void **)&c->targets, &c->target_capacity, c->target_count, sizeof *c->targets))
        return tare__out_of_memory(c->err);
    c->targets[c->target_count++] = (target){.prepared = *prepared, .reference = *reference};
    return TARE_OK;
}

static tare_status consider(corrector *c, node *n, node **after) {
    biased_layer layer, converted = {0};
    tare__layer_find(c->base.model, n, &layer);
    if (layer.node == NULL) return TARE_OK;
    node *other = *after;
    while (other != NULL && strcmp(other->name, n->name) != 0) other = other->next;
    if (other != NULL) tare__layer_find(c->edit.model, other, &converted);
    if (converted.node == NULL) return skip(c, n, "the converted model does not have it");
    if (!tare__layer_is_quantized(&converted)) return TARE_OK;
    const tare_tensor *bias = tare__layer_bias(c->base.model, &layer);
    const char *fault = tare__layer_bias_fault(c->base.model, &layer);
    if (fault == NULL && bias != NULL && bias->dtype != TARE_FLOAT32)
        fault = "its bias is not float32";
    if (fault != NULL) return skip(c, n, fault);
    *after = other->next;
    return add_target(c, &layer, &converted);
}

static tare_status find_targets(corrector *c) {
    node *after = c->edit.model->root->graph->first;
    for (node *n = c->base.model->root->graph->first; n != NULL; n = n->next)
        TARE_TRY(consider(c, n, &after));
    return TARE_OK;
}

// --- samples ---

static tare_status add_item(corrector *c, const tare_batch *batch, int64_t first, int64_t count) {
    if (!tare__grow((void **)&c->items, &c->item_capacity, c->item_count, sizeof *c->items))
        return tare__out_of_memory(c->err);
    item *x = &c->items[c->item_count++];
    *x = (item){.sample_count = count,
                .inputs = tare__alloc_zeroed(c->input_count + 1, sizeof(tare_tensor *)),
                .values = tare__alloc_zeroed(c->input_count + 1, sizeof(value)),
                .by_layer = tare__alloc_zeroed(c->target_count + 1, sizeof(layer_sums))};
    if (x->inputs == NULL || x->values == NULL || x->by_layer == NULL)
        return tare__out_of_memory(c->err);
    for (size_t i = 0; i < c->input_count; i++) {
        tare_tensor *t = (tare_tensor *)batch->inputs[i];
        if (count == batch->size)
            x->inputs[i] = tare_tensor_retain(t);
        else
            TARE_TRY(tare__tensor_rows(t, first, count, &x->inputs[i], c->err));
        x->values[i] = (value){.kind = VALUE_TENSOR, .as.tensor = x->inputs[i]};
    }
    c->sample_count += count;
    return TARE_OK;
}

// For a model that changes when it runs, or draws random numbers, means are not defined.
static tare_status refuse_training(const corrector *c, const tare_batch *batch) {
    arena memory = {0};
    value result = tare__none();
    bool is_stateful = false;
    const tare_status status = tare__calibrate_shapes(
        c->base.model, batch->inputs, batch->input_count, &memory, &result, &is_stateful, NULL);
    tare__value_release_tensors(&result);
    tare__arena_release(&memory);
    if (status == TARE_OUT_OF_MEMORY) return tare__out_of_memory(c->err);
    if (!is_stateful) return TARE_OK;
    return tare__hint(
        c->err,
        tare__fail(c->err, TARE_INVALID_ARGUMENT, "bias correction: the model is in training mode"),
        "tare_model_set_training(model, false)");
}

// As in calibration. The reference model has no observers that a trial run would change.
static tare_status choose_cut(corrector *c, const tare_batch *batch) {
    const data_cut how = tare__data_cut(c->data);
    bool is_proved = false;
    TARE_TRY(refuse_training(c, batch));
    if (how.as_is || how.fixed_batch == 1) return TARE_OK;
    TARE_TRY(tare__samples_by_shape(c->base.model, batch, &c->is_sliced, c->err));
    if (!c->is_sliced || batch->size < 2) return TARE_OK;
    TARE_TRY(tare__samples_by_rule(c->base.model, batch, &is_proved, c->err));
    return is_proved ? TARE_OK
                     : tare__samples_by_value(c->edit.model, batch, &c->is_sliced, c->err);
}

// The samples that may run as one batch: all if the model supports only that size.
static int64_t most_of(const corrector *c, const tare_batch *batch, int64_t limit) {
    const data_cut how = tare__data_cut(c->data);
    const int64_t left = limit - c->sample_count;
    return how.as_is || how.fixed_batch > 0 || batch->size < left ? batch->size : left;
}

static tare_status add_batch(corrector *c, const tare_batch *batch, int64_t limit) {
    TARE_TRY(
        tare__calibrate_check_inputs(c->base.model, batch->inputs, batch->input_count, c->err));
    c->input_count = batch->input_count;
    if (c->item_count == 0) TARE_TRY(choose_cut(c, batch));
    if (!c->is_sliced) return add_item(c, batch, 0, most_of(c, batch, limit));
    for (int64_t i = 0; i < batch->size && c->sample_count < limit; i++)
        TARE_TRY(add_item(c, batch, i, 1));
    return TARE_OK;
}

static tare_status read_samples(corrector *c) {
    const int64_t limit =
        c->options.sample_limit > 0 ? c->options.sample_limit : (int64_t)DEFAULT_SAMPLES;
    for (bool done = false; !done && c->sample_count < limit;) {
        tare_batch batch = {0};
        TARE_TRY(tare_data_next(c->data, &batch, &done, c->err));
        if (!done) TARE_TRY(add_batch(c, &batch, limit));
    }
    if (c->sample_count > 0) return TARE_OK;
    return tare__fail(c->err, TARE_INVALID_ARGUMENT, "there are no samples to correct biases with");
}

// --- sums ---

// Lane l sums elements l, l + 8, ..; then the lanes are added in order.
static double sum_line(const float *x, int64_t count) {
    double lanes[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int l = 0; l < LANES; l++) lanes[l] += (double)x[i + l];
    for (int l = 0; i + l < count; l++) lanes[l] += (double)x[i + l];
    for (int l = 0; l < LANES; l++) sum += lanes[l];
    return sum;
}

static int channel_axis(const target *t, const tare_tensor *y) {
    const int weight_ndim = t->prepared.tensor->ndim;
    if (weight_ndim == 2) return y->ndim - 1; // a linear layer
    return y->ndim == weight_ndim ? 1 : 0;    // with a batch dimension, or without
}

static void add_output(const tare_tensor *y, int axis, double sign, const layer_sums *to) {
    const int64_t inner = tare__inner_count(y, axis), channels = to->channels;
    const float *x = tare__f32(y);
    for (int64_t i = 0; i < y->count / inner; i++)
        to->sum[i % channels] += sign * sum_line(x + i * inner, inner);
}

// Adds the output of the layer in front of which `run` is.
static tare_status add_layer(const corrector *c, interpretation *run, size_t index, double sign,
                             item *x, const worker *w) {
    const target *t = &c->targets[index];
    layer_sums *to = &x->by_layer[index];
    value made = tare__none();
    TARE_TRY(tare__interpretation_look(run, w->kernels, &made, w->failure.err));
    const tare_tensor *y = made.kind == VALUE_TENSOR ? made.as.tensor : NULL;
    tare_status status = TARE_OK;
    const int axis = y != NULL && y->ndim > 0 ? channel_axis(t, y) : -1;
    if (axis < 0 || y->dtype != TARE_FLOAT32 || y->count == 0 ||
        (to->sum != NULL &&
         (to->channels != y->shape[axis] || to->count * to->channels != y->count)))
        status =
            tare__fail(w->failure.err, TARE_INVALID_ARGUMENT,
                       "node '%s': the output is not what a layer gives", t->prepared.node->name);
    if (status == TARE_OK && to->sum == NULL) {
        *to = (layer_sums){.channels = y->shape[axis], .count = y->count / y->shape[axis]};
        to->sum = tare__alloc_zeroed((size_t)to->channels, sizeof *to->sum);
        if (to->sum == NULL) status = tare__out_of_memory(w->failure.err);
    }
    if (status == TARE_OK) add_output(y, axis, sign, to);
    tare__value_release_tensors(&made);
    return status;
}

// --- runs ---

static tare_status pass_observers(void *user, const node *n, op_call *call, bool *handled) {
    (void)user;
    (void)n;
    *handled = call->module != NULL && call->module->class->role == ROLE_OBSERVER;
    return TARE_OK;
}

static tare_status open_run(const corrector *c, const tare_model *model, item *x, tare_error *err) {
    const interpreter it = {.root = model->root,
                            .thread_count = 1,
                            .execute = pass_observers,
                            .memory_limit = model->memory_limit};
    return tare__interpretation_create(&it, x->values, c->input_count, &x->memory, &x->run, err);
}

static void close_run(item *x) {
    tare__interpretation_destroy(x->run);
    tare__arena_release(&x->memory);
    x->run = NULL;
    x->memory = (arena){0};
}

static tare_status run_float(const corrector *c, item *x, const worker *w) {
    TARE_TRY(open_run(c, c->base.model, x, w->failure.err));
    for (size_t i = 0; i < c->target_count; i++) {
        TARE_TRY(tare__interpretation_advance(x->run, c->targets[i].prepared.node, w->kernels,
                                              w->failure.err));
        TARE_TRY(add_layer(c, x->run, i, 1, x, w));
    }
    return TARE_OK;
}

static tare_status run_quantized(const corrector *c, item *x, const worker *w) {
    if (x->run == NULL) TARE_TRY(open_run(c, c->edit.model, x, w->failure.err));
    TARE_TRY(tare__interpretation_advance(x->run, c->targets[c->at].reference.node, w->kernels,
                                          w->failure.err));
    return add_layer(c, x->run, c->at, -1, x, w);
}

static void float_items(void *user, size_t first, size_t end, size_t index) {
    const corrector *c = user;
    worker *w = &c->workers[index];
    for (size_t k = first; k < end && w->failure.status == TARE_OK; k++) {
        const size_t i = c->part_first + k;
        w->failure.item = i;
        w->failure.status = run_float(c, &c->items[i], w);
        close_run(&c->items[i]);
    }
}

static void quantized_items(void *user, size_t first, size_t end, size_t index) {
    const corrector *c = user;
    worker *w = &c->workers[index];
    for (size_t i = first; i < end && w->failure.status == TARE_OK; i++) {
        w->failure.item = i;
        w->failure.status = run_quantized(c, &c->items[i], w);
    }
}

static tare_status run_all(corrector *c, thread_range_task body) {
    const item_failure *first = NULL;
    tare__parallel(c->pool, c->part_count, 1, body, c);
    for (size_t i = 0; i < c->worker_count; i++)
        first = tare__earlier_failure(first, &c->workers[i].failure);
    return tare__tell_failure(first, c->err);
}

static tare_status tell_progress(const corrector *c, int64_t done) {
    const tare_bias_correction_options *o = &c->options;
    if (o->progress == NULL) return TARE_OK;
    return o->progress(o->progress_user, done, c->sample_count + (int64_t)c->target_count, c->err);
}

static double seconds_since_begin(const corrector *c) {
    return (double)(tare__job_now_ns() - c->begin_ns) * 1e-9;
}

static int64_t sample_count_of(const corrector *c, size_t items) {
    int64_t sum = 0;
    for (size_t i = 0; i < items; i++) sum += c->items[i].sample_count;
    return sum;
}

// --- correcting ---

static void release_item(const corrector *c, item *x) {
    close_run(x);
    for (size_t i = 0; x->inputs != NULL && i < c->input_count; i++)
        tare_tensor_release(x->inputs[i]);
    for (size_t i = 0; x->by_layer != NULL && i < c->target_count; i++)
        tare__free(x->by_layer[i].sum);
    tare__free(x->inputs);
    tare__free(x->values);
    tare__free(x->by_layer);
}

static void drop_last_item(corrector *c) {
    item *x = &c->items[--c->item_count];
    c->sample_count -= x->sample_count;
    release_item(c, x);
}

// Gives a layer of the reference model a bias of its own.
static tare_status give_own_bias(corrector *c, target *t) {
    const int64_t channels = c->items[0].by_layer[t - c->targets].channels;
    const tare_tensor *old = tare__layer_bias(c->base.model, &t->prepared);
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, 1, &channels, &t->bias, c->err));
    memset(t->bias->data, 0, (size_t)channels * sizeof(float));
    if (old != NULL && old->count != channels)
        return tare__fail(c->err, TARE_INVALID_ARGUMENT,
                          "node '%s': a bias of %lld values does not fit %lld channels",
                          t->prepared.node->name, (long long)old->count, (long long)channels);
    if (old != NULL) memcpy(t->bias->data, old->data, (size_t)channels * sizeof(float));
    return tare__layer_set_bias(&c->edit, &t->reference, t->bias, true);
}

// The mean over the samples of the difference in one channel.
static double mean_shift(const corrector *c, size_t index, int64_t channel) {
    double sum = 0, count = 0;
    for (size_t i = 0; i < c->item_count; i++) {
        sum += c->items[i].by_layer[index].sum[channel];
        count += (double)c->items[i].by_layer[index].count;
    }
    return sum / count;
}

static tare_status mend(const corrector *c, target *t) {
    const size_t index = (size_t)(t - c->targets);
    float *bias = tare__f32(t->bias);
    double squares = 0;
    for (int64_t i = 0; i < t->bias->count; i++) {
        const double shift = mean_shift(c, index, i);
        bias[i] = (float)((double)bias[i] + shift);
        if (!isfinite(bias[i]))
            return tare__fail(c->err, TARE_INVALID_ARGUMENT,
                              "node '%s': the mean output of channel %lld is not finite",
                              t->prepared.node->name, (long long)i);
        squares += shift * shift;
        if (fabs(shift) > t->largest_shift) t->largest_shift = fabs(shift);
    }
    t->rms_shift = sqrt(squares / (double)t->bias->count);
    return TARE_OK;
}

static tare_status install(corrector *c, target *t) {
    const node *n = t->prepared.node;
    const tare_corrected_bias told = {.struct_size = sizeof told,
                                      .node = n->name,
                                      .channel_count = t->bias->count,
                                      .largest_shift = t->largest_shift,
                                      .rms_shift = t->rms_shift,
                                      .is_new =
                                          tare__layer_bias(c->base.model, &t->prepared) == NULL};
    TARE_TRY(tare__layer_set_bias(&c->base, &t->prepared, t->bias, false));
    TARE_TRY(TARE_DECIDE(&c->base, n, "corrected", RULE,
                         "%s of %lld channels is shifted by at most %.3g, with a root mean square "
                         "of %.3g (%lld samples)",
                         told.is_new ? "a new bias" : "the bias", (long long)told.channel_count,
                         told.largest_shift, told.rms_shift, (long long)c->sample_count));
    return c->options.watcher != NULL ? c->options.watcher(c->options.watcher_user, &told, c->err)
                                      : TARE_OK;
}

// How many items fit into the time from floats_begin on, at that of the `done` first ones.
static size_t items_in_time(const corrector *c, size_t done) {
    if (!(c->options.seconds > 0)) return c->item_count;
    const double left = c->options.seconds - c->floats_begin;
    if (!(left > 0)) return 0;
    if (done == 0) return c->item_count; // it is not known yet what they take
    const double each = fmax((seconds_since_begin(c) - c->floats_begin) / (double)done, 1e-9);
    const double most = left / (each * BIAS_CORRECTION_RUNS);
    return most < (double)c->item_count ? (size_t)most : c->item_count;
}

// One item for each thread at a time, as long as the quantized runs of all will fit, too. Those
// that do not fit are dropped, also if they have run.
static tare_status run_floats(corrector *c) {
    size_t done = 0;
    c->floats_begin = seconds_since_begin(c);
    size_t most = items_in_time(c, 0);
    for (; done < most; most = items_in_time(c, done)) {
        c->part_first = done;
        c->part_count = c->options.seconds > 0 ? c->worker_count : c->item_count;
        if (c->part_count > c->item_count - done) c->part_count = c->item_count - done;
        TARE_TRY(run_all(c, float_items));
        done += c->part_count;
        TARE_TRY(tell_progress(c, sample_count_of(c, done)));
    }
    const size_t keep = most < done ? most : done;
    while (c->item_count > keep) drop_last_item(c);
    c->part_first = 0;
    c->part_count = keep;
    return TARE_OK;
}

static tare_status leave_late(corrector *c, size_t first) {
    for (size_t i = first; i < c->target_count; i++)
        TARE_TRY(skip(c, c->targets[i].prepared.node, TOO_LATE));
    c->done_count = first;
    return TARE_OK;
}

static tare_status correct(corrector *c) {
    TARE_TRY(run_floats(c));
    if (c->part_count == 0) return leave_late(c, 0);
    for (size_t i = 0; i < c->target_count; i++) TARE_TRY(give_own_bias(c, &c->targets[i]));
    for (c->at = 0; c->at < c->target_count; c->at++) {
        if (c->options.seconds > 0 && seconds_since_begin(c) > c->options.seconds) break;
        TARE_TRY(run_all(c, quantized_items));
        TARE_TRY(mend(c, &c->targets[c->at]));
        TARE_TRY(tell_progress(c, c->sample_count + (int64_t)c->at + 1));
    }
    TARE_TRY(leave_late(c, c->at));
    for (size_t i = 0; i < c->done_count; i++) TARE_TRY(install(c, &c->targets[i]));
    return TARE_OK;
}

// --- the pass ---

static tare_status check(const tare_model *prepared, const corrector *c) {
    const prepared_state *state = prepared->prepared;
    TARE_TRY(tare__calibrate_check_model(prepared, c->err));
    const tare_status checked = tare_calibration_check(prepared, NULL);
    if (checked == TARE_OUT_OF_MEMORY) return tare__out_of_memory(c->err);
    if (checked == TARE_UNSUPPORTED)
        return tare__fail(c->err, TARE_UNSUPPORTED,
                          "bias correction: the model has fake quantizers, with which its biases "
                          "were trained");
    for (size_t i = 0; state != NULL && i < state->node_count; i++)
        if (state->nodes[i].equalization != NULL)
            return tare__fail(c->err, TARE_UNSUPPORTED,
                              "bias correction: node '%s' is equalized, which changes the units of "
                              "outputs",
                              state->nodes[i].name);
    if (c->options.thread_count < 0 || c->options.thread_count > MOST_THREADS)
        return tare__fail(c->err, TARE_INVALID_ARGUMENT, "expected 0 to %d threads, found %d",
                          MOST_THREADS, c->options.thread_count);
    return c->options.sample_limit >= 0
               ? TARE_OK
               : tare__fail(c->err, TARE_INVALID_ARGUMENT, "expected samples, found %lld",
                            (long long)c->options.sample_limit);
}

static tare_status make_reference(corrector *c, tare_quantize_reference quantize, void *user) {
    tare_model *made = NULL;
    TARE_TRY(quantize(user, c->prepared, &made, c->err));
    c->edit = (pass){.name = c->base.name, .model = made, .err = c->err};
    if (made != NULL && made->stage == TARE_STAGE_REFERENCE) return TARE_OK;
    return tare__fail(c->err, TARE_INVALID_ARGUMENT,
                      "bias correction: expected the reference form of the quantized model");
}

static tare_status start_workers(corrector *c) {
    c->worker_count = c->options.thread_count > 1 ? (size_t)c->options.thread_count : 1;
    c->workers = tare__alloc_zeroed(c->worker_count, sizeof *c->workers);
    if (c->workers == NULL) return tare__out_of_memory(c->err);
    for (size_t i = 0; i < c->worker_count; i++) {
        c->workers[i].failure.err = tare_error_create();
        if (c->workers[i].failure.err == NULL) return tare__out_of_memory(c->err);
        TARE_TRY(tare__float_kernels_create(NULL, &c->workers[i].kernels, c->err));
    }
    return tare__thread_pool_create((int)c->worker_count, &c->pool, c->err);
}

static tare_status run(corrector *c, tare_quantize_reference quantize, void *user) {
    c->base.model->prepared = tare__prepared_state_retain(c->prepared->prepared);
    TARE_TRY(make_reference(c, quantize, user));
    TARE_TRY(find_targets(c));
    if (c->target_count == 0) return TARE_OK;
    TARE_TRY(read_samples(c));
    TARE_TRY(start_workers(c));
    return correct(c);
}

static void release(corrector *c) {
    tare__thread_pool_destroy(c->pool);
    for (size_t i = 0; c->workers != NULL && i < c->worker_count; i++) {
        tare__float_kernels_destroy(c->workers[i].kernels);
        tare_error_destroy(c->workers[i].failure.err);
    }
    for (size_t i = 0; i < c->item_count; i++) release_item(c, &c->items[i]);
    for (size_t i = 0; i < c->target_count; i++) tare_tensor_release(c->targets[i].bias);
    tare__free(c->workers);
    tare__free(c->items);
    tare__free(c->targets);
    tare_model_destroy(c->edit.model);
    tare__arena_release(&c->edit.scratch);
}

tare_status tare_correct_biases(const tare_model *prepared, tare_data *data,
                                tare_quantize_reference quantize, void *user,
                                const tare_bias_correction_options *options,
                                tare_bias_correction_result *result, tare_model **out,
                                tare_error *err) {
    corrector c = {.prepared = prepared, .data = data, .begin_ns = tare__job_now_ns(), .err = err};
    if (data == NULL || quantize == NULL || out == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "bias correction: expected data and a function that quantizes the model");
    if (options != NULL) tare__struct_copy(&c.options, sizeof c.options, options);
    TARE_TRY(check(prepared, &c));
    tare_status status = tare__pass_begin(&c.base, "correct biases", prepared, NULL, err);
    if (status == TARE_OK) status = run(&c, quantize, user);
    if (status == TARE_OK && result != NULL)
        *result = (tare_bias_correction_result){.struct_size = sizeof *result,
                                                .sample_count = c.sample_count,
                                                .layer_count = c.done_count,
                                                .skipped_count = c.skipped_count};
    release(&c);
    return tare__pass_end(&c.base, status, out);
}

bool tare__bias_correction_is_late(const tare_model *prepared, const tare_model *corrected) {
    const record *r = &corrected->decisions;
    for (size_t i = prepared->decisions.count; i < r->count; i++)
        if (strcmp(r->items[i].rule, RULE) == 0 && strcmp(r->items[i].decision, SKIPPED) == 0 &&
            strcmp(r->items[i].reason, TOO_LATE) == 0)
            return true;
    return false;
}

// --- FX mode ---

static tare_status convert_fx(void *user, const tare_model *prepared, tare_model **out,
                              tare_error *err) {
    return tare_convert_to_reference_fx(prepared, user, out, err);
}

tare_status tare_correct_biases_fx(const tare_model *prepared, tare_data *data,
                                   const tare_convert_options *convert,
                                   const tare_bias_correction_options *options,
                                   tare_bias_correction_result *result, tare_model **out,
                                   tare_error *err) {
    return tare_correct_biases(prepared, data, convert_fx, (void *)convert, // NOLINT: only read
                               options, result, out, err);
}
