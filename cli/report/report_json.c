// SPDX-License-Identifier: Apache-2.0
// Writes the report as JSON: one object with the --json output of the other commands.
#include <string.h>
#include <time.h>

#include "analyze/analysis_json.h"
#include "quantize/report.h"
#include "report/report.h"
#include "support/page.h"
#include "support/report.h"

static tare_status write_model(const char *key, const char *path, const tare_model *model,
                               json_out *json, tare_error *err) {
    tare_model_facts facts = {.struct_size = sizeof facts};
    TRY(tare_model_get_facts(model, &facts, err));
    json_out_open(json, key, '{');
    json_out_string(json, "file", path);
    json_out_integer(json, "weight_bytes", facts.weight_bytes);
    json_out_integer(json, "parameters", facts.parameter_count);
    json_out_integer(json, "nodes", tare_model_node_count(model));
    json_out_close(json, '}');
    return TARE_OK;
}

static tare_status write_explanation(const tare_model *model, json_out *json, tare_error *err) {
    page text = {.stream = NULL};
    if (tare_model_decision_count(model) == 0) return TARE_OK;
    TRY(page_open(&text));
    tare_status status = tare_model_explain_json(model, NULL, write_to_stream, text.stream, err);
    status = page_close(&text, status);
    if (status == TARE_OK) json_out_raw(json, "explain", text.chars);
    page_release(&text);
    return status;
}

static void write_date(json_out *json) {
    char date[32] = "";
    const time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc) != NULL) (void)strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_out_string(json, "date", date);
}

static tare_status write_models(const report_job *j, json_out *json) {
    json_out_open(json, "models", '{');
    TRY(write_model("float", j->float_path, j->float_model, json, j->err));
    TRY(write_model("quantized", j->quantized_path, j->quantized, json, j->err));
    json_out_close(json, '}');
    return TARE_OK;
}

static tare_status write_what_runs(const report_job *j, json_out *json) {
    json_out_open(json, "coverage", '{');
    TRY(write_coverage_to(j->quantized, json, j->err));
    json_out_close(json, '}');
    TRY(report_write_graph(j->quantized, json, j->err));
    return write_explanation(j->quantized, json, j->err);
}

// The ranges of values that QUANTIZED computes itself.
static void write_ranges(const tare_debug_comparison *values, json_out *json) {
    tare_tensor_range r;
    json_out_open(json, "tensors", '[');
    for (size_t i = 0; tare_debug_comparison_get_range(values, i, &r); i++) range_write(&r, json);
    json_out_close(json, ']');
}

static void write_what_was_measured(const report_job *j, json_out *json) {
    json_out_open(json, "compare", '{');
    comparison_write(&j->comparison, json);
    json_out_close(json, '}');
    if (j->analysis != NULL) {
        json_out_open(json, "analyze", '{');
        analysis_write(j->analysis, &j->verdict, &j->metric, json);
        json_out_close(json, '}');
    } else {
        write_ranges(j->comparison.values, json);
    }
    if (!j->was_timed) return;
    json_out_open(json, "bench", '{');
    bench_write(&j->bench, json);
    json_out_close(json, '}');
}

tare_status report_write(const report_job *j, FILE *stream) {
    json_out json = json_out_begin(stream);
    json_out_string(&json, "version", tare_version());
    write_date(&json);
    json_out_string(&json, "data", j->options->data);
    TRY(write_models(j, &json));
    json_out_open(&json, "verdict", '{');
    write_verdict(&j->verdict, &j->metric, &json);
    json_out_close(&json, '}');
    TRY(report_write_advice(j, &json));
    write_what_was_measured(j, &json);
    TRY(write_what_runs(j, &json));
    json_out_end(&json);
    return TARE_OK;
}
