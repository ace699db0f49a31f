// SPDX-License-Identifier: Apache-2.0
// The accuracy check at the end of tare quantize.
#include "quantize/check.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "support/report.h"

#define LEAST_SECONDS 0.003 // the least time that counts, for very short jobs
#define CLOSING_SHARE 0.15  // of the check's time, for findings and for freeing memory
enum { HELD_OUT = 8, WORST_LAYERS = 5 };

double seconds_now(void) {
    struct timespec now = {0};
    (void)timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool check_is_wanted(const quantize_options *o) {
    const bool is_converted = strcmp(o->stop, "reference") == 0 || strcmp(o->stop, "lower") == 0;
    return !o->no_check && is_converted && (o->calibrate != NULL || o->check_data != NULL);
}

int64_t check_sample_count(const quantize_options *o) {
    return check_is_wanted(o) && o->check_data == NULL ? HELD_OUT : 0;
}

tare_status check_keep_prepared(quantize_job *j) {
    if (!check_is_wanted(j->options)) return TARE_OK;
    j->check.prepared = j->model;
    return TARE_OK;
}

// --- the reference model to analyze ---

tare_status check_float_choices(const tare_model *made, const tare_model *prepared,
                                choice_list *out, tare_error *err) {
    const size_t count = tare_model_decision_count(made);
    out->items = tare_memory_allocate(count + 1, sizeof *out->items);
    if (out->items == NULL) return TARE_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        tare_decision d = {.struct_size = sizeof d};
        TRY(tare_model_decision_at(made, i, &d, err));
        const bool is_choice =
            strcmp(d.decision, "left float") == 0 &&
            (strcmp(d.rule, "never slower") == 0 || strcmp(d.rule, "cost model") == 0 ||
             strcmp(d.rule, "improve") == 0);
        if (is_choice && tare_model_find_node(prepared, d.node) != NULL)
            out->items[out->count++] =
                (tare_float_choice){.node = d.node, .rule = d.rule, .reason = d.reason};
    }
    return TARE_OK;
}

// The conversion may have left it, where nothing was chosen or changed afterwards.
static tare_status make_reference(quantize_job *j, tare_model **out) {
    const quantize_options *o = j->options;
    const bool has_choices = o->never_slower || o->automatic || j->race.float_count > 0;
    if (*out != NULL && !has_choices) return TARE_OK;
    tare_model_destroy(*out);
    *out = NULL;
    choice_list choices = {.items = NULL};
    tare_status status = TARE_OK;
    if (has_choices) status = check_float_choices(j->model, j->check.prepared, &choices, j->err);
    if (status == TARE_OK)
        status = j->flow->open_up(j, j->check.prepared, choices.items, choices.count, out);
    tare_memory_release(choices.items);
    return status;
}

// --- the check ---

// The reference of a job's prepared model before steps of improvement changed it, where the job
// began with that one.
static tare_status make_exact(quantize_job *j) {
    quantize_check *c = &j->check;
    return c->original != NULL && j->given == NULL
               ? j->flow->open_up(j, c->original, NULL, 0, &c->exact)
               : TARE_OK;
}

static bool is_of_the_machine(tare_status status) {
    return status == TARE_OUT_OF_MEMORY || status == TARE_IO;
}

static bool has_limit(const quantize_options *o) {
    return o->limits.min_sqnr != NULL || o->limits.max_drop != NULL || o->metric != NULL;
}

// The time left for the analysis. The check began after `before` seconds, and used `taken` seconds
// to make the models that it compares.
static double seconds_left(double before, double taken) {
    const double all = before * CHECK_TIME_SHARE / (1 - CHECK_TIME_SHARE);
    return fmax(fmax(all * (1 - CLOSING_SHARE), LEAST_SECONDS) - taken, 1e-9);
}

static tare_status analyze(quantize_job *j, tare_data *data, predictions *p) {
    quantize_check *c = &j->check;
    TRY(make_exact(j));
    TRY(make_reference(j, &c->reference));
    // If a limit is given or samples are named, the result must not depend on time.
    const bool is_whole = has_limit(j->options) || j->options->check_data != NULL;
    const tare_analyze_options options = {
        .struct_size = sizeof options,
        .quantized = j->model,
        .exact = j->given != NULL ? j->given : c->exact,
        .is_brief = true,
        .sample_limit = j->options->check_data != NULL ? 0 : tare_data_held_out_count(data),
        .seconds =
            is_whole ? HUGE_VAL : seconds_left(c->begin - j->begin, seconds_now() - c->begin),
        .thread_count = (int)j->options->threads,
        .predictions = j->options->metric != NULL ? keep_predictions : NULL,
        .predictions_user = p,
        .progress = progress_callback,
        .progress_user = "checking"};
    const tare_status status = tare_analyze(c->reference, data, &options, &c->analysis, j->err);
    end_progress();
    TRY(status);
    tare_analysis_get_verdict(c->analysis, &c->verdict);
    c->preparation_db = tare_analysis_preparation_db(c->analysis);
    c->is_improved = j->improvement.result.kept_count > 0;
    return measure_metric(j->options->metric, p, &c->metric, j->err);
}

