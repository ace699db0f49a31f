// SPDX-License-Identifier: Apache-2.0
// Reads a recorded network, prepares and calibrates it, and measures its outputs against torch's.
#include "support/test.h"

#include "golden/networks.h"

#include <math.h>
#include <stdlib.h>

#include "core/json/json.h"
#include "core/text/text.h"
#include "model/model.h"
#include "support/models.h"
#include "support/temp.h"

// --- reading ---

void read_network(const char *name, recorded_case *out) {
    char members[64];
    const case_place place = {name, "tests/data/networks.zip", members};
    snprintf(members, sizeof members, "%s/", name);
    CHECK_DONE(case_read(&place, out, job_error()));
}

void read_program_file(const char *name, const char *file, case_bytes *out) {
    char members[64];
    const case_place place = {name, "tests/data/network_programs.zip", members};
    snprintf(members, sizeof members, "%s/", name);
    CHECK_DONE(case_read_file(&place, file, out, job_error()));
}

// Zeros give way to the recorded values.
static tare_status take_values(void *user, const char *path, module *m, tare_error *err) {
    const recorded_case *recorded = user;
    char name[512];
    for (size_t i = 0; i < m->tensor_count; i++) {
        const named_tensor *t = &m->tensors[i];
        snprintf(name, sizeof name, "%s%s%s", path, *path != '\0' ? "." : "", t->name);
        tare_tensor *known = tare__safetensors_get(&recorded->model, name);
        if (known == NULL || t->tensor == NULL) continue;
        assert_int_equal(known->count, t->tensor->count);
        TARE_TRY(tare__module_set_tensor(m, t->name, known, t->is_parameter, err));
    }
    return TARE_OK;
}

tare_model *read_program(const recorded_case *recorded, const char *file) {
    case_bytes bytes = {0};
    tare_model *model = NULL;
    read_program_file(recorded->name, file, &bytes);
    temp_write(temp_path(file), bytes.data, bytes.size);
    tare__storage_release(bytes.store);
    CHECK_DONE(tare_model_read(temp_path(file), NULL, &model, job_error()));
    if (strcmp(file, "model.pt2") == 0)
        CHECK_DONE(tare__module_walk(model->root, take_values, (void *)recorded, job_error()));
    return model;
}

tare_model *prepare_program(const tare_model *model, const char *quantizer, const char *config,
                            bool is_qat) {
    char json[128];
    tare_quantizer_settings *settings = NULL;
    tare_quantizer *q = NULL;
    tare_model *out = NULL;
    snprintf(json, sizeof json, "{\"global\": {\"default\": {%s}}}", config);
    CHECK_DONE(
        tare_quantizer_settings_from_json(json, strlen(json), quantizer, &settings, job_error()));
    CHECK_DONE(tare_quantizer_builtin(quantizer, settings, &q, job_error()));
    if (is_qat)
        CHECK_DONE(tare_prepare_qat_pt2e(model, q, &out, job_error()));
    else
        CHECK_DONE(tare_prepare_pt2e(model, q, &out, job_error()));
    tare_quantizer_destroy(q);
    tare_quantizer_settings_destroy(settings);
    return out;
}

tensors tensors_of(const safetensors *data, const char *prefix) {
    tensors found = {0};
    char name[32];
    for (; found.count < MOST_TENSORS; found.count++) {
        snprintf(name, sizeof name, "%s.%zu", prefix, found.count);
        found.items[found.count] = tare__safetensors_get(data, name);
        if (found.items[found.count] == NULL) break;
    }
    assert_true(found.count > 0);
    return found;
}

tensors run_tensors(const tare_model *model, const tensors *inputs) {
    tare_tensor *out[MOST_TENSORS] = {0};
    tare_session *session = NULL;
    tensors results = {0};
    CHECK_DONE(tare_session_create(model, NULL, &session, job_error()));
    CHECK_DONE(tare_session_run(session, inputs->items, inputs->count, out, MOST_TENSORS,
                                &results.count, job_error()));
    for (size_t i = 0; i < results.count; i++) results.items[i] = out[i];
    tare_session_destroy(session);
    return results;
}

void release_tensors(tensors *t) {
    for (size_t i = 0; i < t->count; i++) tare_tensor_release((tare_tensor *)t->items[i]);
    *t = (tensors){0};
}

// --- comparing ---

double sqnr_of(const tensors *expected, const tensors *found) {
    double signal = 0, noise = 0;
    assert_int_equal(expected->count, found->count);
    for (size_t i = 0; i < expected->count; i++) {
        tare_tensor *x = NULL, *y = NULL;
        CHECK_DONE(tare_tensor_to_float(expected->items[i], &x, job_error()));
        CHECK_DONE(tare_tensor_to_float(found->items[i], &y, job_error()));
        assert_int_equal(x->count, y->count);
        for (int64_t k = 0; k < x->count; k++) {
            const double a = (double)tare__f32(x)[k], b = (double)tare__f32(y)[k];
            signal += a * a;
            noise += (a - b) * (a - b);
        }
        tare_tensor_release(x);
        tare_tensor_release(y);
    }
    return noise > 0 ? 10 * log10(signal / noise) : 1000;
}

