// SPDX-License-Identifier: Apache-2.0
// The ladder: tries its steps one after the other on the best model so far, and keeps those that
// gain.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/hash/hash.h"
#include "core/memory/alloc.h"
#include "core/memory/arena.h"
#include "core/struct_size.h"
#include "core/system/clock.h"
#include "debug/improve/ladder.h"
#include "flow/calibrate/observer_list.h"
#include "flow/calibrate/range_histograms.h"
#include "model/pass.h"
#include "runtime/tune/bias_correction.h"

#define LEAST_GAIN_DB   0.2  // smaller gains may be chance
#define MOST_SAMPLE_DB  60.0 // of a sample; more is of no use to anybody
#define LEAST_SPEEDUP   0.05 // of a run, which may take the place of a gain
#define DEFAULT_SECONDS 300.0
#define DEFAULT_SLOWER  0.1
#define DEFAULT_LARGER  0.25
#define BROKEN_SLOWER   1.0 // a model that is useless is so however fast it is
#define BROKEN_LARGER   1.0
#define RACE_SECONDS    0.3
#define SURE_SHARE      0.95 // of the time that is allowed: the rest is for the error of races
// of a model whose time differs from the limit by at most this share of it
#define LONG_RACE_SECONDS 2.0
#define NEAR_LIMIT        0.06
#define RACE_SHARE        0.05      // of the time left
#define CHOICE_SHARE      (1.0 / 3) // of the time left, for the step that chooses_speed
#define RANGE_TRIALS      5         // that time is set aside for

double tare__ladder_seconds(const ladder *l) {
    return (double)(tare__job_now_ns() - l->begin_ns) * 1e-9;
}

double tare__ladder_seconds_for(const ladder *l, bool needs_data) {
    return l->options.seconds - tare__ladder_seconds(l) - l->try_seconds - l->last_seconds -
           l->choice_seconds - l->range_seconds - (needs_data ? l->calibrate_seconds : 0);
}

double tare__ladder_seconds_for_last(const ladder *l) {
    return l->options.seconds - tare__ladder_seconds(l) - l->try_seconds;
}

static bool has_reached_target(const ladder *l) {
    return l->options.target_db > 0 && l->best_worth.db >= l->options.target_db;
}

bool tare__ladder_is_over(ladder *l) {
    if (has_reached_target(l)) return true;
    if (tare__ladder_seconds_for(l, false) > 0) return false;
    l->result.is_out_of_time = true;
    return true;
}

// --- trials ---

tare_status tare__ladder_make(const ladder *l, const recipe *r, bool as_reference,
                              tare_model **out) {
    tare_model *made = NULL;
    TARE_TRY(l->quantize(l->user, r->prepared, as_reference, r->choices, r->choice_count, &made,
                         l->err));
    if (made == NULL)
        return tare__fail(l->err, TARE_INVALID_ARGUMENT, "no quantized model was made");
    *out = made;
    return TARE_OK;
}

static void release_recipe(const ladder *l, recipe *r) {
    if (r->prepared != l->prepared) tare_model_destroy(r->prepared);
    *r = (recipe){0};
}

// What a sample gains on average, those of the calibration included, and the average's standard
// error.
typedef struct sample_gain {
    double mean, error;
} sample_gain;

static sample_gain gain_of_samples(const ladder *l, const worth *w) {
    double sum = 0, squares = 0;
    const double count = (double)l->sample_count;
    for (size_t i = 0; i < l->sample_count; i++) {
        const double gain = fmin(w->sample_db[i], MOST_SAMPLE_DB) -
                            fmin(l->best_worth.sample_db[i], MOST_SAMPLE_DB);
        sum += gain;
        squares += gain * gain;
    }
    const double mean = sum / count, variance = fmax(squares / count - mean * mean, 0);
    return (sample_gain){mean, count < 2 ? 0 : sqrt(variance / (count - 1))};
}

// The ratio over all samples follows the worst ones. A gain counts if the samples gain on average,
// too, by more than chance.
static bool gains_on_average(const ladder *l, const worth *w) {
    const sample_gain gain = gain_of_samples(l, w);
    return gain.mean > 0 && gain.mean >= gain.error;
}

