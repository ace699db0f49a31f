// SPDX-License-Identifier: Apache-2.0
// The ladder: steps are tried one after the other on the best model so far, and kept if they gain.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash/hash.h"
#include "core/memory/alloc.h"
#include "core/memory/arena.h"
#include "core/struct_size.h"
#include "core/system/clock.h"
#include "debug/analyze/probe.h"
#include "debug/improve/trials.h"
#include "model/islands.h"
#include "model/pass.h"
#include "tare/analyze.h"
#include "tare/bias_correction.h"
#include "tare/improve.h"
#include "tare/session.h"

#define LEAST_GAIN_DB   0.2  // smaller gains are chance
#define SOUND_DB        20.0 // below, accuracy goes before speed
#define DEFAULT_SECONDS 300.0
#define DEFAULT_SLOWER  0.15
enum { MOST_LAYERS = 64, TIMED_RUNS = 5, KEY_SIZE = 4096 };

// What a quantized model is worth.
typedef struct worth {
    double db, ms;
    int64_t bytes;
} worth;

// A way to quantize: a prepared model, and what of it stays float.
typedef struct recipe {
    tare_model *prepared;
    tare_float_choice *choices; // names and reasons in the ladder's memory
    size_t choice_count;
} recipe;

typedef struct ladder {
    const tare_model *prepared;
    tare_data *calibration, *check;
    tare_quantize_prepared quantize;
    void *user;
    tare_improve_options options;
    recipe best;
    worth best_worth, first_worth;
    tare_model *best_model; // NULL: known from the book only
    trial_book book;
    probe_outputs *floats; // of each batch of `check`
    size_t float_count, float_capacity;
    tare_improve_result result;
    uint64_t begin_ns;
    arena memory;
    tare_error *err;
} ladder;

static double seconds_since(uint64_t begin_ns) {
    return (double)(tare__now_ns() - begin_ns) * 1e-9;
}

static bool is_over(ladder *l) {
    const bool has_target = l->options.target_db > 0 && l->best_worth.db >= l->options.target_db;
    if (has_target) return true;
    if (seconds_since(l->begin_ns) < l->options.seconds) return false;
    l->result.is_out_of_time = true;
    return true;
}

// --- what a model is worth ---

