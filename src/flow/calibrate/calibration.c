// SPDX-License-Identifier: Apache-2.0
// Calibration states: read from a model, merged, and applied to a model.
#include "flow/calibrate/calibration.h"

#include <inttypes.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "flow/calibrate/observer_list.h"
#include "model/coverage.h"
#include "observe/fake_quantize.h"

// --- building ---

void tare__calibration_release(calibration *c) {
    for (size_t i = 0; i < c->count; i++) {
        tare__free(c->items[i].path);
        tare_observer_spec_release(c->items[i].spec);
        tare__module_release(c->items[i].observer);
    }
    for (size_t i = 0; i < c->macs_count; i++) tare__free(c->macs[i].name);
    for (size_t i = 0; i < c->example_count; i++) tare__free(c->examples[i]);
    tare__free(c->items);
    tare__free(c->macs);
    tare__free(c->shards);
    tare__free(c->examples);
    tare__free(c->data);
    tare__identity_release(&c->identity);
    *c = (calibration){0};
}

tare_status tare__calibration_add(calibration *c, const char *path, tare_observer_spec *spec,
                                  module *observer, tare_error *err) {
    char *copy = tare__strdup(path);
    if (copy == NULL || !tare__grow((void **)&c->items, &c->capacity, c->count, sizeof *c->items)) {
        tare__free(copy);
        return tare__out_of_memory(err);
    }
    c->items[c->count++] = (watched){copy, tare_observer_spec_retain(spec), observer};
    return TARE_OK;
}

tare_status tare__calibration_add_macs(calibration *c, const char *name, int64_t macs,
                                       tare_error *err) {
    char *copy = tare__strdup(name);
    if (copy == NULL ||
        !tare__grow((void **)&c->macs, &c->macs_capacity, c->macs_count, sizeof *c->macs)) {
        tare__free(copy);
        return tare__out_of_memory(err);
    }
    c->macs[c->macs_count++] = (counted_macs){copy, macs};
    return TARE_OK;
}

tare_status tare__calibration_add_shard(calibration *c, int64_t shard, tare_error *err) {
    size_t at = c->done_count;
    if (!tare__grow((void **)&c->shards, &c->shard_capacity, c->done_count, sizeof *c->shards))
        return tare__out_of_memory(err);
    for (; at > 0 && c->shards[at - 1] > shard; at--) c->shards[at] = c->shards[at - 1];
    c->shards[at] = shard;
    c->done_count++;
    return TARE_OK;
}

static bool has_shard(const calibration *c, int64_t shard) {
    for (size_t i = 0; i < c->done_count; i++)
        if (c->shards[i] == shard) return true;
    return false;
}

// --- from a model ---

static tare_status add_watched(void *user, const char *path, module *m, tare_error *err) {
    tare_observer_spec *spec = NULL;
    if (m->class->role != ROLE_OBSERVER) return TARE_OK;
    TARE_TRY(tare__observer_spec_of(m, &spec, err));
    tare_status status = tare__observer_spec_status(spec, err);
    if (status == TARE_OK) {
        status = tare__calibration_add(user, path, spec, tare__module_retain(m), err);
        if (status != TARE_OK) tare__module_release(m);
    }
    tare_observer_spec_release(spec);
    return status;
}

// A shape recorded by calibration has no batch size; a shape stated by an exporter belongs to the
// model.
static bool is_example(const node *placeholder) {
    return placeholder->meta_json != NULL &&
           tare__starts_with(placeholder->meta_json, "{\"example\": {\"shape\": [null");
}

static tare_status copy_examples(const tare_model *model, calibration *out, tare_error *err) {
    const size_t count = tare_model_input_count(model);
    out->examples = tare__alloc_zeroed(count + 1, sizeof *out->examples);
    if (out->examples == NULL) return tare__out_of_memory(err);
    for (const node *n = model->root->graph->first; n != NULL; n = n->next) {
        if (!tare__node_is_input(n)) continue;
        char **example = &out->examples[out->example_count++];
        if (is_example(n) && (*example = tare__strdup(n->meta_json)) == NULL)
            return tare__out_of_memory(err);
    }
    return TARE_OK;
}

static tare_status take_from(const tare_model *model, calibration *out, tare_error *err) {
    TARE_TRY(tare__identity_of(model, &out->identity, err));
    TARE_TRY(tare__module_walk(model->root, add_watched, out, err));
    TARE_TRY(copy_examples(model, out, err));
    for (size_t i = 0; i < model->op_count; i++)
        if (model->ops[i].macs > 0)
            TARE_TRY(tare__calibration_add_macs(out, model->ops[i].name, model->ops[i].macs, err));
    return TARE_OK;
}