static bool gains(const ladder *l, const worth *w) {
    return w->db >= l->best_worth.db + LEAST_GAIN_DB && gains_on_average(l, w);
}

static bool loses_nothing(const ladder *l, const worth *w) {
    return w->db >= l->best_worth.db;
}

worth_limits tare__ladder_limits(const ladder *l, bool costs_more) {
    const double slower = l->options.most_slower > 0 ? l->options.most_slower
                          : costs_more               ? BROKEN_SLOWER
                                                     : DEFAULT_SLOWER;
    const double larger = l->options.most_larger > 0 ? l->options.most_larger
                          : costs_more               ? BROKEN_LARGER
                                                     : DEFAULT_LARGER;
    const double ms = l->fastest_ms > 0 ? l->fastest_ms : l->first_worth.ms;
    // The fastest choice for each layer may take more bytes; it is a model that users can ask for.
    const double bytes = (double)l->first_worth.bytes, fastest = (double)l->fastest_bytes;
    const bool has_limit = l->options.most_larger > 0;
    return (worth_limits){ms * (1 + SURE_SHARE * slower),
                          (has_limit ? bytes : fmax(bytes, fastest)) * (1 + larger)};
}

// Times the model and one that takes known_ms alternately, so that changes of the machine's speed
// affect both. other NULL: the one of the recipe r.
static tare_status time_against(const ladder *l, const tare_model *other, const recipe *r,
                                double known_ms, const tare_model *model, double seconds,
                                double *ms) {
    tare_model *made = NULL;
    double times[2] = {0};
    if (other == NULL) TARE_TRY(tare__ladder_make(l, r, false, &made));
    const tare_model *const models[] = {other != NULL ? other : made, model};
    const tare_status status = tare__ladder_time(l, models, 2, seconds, times);
    tare_model_destroy(made);
    TARE_TRY(status);
    *ms = times[0] > 0 ? known_ms * times[1] / times[0] : times[1];
    return TARE_OK;
}

// A model near the limit runs against the one that the limit refers to, too, and for longer: the
// errors of short races add up over the steps.
tare_status tare__ladder_time_model(const ladder *l, const tare_model *model, double *ms) {
    const recipe first = {.prepared = (tare_model *)l->prepared}; // NOLINT: only read
    const double most = tare__ladder_limits(l, l->may_cost_more).ms;
    TARE_TRY(time_against(l, l->best_model, &l->best, l->best_worth.ms, model, RACE_SECONDS, ms));
    if (fabs(*ms - most) > NEAR_LIMIT * most) return TARE_OK;
    const double seconds = fmin(LONG_RACE_SECONDS, RACE_SHARE * tare__ladder_seconds_for(l, false));
    const double known_ms = l->fastest_model != NULL ? l->fastest_ms : l->first_worth.ms;
    return seconds > RACE_SECONDS
               ? time_against(l, l->fastest_model, &first, known_ms, model, seconds, ms)
               : TARE_OK;
}

// The best model itself takes longer than the limit allows, and this one is not less exact, but by
// chance.
static bool may_stand_in(const ladder *l, const worth *w) {
    const sample_gain gain = gain_of_samples(l, w);
    return l->best_worth.ms > tare__ladder_limits(l, l->may_cost_more).ms &&
           gain.mean + gain.error >= 0;
}

static tare_improve_refusal judge(const ladder *l, const worth *w) {
    const worth_limits most = tare__ladder_limits(l, l->may_cost_more);
    const bool is_faster = w->ms <= l->best_worth.ms * (1 - LEAST_SPEEDUP);
    const bool is_needed = w->ms <= most.ms && may_stand_in(l, w);
    if (!gains(l, w) && !(is_faster && loses_nothing(l, w)) && !is_needed)
        return w->db >= l->best_worth.db + LEAST_GAIN_DB ? TARE_REFUSED_FEW_SAMPLES
                                                         : TARE_REFUSED_NO_GAIN;
    if (w->ms > most.ms && w->ms > l->best_worth.ms) return TARE_REFUSED_TOO_SLOW;
    if ((double)w->bytes > most.bytes && w->bytes > l->best_worth.bytes)
        return TARE_REFUSED_TOO_LARGE;
    return TARE_REFUSED_NOT;
}