static int by_time(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static tare_status time_runs(const ladder *l, tare_session *session, const tare_batch *batch,
                             double *ms) {
    double times[TIMED_RUNS];
    for (int i = -1; i < TIMED_RUNS; i++) { // the first run plans
        tare_tensor *out[64];
        size_t count = 0;
        const uint64_t begin = tare__now_ns();
        TARE_TRY(
            tare_session_run(session, batch->inputs, batch->input_count, out, 64, &count, l->err));
        if (i >= 0) times[i] = seconds_since(begin) * 1e3;
        for (size_t k = 0; k < count; k++) tare_tensor_release(out[k]);
    }
    qsort(times, TIMED_RUNS, sizeof *times, by_time);
    *ms = times[TIMED_RUNS / 2];
    return TARE_OK;
}

typedef struct byte_count {
    int64_t bytes;
} byte_count;

static tare_status count_module(void *user, const char *path, module *m, tare_error *err) {
    byte_count *c = user;
    (void)path, (void)err;
    for (size_t i = 0; i < m->tensor_count; i++)
        if (m->tensors[i].tensor != NULL)
            c->bytes += (int64_t)tare__tensor_bytes(m->tensors[i].tensor);
    return TARE_OK;
}

static tare_status make(const ladder *l, const recipe *r, bool as_reference, tare_model **out) {
    tare_model *made = NULL;
    TARE_TRY(l->quantize(l->user, r->prepared, as_reference, r->choices, r->choice_count, &made,
                         l->err));
    if (made == NULL)
        return tare__fail(l->err, TARE_INVALID_ARGUMENT, "no quantized model was made");
    *out = made;
    return TARE_OK;
}

// The float outputs of the first prepared model, once: steps may change its weights.
static tare_status keep_floats(ladder *l) {
    const recipe first = {.prepared = (tare_model *)l->prepared}; // NOLINT: only read
    tare_model *reference = NULL;
    probe p = {0};
    bool done = false;
    TARE_TRY(make(l, &first, true, &reference));
    tare_status status = tare__probe_begin(&p, reference, l->options.thread_count, l->err);
    if (status == TARE_OK) status = tare_data_rewind(l->check, l->err);
    while (status == TARE_OK) {
        tare_batch batch = {.struct_size = sizeof batch};
        status = tare_data_next(l->check, &batch, &done, l->err);
        if (status != TARE_OK || done) break;
        if (!tare__grow((void **)&l->floats, &l->float_capacity, l->float_count, sizeof *l->floats))
            status = tare__out_of_memory(l->err);
        if (status != TARE_OK) break;
        probe_run r = {.probe = &p, .mode = PROBE_FLOATS};
        l->floats[l->float_count] = (probe_outputs){.count = 0};
        status = tare__probe_run(&r, batch.inputs, batch.input_count, &l->floats[l->float_count],
                                 l->err);
        if (status == TARE_OK) l->float_count++;
    }
    tare__probe_end(&p);
    tare_model_destroy(reference);
    if (status != TARE_OK || l->float_count > 0) return status;
    return tare__fail(l->err, TARE_INVALID_ARGUMENT, "there are no samples to check with");
}

static tare_status add_output(const ladder *l, const tare_tensor *x, tare_tensor *given,
                              double *signal, double *noise) {
    tare_tensor *y = NULL;
    TARE_TRY(tare_tensor_to_float(given, &y, l->err));
    const bool is_alike = tare__same_shape(x, y);
    for (int64_t i = 0; i < y->count && is_alike; i++) {
        const double a = (double)tare__f32(x)[i], error = a - (double)tare__f32(y)[i];
        *signal += a * a;
        *noise += error * error;
    }
    tare_tensor_release(y);
    return is_alike ? TARE_OK
                    : tare__fail(l->err, TARE_INVALID_ARGUMENT,
                                 "the quantized model has outputs of other shapes");
}

static tare_status compare_batch(const ladder *l, tare_session *session, const tare_batch *batch,
                                 const probe_outputs *floats, double *signal, double *noise) {
    tare_tensor *given[PROBE_MOST_OUTPUTS];
    size_t count = 0, at = 0;
    TARE_TRY(tare_session_run(session, batch->inputs, batch->input_count, given, PROBE_MOST_OUTPUTS,
                              &count, l->err));
    tare_status status = TARE_OK;
    for (size_t i = 0; i < count; i++) {
        const bool is_value =
            given[i]->dtype == TARE_FLOAT32 || tare__tensor_is_quantized(given[i]);
        if (status == TARE_OK && is_value && at < floats->count)
            status = add_output(l, floats->tensors[at++], given[i], signal, noise);
        tare_tensor_release(given[i]);
    }
    return status;
}

static tare_status run_checks(const ladder *l, tare_session *session, worth *out) {
    double signal = 0, noise = 0;
    TARE_TRY(tare_data_rewind(l->check, l->err));
    for (size_t i = 0; i < l->float_count; i++) {
        tare_batch batch = {.struct_size = sizeof batch};
        bool done = false;
        TARE_TRY(tare_data_next(l->check, &batch, &done, l->err));
        if (done) break;
        if (i == 0) TARE_TRY(time_runs(l, session, &batch, &out->ms));
        TARE_TRY(compare_batch(l, session, &batch, &l->floats[i], &signal, &noise));
    }
    out->db = isnan(noise) ? -INFINITY : noise > 0 ? 10 * log10(signal / noise) : 200;
    return TARE_OK;
}

static tare_status measure(const ladder *l, tare_model *model, worth *out) {
    tare_session *session = NULL;
    byte_count c = {0};
    const tare_session_options options = {.struct_size = sizeof options,
                                          .thread_count = l->options.thread_count};
    TARE_TRY(tare_session_create(model, &options, &session, l->err));
    const tare_status status = run_checks(l, session, out);
    tare_session_destroy(session);
    TARE_TRY(status);
    TARE_TRY(tare__module_walk(model->root, count_module, &c, l->err));
    out->bytes = c.bytes;
    return TARE_OK;
}

// --- trials ---

static void release_recipe(const ladder *l, recipe *r) {
    if (r->prepared != l->prepared) tare_model_destroy(r->prepared);
    *r = (recipe){0};
}

static const char *refusal(const ladder *l, const worth *w) {
    if (!(w->db >= l->best_worth.db + LEAST_GAIN_DB)) return "it does not gain";
    const double most = l->first_worth.ms * (1 + l->options.most_slower);
    if (l->best_worth.db >= SOUND_DB && w->ms > most && w->ms > l->best_worth.ms)
        return "it is too slow";
    return "";
}

static tare_status tell(ladder *l, const char *step, const char *what, const trial_outcome *o,
                        bool is_resumed, const char *why) {
    const tare_improve_trial t = {.struct_size = sizeof t,
                                  .step = step,
                                  .what = what,
                                  .before_db = l->best_worth.db,
                                  .after_db = o->db,
                                  .before_ms = l->best_worth.ms,
                                  .after_ms = o->ms,
                                  .before_bytes = l->best_worth.bytes,
                                  .after_bytes = o->bytes,
                                  .seconds = o->seconds,
                                  .is_kept = o->is_kept,
                                  .is_resumed = is_resumed,
                                  .why = why};
    l->result.trial_count++;
    l->result.kept_count += o->is_kept;
    l->result.resumed_count += is_resumed;
    return l->options.trials != NULL ? l->options.trials(l->options.trials_user, &t, l->err)
                                     : TARE_OK;
}

// The recipe, and the model that it makes, take the best one's place.
static void keep(ladder *l, recipe *r, tare_model *model, const trial_outcome *o) {
    if (l->best.prepared != r->prepared) release_recipe(l, &l->best);
    l->best = *r;
    *r = (recipe){.prepared = (tare_model *)l->prepared}; // NOLINT: only read
    tare_model_destroy(l->best_model);
    l->best_model = model;
    l->best_worth = (worth){o->db, o->ms, o->bytes};
}

// Tries a recipe, which is consumed: it is the best one afterwards, or it is gone.
static tare_status try_recipe(ladder *l, const char *step, const char *what, recipe *r,
                              bool *is_kept) {
    char key[KEY_SIZE];
    (void)snprintf(key, sizeof key, "%s %s", step, what);
    const trial_outcome *known = tare__trials_find(&l->book, key);
    if (known != NULL && known->is_new) return TARE_OK; // another layer led to the same
    if (known != NULL) {
        const trial_outcome o = *known;
        TARE_TRY(tell(l, step, what, &o, true, o.is_kept ? "" : "it did not gain"));
        if (o.is_kept) keep(l, r, NULL, &o);
        *is_kept = o.is_kept;
        return TARE_OK;
    }
    const uint64_t begin = tare__now_ns();
    tare_model *model = NULL;
    worth w = {.db = -INFINITY};
    TARE_TRY(make(l, r, false, &model));
    tare_status status = measure(l, model, &w);
    const char *why = refusal(l, &w);
    const trial_outcome o = {.key = key,
                             .db = w.db,
                             .ms = w.ms,
                             .bytes = w.bytes,
                             .seconds = seconds_since(begin),
                             .is_kept = why[0] == '\0'};
    if (status == TARE_OK) status = tell(l, step, what, &o, false, why);
    if (status == TARE_OK && o.is_kept && l->options.better != NULL)
        status = l->options.better(l->options.better_user, model, l->err);
    if (status == TARE_OK) status = tare__trials_add(&l->book, &o, l->err);
    *is_kept = status == TARE_OK && o.is_kept;
    if (*is_kept)
        keep(l, r, model, &o);
    else
        tare_model_destroy(model);
    return status;
}

static recipe with_prepared(const ladder *l, tare_model *prepared) {
    recipe r = l->best;
    r.prepared = prepared;
    return r;
}

static tare_status calibrate(const ladder *l, tare_model *prepared) {
    const tare_calibrate_options options = {.thread_count = l->options.thread_count,
                                            .is_lenient = true};
    TARE_TRY(tare_data_rewind(l->calibration, l->err));
    return tare_calibrate_data(prepared, l->calibration, &options, NULL, l->err);
}

// A step that does not apply is none of the ladder's.
static bool is_refused(tare_status status) {
    return status == TARE_UNSUPPORTED || status == TARE_INVALID_ARGUMENT;
}

static tare_status try_prepared(ladder *l, const char *step, const char *what, tare_model *made,
                                bool needs_data) {
    bool is_kept = false;
    tare_status status = needs_data ? calibrate(l, made) : TARE_OK;
    recipe r = with_prepared(l, made);
    if (status == TARE_OK) status = try_recipe(l, step, what, &r, &is_kept);
    if (!is_kept && l->best.prepared != made) tare_model_destroy(made);
    return status;
}

// --- steps ---

static tare_status step_observers(ladder *l) {
    static const struct {
        const char *class_name;
        double percentile;
        const char *what;
    } choices[] = {{"tare.MergeableHistogramObserver", 0, "least squared error"},
                   {"tare.MergeableHistogramObserver", 99.99, "percentile 99.99"},
                   {"tare.MergeableHistogramObserver", 99.9, "percentile 99.9"},
                   {"MinMaxObserver", 0, "minimum and maximum"},
                   {"HistogramObserver", 0, "torch's histogram"}};
    for (size_t i = 0; i < sizeof choices / sizeof *choices && !is_over(l); i++) {
        tare_model *made = NULL;
        size_t count = 0;
        const tare_status status = tare_replace_observers(
            l->best.prepared, choices[i].class_name, choices[i].percentile, &count, &made, l->err);
        if (is_refused(status)) return TARE_OK;
        TARE_TRY(status);
        if (count == 0) {
            tare_model_destroy(made);
            return TARE_OK;
        }
        TARE_TRY(try_prepared(l, "observers", choices[i].what, made, true));
    }
    return TARE_OK;
}

static tare_status step_per_channel(ladder *l) {
    tare_model *made = NULL;
    size_t count = 0;
    const tare_status status = tare_weights_per_channel(l->best.prepared, &count, &made, l->err);
    if (is_refused(status)) return TARE_OK;
    TARE_TRY(status);
    if (count > 0) return try_prepared(l, "per-channel", "weights", made, false);
    tare_model_destroy(made);
    return TARE_OK;
}

static tare_status quantize_reference(void *user, const tare_model *prepared, tare_model **out,
                                      tare_error *err) {
    const ladder *l = user;
    recipe r = l->best;
    (void)err;                           // the ladder's own
    r.prepared = (tare_model *)prepared; // NOLINT: only read
    return make(l, &r, true, out);
}

static tare_status step_bias_correction(ladder *l) {
    tare_model *made = NULL;
    tare_bias_correction_result result = {.struct_size = sizeof result};
    const tare_bias_correction_options options = {.struct_size = sizeof options,
                                                  .thread_count = l->options.thread_count};
    TARE_TRY(tare_data_rewind(l->calibration, l->err));
    const tare_status status = tare_correct_biases(
        l->best.prepared, l->calibration, quantize_reference, l, &options, &result, &made, l->err);
    if (is_refused(status)) return TARE_OK;
    TARE_TRY(status);
    if (result.layer_count > 0) return try_prepared(l, "bias-correction", "biases", made, false);
    tare_model_destroy(made);
    return TARE_OK;
}

// --- layers in floats ---

static bool is_chosen(const recipe *r, const char *name) {
    for (size_t i = 0; i < r->choice_count; i++)
        if (strcmp(r->choices[i].node, name) == 0) return true;
    return false;
}

typedef struct choice_maker {
    ladder *l;
    islands found; // of the prepared model
    recipe r;      // grows
    const char *reason;
    text what;
} choice_maker;

static bool computes_integers(const choice_maker *m, const node *n) {
    return m->found.kinds[m->found.places[n->id]] == ISLAND_INTEGER;
}

// Adds a node that would be computed in integers.
static tare_status choose(choice_maker *m, const node *n) {
    if (n == NULL || !computes_integers(m, n) || is_chosen(&m->r, n->name)) return TARE_OK;
    m->r.choices[m->r.choice_count++] = (tare_float_choice){
        .node = tare__arena_strdup(&m->l->memory, n->name), .rule = "improve", .reason = m->reason};
    tare__text_printf(&m->what, "%s%s", m->what.length > 0 ? ", " : "", n->name);
    return TARE_OK;
}

// With its neighbours in front, whose results would otherwise be quantized for it.
static tare_status choose_layer(choice_maker *m, const char *name, bool with_inputs) {
    const tare_model *prepared = m->l->best.prepared;
    const node *n = tare__graph_find(prepared->root->graph, name);
    if (n == NULL) return TARE_OK;
    if (n->op != NODE_OUTPUT) TARE_TRY(choose(m, n));
    for (size_t i = 0; i < n->input_count && with_inputs; i++) {
        const node *from = tare__behind_observers(prepared, n->inputs[i]);
        if (from != NULL && tare__node_is_call(from)) TARE_TRY(choose(m, from));
    }
    return TARE_OK;
}

// Leaves the layers of these ranks float, from..to, as far as they hold the model back.
static tare_status try_layers(ladder *l, const tare_analysis *a, size_t from, size_t to,
                              bool with_inputs, bool *is_kept) {
    choice_maker m = {.l = l, .r = l->best};
    const size_t most = l->best.prepared->root->graph->node_count;
    tare_layer_error layer;
    TARE_TRY(tare__islands_find(l->best.prepared, &l->memory, &m.found, l->err));
    m.r.choices = tare__arena_array(&l->memory, most + 1, sizeof *m.r.choices);
    if (m.r.choices == NULL) return tare__out_of_memory(l->err);
    if (l->best.choice_count > 0)
        memcpy(m.r.choices, l->best.choices, l->best.choice_count * sizeof *m.r.choices);
    tare_status status = TARE_OK;
    for (size_t i = from; i < to && status == TARE_OK && tare_analysis_get_worst(a, i, &layer);
         i++) {
        m.reason = tare__arena_printf(
            &l->memory, "quantized by itself it leaves %.1f dB of the outputs", layer.alone_db);
        if (m.reason == NULL) status = tare__out_of_memory(l->err);
        if (status == TARE_OK) status = choose_layer(&m, layer.node, with_inputs);
    }
    if (status == TARE_OK && m.what.failed) status = tare__out_of_memory(l->err);
    if (status == TARE_OK && m.r.choice_count > l->best.choice_count)
        status = try_recipe(l, "float-layers", tare__text_chars(&m.what), &m.r, is_kept);
    tare__text_release(&m.what);
    return status;
}

static tare_status rank_layers(ladder *l, tare_model **reference, tare_analysis **out) {
    const double left = l->options.seconds - seconds_since(l->begin_ns);
    const tare_analyze_options options = {.struct_size = sizeof options,
                                          .seconds = left > 4 ? left / 4 : 1,
                                          .thread_count = l->options.thread_count};
    TARE_TRY(make(l, &l->best, true, reference));
    TARE_TRY(tare_data_rewind(l->check, l->err));
    return tare_analyze(*reference, l->check, &options, out, l->err);
}

// What is much better than the whole is not what holds it back.
static bool holds_back(const ladder *l, const tare_layer_error *layer) {
    return !(layer->alone_db > l->best_worth.db + 20 || layer->local_db > 60);
}

// Each layer by itself, and if that does not gain, with what it reads from.
static tare_status try_single(ladder *l, const tare_analysis *a) {
    tare_layer_error layer;
    for (size_t i = 0; i < MOST_LAYERS && tare_analysis_get_worst(a, i, &layer) && !is_over(l);
         i++) {
        bool is_kept = false;
        if (!holds_back(l, &layer)) continue;
        TARE_TRY(try_layers(l, a, i, i + 1, false, &is_kept));
        if (!is_kept && !is_over(l)) TARE_TRY(try_layers(l, a, i, i + 1, true, &is_kept));
    }
    return TARE_OK;
}

// Several together may gain what no single one does.
static tare_status try_groups(ladder *l, const tare_analysis *a) {
    for (size_t count = 4; count <= MOST_LAYERS && !is_over(l); count *= 2) {
        bool is_kept = false;
        TARE_TRY(try_layers(l, a, 0, count, false, &is_kept));
    }
    return TARE_OK;
}

static tare_status step_float_layers(ladder *l) {
    tare_model *reference = NULL;
    tare_analysis *a = NULL;
    tare_status status = rank_layers(l, &reference, &a);
    if (status == TARE_OK) status = try_single(l, a);
    if (status == TARE_OK) status = try_groups(l, a);
    tare_analysis_destroy(a);
    tare_model_destroy(reference);
    return status;
}

static const struct {
    const char *name, *what;
    tare_status (*run)(ladder *l);
} steps[] = {
    {"per-channel", "a scale for each output channel of weights", step_per_channel},
    {"observers", "least error, percentiles, minimum and maximum, torch's histogram",
     step_observers},
    {"float-layers", "leave the worst layers float, while that is not much slower",
     step_float_layers},
    {"bias-correction", "subtract the mean rounding error from biases", step_bias_correction},
};
enum { STEP_COUNT = sizeof steps / sizeof *steps };

const char *tare_improve_step_name(size_t index, const char **what) {
    if (index >= STEP_COUNT) return NULL;
    if (what != NULL) *what = steps[index].what;
    return steps[index].name;
}

static const char *name_at(const void *user, size_t index) {
    (void)user;
    return tare_improve_step_name(index, NULL);
}

// --- the whole ---

static tare_status run_step(ladder *l, const char *name, size_t length) {
    for (size_t i = 0; i < STEP_COUNT; i++)
        if (strlen(steps[i].name) == length && strncmp(steps[i].name, name, length) == 0)
            return is_over(l) ? TARE_OK : steps[i].run(l);
    return TARE_OK;
}

static tare_status check_steps(const ladder *l) {
    const char *list = l->options.steps;
    for (; list != NULL && *list != '\0'; list += strcspn(list, ","), list += *list == ',') {
        char name[64];
        bool is_known = false;
        const size_t length = strcspn(list, ",");
        (void)snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), list);
        for (size_t i = 0; i < STEP_COUNT; i++) is_known = is_known || !strcmp(name, steps[i].name);
        if (is_known) continue;
        const char *near = tare_nearest_name(name, name_at, NULL);
        const tare_status status =
            tare__fail(l->err, TARE_NOT_FOUND, "there is no step '%s'", name);
        return near != NULL ? tare__hint(l->err, status, "did you mean '%s'?", near) : status;
    }
    return TARE_OK;
}

