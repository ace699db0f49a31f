// SPDX-License-Identifier: Apache-2.0
// Calibrates over data with sessions. If the observers' statistics merge exactly and samples are
// independent, every sample runs by itself on one thread. The statistics then depend neither on
// batches nor on shards or threads, and threads divide the samples, each with its own observers.
// Otherwise batches run as they come.
#include "flow/calibrate/calibrate.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "core/system/clock.h"
#include "core/system/file.h"
#include "core/threads/item_failure.h"
#include "core/threads/threads.h"
#include "flow/calibrate/calibration.h"
#include "flow/calibrate/observer_list.h"
#include "flow/calibrate/range_histograms.h"
#include "ir/call_names.h"
#include "model/pass.h"
#include "ops/op.h"
#include "runtime/plan/samples.h"
#include "runtime/session/session.h"

typedef enum calibrate_mode {
    BY_SAMPLE,
    BY_BATCH,
    INTERPRETED, // models in training mode, and those with shapes that depend on data
} calibrate_mode;

// A thread of the calibration. The first one uses the prepared model, the others copies.
typedef struct worker {
    tare_model *model;
    tare_session *session;
    item_failure failure;
} worker;

typedef struct calibrator {
    tare_model *prepared;
    tare_data *data;
    tare_calibrate_options options;
    calibrate_mode mode;
    bool is_sliced, is_tried,
        is_proved; // batches are divided into samples; independence was tried, or proved
    size_t worker_count;
    worker *workers; // NULL: not started
    thread_pool *pool;
    size_t input_count;
    tare_tensor **items; // [item_count][input_count], references owned
    size_t item_count, item_capacity;
    int64_t done, batch_count; // samples and batches that were observed
    int64_t saved;             // samples in the unfinished state that was saved last
    tare_error *err;
} calibrator;

// --- observers of copies ---

// Merges the statistics of a copy's observers into the model's. Both trees list them in the same
// order.
static tare_status join_copy(const tare_model *into, tare_model *copy, tare_error *err) {
    observer_list to = {0}, from = {0};
    tare_status status = tare__observers_list(into, &to, err);
    if (status == TARE_OK) status = tare__observers_list(copy, &from, err);
    for (size_t i = 0; i < from.count && status == TARE_OK; i++)
        status = tare__observer_merge(to.items[i], from.items[i], err);
    tare__free(to.items);
    tare__free(from.items);
    return status == TARE_OK ? tare__observers_forget(copy, err) : status;
}

static tare_status join_copies(calibrator *c) {
    for (size_t i = 1; c->workers != NULL && i < c->worker_count; i++)
        if (c->workers[i].model != NULL)
            TARE_TRY(join_copy(c->prepared, c->workers[i].model, c->err));
    return TARE_OK;
}

static tare_status copy_model(const tare_model *prepared, tare_model **out, tare_error *err) {
    module *root = NULL;
    TARE_TRY(tare__module_clone(prepared->root, &root, err));
    tare_status status =
        tare__model_create(prepared->context, root, prepared->stage, prepared, out, err);
    if (status != TARE_OK) {
        tare__module_release(root);
        return status;
    }
    status = tare__observers_forget(*out, err);
    if (status == TARE_OK) return TARE_OK;
    tare_model_destroy(*out);
    *out = NULL;
    return status;
}

// --- which way ---

// Whether such inputs can be planned. The model keeps the results of shape inference.
static tare_status foresee(calibrator *c, const tare_batch *batch, bool *out, bool *is_stateful) {
    arena memory = {0};
    value result = tare__none();
    const tare_status status = tare__calibrate_shapes(
        c->prepared, batch->inputs, batch->input_count, &memory, &result, is_stateful, NULL);
    tare__value_release_tensors(&result);
    tare__arena_release(&memory);
    *out = status == TARE_OK;
    return status == TARE_OUT_OF_MEMORY ? tare__out_of_memory(c->err) : TARE_OK;
}

// Whether a check passes. Returns a failure only if memory ran out.
static tare_status passes(const calibrator *c, tare_status checked, bool *out) {
    *out = checked == TARE_OK;
    return checked == TARE_OUT_OF_MEMORY ? tare__out_of_memory(c->err) : TARE_OK;
}