static const char *const refusals[] = {[TARE_REFUSED_NOT] = "",
                                       [TARE_REFUSED_NO_GAIN] = "it does not gain",
                                       [TARE_REFUSED_FEW_SAMPLES] = "it gains on few samples only",
                                       [TARE_REFUSED_TOO_SLOW] = "it is too slow",
                                       [TARE_REFUSED_TOO_LARGE] = "it is too large"};

static tare_status tell(ladder *l, const ladder_step *step, const char *what,
                        const trial_outcome *o, bool is_resumed) {
    const bool is_kept = o->refusal == TARE_REFUSED_NOT;
    const tare_improve_trial t = {.struct_size = sizeof t,
                                  .step = step->name,
                                  .what = what,
                                  .before_db = l->best_worth.db,
                                  .after_db = o->db,
                                  .before_ms = l->best_worth.ms,
                                  .after_ms = o->ms,
                                  .before_bytes = l->best_worth.bytes,
                                  .after_bytes = o->bytes,
                                  .seconds = o->seconds,
                                  .is_kept = is_kept,
                                  .is_resumed = is_resumed,
                                  .why = refusals[o->refusal],
                                  .refusal = o->refusal};
    l->result.trial_count++;
    l->result.kept_count += is_kept;
    l->result.resumed_count += is_resumed;
    return l->options.trials != NULL ? l->options.trials(l->options.trials_user, &t, l->err)
                                     : TARE_OK;
}

// The recipe and its model become the best ones.
static void keep(ladder *l, recipe *r, tare_model *model, const trial_outcome *o,
                 const double *sample_db) {
    if (l->best.prepared != r->prepared) release_recipe(l, &l->best);
    l->best = *r;
    *r = (recipe){.prepared = (tare_model *)l->prepared}; // NOLINT: only read
    tare_model_destroy(l->best_model);
    l->best_model = model;
    l->best_worth = (worth){o->db, o->ms, o->bytes, sample_db};
}

// What an earlier run found has no figures of samples.
static tare_status complete_best(ladder *l) {
    worth w = {.db = 0};
    if (l->best_worth.sample_db != NULL) return TARE_OK;
    if (l->best_model == NULL) TARE_TRY(tare__ladder_make(l, &l->best, false, &l->best_model));
    TARE_TRY(tare__ladder_measure(l, l->best_model, &w));
    l->best_worth.sample_db = w.sample_db;
    return TARE_OK;
}

char *tare__ladder_key(ladder *l, const ladder_step *step, const char *what) {
    return tare__arena_printf(&l->memory, "%s%s %s", l->may_cost_more ? "again " : "", step->name,
                              what);
}

tare_status tare__ladder_knows_useless(ladder *l, const ladder_step *step, const char *what,
                                       bool *out) {
    char *key = tare__ladder_key(l, step, what);
    if (key == NULL) return tare__out_of_memory(l->err);
    const trial_outcome *known = tare__trials_find(&l->book, key);
    *out = known != NULL && known->refusal != TARE_REFUSED_NOT;
    if (!*out || known->is_new) return TARE_OK;
    const trial_outcome o = *known;
    return tell(l, step, what, &o, true);
}

