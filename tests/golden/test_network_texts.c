// SPDX-License-Identifier: Apache-2.0
// Small relatives of the networks that people have, quantized for x86 and qnnpack, after training
// and for it: prepared, in reference form and lowered they print as torch prints them. No data runs
// through them, so that the texts say the graph alone. Data: tests/data/networks.zip, made by
// tests/data/pack_networks.py.
#include "support/test.h"

#include "core/memory/alloc.h"
#include "core/text/text.h"
#include "golden/networks.h"
#include "replay/case.h"
#include "replay/text_compare.h"
#include "support/models.h"

typedef struct network {
    const char *name;
    recorded_case recorded;
    agreement numbers;
    size_t compared;
} network;

// --- texts ---

static bool append(void *user, const char *chars, size_t length) {
    text *out = user;
    tare__text_append_n(out, chars, length);
    return !out->failed;
}

static void check_text(network *n, const char *backend, const char *form, const char *stage,
                       const tare_model *model) {
    char title[64];
    findings found = {0};
    text ours = {0};
    snprintf(title, sizeof title, "%s %s %s", backend, form, stage);
    const json_t *texts = json_object_get(n->recorded.json, "texts");
    const char *numbers = json_string_value(json_object_get(texts, title));
    assert_non_null(numbers);
    char *expected = text_of_lines(json_object_get(n->recorded.json, "lines"), numbers);
    CHECK_DONE(tare_model_print(model, TARE_PRINT_MODEL, append, &ours, job_error()));
    compare_texts(title, tare__text_chars(&ours), expected, &n->numbers, &found);
    if (findings_any(&found)) fail_msg("%s: %s", n->name, tare__text_chars(&found.first));
    findings_release(&found);
    tare__text_release(&ours);
    tare__free(expected);
    n->compared++;
}

// --- the flow ---

// The default of the backend's name without the types that are left float in both.
static tare_qconfig_mapping *mapping_for(const network *n, const char *backend, const char *form) {
    char json[64];
    size_t i = 0;
    const json_t *floats = json_object_get(n->recorded.json, "left_float"), *name = NULL;
    tare_qconfig_mapping *out = NULL;
    const bool is_qat = strcmp(form, "qat") == 0;
    snprintf(json, sizeof json, "{\"default%s\": \"%s\"}", is_qat ? "_qat" : "", backend);
    CHECK_DONE(tare_qconfig_mapping_from_json(json, strlen(json), &out, job_error()));
    json_array_foreach(json_object_get(floats, form), i, name)
        tare_qconfig_mapping_set_object_type(out, json_string_value(name), NULL);
    return out;
}

// Trained models are prepared for training in training mode, and converted in evaluation.
static tare_model *prepare_form(const network *n, const tare_prepare_options *options,
                                const char *form) {
    tare_model *model = NULL, *out = NULL;
    CHECK_DONE(case_model(&n->recorded, &model, job_error()));
    if (strcmp(form, "qat") == 0) {
        CHECK_DONE(tare_model_set_training(model, true, job_error()));
        CHECK_DONE(tare_prepare_qat_fx(model, options, &out, job_error()));
        CHECK_DONE(tare_model_set_training(out, false, job_error()));
    } else {
        CHECK_DONE(tare_prepare_fx(model, options, &out, job_error()));
    }
    tare_model_destroy(model);
    return out;
}

static void check_form(network *n, const char *backend_name, const char *form) {
    tare_backend_config *backend = builtin_backend(backend_name);
    tare_qconfig_mapping *mapping = mapping_for(n, backend_name, form);
    // Lenient: not every network has the types that are left float, and no observer sees data.
    const tare_prepare_options to_prepare = {
        .backend = backend, .qconfig_mapping = mapping, .is_lenient = true};
    const tare_convert_options to_convert = {
        .backend = backend, .engine = tare_engine_from_name(backend_name), .is_lenient = true};
    tare_model *p = prepare_form(n, &to_prepare, form), *reference = NULL, *lower = NULL;
    check_text(n, backend_name, form, "prepare", p);
    CHECK_DONE(tare_convert_to_reference_fx(p, &to_convert, &reference, job_error()));
    check_explained(reference);
    check_text(n, backend_name, form, "reference", reference);
    CHECK_DONE(tare_convert_fx(p, &to_convert, &lower, job_error()));
    check_explained(lower);
    check_text(n, backend_name, form, "lower", lower);
    tare_model_destroy(lower);
    tare_model_destroy(reference);
    tare_model_destroy(p);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

static void check_network(void **state) {
    network *n = *state;
    read_network(n->name, &n->recorded);
    for (size_t i = 0; i < 2; i++) {
        const char *backend = i == 0 ? "x86" : "qnnpack";
        check_form(n, backend, "ptq");
        check_form(n, backend, "qat");
    }
    assert_int_equal(n->compared, json_object_size(json_object_get(n->recorded.json, "texts")));
    case_release(&n->recorded);
}

#define ROW(network_name, least_sqnr) {.name = network_name},
static network networks[] = {NETWORKS(ROW)};

int main(void) {
    enum { COUNT = sizeof networks / sizeof *networks };
    struct CMUnitTest tests[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        tests[i] = (struct CMUnitTest){
            .name = networks[i].name, .test_func = check_network, .initial_state = &networks[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