static tare_status choose_mode(calibrator *c, const tare_batch *batch) {
    const data_cut how = tare__data_cut(c->data);
    const bool is_one = how.as_is || how.fixed_batch == 1; // a batch is one sample
    bool is_foreseen = false, is_stateful = false;
    c->mode = INTERPRETED;
    bool is_checked = false, is_mergeable = false;
    TARE_TRY(passes(c, tare_calibration_check(c->prepared, NULL), &is_checked));
    if (!is_checked) return TARE_OK;
    TARE_TRY(foresee(c, batch, &is_foreseen, &is_stateful));
    if (!is_foreseen) return TARE_OK; // the interpreter reports the error
    c->mode = BY_BATCH;
    TARE_TRY(passes(c, tare_calibration_check_mergeable(c->prepared, NULL), &is_mergeable));
    if (!is_mergeable || is_stateful) return TARE_OK;
    if (!is_one) TARE_TRY(tare__samples_by_shape(c->prepared, batch, &c->is_sliced, c->err));
    if (is_one || c->is_sliced) c->mode = BY_SAMPLE;
    return TARE_OK;
}

// Runs two samples together and apart, once, to see whether they are independent, unless rules
// prove it.
static tare_status try_slices(calibrator *c, const tare_batch *batch) {
    tare_model *copy = NULL;
    if (!c->is_sliced || c->is_tried || batch->size < 2) return TARE_OK;
    c->is_tried = true;
    TARE_TRY(tare__samples_by_rule(c->prepared, batch, &c->is_proved, c->err));
    if (c->is_proved) return TARE_OK;
    TARE_TRY(copy_model(c->prepared, &copy, c->err));
    const tare_status status = tare__samples_by_value(copy, batch, &c->is_sliced, c->err);
    tare_model_destroy(copy);
    return status;
}

// --- beginning ---

static tare_status start_worker(calibrator *c, size_t index) {
    worker *w = &c->workers[index];
    const tare_session_options options = {.thread_count =
                                              c->mode == BY_BATCH ? c->options.thread_count : 1};
    w->failure.err = tare_error_create();
    if (w->failure.err == NULL) return tare__out_of_memory(c->err);
    if (index > 0) TARE_TRY(copy_model(c->prepared, &w->model, c->err));
    return tare__session_create_feeding(index > 0 ? w->model : c->prepared, &options, &w->session,
                                        c->err);
}

static tare_status begin(calibrator *c, const tare_batch *batch) {
    c->input_count = batch->input_count;
    TARE_TRY(choose_mode(c, batch));
    TARE_TRY(tare__calibrate_keep_shapes(c->prepared, batch->inputs, c->input_count, c->err));
    c->worker_count =
        c->mode == BY_SAMPLE && c->options.thread_count > 1 ? (size_t)c->options.thread_count : 1;
    c->workers = tare__alloc_zeroed(c->worker_count, sizeof *c->workers);
    if (c->workers == NULL) return tare__out_of_memory(c->err);
    if (c->mode == INTERPRETED) return TARE_OK;
    for (size_t i = 0; i < c->worker_count; i++) TARE_TRY(start_worker(c, i));
    return tare__thread_pool_create((int)c->worker_count, &c->pool, c->err);
}

// The pages of mapped data are released, because they are not read again.
static void release_items(calibrator *c) {
    for (size_t i = 0; i < c->item_count * c->input_count; i++) {
        if (c->items[i] != NULL) tare__tensor_forget(c->items[i]);
        tare_tensor_release(c->items[i]);
    }
    c->item_count = 0;
}

static void end(calibrator *c) {
    tare__thread_pool_destroy(c->pool);
    for (size_t i = 0; c->workers != NULL && i < c->worker_count; i++) {
        tare_session_destroy(c->workers[i].session);
        tare_model_destroy(c->workers[i].model);
        tare_error_destroy(c->workers[i].failure.err);
    }
    release_items(c);
    tare__free(c->workers);
    tare__free(c->items);
}

// --- rounds ---

static tare_status add_item(calibrator *c, const tare_batch *batch, int64_t first, int64_t count) {
    if (!tare__grow((void **)&c->items, &c->item_capacity, c->item_count,
                    (c->input_count + 1) * sizeof(tare_tensor *)))
        return tare__out_of_memory(c->err);
    tare_tensor **item = c->items + c->item_count * c->input_count;
    for (size_t i = 0; i < c->input_count; i++) item[i] = NULL;
    c->item_count++;
    for (size_t i = 0; i < c->input_count; i++) {
        tare_tensor *t = (tare_tensor *)batch->inputs[i];
        if (count == batch->size)
            item[i] = tare_tensor_retain(t);
        else
            TARE_TRY(tare__tensor_rows(t, first, count, &item[i], c->err));
    }
    return TARE_OK;
}

