// SPDX-License-Identifier: Apache-2.0
// The verdict on a quantized model, and its worst layers.
#include "accuracy/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "options/command.h"
#include "support/report.h"

// The limit if none is given. Healthy 8-bit networks have at least 25 dB.
#define WARN_SQNR_DB 20.0
// Folded weights differ by roundings of floats: 100 dB and more, less where rows are chosen by
// them.
#define LEAST_PREPARATION_DB 60.0

// --- limits ---

static bool read_limit(const char *given, double otherwise, double *out) {
    char *end = NULL;
    *out = otherwise;
    if (given == NULL) return true;
    *out = strtod(given, &end);
    return end != given && *end == '\0' && isfinite(*out);
}

int check_limits(const char *where, const verdict_limits *limits) {
    double number = 0;
    if (!read_limit(limits->min_sqnr, 0, &number))
        return wrong_usage(where, "such as --min-sqnr 25", "--min-sqnr '%s' is no number of dB",
                           limits->min_sqnr);
    if (!read_limit(limits->max_drop, 0, &number))
        return wrong_usage(where, "such as --max-drop 0.01", "--max-drop '%s' is no number",
                           limits->max_drop);
    return EXIT_JOB_DONE;
}

static double share(int64_t count, int64_t all) {
    return all > 0 ? (double)count / (double)all : 0;
}

// The loss of the metric; without a metric, of the share of correct or equal answers. False: not
// known.
static bool find_drop(const tare_verdict *v, const metric *m, double *out) {
    if (m->has_values)
        *out = m->of_float - m->of_quantized;
    else if (v->has_labels)
        *out = share(v->float_correct - v->quantized_correct, v->sample_count);
    else if (v->has_classes)
        *out = 1 - share(v->agreeing_count, v->sample_count);
    return m->has_values || v->has_classes;
}

typedef struct excess {
    bool is_below_sqnr, is_above_drop, has_drop;
    double least_sqnr, most_drop, drop;
} excess;

static excess find_excess(const tare_verdict *v, const metric *m, const verdict_limits *limits) {
    excess e = {.drop = 0};
    (void)read_limit(limits->min_sqnr, WARN_SQNR_DB, &e.least_sqnr);
    (void)read_limit(limits->max_drop, INFINITY, &e.most_drop);
    e.is_below_sqnr = !(v->sqnr_db >= e.least_sqnr);
    e.has_drop = find_drop(v, m, &e.drop);
    e.is_above_drop = limits->max_drop != NULL && (!e.has_drop || e.drop > e.most_drop);
    return e;
}

bool is_below_limits(const tare_verdict *v, const metric *m, const verdict_limits *limits) {
    const excess e = find_excess(v, m, limits);
    return e.is_below_sqnr || e.is_above_drop;
}

tare_status judge_verdict(const tare_verdict *v, const metric *m, const verdict_limits *limits,
                          const char *where) {
    static const char *const hint =
        "tare analyze shows the causes; tare improve, or --auto, may repair it";
    const excess e = find_excess(v, m, limits);
    if (e.is_above_drop && !e.has_drop)
        return fail_here(where, "give --metric COMMAND, or data with labels",
                         "--max-drop: the model is no classifier, so there is no metric to drop");
    if (e.is_above_drop)
        return fail_here(where, hint, "the metric drops by %.4g, more than --max-drop %s", e.drop,
                         limits->max_drop);
    if (e.is_below_sqnr && limits->min_sqnr != NULL)
        return fail_here(where, hint, "the outputs keep %.2f dB, less than --min-sqnr %s",
                         v->sqnr_db, limits->min_sqnr);
    if (e.is_below_sqnr)
        (void)fprintf(stderr,
                      "tare quantize: warning: the outputs keep only %.1f dB of the float model's "
                      "(%s)\n",
                      v->sqnr_db, hint);
    return TARE_OK;
}

// --- for people ---

static const char *db_text(double db, char out[32]) {
    if (isnan(db))
        (void)snprintf(out, 32, "-");
    else if (isinf(db))
        (void)snprintf(out, 32, "%s", db > 0 ? "equal" : "broken");
    else
        (void)snprintf(out, 32, "%.1f dB", db);
    return out;
}

