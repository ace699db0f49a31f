// SPDX-License-Identifier: Apache-2.0
// Rates the figures of a report, and gives advice.
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "report/report.h"
#include "support/report.h"

// Healthy 8-bit networks have at least 25 dB.
#define GOOD_DB 25.0
// A smaller loss is not worth a conversion.
#define LOST_SHARE 0.05
enum { MOST_FINDINGS = 3, MOST_FLOAT_LAYERS = 3, TEXT_SIZE = 1024, COMMAND_SIZE = 2048 };

typedef enum level { LEVEL_GOOD, LEVEL_FAIR, LEVEL_POOR } level;

static level level_of(double value, double good, double fair) {
    return value >= good ? LEVEL_GOOD : value >= fair ? LEVEL_FAIR : LEVEL_POOR;
}

// --- levels ---

static level accuracy_level(const report_job *j) {
    const verdict_limits defaults = {.min_sqnr = NULL};
    const tare_verdict *v = &j->verdict;
    if (is_below_limits(v, &j->metric, &defaults)) return LEVEL_POOR;
    const bool differs = v->has_classes && v->agreeing_count * 100 < v->sample_count * 99;
    return v->sqnr_db >= GOOD_DB && !differs ? LEVEL_GOOD : LEVEL_FAIR;
}

static double ratio(uint64_t a, uint64_t b) {
    return b > 0 ? (double)a / (double)b : 1;
}

// The share of multiply-accumulates if known, else of operators.
static double covered(const tare_coverage *c) {
    return c->macs > 0 ? ratio(c->quantized_macs, c->macs)
                       : ratio(c->quantized_op_count, c->op_count);
}

static void write_level(const char *key, level l, json_out *json) {
    static const char *const names[] = {"good", "fair", "poor"};
    json_out_string(json, key, names[l]);
}

static tare_status write_levels(const report_job *j, const tare_coverage *c, json_out *json) {
    tare_model_facts before = {.struct_size = sizeof before};
    tare_model_facts after = {.struct_size = sizeof after};
    TRY(tare_model_get_facts(j->float_model, &before, j->err));
    TRY(tare_model_get_facts(j->quantized, &after, j->err));
    json_out_open(json, "levels", '{');
    write_level("accuracy", accuracy_level(j), json);
    write_level("size", level_of(ratio(before.weight_bytes, after.weight_bytes), 3, 1.5), json);
    if (j->was_timed) write_level("speed", level_of(bench_speed_ratio(&j->bench), 1.5, 1), json);
    write_level("coverage", level_of(covered(c), 0.95, 0.7), json);
    json_out_close(json, '}');
    return TARE_OK;
}

// --- advice ---

static void CLI_PRINTF(4, 5)
    advise(json_out *json, const char *topic, const char *shell, const char *format, ...) {
    char text[TEXT_SIZE];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    json_out_open(json, NULL, '{');
    json_out_string(json, "topic", topic);
    json_out_string(json, "text", text);
    if (shell != NULL) json_out_string(json, "command", shell);
    json_out_close(json, '}');
}

static void add_option(char *line, const char *name, const char *value) {
    const size_t length = strlen(line);
    if (value != NULL)
        (void)snprintf(line + length, COMMAND_SIZE - length, " --%s %s", name, value);
}

// A command that starts from the float model, with the options that QUANTIZED was made with, as far
// as known.
static const char *flow_command(const report_job *j, const char *verb, const char *more,
                                char line[COMMAND_SIZE]) {
    const quantize_options *o = &j->options->quantize;
    (void)snprintf(line, COMMAND_SIZE, "tare %s %s", verb, j->float_path);
    add_option(line, "quantizer", o->quantizer);
    add_option(line, "quantizer-config", o->quantizer_config);
    add_option(line, "backend", o->quantizer == NULL && o->backend == NULL ? "NAME" : o->backend);
    add_option(line, "qconfig", o->qconfig);
    add_option(line, "calibrate", o->calibrate != NULL ? o->calibrate : "DATA");
    const size_t length = strlen(line);
    (void)snprintf(line + length, COMMAND_SIZE - length, "%s -o OUT.safetensors", more);
    return line;
}

