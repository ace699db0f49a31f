// SPDX-License-Identifier: Apache-2.0
// Complete examples: every text that torch 2.15 prints between a float model and its lowered form,
// and the names of its state. Data: tests/data/examples.zip, made by tests/data/pack_examples.py.
#include "support/test.h"

#include "replay/case.h"
#include "replay/explained.h"
#include "replay/run.h"
#include "replay/text_compare.h"
#include "tare/tare.h"

// Every example of the archive.
// clang-format off
static const char *const examples[] = {
    "01_cnn_static",
    "02_binary_and_outputs",
    "03_qat",
    "04_dynamic_int8",
    "05_dynamic_fp16",
    "06_decomposed",
    "07_embedding",
    "08_rnn_dynamic",
    "09_many_ops",
    "10_functional_conv",
    "11_quantized_io",
    "12_standalone_quantized_interface",
    "13_standalone_float_interface",
    "14_custom_lstm",
    "15_equalization",
    "16_onednn_conv_add_relu",
    "17_submodule_paths",
};
// clang-format on

typedef struct example {
    recorded_case recorded;
    tare_backend_config *backend;
    tare_qconfig_mapping *mapping;
    tare_qconfig_mapping *equalization;         // NULL: none
    tare_prepare_custom_config *prepare_config; // idem
    tare_convert_custom_config *convert_config;
    const tare_tensor **inputs;
    size_t input_count;
    arena memory;
    tare_model *prepared;
    agreement numbers;
    findings found;
    tare_error *err;
} example;

static void expect_ok(example *e, const char *step, tare_status status) {
    if (status != TARE_OK) findings_add_error(&e->found, FINDING_STRUCTURE, step, e->err);
    if (status != TARE_OK) fail_msg("%s: %s", e->recorded.name, tare__text_chars(&e->found.first));
}

static const json_t *setting(const example *e, const char *key) {
    return json_object_get(e->recorded.json, key);
}

// Both forms of a config, a name and an object, as JSON text.
static char *setting_text(const example *e, const char *key) {
    char *chars = json_dumps(setting(e, key), JSON_ENCODE_ANY);
    assert_non_null(chars);
    return chars;
}

static void read_settings(example *e) {
    char *mapping = setting_text(e, "qconfig_mapping");
    expect_ok(e, "mapping",
              tare_qconfig_mapping_from_json(mapping, strlen(mapping), &e->mapping, e->err));
    free(mapping);
    const char *backend = json_string_value(setting(e, "backend"));
    expect_ok(e, "backend", tare_backend_config_builtin(backend, &e->backend, e->err));
}

static void read_equalization(example *e) {
    if (setting(e, "equalization") == NULL) return;
    char *mapping = setting_text(e, "equalization");
    expect_ok(e, "equalization",
              tare_qconfig_mapping_from_json(mapping, strlen(mapping), &e->equalization, e->err));
    free(mapping);
}

static void read_custom_configs(example *e) {
    if (setting(e, "prepare_custom_config") != NULL) {
        char *json = setting_text(e, "prepare_custom_config");
        expect_ok(
            e, "prepare_custom_config",
            tare_prepare_custom_config_from_json(json, strlen(json), &e->prepare_config, e->err));
        free(json);
    }
    if (setting(e, "convert_custom_config") != NULL) {
        char *json = setting_text(e, "convert_custom_config");
        expect_ok(
            e, "convert_custom_config",
            tare_convert_custom_config_from_json(json, strlen(json), &e->convert_config, e->err));
        free(json);
    }
}

static void read_inputs(example *e) {
    e->input_count = e->recorded.data.tensors.count;
    e->inputs = tare__arena_array(&e->memory, e->input_count, sizeof *e->inputs);
    assert_non_null(e->inputs);
    for (size_t i = 0; i < e->input_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "input.%zu", i);
        e->inputs[i] = tare__safetensors_get(&e->recorded.data, name);
        assert_non_null(e->inputs[i]);
    }
}

static void check_text(example *e, const tare_model *model, tare_print_form form, const char *key) {
    const char *recorded = case_text(&e->recorded, key);
    text printed = {0};
    assert_non_null(recorded);
    expect_ok(e, key, tare_model_print(model, form, tare__text_append_writer, &printed, e->err));
    compare_texts(key, tare__text_chars(&printed), recorded, &e->numbers, &e->found);
    tare__text_release(&printed);
}