void check_near(const char *name, const tensors *expected, const tensors *found) {
    assert_int_equal(expected->count, found->count);
    for (size_t i = 0; i < expected->count; i++) {
        const tare_tensor *x = expected->items[i], *y = found->items[i];
        assert_int_equal(x->count, y->count);
        float most = 0, error = 0;
        for (int64_t k = 0; k < x->count; k++) {
            most = fmaxf(most, fabsf(tare__f32(x)[k]));
            error = fmaxf(error, fabsf(tare__f32(x)[k] - tare__f32(y)[k]));
            assert_true(isfinite(tare__f32(y)[k]));
        }
        assert_true(most > 0);
        if (!(error <= 1e-4f * most))
            fail_msg("%s: output %zu differs from torch's by %g of %g", name, i, (double)error,
                     (double)most);
    }
}

// --- data ---

void calibrate_network(tare_model *p, const tensors *inputs) {
    tare_data *data = NULL;
    tare_batch batch = {.struct_size = sizeof batch};
    const tare_data_options options = {.struct_size = sizeof options, .batch_size = 8};
    bool done = false;
    if (inputs->items[0]->dtype != TARE_FLOAT32) {
        CHECK_DONE(tare_calibrate(p, inputs->items, inputs->count, job_error()));
        return;
    }
    CHECK_DONE(tare_data_open("random:16:1", p, &options, &data, job_error()));
    for (;;) {
        CHECK_DONE(tare_data_next(data, &batch, &done, job_error()));
        if (done) break;
        CHECK_DONE(tare_calibrate(p, batch.inputs, batch.input_count, job_error()));
    }
    tare_data_close(data);
}

// Two samples say little: where one code falls the other way in a gate that multiplies whole
// channels, a small network's output moves by decibels.
double sqnr_over_many(const tare_model *exact, const tare_model *found, const tensors *inputs) {
    tare_data *data = NULL;
    tare_batch batch = {.struct_size = sizeof batch};
    const tare_data_options options = {.struct_size = sizeof options, .batch_size = 32};
    const bool is_float = inputs->items[0]->dtype == TARE_FLOAT32;
    tensors many = *inputs;
    bool done = false;
    if (is_float) {
        CHECK_DONE(tare_data_open("random:32:9", exact, &options, &data, job_error()));
        CHECK_DONE(tare_data_next(data, &batch, &done, job_error()));
        many.count = batch.input_count;
        for (size_t i = 0; i < batch.input_count; i++) many.items[i] = batch.inputs[i];
    }
    tensors expected = run_tensors(exact, &many), got = run_tensors(found, &many);
    const double sqnr = sqnr_of(&expected, &got);
    release_tensors(&expected);
    release_tensors(&got);
    tare_data_close(data);
    return sqnr;
}

// --- texts ---

char *text_of_lines(const json_t *lines, const char *numbers) {
    text out = {0};
    while (*numbers != '\0') {
        char *end = NULL;
        const size_t first = strtoul(numbers, &end, 10);
        const size_t last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        assert_true(end > numbers && first <= last && last < json_array_size(lines));
        for (size_t i = first; i <= last; i++) {
            tare__text_append(&out, json_string_value(json_array_get(lines, i)));
            tare__text_char(&out, '\n');
        }
        numbers = end + strspn(end, " ");
    }
    char *taken = tare__text_take(&out);
    assert_non_null(taken);
    return taken;
}

void check_preview(const tare_model *prepared, const tare_model *reference) {
    text said = {0};
    json_t *json = NULL, *island = NULL;
    size_t i = 0, floats = 0;
    tare_coverage c = {.struct_size = sizeof c};
    CHECK_DONE(tare_model_preview(prepared, true, tare__text_append_writer, &said, job_error()));
    CHECK_DONE(tare__json_parse(said.chars, said.length, &json, job_error()));
    json_array_foreach(json_object_get(json, "islands"), i, island) floats +=
        strcmp(json_string_value(json_object_get(island, "kind")), "float") == 0;
    const json_int_t conversions = json_integer_value(json_object_get(json, "quantized_tensors")) +
                                   json_integer_value(json_object_get(json, "dequantized_tensors"));
    CHECK_DONE(tare_model_coverage(reference, &c, job_error()));
    assert_int_equal(floats, c.float_island_count);
    assert_int_equal(conversions, c.conversion_count);
    json_decref(json);
    tare__text_release(&said);
}