static void advise_findings(const report_job *j, json_out *json) {
    tare_finding f;
    for (size_t i = 0; i < MOST_FINDINGS && tare_analysis_get_finding(j->analysis, i, &f); i++) {
        char line[COMMAND_SIZE], steps[128];
        (void)snprintf(steps, sizeof steps, " --steps %s", f.step);
        advise(json, "accuracy", f.step[0] != '\0' ? flow_command(j, "improve", steps, line) : NULL,
               "%s: %s. Remedy: %s.", f.layer, f.cause, f.remedy);
    }
}

static void advise_accuracy(const report_job *j, json_out *json) {
    char line[COMMAND_SIZE];
    const level l = accuracy_level(j);
    if (l != LEVEL_GOOD)
        advise(
            json, "accuracy", flow_command(j, "improve", "", line),
            "The outputs keep %.1f dB of the float model's; healthy networks of 8 bits keep %.0f "
            "and more. Let the ladder of tare improve repair what it can.",
            j->verdict.sqnr_db, GOOD_DB);
    if (j->analysis != NULL && l != LEVEL_GOOD) advise_findings(j, json);
}

static tare_status advise_coverage(const report_job *j, const tare_coverage *c, json_out *json) {
    size_t told = 0;
    if (covered(c) >= 0.95) return TARE_OK;
    const size_t count = tare_model_decision_count(j->quantized);
    for (size_t i = 0; i < count && told < MOST_FLOAT_LAYERS; i++) {
        tare_decision d = {.struct_size = sizeof d};
        TRY(tare_model_decision_at(j->quantized, i, &d, j->err));
        if (strcmp(d.decision, "left float") != 0) continue;
        advise(json, "coverage", NULL, "%s (%s) stays float: %s.", d.node, d.subject, d.reason);
        told++;
    }
    return TARE_OK;
}

// The share of the time that would be saved if no step were slower than in the float model.
static double lost_share(const bench_job *b) {
    double all = 0, lost = 0;
    for (size_t i = 0; i < b->layers.count; i++) {
        const layer *l = &b->layers.layers[i];
        const double ns = (double)l->step.median_ns, other = (double)l->other_ns;
        all += ns;
        if (other > 0 && ns > other) lost += ns - other;
    }
    return all > 0 ? lost / all : 0;
}

static void advise_speed(const report_job *j, json_out *json) {
    char line[COMMAND_SIZE];
    if (!j->was_timed) return;
    const double times = bench_speed_ratio(&j->bench), lost = lost_share(&j->bench);
    if (times < 1)
        advise(json, "speed", flow_command(j, "quantize", " --never-slower", line),
               "A run takes %.2f times as long as in floats. --never-slower leaves layers float "
               "that are faster so.",
               1 / times);
    else if (lost >= LOST_SHARE)
        advise(json, "speed", flow_command(j, "quantize", " --never-slower", line),
               "Steps that are slower than in floats cost %.0f %% of a run. --never-slower leaves "
               "layers float that are faster so.",
               100 * lost);
}

static void advise_looking(const report_job *j, json_out *json) {
    char line[COMMAND_SIZE];
    if (j->analysis != NULL) return;
    (void)snprintf(line, sizeof line,
                   "tare report %s %s --data %s --backend NAME --calibrate DATA -o %s",
                   j->float_path, j->quantized_path, j->options->data,
                   j->options->output != NULL ? j->options->output : "report.html");
    advise(json, "accuracy", line,
           "Single layers were not analyzed. With the options that the model was quantized with, "
           "this page also has causes, remedies and the ranges of weights.");
}

static bool is_all_good(const report_job *j, const tare_coverage *c) {
    return accuracy_level(j) == LEVEL_GOOD && covered(c) >= 0.95 &&
           (!j->was_timed || bench_speed_ratio(&j->bench) >= 1);
}

tare_status report_write_advice(const report_job *j, json_out *json) {
    tare_coverage c = {.struct_size = sizeof c};
    TRY(tare_model_coverage(j->quantized, &c, j->err));
    TRY(write_levels(j, &c, json));
    json_out_open(json, "advice", '[');
    if (is_all_good(j, &c))
        advise(json, "accuracy", NULL,
               "Nothing has to be done: measure the model with your own metric on data that "
               "calibrated nothing, then ship it.");
    advise_accuracy(j, json);
    TRY(advise_coverage(j, &c, json));
    advise_speed(j, json);
    advise_looking(j, json);
    json_out_close(json, ']');
    return TARE_OK;
}
