// SPDX-License-Identifier: Apache-2.0
// The public getters of a pattern config.
#include "config/backend_config.h"
#include "config/pattern_form.h"
#include "core/json/emit.h"

tare_status tare_pattern_config_get_pattern(const tare_pattern_config *p, char **out,
                                            bool *is_complex, tare_error *err) {
    text json = {0};
    json_emitter e = {.out = &json};
    const pattern *given = tare__pattern_config_given(p);
    if (given != NULL)
        tare__pattern_emit(given, &e);
    else
        tare__text_append(&json, "null");
    const tare_status status = tare__text_status(&json, err);
    if (status == TARE_OK) *out = tare__text_take(&json);
    if (status == TARE_OK && is_complex != NULL) *is_complex = p->is_complex_given;
    tare__text_release(&json);
    return status;
}

tare_observation_type tare_pattern_config_get_observation_type(const tare_pattern_config *p) {
    return p->observation_type;
}

size_t tare_pattern_config_dtype_config_count(const tare_pattern_config *p) {
    return p->dtype_configs.count;
}

const tare_dtype_config *tare_pattern_config_dtype_config_at(const tare_pattern_config *p,
                                                             size_t index) {
    return index < p->dtype_configs.count ? &p->dtype_configs.items[index] : NULL;
}

const char *tare_pattern_config_get_root_module(const tare_pattern_config *p) {
    return p->spelled_modules[MODULE_ROOT];
}

const char *tare_pattern_config_get_qat_module(const tare_pattern_config *p) {
    return p->spelled_modules[MODULE_QAT];
}

const char *tare_pattern_config_get_reference_quantized_module(const tare_pattern_config *p) {
    return p->spelled_modules[MODULE_REFERENCE_QUANTIZED];
}

const char *tare_pattern_config_get_fused_module(const tare_pattern_config *p) {
    return p->spelled_modules[MODULE_FUSED];
}

const char *tare_pattern_config_get_fuser_method(const tare_pattern_config *p) {
    return p->fuser_method;
}

const char *tare_pattern_config_get_root_node_getter(const tare_pattern_config *p) {
    return p->root_node_getter_name;
}

const char *tare_pattern_config_get_extra_inputs_getter(const tare_pattern_config *p) {
    return p->extra_inputs_getter_name;
}

bool tare_pattern_config_tensor_arg_count_at(const tare_pattern_config *p, size_t index,
                                             int64_t *tensor_arg_count,
                                             tare_observation_type *type) {
    if (index >= p->observation_count) return false;
    *tensor_arg_count = p->observations[index].tensor_arg_count;
    *type = p->observations[index].type;
    return true;
}

bool tare_pattern_config_input_index_at(const tare_pattern_config *p, size_t entry,
                                        const char **input, int64_t *index) {
    if (entry >= p->input_index_count) return false;
    *input = p->input_indexes[entry].input;
    *index = p->input_indexes[entry].index;
    return true;
}