tare_status tare__ladder_try(ladder *l, const ladder_step *step, const char *what, recipe *r,
                             bool *is_kept) {
    char *key = tare__ladder_key(l, step, what);
    if (key == NULL) return tare__out_of_memory(l->err);
    const trial_outcome *known = tare__trials_find(&l->book, key);
    if (known != NULL && known->is_new) return TARE_OK; // another layer led to the same recipe
    if (known != NULL) {
        const trial_outcome o = *known;
        TARE_TRY(tell(l, step, what, &o, true));
        *is_kept = o.refusal == TARE_REFUSED_NOT;
        if (*is_kept) keep(l, r, NULL, &o, NULL);
        return TARE_OK;
    }
    const uint64_t begin = l->trial_begin_ns > 0 ? l->trial_begin_ns : tare__job_now_ns();
    l->trial_begin_ns = 0;
    tare_model *model = NULL;
    worth w = {.db = -INFINITY};
    TARE_TRY(complete_best(l));
    const double began = tare__ladder_seconds(l);
    TARE_TRY(tare__ladder_make(l, r, false, &model));
    tare_status status = tare__ladder_measure(l, model, &w);
    w.ms = l->best_worth.ms;
    if (status == TARE_OK && step->may_slow && (loses_nothing(l, &w) || may_stand_in(l, &w)))
        status = tare__ladder_time_model(l, model, &w.ms);
    l->try_seconds = fmax(l->try_seconds, tare__ladder_seconds(l) - began);
    const trial_outcome o = {.key = key,
                             .db = w.db,
                             .ms = w.ms,
                             .bytes = w.bytes,
                             .seconds = (double)(tare__job_now_ns() - begin) * 1e-9,
                             .refusal = judge(l, &w)};
    const bool is_good = o.refusal == TARE_REFUSED_NOT;
    if (status == TARE_OK) status = tell(l, step, what, &o, false);
    if (status == TARE_OK && is_good && l->options.better != NULL)
        status = l->options.better(l->options.better_user, model, l->err);
    if (status == TARE_OK) status = tare__trials_add(&l->book, &o, l->err);
    *is_kept = status == TARE_OK && is_good;
    if (*is_kept)
        keep(l, r, model, &o, w.sample_db);
    else
        tare_model_destroy(model);
    return status;
}

static recipe with_prepared(const ladder *l, tare_model *prepared) {
    recipe r = l->best;
    r.prepared = prepared;
    return r;
}

// Whether the calibration may go on: if not, it fails, and that is no failure of the ladder.
typedef struct calibration_watch {
    const ladder *ladder;
    bool is_late;
} calibration_watch;

static tare_status watch_calibration(void *user, int64_t done, int64_t total, tare_error *err) {
    calibration_watch *w = user;
    w->is_late = (done < total || total == 0) && !(tare__ladder_seconds_for(w->ladder, false) > 0);
    return w->is_late ? tare__fail(err, TARE_INVALID_ARGUMENT, "the time is over") : TARE_OK;
}

tare_status tare__ladder_calibrate(ladder *l, tare_model *prepared, bool *is_late) {
    calibration_watch watch = {.ladder = l};
    const tare_calibrate_options options = {.struct_size = sizeof options,
                                            .progress = watch_calibration,
                                            .progress_user = &watch,
                                            .thread_count = l->options.thread_count,
                                            .is_lenient = true,
                                            .keeps_histograms = true};
    tare__observers_forget_data(prepared); // it is the same data again
    TARE_TRY(tare_data_rewind(l->calibration, l->err));
    const tare_status status =
        tare_calibrate_data(prepared, l->calibration, &options, NULL, l->err);
    *is_late = watch.is_late;
    if (!watch.is_late) return status;
    tare_error_clear(l->err);
    l->result.is_out_of_time = true;
    return TARE_OK;
}

// It was not tried: a resumed ladder does.
static void give_up(ladder *l, tare_model *made) {
    l->trial_begin_ns = 0;
    tare_model_destroy(made);
}

tare_status tare__ladder_try_prepared(ladder *l, const ladder_step *step, const char *what,
                                      tare_model *made, bool needs_data) {
    bool is_kept = false, is_late = false;
    const double begin = tare__ladder_seconds(l);
    tare_status status = needs_data ? tare__ladder_calibrate(l, made, &is_late) : TARE_OK;
    if (needs_data)
        l->calibrate_seconds = fmax(l->calibrate_seconds, tare__ladder_seconds(l) - begin);
    if (is_late) {
        give_up(l, made);
        return TARE_OK;
    }
    recipe r = with_prepared(l, made);
    if (status == TARE_OK) status = tare__ladder_try(l, step, what, &r, &is_kept);
    if (!is_kept && l->best.prepared != made) tare_model_destroy(made);
    return status;
}

const char *tare_improve_step_name(size_t index, const char **what) {
    const ladder_step *step = tare__ladder_step_at(index);
    if (step == NULL) return NULL;
    if (what != NULL) *what = step->what;
    return step->name;
}

static const char *name_at(const void *user, size_t index) {
    (void)user;
    return tare_improve_step_name(index, NULL);
}