static tare_status check_prepared(const tare_model *model, const char *what, tare_error *err) {
    if (model != NULL && model->stage == TARE_STAGE_PREPARED) return TARE_OK;
    tare__fail(err, TARE_INVALID_ARGUMENT, "%s: expected a prepared model", what);
    return tare__hint(err, TARE_INVALID_ARGUMENT, "tare quantize --stop prepare makes one");
}

static tare_status refuse_fake_quantize(void *user, const char *path, module *m, tare_error *err) {
    (void)user;
    if (m->class->role != ROLE_OBSERVER || tare__fake_quantize_kind_of(m) == NULL) return TARE_OK;
    tare__fail(err, TARE_UNSUPPORTED,
               "%s: a state holds the statistics of observers, but data changes more than these in "
               "a model prepared for training",
               tare__observer_class_of(m)->name);
    tare__hint(err, TARE_UNSUPPORTED, "tare quantize --calibrate DATA keeps the model itself");
    return tare__at(err, TARE_UNSUPPORTED, "%s", path);
}

tare_status tare_calibration_check(const tare_model *prepared, tare_error *err) {
    TARE_TRY(check_prepared(prepared, "calibration", err));
    return tare__module_walk(prepared->root, refuse_fake_quantize, NULL, err);
}

// Records how the data is divided, unless it is undivided.
static tare_status keep_cut(calibration *c, const tare_data *data, int64_t batch_count,
                            tare_error *err) {
    const data_cut cut = data != NULL ? tare__data_cut(data) : (data_cut){.shard_count = 1};
    if (cut.shard_count > MOST_SHARDS)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "%" PRId64 " shards (%d at most)",
                          cut.shard_count, MOST_SHARDS);
    c->shard_count = cut.shard_count;
    TARE_TRY(tare__calibration_add_shard(c, cut.shard_index, err));
    c->has_cut = cut.shard_count > 1 || batch_count > 0;
    if (!c->has_cut) return TARE_OK;
    c->batch_size = cut.batch_size;
    c->sample_limit = cut.sample_limit;
    c->batch_count = batch_count;
    if (batch_count == 0) return TARE_OK;
    c->data = tare__strdup(cut.spec);
    return c->data != NULL ? TARE_OK : tare__out_of_memory(err);
}

tare_status tare__calibration_write(const tare_model *prepared, const tare_data *data,
                                    int64_t batch_count, int64_t sample_count, const char *path,
                                    tare_error *err) {
    calibration c = {.sample_count = sample_count};
    tare_status status = keep_cut(&c, data, batch_count, err);
    if (status == TARE_OK) status = take_from(prepared, &c, err);
    if (status == TARE_OK) status = tare__calibration_save(&c, path, err);
    tare__calibration_release(&c);
    return status;
}

tare_status tare_calibration_write(const tare_model *prepared, const tare_data *data,
                                   int64_t sample_count, const char *path, tare_error *err) {
    TARE_TRY(tare_calibration_check(prepared, err));
    if (sample_count < 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "%" PRId64 " samples", sample_count);
    return tare__calibration_write(prepared, data, 0, sample_count, path, err);
}

static tare_status refuse_unmergeable(void *user, const char *path, module *m, tare_error *err) {
    (void)user;
    if (m->class->role != ROLE_OBSERVER || tare__observer_is_mergeable(m)) return TARE_OK;
    tare__fail(err, TARE_UNSUPPORTED,
               "%s: its statistics depend on the order of the batches, so that shards of the data "
               "cannot be merged exactly",
               tare__observer_class_of(m)->name);
    tare__hint(err, TARE_UNSUPPORTED,
               "calibrate in one pass, or use observers that merge: MinMaxObserver, "
               "PerChannelMinMaxObserver, tare.MergeableHistogramObserver");
    return tare__at(err, TARE_UNSUPPORTED, "%s", path);
}

tare_status tare_calibration_check_mergeable(const tare_model *prepared, tare_error *err) {
    TARE_TRY(tare_calibration_check(prepared, err));
    return tare__module_walk(prepared->root, refuse_unmergeable, NULL, err);
}

// --- two of them ---

// The names agree if the graphs do, unless a file is manipulated.
static tare_status check_same_observers(const calibration *a, const calibration *b,
                                        tare_error *err) {
    if (a->count != b->count || a->example_count != b->example_count)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "the state has %zu observers, not %zu",
                          b->count, a->count);
    for (size_t i = 0; i < a->count; i++) {
        const watched *x = &a->items[i], *y = &b->items[i];
        if (strcmp(x->path, y->path) != 0 || !tare__observer_spec_equal(x->spec, y->spec))
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "the state belongs to a model with other observers, see '%s'",
                              x->path);
    }
    return TARE_OK;
}

