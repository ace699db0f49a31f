// SPDX-License-Identifier: Apache-2.0
// Attention as a module of its own, float and as a custom module: what torch 2.15 computes.
// Data: tests/data/attention.zip, made by tests/data/pack_attention.py.
#include "support/test.h"

#include "replay/case.h"
#include "replay/explained.h"
#include "replay/run.h"
#include "tare/tare.h"

static const char *const cases[] = {"self", "self_without_bias", "self_with_zeros", "cross",
                                    "cross_batch_first"};

static const char prepare_json[] = "{\"float_to_observed_custom_module_class\": {\"static\": "
                                   "{\"torch.nn.MultiheadAttention\": "
                                   "\"torch.ao.nn.quantizable.MultiheadAttention\"}}}";
static const char convert_json[] = "{\"observed_to_quantized_custom_module_class\": {\"static\": "
                                   "{\"torch.ao.nn.quantizable.MultiheadAttention\": "
                                   "\"torch.ao.nn.quantized.MultiheadAttention\"}}}";

typedef struct attention_case {
    recorded_case recorded;
    arena memory;
    value *inputs;
    const tare_tensor **tensors;
    size_t input_count;
    findings found;
    tare_error *err;
} attention_case;

static void compare(attention_case *a, const tare_model *model, const char *key) {
    run_result result;
    CHECK_OK(replay_run(model, a->inputs, a->input_count, &result, a->err));
    replay_compare(&a->recorded, key, &result, FINDING_VALUE, &a->found);
    replay_run_release(&result);
    if (findings_any(&a->found)) fail_msg("%s", tare__text_chars(&a->found.detail));
}

typedef struct configs {
    tare_prepare_custom_config *observe;
    tare_convert_custom_config *swap;
    tare_qconfig_mapping *mapping;
} configs;

static void read_configs(attention_case *a, configs *c) {
    static const char mapping[] = "{\"global\": \"default_qconfig\"}";
    CHECK_OK(tare_prepare_custom_config_from_json(prepare_json, strlen(prepare_json), &c->observe,
                                                  a->err));
    CHECK_OK(
        tare_convert_custom_config_from_json(convert_json, strlen(convert_json), &c->swap, a->err));
    CHECK_OK(tare_qconfig_mapping_from_json(mapping, strlen(mapping), &c->mapping, a->err));
}

static void release_configs(configs *c) {
    tare_qconfig_mapping_destroy(c->mapping);
    tare_convert_custom_config_destroy(c->swap);
    tare_prepare_custom_config_destroy(c->observe);
}

static tare_status quantize(attention_case *a, const configs *c, const tare_model *model,
                            tare_model **out) {
    const tare_prepare_options how = {
        .struct_size = sizeof how, .qconfig_mapping = c->mapping, .custom_config = c->observe};
    const tare_convert_options options = {
        .struct_size = sizeof options, .engine = TARE_ENGINE_FBGEMM, .custom_config = c->swap};
    tare_model *prepared = NULL;
    tare_status status = tare_prepare_fx(model, &how, &prepared, a->err);
    if (status == TARE_OK) status = tare_calibrate(prepared, a->tensors, a->input_count, a->err);
    tare_model *converted = NULL;
    if (status == TARE_OK) status = tare_convert_fx(prepared, &options, &converted, a->err);
    if (status == TARE_OK) status = compare_explained(converted, &a->found, a->err);
    tare_model_destroy(prepared);
    if (status == TARE_OK)
        *out = converted;
    else
        tare_model_destroy(converted);
    return status;
}

static void begin(attention_case *a, const case_place *place, tare_model **model, configs *c) {
    a->err = tare_error_create();
    CHECK_OK(case_read(place, &a->recorded, a->err));
    CHECK_OK(replay_inputs(&a->recorded, &a->memory, &a->inputs, &a->input_count, a->err));
    CHECK_OK(replay_tensors(a->inputs, a->input_count, &a->memory, &a->tensors, a->err));
    CHECK_OK(case_model(&a->recorded, model, a->err));
    read_configs(a, c);
}

static void end(attention_case *a, tare_model *model, configs *c) {
    release_configs(c);
    tare_model_destroy(model);
    case_release(&a->recorded);
    findings_release(&a->found);
    tare__arena_release(&a->memory);
    tare_error_destroy(a->err);
}

static void attention_computes_as_torch_does(void **state) {
    attention_case a = {0};
    configs c = {0};
    tare_model *model = NULL, *converted = NULL;
    begin(&a, *state, &model, &c);
    compare(&a, model, "float");
    CHECK_OK(quantize(&a, &c, model, &converted));
    compare(&a, converted, "converted");
    tare_model_destroy(converted);
    end(&a, model, &c);
}

// Three projections and their observers take the same steps.
static void any_allocation_may_fail(void **state) {
    attention_case a = {0};
    configs c = {0};
    tare_model *model = NULL, *converted = NULL;
    tare_status status;
    begin(&a, *state, &model, &c);
    SOME_ALLOCATIONS_FAIL(3, status, status = quantize(&a, &c, model, &converted),
                          tare_model_destroy(converted));
    end(&a, model, &c);
}

static case_place *find(const case_list *list, const char *name) {
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0) return &list->items[i];
    return NULL;
}

int main(void) {
    enum { COUNT = sizeof cases / sizeof *cases };
    struct CMUnitTest tests[COUNT + 1];
    char path[1024];
    case_list list = {0};
    const char *source = getenv("TARE_SOURCE_DIR");
    snprintf(path, sizeof path, "%s/tests/data/attention.zip", source ? source : ".");
    if (case_list_add(&list, path, NULL) != TARE_OK) return 1;
    for (size_t i = 0; i < COUNT; i++) {
        tests[i] = (struct CMUnitTest){cases[i], attention_computes_as_torch_does, NULL, NULL,
                                       find(&list, cases[i])};
        if (tests[i].initial_state == NULL) return 1;
    }
    tests[COUNT] = (struct CMUnitTest){"any_allocation_may_fail", any_allocation_may_fail, NULL,
                                       NULL, find(&list, cases[0])};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    case_list_release(&list);
    return failed;
}
