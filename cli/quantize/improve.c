// SPDX-License-Identifier: Apache-2.0
// tare improve, and tare quantize --auto: a ladder of steps within a time budget.
#include "quantize/improve.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "options/common.h"
#include "quantize/check.h"
#include "quantize/flow_options.h"
#include "support/output.h"
#include "support/report.h"
#include "tare/memory.h"

// --- trials ---

static char *copy(const char *from) {
    char *made = tare_memory_allocate(strlen(from) + 1, 1);
    if (made != NULL) memcpy(made, from, strlen(from) + 1);
    return made;
}

static void print_trial(const tare_improve_trial *t, FILE *stream) {
    (void)fprintf(stream, "  %-16s %s: %.1f dB", t->step, t->what, t->after_db);
    if (t->is_kept)
        (void)fprintf(stream, " (%+.1f), %.3g ms (%+.0f %%), %+.1f KiB in %.1f s%s\n",
                      t->after_db - t->before_db, t->after_ms,
                      100 * (t->after_ms / t->before_ms - 1),
                      (double)(t->after_bytes - t->before_bytes) / 1024, t->seconds,
                      t->is_resumed ? ", from the state" : "");
    else
        (void)fprintf(stream, ", not kept: %s%s\n", t->why,
                      t->is_resumed ? ", from the state" : "");
}

static tare_status note_trial(void *user, const tare_improve_trial *trial, tare_error *err) {
    quantize_improvement *m = user;
    (void)err;
    if (m->count == m->capacity) {
        const size_t capacity = m->capacity > 0 ? 2 * m->capacity : 32;
        tare_improve_trial *grown = tare_memory_reallocate(m->trials, capacity, sizeof *grown);
        if (grown == NULL) return TARE_OUT_OF_MEMORY;
        m->trials = grown;
        m->capacity = capacity;
    }
    tare_improve_trial *kept = &m->trials[m->count];
    *kept = *trial;
    kept->what = copy(trial->what); // steps and reasons are constants
    if (kept->what == NULL) return TARE_OUT_OF_MEMORY;
    m->count++;
    end_progress();
    if (!m->is_quiet) {
        print_trial(trial, stderr);
        (void)fflush(stderr);
    }
    return TARE_OK;
}

static tare_status quantize_recipe(void *user, const tare_model *prepared, bool as_reference,
                                   const tare_float_choice *choices, size_t count, tare_model **out,
                                   tare_error *err) {
    quantize_job *j = user;
    (void)err; // the job's own
    return as_reference ? j->flow->open_up(j, prepared, choices, count, out)
                        : j->flow->convert(j, prepared, j->stop, choices, count, out);
}

// The output file always holds the best model so far.
static tare_status write_better(void *user, const tare_model *model, tare_error *err) {
    const quantize_job *j = user;
    if (strcmp(j->options->output, "-") == 0) return TARE_OK;
    return tare_model_write(model, j->options->output, err);
}

static void print_plan(const quantize_options *o) {
    const char *name = NULL, *what = NULL;
    (void)fprintf(stderr, "plan, for %lld s:\n", (long long)o->budget);
    for (size_t i = 0; (name = tare_improve_step_name(i, &what)) != NULL; i++)
        if (o->steps == NULL || strstr(o->steps, name) != NULL)
            (void)fprintf(stderr, "  %-16s %s\n", name, what);
}

// Of the budget, what calibration has left, less what the check at the end takes.
static double seconds_left(const quantize_job *j) {
    const double budget = (double)j->options->budget;
    const double reserved = check_is_wanted(j->options) ? CHECK_TIME_SHARE * budget : 0;
    return fmax(budget - reserved - (seconds_now() - j->begin), 1e-3);
}