static tare_status run_steps(ladder *l) {
    if (l->options.steps == NULL) {
        for (size_t i = 0; i < STEP_COUNT && !is_over(l); i++) TARE_TRY(steps[i].run(l));
        return TARE_OK;
    }
    for (const char *at = l->options.steps; *at != '\0';) {
        const size_t length = strcspn(at, ",");
        TARE_TRY(run_step(l, at, length));
        at += length + (at[length] == ',');
    }
    return TARE_OK;
}

static tare_status measure_first(ladder *l) {
    const trial_outcome *known = tare__trials_find(&l->book, "first model");
    l->best = (recipe){.prepared = (tare_model *)l->prepared}; // NOLINT: only read
    if (known != NULL) {
        l->best_worth = l->first_worth = (worth){known->db, known->ms, known->bytes};
        return TARE_OK;
    }
    TARE_TRY(make(l, &l->best, false, &l->best_model));
    TARE_TRY(measure(l, l->best_model, &l->best_worth));
    l->first_worth = l->best_worth;
    const trial_outcome o = {.key = (char[]){"first model"},
                             .db = l->best_worth.db,
                             .ms = l->best_worth.ms,
                             .bytes = l->best_worth.bytes};
    if (l->options.better != NULL)
        TARE_TRY(l->options.better(l->options.better_user, l->best_model, l->err));
    return tare__trials_add(&l->book, &o, l->err);
}

