// SPDX-License-Identifier: Apache-2.0
// An analysis as JSON.
#include "analyze/analysis_json.h"

static void write_findings(const tare_analysis *a, json_out *json) {
    tare_finding f;
    json_out_open(json, "findings", '[');
    for (size_t i = 0; tare_analysis_get_finding(a, i, &f); i++) {
        json_out_open(json, NULL, '{');
        json_out_string(json, "kind", f.kind);
        json_out_string(json, "layer", f.layer);
        json_out_string(json, "tensor", f.tensor);
        json_out_number(json, "db", f.db);
        json_out_string(json, "cause", f.cause);
        json_out_string(json, "remedy", f.remedy);
        json_out_string(json, "step", f.step);
        json_out_close(json, '}');
    }
    json_out_close(json, ']');
}

static void write_layers(const tare_analysis *a, json_out *json) {
    tare_layer_error l;
    json_out_open(json, "layers", '[');
    for (size_t i = 0; tare_analysis_get_layer(a, i, &l); i++) write_layer(&l, json);
    json_out_close(json, ']');
}

static void write_numbers(json_out *json, const char *key, const double *numbers, int64_t count) {
    json_out_open(json, key, '[');
    for (int64_t i = 0; i < count; i++) json_out_number(json, NULL, numbers[i]);
    json_out_close(json, ']');
}

void range_write(const tare_tensor_range *r, json_out *json) {
    json_out_open(json, NULL, '{');
    json_out_string(json, "node", r->node);
    json_out_string(json, "value", r->value);
    json_out_string(json, "layer", r->layer);
    json_out_bool(json, "weight", r->is_weight);
    if (r->has_qparams) {
        json_out_number(json, "scale", r->scale);
        json_out_number(json, "zero_point", (double)r->zero_point);
        json_out_number(json, "quant_min", (double)r->quant_min);
        json_out_number(json, "quant_max", (double)r->quant_max);
        json_out_number(json, "low", r->low);
        json_out_number(json, "high", r->high);
    }
    json_out_number(json, "seen_low", r->seen_low);
    json_out_number(json, "seen_high", r->seen_high);
    json_out_integer(json, "elements", (uint64_t)r->element_count);
    json_out_integer(json, "saturated", (uint64_t)r->saturated_count);
    json_out_integer(json, "masked", (uint64_t)r->masked_count);
    json_out_number(json, "sqnr_db", r->sqnr_db);
    write_numbers(json, "channel_low", r->channel_low, r->channel_count);
    write_numbers(json, "channel_high", r->channel_high, r->channel_count);
    json_out_number(json, "histogram_low", r->histogram_low);
    json_out_number(json, "histogram_high", r->histogram_high);
    json_out_open(json, "histogram", '[');
    for (int i = 0; i < TARE_HISTOGRAM_BINS; i++) json_out_integer(json, NULL, r->histogram[i]);
    json_out_close(json, ']');
    json_out_close(json, '}');
}

void analysis_write(const tare_analysis *a, const tare_verdict *v, const metric *m,
                    json_out *json) {
    tare_tensor_range r;
    json_out_open(json, "verdict", '{');
    write_verdict(v, m, json);
    json_out_close(json, '}');
    json_out_number(json, "preparation_db", tare_analysis_preparation_db(a));
    write_findings(a, json);
    write_layers(a, json);
    json_out_open(json, "tensors", '[');
    for (size_t i = 0; tare_analysis_get_range(a, i, &r); i++) range_write(&r, json);
    json_out_close(json, ']');
}
