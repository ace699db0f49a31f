// SPDX-License-Identifier: Apache-2.0
// Quantizers, their settings and annotations from hostile JSON. What is read goes through the
// linter, annotates a small program and prepares it; annotations are written as they were read.
#include <stdlib.h>
#include <string.h>

#include "tare/tare.h"

static bool count_writes(void *user, const char *chars, size_t length) {
    (void)chars;
    *(size_t *)user += length;
    return true;
}

static tare_status count_finding(void *user, const tare_quantizer_finding *finding,
                                 tare_error *err) {
    (void)err;
    *(size_t *)user += strlen(finding->path) + strlen(finding->problem) + strlen(finding->remedy);
    return TARE_OK;
}

// Each kind of annotation has a node in it.
static tare_model *read_program(void) {
    tare_model *model = NULL;
    if (tare_model_read("examples/data/annotate.pt2", NULL, &model, NULL) != TARE_OK) abort();
    return model;
}

static void prepare(const tare_model *model, const tare_quantizer *quantizer) {
    tare_model *prepared = NULL, *converted = NULL;
    size_t written = 0;
    const tare_convert_pt2e_options lenient = {.struct_size = sizeof lenient, .is_lenient = true};
    if (tare_prepare_pt2e(model, quantizer, &prepared, NULL) != TARE_OK) return;
    if (tare_model_explain_json(prepared, NULL, count_writes, &written, NULL) != TARE_OK) abort();
    if (tare_convert_pt2e(prepared, &lenient, &converted, NULL) == TARE_OK)
        tare_model_destroy(converted);
    tare_model_destroy(prepared);
}

static void use(const tare_quantizer *quantizer) {
    size_t written = 0, findings = 0;
    tare_model *model = read_program();
    if (tare_quantizer_show(quantizer, true, count_writes, &written, NULL) != TARE_OK) abort();
    if (tare_quantizer_lint(quantizer, count_finding, &written, &findings, NULL) != TARE_OK)
        abort();
    prepare(model, quantizer);
    tare_model_destroy(model);
}

static void try_rules(const char *bytes, size_t size) {
    tare_quantizer *quantizer = NULL;
    if (tare_quantizer_from_json(bytes, size, NULL, &quantizer, NULL) != TARE_OK) return;
    use(quantizer);
    tare_quantizer_destroy(quantizer);
}

static void try_settings(const char *bytes, size_t size) {
    for (size_t i = 0; tare_quantizer_builtin_name_at(i) != NULL; i++) {
        const char *name = tare_quantizer_builtin_name_at(i);
        tare_quantizer_settings *settings = NULL;
        tare_quantizer *quantizer = NULL;
        if (tare_quantizer_settings_from_json(bytes, size, name, &settings, NULL) != TARE_OK)
            continue;
        tare_quantizer_settings_set_lenient(settings, true);
        if (tare_quantizer_builtin(name, settings, &quantizer, NULL) == TARE_OK) use(quantizer);
        tare_quantizer_destroy(quantizer);
        tare_quantizer_settings_destroy(settings);
    }
}

static tare_status annotate_nothing(void *self, tare_model *model, tare_error *err) {
    (void)self, (void)model, (void)err;
    return TARE_OK;
}

static char *annotations_of(const tare_model *model) {
    char *json = NULL;
    if (tare_model_annotations_to_json(model, &json, NULL) != TARE_OK) abort();
    return json;
}

static void write_and_read(tare_model *model) {
    char *first = annotations_of(model);
    if (tare_model_annotations_from_json(model, first, strlen(first), NULL, 0, NULL) != TARE_OK)
        abort();
    char *second = annotations_of(model);
    if (strcmp(first, second) != 0) abort();
    tare_string_free(first);
    tare_string_free(second);
}

static void try_annotations(const char *bytes, size_t size) {
    const tare_quantizer_class nothing = {
        .struct_size = sizeof nothing, .name = "nothing", .annotate = annotate_nothing};
    tare_quantizer *quantizer = NULL;
    tare_model *model = read_program();
    if (tare_quantizer_create(&nothing, NULL, &quantizer, NULL) != TARE_OK) abort();
    if (tare_model_annotations_from_json(model, bytes, size, NULL, 0, NULL) == TARE_OK) {
        write_and_read(model);
        prepare(model, quantizer);
    }
    tare_quantizer_destroy(quantizer);
    tare_model_destroy(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    try_rules((const char *)data, size);
    try_settings((const char *)data, size);
    try_annotations((const char *)data, size);
    return 0;
}
