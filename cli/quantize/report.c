// SPDX-License-Identifier: Apache-2.0
// The summary that tare quantize prints at the end.
#include "quantize/report.h"

#include <inttypes.h>
#include <string.h>

#include "quantize/check.h"
#include "quantize/improve.h"
#include "support/json.h"
#include "support/output.h"
#include "support/report.h"

static double percent(uint64_t count, uint64_t whole) {
    return whole > 0 ? 100.0 * (double)count / (double)whole : 0.0;
}

tare_status print_coverage(const tare_model *model, FILE *stream, bool *is_all_float,
                           tare_error *err) {
    tare_coverage c = {.struct_size = sizeof c};
    TRY(tare_model_coverage(model, &c, err));
    (void)fprintf(stream, "%" PRIu64 " of %" PRIu64 " operators in integers", c.quantized_op_count,
                  c.op_count);
    if (c.macs > 0)
        (void)fprintf(stream, ", %.1f %% of multiply-accumulates",
                      percent(c.quantized_macs, c.macs));
    (void)fprintf(
        stream, ", %.1f %% of weight bytes; %" PRIu64 " float island%s, %" PRIu64 " conversion%s\n",
        percent(c.quantized_weight_bytes, c.weight_bytes), c.float_island_count,
        c.float_island_count == 1 ? "" : "s", c.conversion_count,
        c.conversion_count == 1 ? "" : "s");
    if (c.open_loop_count > 0 && c.macs > 0)
        (void)fprintf(stream,
                      "of %" PRIu64 " loop%s one round is counted: how many there are depends on "
                      "the data\n",
                      c.open_loop_count, c.open_loop_count == 1 ? "" : "s");
    *is_all_float = c.quantized_op_count == 0 && c.quantized_weight_bytes == 0;
    return TARE_OK;
}

void print_next_command(FILE *stream, stop_stage stop, const char *input, const char *output,
                        const char *backend, const char *calibrate) {
    if (strcmp(output, "-") == 0) return;
    switch (stop) {
    case STOP_FUSE:
        (void)fprintf(stream, "next: tare print %s\n", output);
        break;
    case STOP_PREPARE:
        (void)fprintf(stream, "next: tare quantize %s%s%s%s -o OUT\n", output,
                      backend != NULL ? " --backend " : "", backend != NULL ? backend : "",
                      calibrate == NULL ? " --calibrate DATA" : "");
        break;
    case STOP_REFERENCE:
        (void)fprintf(stream, "next: tare explain %s\n", output);
        break;
    case STOP_LOWER:
        (void)fprintf(stream, "next: tare compare %s %s --data %s\n", input, output,
                      calibrate != NULL ? calibrate : "DATA");
        break;
    }
}

// --- the report's files ---

static tare_status write_explain(const tare_model *model, FILE *stream, tare_error *err) {
    return tare_model_explain_json(model, NULL, write_to_stream, stream, err);
}

tare_status write_coverage_to(const tare_model *model, json_out *json, tare_error *err) {
    tare_coverage c = {.struct_size = sizeof c};
    TRY(tare_model_coverage(model, &c, err));
    json_out_integer(json, "operators", c.op_count);
    json_out_integer(json, "quantized_operators", c.quantized_op_count);
    json_out_integer(json, "macs", c.macs);
    json_out_integer(json, "quantized_macs", c.quantized_macs);
    json_out_integer(json, "weight_bytes", c.weight_bytes);
    json_out_integer(json, "quantized_weight_bytes", c.quantized_weight_bytes);
    json_out_integer(json, "float_islands", c.float_island_count);
    json_out_integer(json, "conversions", c.conversion_count);
    json_out_integer(json, "open_loops", c.open_loop_count);
    return TARE_OK;
}

static tare_status write_coverage(const tare_model *model, FILE *stream, tare_error *err) {
    json_out json = json_out_begin(stream);
    TRY(write_coverage_to(model, &json, err));
    json_out_end(&json);
    return TARE_OK;
}

void print_race(const tare_never_slower_result *race, FILE *stream) {
    (void)fprintf(stream,
                  "never slower: %zu of %zu layers stay float; %.3f ms, all in integers %.3f ms, "
                  "all in float %.3f ms\n",
                  race->float_count, race->layer_count, (double)race->chosen_ns * 1e-6,
                  (double)race->integer_ns * 1e-6, (double)race->float_ns * 1e-6);
    if (race->kept_count > 0)
        (void)fprintf(stream,
                      "%zu more would be faster in float by %s, but not with the conversions "
                      "around %s\n",
                      race->kept_count, race->kept_count == 1 ? "itself" : "themselves",
                      race->kept_count == 1 ? "it" : "them");
}