static tare_status improve_on(quantize_job *j, tare_data *calibration, tare_data *check,
                              tare_model **out) {
    const quantize_options *o = j->options;
    quantize_improvement *m = &j->improvement;
    const tare_improve_options options = {.struct_size = sizeof options,
                                          .seconds = seconds_left(j),
                                          .steps = o->steps,
                                          .most_slower = (double)o->max_slower / 100,
                                          .most_larger = (double)o->max_larger / 100,
                                          .state_path = o->ladder,
                                          .thread_count = (int)o->threads,
                                          .trials = note_trial,
                                          .trials_user = m,
                                          .better = write_better,
                                          .better_user = j,
                                          .exact = j->given};
    m->is_quiet = o->quiet || o->as_json;
    if (!m->is_quiet) print_plan(o);
    const tare_status status = tare_improve(j->model, calibration, check, quantize_recipe, j,
                                            &options, &m->result, &m->prepared, out, j->err);
    m->is_done = status == TARE_OK;
    return status;
}

static tare_status open_check(quantize_job *j, tare_data **out) {
    const quantize_options *o = j->options;
    const tare_data_options own = {.batch_size = 1, .sample_limit = 16};
    const tare_data_options held = {.sample_limit = o->limit,
                                    .is_finite = !o->lenient,
                                    .hold_out = check_sample_count(o),
                                    .is_held_out = true};
    if (o->check_data != NULL) return tare_data_open(o->check_data, j->model, &own, out, j->err);
    return tare_data_open(o->calibrate, j->model, &held, out, j->err);
}

tare_status quantize_improve(quantize_job *j, tare_model **out) {
    const quantize_options *o = j->options;
    const tare_data_options options = {.batch_size = o->batch,
                                       .sample_limit = o->limit,
                                       .is_finite = !o->lenient,
                                       .hold_out = check_sample_count(o)};
    tare_data *calibration = NULL, *check = NULL;
    if (o->check_data == NULL && j->held_out_count == 0)
        return fail_here(
            o->calibrate, "give more samples, or --check-data DATA",
            "all samples were used for calibration, so none is left to measure steps with");
    j->improvement.result.struct_size = sizeof j->improvement.result;
    TRY(tare_data_open(o->calibrate, j->model, &options, &calibration, j->err));
    tare_status status = open_check(j, &check);
    if (status == TARE_OK) status = improve_on(j, calibration, check, out);
    tare_data_close(calibration);
    tare_data_close(check);
    return status;
}

// --- what is said ---

// The most accurate model that a limit of time or bytes refused; NULL: none beats the result.
static const tare_improve_trial *best_refused(const quantize_improvement *m) {
    const tare_improve_trial *best = NULL;
    for (size_t i = 0; i < m->count; i++) {
        const tare_improve_trial *t = &m->trials[i];
        const bool is_refused =
            t->refusal == TARE_REFUSED_TOO_SLOW || t->refusal == TARE_REFUSED_TOO_LARGE;
        if (is_refused && t->after_db > m->result.after_db &&
            (best == NULL || t->after_db > best->after_db))
            best = t;
    }
    return best;
}

static double percent_more(double before, double after) {
    return before > 0 ? 100 * (after / before - 1) : 0;
}

void print_improvement(const quantize_improvement *m, FILE *stream) {
    const tare_improve_result *r = &m->result;
    if (!m->is_done) return;
    (void)fprintf(
        stream,
        "improved from %.1f dB and %.3g ms to %.1f dB and %.3g ms; %zu of %zu trials kept%s\n",
        r->before_db, r->before_ms, r->after_db, r->after_ms, r->kept_count, r->trial_count,
        r->is_out_of_time ? ", out of time" : "");
    const tare_improve_trial *t = best_refused(m);
    if (t == NULL) return;
    (void)fprintf(stream, "%s reached %.1f dB, but %s: ", t->step, t->after_db, t->why);
    if (t->refusal == TARE_REFUSED_TOO_LARGE)
        (void)fprintf(stream, "%lld bytes (%+.0f %%)", (long long)t->after_bytes,
                      percent_more((double)m->trials[0].before_bytes, (double)t->after_bytes));
    else
        (void)fprintf(stream, "%.3g ms (%+.0f %%)", t->after_ms,
                      percent_more(r->before_ms, t->after_ms));
    (void)fprintf(stream, "; --max-slower and --max-larger set the limits\n");
}