static tare_status refuse_unfinished(const calibration *c, tare_error *err) {
    if (c->data == NULL) return TARE_OK;
    tare__fail(err, TARE_INVALID_ARGUMENT,
               "the state is not finished: it has seen %" PRId64 " samples of '%s'",
               c->sample_count, c->data);
    return tare__hint(err, TARE_INVALID_ARGUMENT, "continue with tare calibrate --resume");
}

static tare_status check_shards(const calibration *a, const calibration *b, tare_error *err) {
    TARE_TRY(refuse_unfinished(b, err));
    if (a->shard_count != b->shard_count)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "the data is in %" PRId64 " shards, in the first state in %" PRId64,
                          b->shard_count, a->shard_count);
    if (a->batch_size != b->batch_size || a->sample_limit != b->sample_limit)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "the data was cut into batches of %" PRId64 " up to a limit of %" PRId64
                          ", in the first state of %" PRId64 " up to %" PRId64 " (0: none)",
                          b->batch_size, b->sample_limit, a->batch_size, a->sample_limit);
    for (size_t i = 0; a->shard_count > 1 && i < b->done_count; i++)
        if (has_shard(a, b->shards[i]))
            return tare__fail(err, TARE_INVALID_ARGUMENT, "shard %" PRId64 " is in two states",
                              b->shards[i]);
    return TARE_OK;
}

// Keeps the inputs' shapes of the first batch, whichever state has it.
static void keep_first(calibration *a, calibration *b) {
    if (b->shards[0] > a->shards[0]) return;
    char **examples = a->examples;
    a->examples = b->examples;
    b->examples = examples;
}

static tare_status join(calibration *a, calibration *b, tare_error *err) {
    TARE_TRY(tare__identity_check(&a->identity, &b->identity, err));
    TARE_TRY(check_same_observers(a, b, err));
    TARE_TRY(check_shards(a, b, err));
    for (size_t i = 0; i < a->count; i++)
        TARE_TRY(tare__at(err,
                          tare__observer_merge(a->items[i].observer, b->items[i].observer, err),
                          "%s", a->items[i].path));
    keep_first(a, b);
    for (size_t i = 0; i < b->done_count; i++)
        if (!has_shard(a, b->shards[i]))
            TARE_TRY(tare__calibration_add_shard(a, b->shards[i], err));
    if (b->sample_count > INT64_MAX / 4 - a->sample_count)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "there are too many samples to count");
    a->sample_count += b->sample_count;
    return TARE_OK;
}

static void tell(const calibration *c, tare_calibration_info *out) {
    if (out == NULL) return;
    *out = (tare_calibration_info){.struct_size = sizeof *out,
                                   .sample_count = c->sample_count,
                                   .shard_count = c->shard_count,
                                   .done_shard_count = (int64_t)c->done_count};
}

static tare_status join_file(const char *path, const observer_classes *classes, calibration *into,
                             tare_error *err) {
    calibration next = {0};
    TARE_TRY(tare__calibration_load(path, classes, &next, err));
    const tare_status status = tare__at(err, join(into, &next, err), "%s", path);
    tare__calibration_release(&next);
    return status;
}

// With all shards, the state equals one of undivided data: the division is removed.
static void close_cut(calibration *c) {
    if (c->done_count < (size_t)c->shard_count) return;
    c->shard_count = 1;
    c->shards[0] = 0;
    c->done_count = 1;
    c->has_cut = false;
    c->batch_size = c->sample_limit = 0;
}

tare_status tare_calibration_merge(const tare_context *context, const char *const *paths,
                                   size_t count, const char *out_path, tare_calibration_info *out,
                                   tare_error *err) {
    const observer_classes *classes = &tare__context_or_builtin(context)->observers;
    calibration all = {0};
    if (count == 0) return tare__fail(err, TARE_INVALID_ARGUMENT, "there are no states to merge");
    TARE_TRY(tare__calibration_load(paths[0], classes, &all, err));
    tare_status status = tare__at(err, refuse_unfinished(&all, err), "%s", paths[0]);
    for (size_t i = 1; i < count && status == TARE_OK; i++)
        status = join_file(paths[i], classes, &all, err);
    tare_calibration_info info = {0};
    tell(&all, &info);
    if (status == TARE_OK) close_cut(&all);
    if (status == TARE_OK) status = tare__calibration_save(&all, out_path, err);
    if (status == TARE_OK && out != NULL) *out = info;
    tare__calibration_release(&all);
    return status;
}