// first: the index of the batch's first sample in the data.
static tare_status check_batch(const calibrator *c, const tare_batch *batch, int64_t first) {
    TARE_TRY(tare__calibrate_check_inputs(c->prepared, batch->inputs, batch->input_count, c->err));
    for (size_t i = 0; i < batch->input_count && !c->options.is_lenient; i++) {
        const tare_status status = tare__tensor_refuse_infinite(
            batch->inputs[i], "input", tare_model_input_name(c->prepared, i), c->err);
        if (status == TARE_OK) continue;
        tare__hint(c->err, status,
                   "observers would include it in the range; is_lenient accepts it");
        return tare__at(c->err, status, "the batch from sample %lld on", (long long)first);
    }
    return TARE_OK;
}

// Notes what the samples are like.
static tare_status see_batch(const calibrator *c, const tare_batch *batch) {
    size_t i = 0;
    for (const node *n = c->prepared->root->graph->first; n != NULL; n = n->next)
        if (tare__node_is_input(n) && i < batch->input_count)
            TARE_TRY(tare__seen_add(&c->prepared->seen, tare__input_name(n), batch->inputs[i++],
                                    batch->size, c->err));
    return TARE_OK;
}

static tare_status add_batch(calibrator *c, const tare_batch *batch, int64_t first) {
    TARE_TRY(check_batch(c, batch, first));
    TARE_TRY(see_batch(c, batch));
    if (c->workers == NULL) TARE_TRY(begin(c, batch));
    TARE_TRY(try_slices(c, batch));
    if (!c->is_sliced) return add_item(c, batch, 0, batch->size);
    for (int64_t i = 0; i < batch->size; i++) TARE_TRY(add_item(c, batch, i, 1));
    return TARE_OK;
}

static void feed_items(void *user, size_t first, size_t end, size_t index) {
    calibrator *c = user;
    worker *w = &c->workers[index];
    for (size_t i = first; i < end && w->failure.status == TARE_OK; i++) {
        const tare_tensor *const *inputs =
            (const tare_tensor *const *)(c->items + i * c->input_count);
        w->failure.item = i;
        w->failure.status = tare__session_feed(w->session, inputs, c->input_count, w->failure.err);
    }
}

static tare_status tell_failure(const calibrator *c) {
    const item_failure *first = NULL;
    for (size_t i = 0; i < c->worker_count; i++)
        first = tare__earlier_failure(first, &c->workers[i].failure);
    return tare__tell_failure(first, c->err);
}

static tare_status run_items(calibrator *c) {
    if (c->mode != INTERPRETED) {
        tare__parallel(c->pool, c->item_count, 1, feed_items, c);
        return tell_failure(c);
    }
    for (size_t i = 0; i < c->item_count; i++)
        TARE_TRY(tare__calibrate_batch(c->prepared,
                                       (const tare_tensor *const *)(c->items + i * c->input_count),
                                       c->input_count, c->err));
    return TARE_OK;
}

// --- checkpoints ---

// *is_finished: an earlier run has observed all data.
static tare_status resume(calibrator *c, bool *is_finished) {
    const char *path = c->options.resume_path;
    int64_t skipped = 0;
    *is_finished = false;
    if (path == NULL || !tare__file_exists(path)) return TARE_OK;
    TARE_TRY(
        tare__calibration_resume(c->prepared, c->data, path, &c->batch_count, &c->done, c->err));
    *is_finished = c->batch_count == 0;
    if (*is_finished) return TARE_OK;
    TARE_TRY(tare_data_skip(c->data, c->batch_count, &skipped, c->err));
    c->saved = c->done;
    if (skipped == c->done) return TARE_OK;
    return tare__fail(c->err, TARE_INVALID_ARGUMENT,
                      "%s: has seen %lld samples of the first %lld batches, which hold %lld now",
                      path, (long long)c->done, (long long)c->batch_count, (long long)skipped);
}

static tare_status save_if_due(calibrator *c) {
    const tare_calibrate_options *o = &c->options;
    const int64_t every = o->checkpoint_samples > 0 ? o->checkpoint_samples : 512;
    if (o->resume_path == NULL || c->done - c->saved < every) return TARE_OK;
    c->saved = c->done;
    TARE_TRY(join_copies(c));
    return tare__calibration_write(c->prepared, c->data, c->batch_count, c->done, o->resume_path,
                                   c->err);
}

static tare_status run_round(calibrator *c, int64_t batches, int64_t samples) {
    const tare_calibrate_options *o = &c->options;
    TARE_TRY(run_items(c));
    release_items(c);
    c->done += samples;
    c->batch_count += batches;
    TARE_TRY(save_if_due(c));
    if (o->progress == NULL) return TARE_OK;
    return o->progress(o->progress_user, c->done, tare_data_sample_count(c->data), c->err);
}