void print_verdict(const tare_verdict *v, const metric *m, const char *samples, FILE *stream) {
    char db[32];
    (void)fprintf(stream, "accuracy on %" PRId64 " %ssample%s: %s, cosine %.5f", v->sample_count,
                  samples, v->sample_count == 1 ? "" : "s", db_text(v->sqnr_db, db), v->cosine);
    if (v->has_classes)
        (void)fprintf(stream, ", %.1f %% of predictions agree",
                      100 * share(v->agreeing_count, v->sample_count));
    if (v->has_labels)
        (void)fprintf(stream, ", %.1f %% right in float and %.1f %% quantized",
                      100 * share(v->float_correct, v->sample_count),
                      100 * share(v->quantized_correct, v->sample_count));
    if (m->has_values)
        (void)fprintf(stream, ", metric %.6g in float and %.6g quantized", m->of_float,
                      m->of_quantized);
    (void)fputc('\n', stream);
}

void print_preparation(double db, const char *by, FILE *stream) {
    if (!(db < LEAST_PREPARATION_DB)) return;
    (void)fprintf(
        stream,
        "before anything was quantized, %s kept only %.1f dB of the float model's outputs\n", by,
        db);
}

static bool is_each_measured(const tare_analysis *a) {
    tare_layer_error layer;
    bool is_each = true;
    for (size_t i = 0; tare_analysis_get_layer(a, i, &layer); i++)
        is_each = is_each && !(isnan(layer.local_db) && isfinite(layer.reads_db));
    return is_each;
}

void print_worst_layers(const tare_analysis *a, size_t count, FILE *stream) {
    tare_layer_error layer;
    if (tare_analysis_layer_count(a) == 0 || count == 0) return;
    (void)fprintf(stream, is_each_measured(a)
                              ? "worst layers, each quantized alone:\n"
                              : "worst layers, by the error of their inputs where there was no "
                                "time to quantize each alone (tare analyze does):\n");
    for (size_t i = 0; i < count && tare_analysis_get_worst(a, i, &layer); i++) {
        char local[32], alone[32];
        const bool is_tested = !isnan(layer.alone_db);
        const double db = isnan(layer.local_db) ? layer.reads_db : layer.local_db;
        (void)fprintf(stream, "  %-24s %9s  %s%s%s%s\n", layer.float_node, db_text(db, local),
                      is_tested ? "outputs " : "", is_tested ? db_text(layer.alone_db, alone) : "",
                      is_tested ? "  " : "", layer.op);
        if (layer.cause[0] != '\0') (void)fprintf(stream, "      %s\n", layer.cause);
        if (layer.remedy[0] != '\0') (void)fprintf(stream, "      remedy: %s\n", layer.remedy);
    }
}

// --- JSON ---

void write_verdict(const tare_verdict *v, const metric *m, json_out *json) {
    json_out_integer(json, "samples", (uint64_t)v->sample_count);
    json_out_number(json, "sqnr_db", v->sqnr_db); // infinite: null
    json_out_number(json, "cosine", v->cosine);
    json_out_number(json, "max_abs_error", v->max_abs_error);
    if (v->has_classes)
        json_out_number(json, "agreement", share(v->agreeing_count, v->sample_count));
    if (v->has_labels) {
        json_out_number(json, "float_accuracy", share(v->float_correct, v->sample_count));
        json_out_number(json, "quantized_accuracy", share(v->quantized_correct, v->sample_count));
    }
    if (m->has_values) {
        json_out_number(json, "float_metric", m->of_float);
        json_out_number(json, "quantized_metric", m->of_quantized);
    }
}

void write_layer(const tare_layer_error *layer, json_out *json) {
    json_out_open(json, NULL, '{');
    json_out_string(json, "node", layer->node);
    json_out_string(json, "float_node", layer->float_node);
    json_out_string(json, "operator", layer->op);
    json_out_number(json, "local_db", layer->local_db);
    json_out_number(json, "weights_db", layer->weights_db);
    json_out_number(json, "activations_db", layer->activations_db);
    json_out_number(json, "cumulative_db", layer->cumulative_db);
    json_out_number(json, "cumulative_cosine", layer->cumulative_cosine);
    json_out_number(json, "alone_db", layer->alone_db);
    json_out_number(json, "without_db", layer->without_db);
    json_out_number(json, "reads_db", layer->reads_db);
    json_out_string(json, "cause", layer->cause);
    json_out_string(json, "remedy", layer->remedy);
    json_out_close(json, '}');
}

void write_worst_layers(const tare_analysis *a, size_t count, json_out *json) {
    tare_layer_error layer;
    json_out_open(json, "worst_layers", '[');
    for (size_t i = 0; i < count && tare_analysis_get_worst(a, i, &layer); i++)
        write_layer(&layer, json);
    json_out_close(json, ']');
}