// --- the whole ---

// NULL if there is no step of this name.
static const ladder_step *find_step(const char *name, size_t length) {
    const ladder_step *step = NULL;
    for (size_t i = 0; (step = tare__ladder_step_at(i)) != NULL; i++)
        if (strlen(step->name) == length && strncmp(step->name, name, length) == 0) return step;
    return NULL;
}

static tare_status check_steps(const ladder *l) {
    const char *list = l->options.steps;
    for (; list != NULL && *list != '\0'; list += strcspn(list, ","), list += *list == ',') {
        char name[64];
        const size_t length = strcspn(list, ",");
        if (find_step(list, length) != NULL) continue;
        (void)snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), list);
        const char *near = tare_nearest_name(name, name_at, NULL);
        const tare_status status =
            tare__fail(l->err, TARE_NOT_FOUND, "there is no step '%s'", name);
        return near != NULL ? tare__hint(l->err, status, "did you mean '%s'?", near) : status;
    }
    return TARE_OK;
}

static bool is_chosen(const ladder *l, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = l->options.steps; at != NULL && *at != '\0';) {
        const size_t size = strcspn(at, ",");
        if (size == length && strncmp(at, name, length) == 0) return true;
        at += size + (at[size] == ',');
    }
    return l->options.steps == NULL;
}

// Before anything was tried: the calibration, if it was over data, or else a run in float tells
// what calibrating takes; and a run what correcting biases takes, after which a model is tried.
static void guess_times(ladder *l, double float_seconds) {
    const double each = float_seconds / fmax((double)l->sample_count, 1);
    const double to_see = (double)tare_data_sample_count(l->calibration);
    const ladder_step *step = NULL;
    if (to_see > 0) l->calibrate_seconds = fmax(each * to_see, l->prepared->seen.seconds);
    for (size_t i = 0; (step = tare__ladder_step_at(i)) != NULL; i++)
        if (step->is_last_word && is_chosen(l, step->name))
            l->last_seconds = CORRECTION_SAMPLES * BIAS_CORRECTION_RUNS * each + l->try_seconds;
}

// Steps that a limit has refused are tried again if it widens, and the last one after them.
static bool is_due(ladder *l, const ladder_step *step) {
    const bool runs_late = step->is_last_word || (step->chooses_speed && !l->may_cost_more);
    if (l->may_cost_more && !step->may_slow && !step->is_last_word) return false;
    return !tare__ladder_is_over(l) || (runs_late && !has_reached_target(l));
}

static tare_status run_step(ladder *l, const ladder_step *step) {
    if (step->chooses_speed) l->choice_seconds = 0;
    if (step->chooses_ranges) l->range_seconds = 0;
    return is_due(l, step) ? step->run(l, step) : TARE_OK;
}

// Without its share of the time, the step that chooses_speed would leave a slow model where there
// is a fast one; and a calibration for another step may take what trials of ranges need.
static void set_time_aside(ladder *l) {
    const bool has_ranges = !l->may_cost_more && tare__histograms_are_kept(l->best.prepared);
    const ladder_step *step = NULL;
    l->choice_seconds = l->range_seconds = 0;
    const double left = fmax(tare__ladder_seconds_for(l, false), 0);
    const double least = (CHOICE_MODELS + 1) * l->try_seconds;
    for (size_t i = 0; (step = tare__ladder_step_at(i)) != NULL; i++) {
        if (!is_chosen(l, step->name)) continue;
        if (step->chooses_speed) l->choice_seconds = fmin(fmax(CHOICE_SHARE * left, least), left);
        if (step->chooses_ranges && has_ranges) l->range_seconds = RANGE_TRIALS * l->try_seconds;
    }
    l->range_seconds = fmin(l->range_seconds, left - l->choice_seconds);
}

static tare_status run_steps(ladder *l) {
    const ladder_step *step = NULL;
    set_time_aside(l);
    if (l->options.steps == NULL) {
        for (size_t i = 0; (step = tare__ladder_step_at(i)) != NULL; i++)
            TARE_TRY(run_step(l, step));
        return TARE_OK;
    }
    for (const char *at = l->options.steps; *at != '\0';) {
        const size_t length = strcspn(at, ",");
        step = find_step(at, length);
        if (step != NULL) TARE_TRY(run_step(l, step));
        at += length + (at[length] == ',');
    }
    return TARE_OK;
}