static void prepare(example *e) {
    const tare_prepare_options options = {.struct_size = sizeof options,
                                          .backend = e->backend,
                                          .qconfig_mapping = e->mapping,
                                          .custom_config = e->prepare_config,
                                          .equalization = e->equalization};
    tare_model *model = NULL;
    expect_ok(e, "read", case_model(&e->recorded, &model, e->err));
    const bool is_qat = json_is_true(setting(e, "is_qat"));
    expect_ok(
        e, "prepare",
        (is_qat ? tare_prepare_qat_fx : tare_prepare_fx)(model, &options, &e->prepared, e->err));
    tare_model_destroy(model);
    check_text(e, e->prepared, TARE_PRINT_MODEL, "prepared");
    check_text(e, e->prepared, TARE_PRINT_NODES, "prepared_nodes");
    expect_ok(e, "calibrate", tare_calibrate(e->prepared, e->inputs, e->input_count, e->err));
}

typedef tare_status (*convert_function)(const tare_model *prepared,
                                        const tare_convert_options *options, tare_model **out,
                                        tare_error *err);

static void convert(example *e, convert_function function, const char *text_key,
                    const char *state_key) {
    const char *engine = json_string_value(setting(e, "engine"));
    const tare_convert_options options = {.struct_size = sizeof options,
                                          .backend = e->backend,
                                          .engine = tare_engine_from_name(engine),
                                          .custom_config = e->convert_config,
                                          .keeps_equalized_ranges = true};
    tare_model *converted = NULL;
    if (case_text(&e->recorded, text_key) == NULL) return;
    expect_ok(e, text_key, function(e->prepared, &options, &converted, e->err));
    expect_ok(e, "explain", compare_explained(converted, &e->found, e->err));
    check_text(e, converted, TARE_PRINT_MODEL, text_key);
    if (state_key != NULL) check_text(e, converted, TARE_PRINT_STATE, state_key);
    tare_model_destroy(converted);
}

static void release(example *e) {
    case_release(&e->recorded);
    tare_backend_config_destroy(e->backend);
    tare_qconfig_mapping_destroy(e->mapping);
    tare_qconfig_mapping_destroy(e->equalization);
    tare_prepare_custom_config_destroy(e->prepare_config);
    tare_convert_custom_config_destroy(e->convert_config);
    tare_model_destroy(e->prepared);
    agreement_release(&e->numbers);
    findings_release(&e->found);
    tare__arena_release(&e->memory);
    tare_error_destroy(e->err);
}

static void every_text_is_torchs(void **state) {
    const case_place *place = *state;
    example e = {.err = tare_error_create()};
    CHECK_OK(case_read(place, &e.recorded, e.err));
    read_settings(&e);
    read_equalization(&e);
    read_custom_configs(&e);
    read_inputs(&e);
    prepare(&e);
    convert(&e, tare_convert_to_reference_fx, "reference", "reference_state");
    convert(&e, tare_convert_to_reference_decomposed_fx, "decomposed", NULL);
    convert(&e, tare_convert_fx, "lowered", "lowered_state");
    if (findings_any(&e.found)) fail_msg("%s", tare__text_chars(&e.found.detail));
    release(&e);
}

static case_place *find(const case_list *list, const char *name) {
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0) return &list->items[i];
    return NULL;
}

int main(void) {
    enum { COUNT = sizeof examples / sizeof *examples };
    struct CMUnitTest tests[COUNT];
    char path[1024];
    case_list list = {0};
    const char *source = getenv("TARE_SOURCE_DIR");
    snprintf(path, sizeof path, "%s/tests/data/examples.zip", source ? source : ".");
    if (case_list_add(&list, path, NULL) != TARE_OK || list.count != COUNT) return 1;
    for (size_t i = 0; i < COUNT; i++) {
        tests[i] = (struct CMUnitTest){examples[i], every_text_is_torchs, NULL, NULL,
                                       find(&list, examples[i])};
        if (tests[i].initial_state == NULL) return 1;
    }
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    case_list_release(&list);
    return failed;
}