void print_prediction(const tare_never_slower_result *found, FILE *stream) {
    (void)fprintf(
        stream,
        "%zu of %zu layers stay float, predicted to be slower in integers; predicted %.3f "
        "ms, all in integers %.3f ms (--no-predict)\n",
        found->float_count, found->layer_count, (double)found->chosen_ns * 1e-6,
        (double)found->integer_ns * 1e-6);
}

static void write_race(const tare_never_slower_result *race, const char *key, json_out *json) {
    json_out_open(json, key, '{');
    json_out_integer(json, "layers", race->layer_count);
    json_out_integer(json, "left_float", race->float_count);
    json_out_integer(json, "kept_in_integers", race->kept_count);
    json_out_number(json, "chosen_ms", (double)race->chosen_ns * 1e-6);
    json_out_number(json, "all_integers_ms", (double)race->integer_ns * 1e-6);
    json_out_number(json, "all_float_ms", (double)race->float_ns * 1e-6);
    json_out_close(json, '}');
}

void print_biases(const bias_report *biases, FILE *stream) {
    const tare_bias_correction_result *r = &biases->result;
    (void)fprintf(stream, "bias correction: %zu layer%s with %lld sample%s", r->layer_count,
                  r->layer_count == 1 ? "" : "s", (long long)r->sample_count,
                  r->sample_count == 1 ? "" : "s");
    if (r->skipped_count > 0)
        (void)fprintf(stream, "; %zu not (tare explain says why)", r->skipped_count);
    (void)fputc('\n', stream);
}

static void write_biases(const bias_report *biases, json_out *json) {
    json_out_open(json, "bias_correction", '{');
    json_out_integer(json, "samples", (uint64_t)biases->result.sample_count);
    json_out_integer(json, "skipped", biases->result.skipped_count);
    json_out_open(json, "layers", '[');
    for (size_t i = 0; i < biases->count; i++) {
        const corrected_layer *layer = &biases->layers[i];
        json_out_open(json, NULL, '{');
        json_out_string(json, "node", layer->node);
        json_out_integer(json, "channels", layer->channels);
        json_out_number(json, "largest_shift", layer->largest_shift);
        json_out_number(json, "rms_shift", layer->rms_shift);
        json_out_bool(json, "new", layer->is_new);
        json_out_close(json, '}');
    }
    json_out_close(json, ']');
    json_out_close(json, '}');
}

tare_status print_job_json(const tare_model *model, const char *stage, const char *output,
                           const job_findings *found, FILE *stream, tare_error *err) {
    json_out json = json_out_begin(stream);
    json_out_string(&json, "output", output);
    json_out_string(&json, "stage", stage);
    if (tare_model_get_stage(model) >= TARE_STAGE_REFERENCE)
        TRY(write_coverage_to(model, &json, err));
    if (found->race != NULL) write_race(found->race, "never_slower", &json);
    if (found->race == NULL && found->prediction != NULL)
        write_race(found->prediction, "predicted", &json);
    if (found->biases != NULL) write_biases(found->biases, &json);
    write_improvement(found->improvement, &json);
    write_check(found->check, &json);
    json_out_end(&json);
    return TARE_OK;
}

static tare_status write_text(const tare_model *model, FILE *stream, tare_error *err) {
    TRY(tare_model_print(model, TARE_PRINT_MODEL, write_to_stream, stream, err));
    (void)fputc('\n', stream);
    return TARE_OK;
}

static const struct {
    const char *name;
    tare_status (*write)(const tare_model *model, FILE *stream, tare_error *err);
} files[REPORT_FILES] = {
    {"explain.json", write_explain}, {"coverage.json", write_coverage}, {"model.txt", write_text}};

tare_status prepare_report(const tare_model *model, const char *folder, report_files *out,
                           tare_error *err) {
    tare_status status = output_make_folder(folder);
    for (size_t i = 0; i < REPORT_FILES && status == TARE_OK; i++) {
        output_file *file = &out->files[i];
        status = output_open(file, folder, files[i].name);
        if (status == TARE_OK) status = files[i].write(model, file->text.stream, err);
        status = output_prepare(file, status);
    }
    return status;
}

tare_status place_report(report_files *r, tare_status status) {
    for (size_t i = 0; i < REPORT_FILES; i++) status = output_place(&r->files[i], status);
    return status;
}