static tare_status run_all_steps(ladder *l) {
    const bool has_limits = l->options.most_slower > 0 && l->options.most_larger > 0;
    TARE_TRY(run_steps(l));
    if (l->best_worth.db >= USELESS_DB || has_limits || tare__ladder_is_over(l)) return TARE_OK;
    l->may_cost_more = true;
    return run_steps(l);
}

static tare_status measure_first(ladder *l) {
    const trial_outcome *known = tare__trials_find(&l->book, "first model");
    l->best = (recipe){.prepared = (tare_model *)l->prepared}; // NOLINT: only read
    if (known != NULL) {
        l->best_worth = l->first_worth = (worth){known->db, known->ms, known->bytes, NULL};
        const trial_outcome *fastest = tare__trials_find(&l->book, FASTEST_KEY);
        l->fastest_ms = fastest != NULL ? fastest->ms : 0;
        l->fastest_bytes = fastest != NULL ? fastest->bytes : 0;
        return TARE_OK;
    }
    const double begin = tare__ladder_seconds(l);
    TARE_TRY(tare__ladder_make(l, &l->best, false, &l->best_model));
    TARE_TRY(tare__ladder_measure(l, l->best_model, &l->best_worth));
    const tare_model *const models[] = {l->best_model};
    TARE_TRY(tare__ladder_time(l, models, 1, RACE_SECONDS, &l->best_worth.ms));
    l->try_seconds = tare__ladder_seconds(l) - begin;
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

static uint64_t hash_limit(uint64_t hash, double limit) {
    return limit > 0 ? tare__hash_more(hash, tare__hash_bytes(&limit, sizeof limit)) : hash;
}

static tare_status identify(ladder *l) {
    const char *chosen = l->options.steps != NULL ? l->options.steps : "";
    uint64_t hash = tare__hash_bytes(chosen, strlen(chosen));
    hash = tare__hash_more(hash, (uint64_t)tare_data_sample_count(l->calibration));
    hash = tare__hash_more(hash, (uint64_t)tare_data_sample_count(l->check));
    hash = hash_limit(hash, l->options.most_slower);
    hash = hash_limit(hash, l->options.most_larger);
    if (l->options.exact != NULL) hash = tare__hash_more(hash, 1); // `prepared` tells which
    TARE_TRY(tare__module_walk(l->prepared->root, hash_module, &hash, l->err));
    l->book.identity = hash;
    return tare__trials_read(&l->book, l->err);
}

static tare_status run(ladder *l) {
    TARE_TRY(check_steps(l));
    TARE_TRY(identify(l));
    const double begin = tare__ladder_seconds(l);
    TARE_TRY(tare__ladder_keep_floats(l));
    const double float_seconds = tare__ladder_seconds(l) - begin;
    TARE_TRY(measure_first(l));
    guess_times(l, float_seconds);
    TARE_TRY(run_all_steps(l));
    if (l->best_model == NULL) TARE_TRY(tare__ladder_make(l, &l->best, false, &l->best_model));
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
                .begin_ns = tare__job_now_ns(),
                .err = err};
    if (prepared == NULL || calibration == NULL || check == NULL || quantize == NULL ||
        out == NULL || prepared->stage != TARE_STAGE_PREPARED)
        return tare__fail(
            err, TARE_INVALID_ARGUMENT,
            "improve: expected a prepared model, data, and a function that quantizes");
    if (options != NULL) tare__struct_copy(&l.options, sizeof l.options, options);
    if (l.options.exact != NULL && !tare__exact_takes(l.options.exact))
        return tare__fail(
            err, TARE_INVALID_ARGUMENT,
            "improve: the model `exact` is neither a float model nor a reference form");
    if (!(l.options.seconds > 0)) l.options.seconds = DEFAULT_SECONDS;
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
    tare_model_destroy(l.fastest_model);
    release_recipe(&l, &l.best);
    tare__ladder_release_floats(&l);
    tare__trials_release(&l.book);
    tare__arena_release(&l.memory);
    return status;
}