// A round has work for every thread if there is enough data.
static tare_status run_rounds(calibrator *c) {
    int64_t samples = 0, batches = 0;
    for (bool done = false; !done;) {
        tare_batch batch = {0};
        TARE_TRY(tare_data_next(c->data, &batch, &done, c->err));
        if (!done) {
            TARE_TRY(add_batch(c, &batch, c->done + samples));
            samples += batch.size;
            batches++;
        }
        if (c->item_count == 0 || (!done && c->item_count < c->worker_count)) continue;
        TARE_TRY(run_round(c, batches, samples));
        samples = batches = 0;
    }
    return join_copies(c);
}

// Does an observer take a range from the input, or from what passes its values on?
static bool is_observed(const tare_model *model, const char *input) {
    for (const node *n = model->root->graph->first; n != NULL; n = n->next) {
        if (!tare__is_observer_node(model, n) ||
            !tare__observer_watches(tare__called_module(model, n)))
            continue;
        const node *from = tare__node_arg(n, 0);
        while (from != NULL &&
               (tare__is_observer_node(model, from) ||
                (tare__node_is_call(from) && tare__passes_on(tare__called_row(model, from)))))
            from = tare__node_arg(from, 0);
        if (from != NULL && tare__node_is_input(from) && strcmp(tare__input_name(from), input) == 0)
            return true;
    }
    return false;
}

// Data that calibrate without an error, and that no range should be taken from.
static tare_status warn_of_data(const calibrator *c) {
    const seen_inputs *seen = &c->prepared->seen;
    record *r = &c->prepared->decisions;
    tare__record_remove(r, TARE_CALIBRATION_DATA_RULE);
    if (seen->is_partial) return TARE_OK;
    tare_decision d = {
        .pass = "calibrate", .decision = "warning", .rule = TARE_CALIBRATION_DATA_RULE, .node = ""};
    if (tare__seen_one_sample(seen))
        return tare__record_add(r, &d, c->err, "the %zu samples that calibrate are equal",
                                seen->items[0].count);
    for (size_t i = 0; i < seen->count; i++) {
        d.node = seen->items[i].name;
        if (tare__seen_one_value(&seen->items[i]) && is_observed(c->prepared, d.node))
            TARE_TRY(tare__record_add(r, &d, c->err, "it is %.3g in all samples that calibrate",
                                      seen->items[i].low));
    }
    return TARE_OK;
}

static tare_status run(calibrator *c) {
    bool is_finished = false;
    // What was seen before is the first shard's, else it would count once for each.
    if (tare__data_cut(c->data).shard_index > 0)
        TARE_TRY(tare__observers_forget(c->prepared, c->err));
    if (c->options.keeps_histograms) TARE_TRY(tare__histograms_keep(c->prepared, c->err));
    TARE_TRY(resume(c, &is_finished));
    if (!is_finished) TARE_TRY(run_rounds(c));
    TARE_TRY(warn_of_data(c));
    // With little data some shards are empty; the others have what there is.
    if (c->done > 0 || tare__data_cut(c->data).shard_count > 1) return TARE_OK;
    return tare__fail(c->err, TARE_INVALID_ARGUMENT, "there are no samples to calibrate with");
}

static tare_status check_options(const tare_calibrate_options *o, tare_error *err) {
    if (o->thread_count < 0 || o->thread_count > 1024)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected 0 to 1024 threads, found %d",
                          o->thread_count);
    if (o->checkpoint_samples < 0 || (o->checkpoint_samples > 0 && o->resume_path == NULL))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "a checkpoint every %lld samples needs a path, and samples",
                          (long long)o->checkpoint_samples);
    return TARE_OK;
}

tare_status tare_calibration_clear(tare_model *prepared, tare_error *err) {
    TARE_TRY(tare__calibrate_check_model(prepared, err));
    return tare__observers_forget(prepared, err);
}

tare_status tare_calibrate_data(tare_model *prepared, tare_data *data,
                                const tare_calibrate_options *options, int64_t *sample_count,
                                tare_error *err) {
    calibrator c = {.prepared = prepared, .data = data, .err = err};
    if (options != NULL) tare__struct_copy(&c.options, sizeof c.options, options);
    TARE_TRY(tare__calibrate_check_model(prepared, err));
    TARE_TRY(check_options(&c.options, err));
    const uint64_t begin = tare__job_now_ns();
    const tare_status status = run(&c);
    const double seconds = (double)(tare__job_now_ns() - begin) * 1e-9;
    // What a resumed job had done before costs nothing now.
    if (status == TARE_OK && seconds > prepared->seen.seconds) prepared->seen.seconds = seconds;
    end(&c);
    if (status == TARE_OK && sample_count != NULL) *sample_count = c.done;
    return status;
}