static tare_status open_data(quantize_job *j, tare_data **out) {
    const quantize_options *o = j->options;
    if (o->check_data != NULL) {
        const tare_data_options own = {.batch_size = 1};
        return tare_data_open(o->check_data, j->check.prepared, &own, out, j->err);
    }
    TRY(tare_data_turn_to_held_out(j->data, j->err));
    *out = j->data;
    j->data = NULL;
    return TARE_OK;
}

static tare_status run_session(const quantize_job *j, const tare_batch *batch) {
    const tare_session_options options = {.struct_size = sizeof options,
                                          .thread_count = (int)j->options->threads};
    tare_session *session = NULL;
    size_t count = 0;
    TRY(tare_session_create(j->model, &options, &session, j->err));
    const size_t room = tare_session_output_count(session);
    tare_tensor **outputs = tare_memory_allocate(room + 1, sizeof(tare_tensor *));
    tare_status status = TARE_OUT_OF_MEMORY;
    if (outputs != NULL)
        status = tare_session_run(session, batch->inputs, batch->input_count, outputs, room, &count,
                                  j->err);
    for (size_t i = 0; i < count && status == TARE_OK; i++) tare_tensor_release(outputs[i]);
    tare_memory_release(outputs);
    tare_session_destroy(session);
    return status;
}

// The analysis has failed. A model that does not run is not handed out; where the cause is another,
// a form of the model that is used for the check alone, it is.
static tare_status check_that_it_runs(quantize_job *j, tare_data *data) {
    quantize_check *c = &j->check;
    tare_batch batch = {.struct_size = sizeof batch};
    bool done = false;
    (void)snprintf(c->failure, sizeof c->failure, "%s", tare_error_message(j->err));
    tare_error_clear(j->err);
    TRY(tare_data_rewind(data, j->err));
    TRY(tare_data_next(data, &batch, &done, j->err));
    const tare_status status = done ? TARE_OK : run_session(j, &batch);
    if (status == TARE_OK || is_of_the_machine(status)) return status;
    char message[sizeof c->failure];
    (void)snprintf(message, sizeof message, "%s", tare_error_message(j->err));
    return fail_here(j->input,
                     "leave that operator float by --qconfig or --quantizer-config, or write the "
                     "model as it is with --no-check",
                     "the quantized model does not run on a held-out sample: %s", message);
}

static tare_status run_check(quantize_job *j) {
    predictions p = {.floats = {.count = 0}};
    tare_data *data = NULL;
    TRY(open_data(j, &data));
    tare_status status = analyze(j, data, &p);
    const bool is_final = status == TARE_OK || is_of_the_machine(status) ||
                          j->options->check_data != NULL || has_limit(j->options);
    if (!is_final) {
        status = check_that_it_runs(j, data);
        j->check.why_not = "its float form, or a comparison with it, failed";
    }
    tare_data_close(data);
    predictions_release(&p);
    return status;
}

tare_status check_model_made(quantize_job *j) {
    const quantize_options *o = j->options;
    quantize_check *c = &j->check;
    if (c->prepared == NULL) return TARE_OK;
    if (o->check_data == NULL && j->held_out_count == 0) {
        c->why_not = "all samples were used for calibration; --check-data names others";
        return has_limit(o) ? fail_here(o->calibrate, "--check-data DATA names samples for it",
                                        "no sample is left to check the model with")
                            : TARE_OK;
    }
    c->begin = seconds_now();
    const tare_status status = run_check(j);
    c->seconds = seconds_now() - c->begin;
    c->job_seconds = seconds_now() - j->begin;
    if (status != TARE_OK || c->why_not != NULL) return status;
    return judge_verdict(&c->verdict, &c->metric, &o->limits, j->input);
}

// --- what is said ---

void print_check_note(const quantize_check *c) {
    if (c->failure[0] == '\0') return;
    (void)fprintf(stderr, "tare quantize: note: the model was not checked: %s\n", c->failure);
}

void print_check(const quantize_check *c, FILE *stream) {
    if (c->why_not != NULL) (void)fprintf(stream, "not checked: %s\n", c->why_not);
    if (c->analysis == NULL) return;
    print_verdict(&c->verdict, &c->metric, "held-out ", stream);
    print_preparation(c->preparation_db,
                      c->is_improved ? "fusing, preparing and improving" : "fusing and preparing",
                      stream);
    print_worst_layers(c->analysis, WORST_LAYERS, stream);
}

void write_check(const quantize_check *c, json_out *json) {
    if (c->analysis == NULL) return;
    json_out_open(json, "check", '{');
    write_verdict(&c->verdict, &c->metric, json);
    json_out_number(json, "preparation_db", c->preparation_db);
    json_out_number(json, "seconds", c->seconds);
    json_out_number(json, "job_seconds", c->job_seconds);
    write_worst_layers(c->analysis, WORST_LAYERS, json);
    json_out_close(json, '}');
}

void release_check(quantize_check *c) {
    tare_analysis_destroy(c->analysis);
    tare_model_destroy(c->reference);
    tare_model_destroy(c->exact);
    tare_model_destroy(c->original);
    tare_model_destroy(c->prepared);
}
