// SPDX-License-Identifier: Apache-2.0
// Calibration states: taken from a model, joined, and given to a model.
#include "quant/calibration.h"

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "core/alloc.h"
#include "core/struct_size.h"
#include "ops/print.h"
#include "quant/coverage.h"
#include "quant/fake_quantize.h"

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

// --- which model ---

static uint32_t checksum(uint32_t sum, const void *bytes, size_t size) {
    for (const unsigned char *at = bytes; size > 0;) {
        const uInt part = size < 1u << 30 ? (uInt)size : 1u << 30;
        sum = (uint32_t)crc32(sum, at, part);
        at += part;
        size -= part;
    }
    return sum;
}

static tare_status add_weights(void *user, const char *path, module *m, tare_error *err) {
    (void)err;
    uint32_t *sum = user;
    if (m->class->role == ROLE_OBSERVER) return TARE_OK;
    *sum = checksum(*sum, path, strlen(path) + 1);
    for (size_t i = 0; i < m->tensor_count; i++) {
        const tare_tensor *t = m->tensors[i].tensor;
        *sum = checksum(*sum, m->tensors[i].name, strlen(m->tensors[i].name) + 1);
        if (t != NULL && t->data != NULL) *sum = checksum(*sum, t->data, tare__tensor_bytes(t));
    }
    return TARE_OK;
}

static tare_status identify(const tare_model *model, model_identity *out, tare_error *err) {
    text printed = {0};
    tare_status status = tare__print_graph(model->root->graph, &printed, err);
    if (status == TARE_OK) status = tare__text_status(&printed, err);
    out->graph = checksum(0, tare__text_chars(&printed), printed.length);
    out->weights = 0;
    tare__text_release(&printed);
    if (status != TARE_OK) return status;
    return tare__module_walk(model->root, add_weights, &out->weights, err);
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

// What calibration saw of an input; what an exporter said of it stays with the model.
static bool is_example(const node *placeholder) {
    return placeholder->meta_json != NULL &&
           tare__starts_with(placeholder->meta_json, "{\"example\": ");
}

static tare_status copy_examples(const tare_model *model, calibration *out, tare_error *err) {
    const size_t count = tare_model_input_count(model);
    out->examples = tare__alloc_zeroed(count + 1, sizeof *out->examples);
    if (out->examples == NULL) return tare__out_of_memory(err);
    for (const node *n = model->root->graph->first; n != NULL; n = n->next) {
        if (n->op != NODE_PLACEHOLDER) continue;
        char **example = &out->examples[out->example_count++];
        if (is_example(n) && (*example = tare__strdup(n->meta_json)) == NULL)
            return tare__out_of_memory(err);
    }
    return TARE_OK;
}

static tare_status take_from(const tare_model *model, calibration *out, tare_error *err) {
    TARE_TRY(identify(model, &out->identity, err));
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
               "%s: a state holds what observers have seen; in the form of training the whole "
               "model changes with the data",
               tare__observer_class_of(m)->name);
    tare__hint(err, TARE_UNSUPPORTED, "tare quantize --calibrate DATA keeps the model itself");
    return tare__at(err, TARE_UNSUPPORTED, "%s", path);
}

tare_status tare_calibration_check(const tare_model *prepared, tare_error *err) {
    TARE_TRY(check_prepared(prepared, "calibration", err));
    return tare__module_walk(prepared->root, refuse_fake_quantize, NULL, err);
}

tare_status tare_calibration_write(const tare_model *prepared, int64_t shard_index,
                                   int64_t shard_count, int64_t sample_count, const char *path,
                                   tare_error *err) {
    TARE_TRY(tare_calibration_check(prepared, err));
    if (shard_count < 1 || shard_count > MOST_SHARDS || shard_index < 0 ||
        shard_index >= shard_count || sample_count < 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "shard %" PRId64 " of %" PRId64 " (%d at most)", shard_index, shard_count,
                          MOST_SHARDS);
    calibration c = {.shard_count = shard_count, .sample_count = sample_count};
    tare_status status = tare__calibration_add_shard(&c, shard_index, err);
    if (status == TARE_OK) status = take_from(prepared, &c, err);
    if (status == TARE_OK) status = tare__calibration_save(&c, path, err);
    tare__calibration_release(&c);
    return status;
}

static tare_status refuse_unmergeable(void *user, const char *path, module *m, tare_error *err) {
    (void)user;
    if (m->class->role != ROLE_OBSERVER || tare__observer_is_mergeable(m)) return TARE_OK;
    tare__fail(err, TARE_UNSUPPORTED,
               "%s: its statistics depend on the order of the batches, so that shards of the data "
               "cannot be merged exactly",
               tare__observer_class_of(m)->name);
    tare__hint(err, TARE_UNSUPPORTED,
               "calibrate in one pass, or use MinMaxObserver and PerChannelMinMaxObserver");
    return tare__at(err, TARE_UNSUPPORTED, "%s", path);
}