static void write_trial(const tare_improve_trial *t, json_out *json) {
    json_out_open(json, NULL, '{');
    json_out_string(json, "step", t->step);
    json_out_string(json, "what", t->what);
    json_out_number(json, "before_db", t->before_db);
    json_out_number(json, "after_db", t->after_db);
    json_out_number(json, "before_ms", t->before_ms);
    json_out_number(json, "after_ms", t->after_ms);
    json_out_integer(json, "before_bytes", (uint64_t)t->before_bytes);
    json_out_integer(json, "after_bytes", (uint64_t)t->after_bytes);
    json_out_number(json, "seconds", t->seconds);
    json_out_bool(json, "kept", t->is_kept);
    json_out_bool(json, "resumed", t->is_resumed);
    json_out_string(json, "why", t->why);
    json_out_close(json, '}');
}

void write_improvement(const quantize_improvement *m, json_out *json) {
    const tare_improve_result *r = &m->result;
    if (!m->is_done) return;
    json_out_open(json, "improvement", '{');
    json_out_number(json, "before_db", r->before_db);
    json_out_number(json, "after_db", r->after_db);
    json_out_number(json, "before_ms", r->before_ms);
    json_out_number(json, "after_ms", r->after_ms);
    json_out_bool(json, "out_of_time", r->is_out_of_time);
    json_out_open(json, "trials", '[');
    for (size_t i = 0; i < m->count; i++) write_trial(&m->trials[i], json);
    json_out_close(json, ']');
    json_out_close(json, '}');
}

void release_improvement(quantize_improvement *m) {
    for (size_t i = 0; i < m->count; i++) tare_memory_release((char *)m->trials[i].what); // NOLINT
    tare_memory_release(m->trials);
}

// --- the command ---

// The rows of a command refer to a field of its struct; here the struct is that field.
typedef struct improve_rows {
    quantize_options quantize;
} improve_rows;

#define FIELD(name) offsetof(quantize_options, name)
static const option options[] = {
    MODEL_OUTPUT_OPTION(quantize_options, output),
    FLOW_OPTIONS(improve_rows, quantize, NULL),
    CALIBRATION_OPTIONS(improve_rows, quantize, NULL, "state"),
    LADDER_OPTIONS(improve_rows, quantize, NULL),
    {.name = "check-data",
     .value = "DATA",
     .help = "samples to measure steps with",
     .details = "The first 16 are used. Keep other samples for the final test of the model.",
     .library_default = "the last ones of --calibrate's",
     .kind = OPTION_FILE,
     .offset = FIELD(check_data)},
    THREADS_OPTION(quantize_options, threads),
    JSON_OPTION(quantize_options, as_json),
    QUIET_OPTION(quantize_options, quiet),
    SIZE_OPTIONS(quantize_options, sizes),
    {.name = NULL},
};

static int run(const command *self, int argc, char **argv) {
    quantize_options o = {0};
    const char *operands[OPERAND_CAPACITY];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    if (o.calibrate == NULL) return wrong_usage(self->name, NULL, "--calibrate DATA is missing");
    o.automatic = true;
    o.stop = "lower";
    return quantize_run(self->name, &o, operands[0]);
}

const command improve_command = {
    .name = "improve",
    .summary = "quantize a model, and try steps that improve its accuracy, within a time budget",
    .operands = {"MODEL"},
    .least_operands = 1,
    .options = options,
    .details =
        "MODEL is a float or prepared model, as for tare quantize. Steps are tried one "
        "after the other, each "
        "on the best model so far: the model is quantized with the step and measured on samples "
        "that were not used for calibration, and the step is kept if the outputs improve by at "
        "least 0.2 dB, and gain on average over samples of the calibration, too. A step is not "
        "kept if a run gets more than 10 % slower "
        "or the tensors more than 25 % larger than the first model's (--max-slower, --max-larger), "
        "or 100 % if the outputs of all models within that have less than 5 dB. OUT always holds "
        "the best model so far; with "
        "--ladder a killed job continues where it was. docs/accuracy.md explains the steps.",
    .example = "tare improve net.safetensors --backend x86 --calibrate train.npz --budget 120 -o "
               "int8.safetensors\n",
    .run = run,
};