static tare_status hash_module(void *user, const char *path, module *m, tare_error *err) {
    uint64_t *hash = user;
    (void)err;
    *hash = *hash * 31 + tare__hash_bytes(path, strlen(path)) +
            tare__hash_bytes(m->class->name, strlen(m->class->name));
    for (size_t i = 0; i < m->tensor_count; i++) {
        const tare_tensor *t = m->tensors[i].tensor;
        if (t != NULL && t->data != NULL)
            *hash = *hash * 31 + tare__hash_bytes(t->data, tare__tensor_bytes(t));
    }
    return TARE_OK;
}

static tare_status identify(ladder *l) {
    const char *chosen = l->options.steps != NULL ? l->options.steps : "";
    uint64_t hash = tare__hash_bytes(chosen, strlen(chosen));
    hash = tare__hash_more(hash, (uint64_t)tare_data_sample_count(l->calibration));
    hash = tare__hash_more(hash, (uint64_t)tare_data_sample_count(l->check));
    TARE_TRY(tare__module_walk(l->prepared->root, hash_module, &hash, l->err));
    l->book.identity = hash;
    return tare__trials_read(&l->book, l->err);
}

static tare_status run(ladder *l) {
    TARE_TRY(check_steps(l));
    TARE_TRY(identify(l));
    TARE_TRY(keep_floats(l));
    TARE_TRY(measure_first(l));
    TARE_TRY(run_steps(l));
    if (l->best_model == NULL) TARE_TRY(make(l, &l->best, false, &l->best_model));
    l->result.before_db = l->first_worth.db;
    l->result.before_ms = l->first_worth.ms;
    l->result.after_db = l->best_worth.db;
    l->result.after_ms = l->best_worth.ms;
    return TARE_OK;
}