tare_status tare_calibration_check_mergeable(const tare_model *prepared, tare_error *err) {
    TARE_TRY(tare_calibration_check(prepared, err));
    return tare__module_walk(prepared->root, refuse_unmergeable, NULL, err);
}

// --- two of them ---

static tare_status check_same_model(const model_identity *a, const model_identity *b,
                                    tare_error *err) {
    if (a->graph != b->graph)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "the state belongs to another model");
    if (a->weights != b->weights)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "the state belongs to a model of the same graph with other weights");
    return TARE_OK;
}

// The names say the same as the graph, unless a file lies.
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

static tare_status check_shards(const calibration *a, const calibration *b, tare_error *err) {
    if (a->shard_count != b->shard_count)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "the data is in %" PRId64 " shards, in the first state in %" PRId64,
                          b->shard_count, a->shard_count);
    for (size_t i = 0; a->shard_count > 1 && i < b->done_count; i++)
        if (has_shard(a, b->shards[i]))
            return tare__fail(err, TARE_INVALID_ARGUMENT, "shard %" PRId64 " is in two states",
                              b->shards[i]);
    return TARE_OK;
}

// The inputs' shapes are those of the first batch, wherever that is.
static void keep_first(calibration *a, calibration *b) {
    if (b->shards[0] > a->shards[0]) return;
    char **examples = a->examples;
    a->examples = b->examples;
    b->examples = examples;
}

static tare_status join(calibration *a, calibration *b, tare_error *err) {
    TARE_TRY(check_same_model(&a->identity, &b->identity, err));
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

tare_status tare_calibration_merge(const tare_context *context, const char *const *paths,
                                   size_t count, const char *out_path, tare_calibration_info *out,
                                   tare_error *err) {
    const observer_classes *classes = &tare__context_or_builtin(context)->observers;
    calibration all = {0};
    if (count == 0) return tare__fail(err, TARE_INVALID_ARGUMENT, "there are no states to merge");
    TARE_TRY(tare__calibration_load(paths[0], classes, &all, err));
    tare_status status = TARE_OK;
    for (size_t i = 1; i < count && status == TARE_OK; i++)
        status = join_file(paths[i], classes, &all, err);
    if (status == TARE_OK) status = tare__calibration_save(&all, out_path, err);
    if (status == TARE_OK) tell(&all, out);
    tare__calibration_release(&all);
    return status;
}

// --- into a model ---

// From here on nothing may fail half way: the texts are copied before the first change.
static tare_status give_examples(graph *g, const calibration *c, char **copies, tare_error *err) {
    for (size_t i = 0; i < c->example_count; i++)
        if (c->examples[i] != NULL &&
            (copies[i] = tare__arena_strdup(&g->memory, c->examples[i])) == NULL)
            return tare__out_of_memory(err);
    size_t i = 0;
    for (node *n = g->first; n != NULL; n = n->next) {
        if (n->op != NODE_PLACEHOLDER) continue;
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
    for (size_t i = 0; i < read->count; i++)
        tare__observer_swap(now->items[i].observer, read->items[i].observer);
    for (size_t i = 0; i < read->macs_count; i++)
        tare__coverage_set_macs(model, read->macs[i].name, read->macs[i].macs);
    return TARE_OK;
}

static tare_status give_if_same(tare_model *model, calibration *read, tare_error *err) {
    calibration now = {0};
    tare_status status = take_from(model, &now, err);
    if (status == TARE_OK) status = check_same_model(&now.identity, &read->identity, err);
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
    const tare_status status = tare__at(err, give_if_same(prepared, &read, err), "%s", path);
    if (status == TARE_OK) tell(&read, out);
    tare__calibration_release(&read);
    return status;
}

// --- over a data set ---

static tare_status report(const tare_calibrate_options *options, int64_t done, int64_t total,
                          tare_error *err) {
    if (options->progress == NULL) return TARE_OK;
    return options->progress(options->progress_user, done, total, err);
}

tare_status tare_calibrate_data(tare_model *prepared, tare_data *data,
                                const tare_calibrate_options *options, int64_t *sample_count,
                                tare_error *err) {
    tare_calibrate_options known = {0};
    int64_t count = 0;
    if (options != NULL) tare__struct_copy(&known, sizeof known, options);
    for (;;) {
        tare_batch batch = {0};
        bool done = false;
        TARE_TRY(tare_data_next(data, &batch, &done, err));
        if (done) break;
        TARE_TRY(tare_calibrate(prepared, batch.inputs, batch.input_count, err));
        count += batch.size;
        TARE_TRY(report(&known, count, tare_data_sample_count(data), err));
    }
    if (count == 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "there are no samples to calibrate with");
    if (sample_count != NULL) *sample_count = count;
    return TARE_OK;
}