// --- into a model ---

// Must not fail half way: the texts are copied before the first change.
static tare_status give_examples(graph *g, const calibration *c, char **copies, tare_error *err) {
    for (size_t i = 0; i < c->example_count; i++)
        if (c->examples[i] != NULL &&
            (copies[i] = tare__arena_strdup(&g->memory, c->examples[i])) == NULL)
            return tare__out_of_memory(err);
    size_t i = 0;
    for (node *n = g->first; n != NULL; n = n->next) {
        if (!tare__node_is_input(n)) continue;
        if (copies[i] != NULL && (n->meta_json == NULL || is_example(n))) n->meta_json = copies[i];
        i++;
    }
    return TARE_OK;
}

static tare_status give(tare_model *model, const calibration *now, calibration *read,
                        tare_error *err) {
    char **copies = tare__alloc_zeroed(read->example_count + 1, sizeof *copies);
    if (copies == NULL) return tare__out_of_memory(err);
    const tare_status status = give_examples(model->root->graph, read, copies, err);
    tare__free(copies);
    if (status != TARE_OK) return status;
    tare__observers_forget_data(model);
    model->seen.is_partial = true;
    for (size_t i = 0; i < read->count;
         i++) // an observer that observes nothing keeps prepare's parameters
        if (tare__observer_watches(now->items[i].observer))
            tare__observer_swap(now->items[i].observer, read->items[i].observer);
    for (size_t i = 0; i < read->macs_count; i++)
        tare__coverage_set_macs(model, read->macs[i].name, read->macs[i].macs);
    return TARE_OK;
}

static tare_status give_if_same(tare_model *model, calibration *read, tare_error *err) {
    calibration now = {0};
    tare_status status = take_from(model, &now, err);
    if (status == TARE_OK) status = tare__identity_check(&now.identity, &read->identity, err);
    if (status == TARE_OK) status = check_same_observers(&now, read, err);
    if (status == TARE_OK) status = give(model, &now, read, err);
    tare__calibration_release(&now);
    return status;
}

tare_status tare_calibration_read(tare_model *prepared, const char *path,
                                  tare_calibration_info *out, tare_error *err) {
    calibration read = {0};
    TARE_TRY(tare_calibration_check(prepared, err));
    TARE_TRY(tare__calibration_load(path, &prepared->context->observers, &read, err));
    tare_status status = refuse_unfinished(&read, err);
    if (status == TARE_OK) status = give_if_same(prepared, &read, err);
    if (status == TARE_OK) tell(&read, out);
    tare__calibration_release(&read);
    return tare__at(err, status, "%s", path);
}

// A finished state does not record how the data was divided; the number of samples must be equal.
static tare_status check_same_work(const calibration *c, const tare_data *data, tare_error *err) {
    const data_cut cut = tare__data_cut(data);
    const int64_t all = tare_data_sample_count(data);
    const bool is_same_shard =
        c->done_count == 1 && c->shards[0] == cut.shard_index && c->shard_count == cut.shard_count;
    const bool is_same_cut =
        !c->has_cut || (c->batch_size == cut.batch_size && c->sample_limit == cut.sample_limit);
    const bool is_same_data =
        c->data != NULL ? strcmp(c->data, cut.spec) == 0 : all == 0 || c->sample_count == all;
    if (is_same_shard && is_same_cut && is_same_data) return TARE_OK;
    tare__fail(err, TARE_INVALID_ARGUMENT,
               "the state belongs to another job: %" PRId64 " samples of '%s', shard %" PRId64
               " of %" PRId64 ", batches of %" PRId64 ", limit %" PRId64,
               c->sample_count, c->data != NULL ? c->data : "all data", c->shards[0],
               c->shard_count, c->batch_size, c->sample_limit);
    return tare__hint(err, TARE_INVALID_ARGUMENT,
                      "resume with the same data, shard, batch and limit, or remove the file");
}

tare_status tare__calibration_resume(tare_model *prepared, const tare_data *data, const char *path,
                                     int64_t *batch_count, int64_t *sample_count, tare_error *err) {
    calibration read = {0};
    TARE_TRY(tare_calibration_check(prepared, err));
    TARE_TRY(tare__calibration_load(path, &prepared->context->observers, &read, err));
    tare_status status = check_same_work(&read, data, err);
    if (status == TARE_OK) status = give_if_same(prepared, &read, err);
    *batch_count = read.batch_count;
    *sample_count = read.sample_count;
    tare__calibration_release(&read);
    return tare__at(err, status, "%s", path);
}