tare_status tare_improve(const tare_model *prepared, tare_data *calibration, tare_data *check,
                         tare_quantize_prepared quantize, void *user,
                         const tare_improve_options *options, tare_improve_result *result,
                         tare_model **best_prepared, tare_model **out, tare_error *err) {
    ladder l = {.prepared = prepared,
                .calibration = calibration,
                .check = check,
                .quantize = quantize,
                .user = user,
                .begin_ns = tare__now_ns(),
                .err = err};
    if (prepared == NULL || calibration == NULL || check == NULL || quantize == NULL ||
        out == NULL || prepared->stage != TARE_STAGE_PREPARED)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "improve: expected a prepared model, data, and what quantizes it");
    if (options != NULL) tare__struct_copy(&l.options, sizeof l.options, options);
    if (!(l.options.seconds > 0)) l.options.seconds = DEFAULT_SECONDS;
    if (!(l.options.most_slower > 0)) l.options.most_slower = DEFAULT_SLOWER;
    l.book.path = l.options.state_path;
    l.result.struct_size = sizeof l.result;
    const tare_status status = run(&l);
    if (status == TARE_OK) {
        if (result != NULL) *result = l.result;
        *out = l.best_model;
        if (best_prepared != NULL) {
            *best_prepared = l.best.prepared != prepared ? l.best.prepared : NULL;
            l.best.prepared = (tare_model *)prepared; // NOLINT: only read
        }
    } else {
        tare_model_destroy(l.best_model);
    }
    release_recipe(&l, &l.best);
    for (size_t i = 0; i < l.float_count; i++) tare__probe_outputs_release(&l.floats[i]);
    tare__free(l.floats);
    tare__trials_release(&l.book);
    tare__arena_release(&l.memory);
    return status;
}
