// SPDX-License-Identifier: Apache-2.0
// The public setters of a pattern config. The first error is recorded until the config is used, so
// that a sequence of calls needs no checks. A NULL config is the result of a failed create, which
// the backend config reports when it is added.
#include "config/backend_config.h"
#include "config/pattern_form.h"
#include "core/json/json.h"

// Records a failure unless one is recorded already. Takes ownership of err, so that only failed
// configs hold an error's memory.
static void keep_first(tare_pattern_config *p, tare_status status, tare_error *err) {
    if (status == TARE_OK || p->failed != TARE_OK) {
        tare_error_destroy(err);
        return;
    }
    p->failed = status;
    p->first_error = err;
}

// Evaluates `call`, which may use p and err, and records its failure.
#define SETTER(call)                                                                               \
    do {                                                                                           \
        if (!p) return;                                                                            \
        tare_error *err = tare_error_create();                                                     \
        keep_first(p, (call), err);                                                                \
    } while (0)

static tare_status is_missing(const char *what, tare_error *err) {
    return tare__fail(err, TARE_INVALID_ARGUMENT, "expected %s, found NULL", what);
}

static tare_status assign_names(tare_pattern_config *p, const char *a, const char *b, const char *c,
                                tare_error *err) {
    const char *const names[] = {a, b, c};
    if (!a || (!b && c))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "Either 'pattern' or 'pattern_complex_format' must be specified");
    const size_t count = b ? c ? 3 : 2 : 1;
    return tare__pattern_config_assign_simple(p, names, count, count > 1, err);
}

void tare_pattern_config_set_pattern(tare_pattern_config *p, const char *a, const char *b,
                                     const char *c) {
    SETTER(assign_names(p, a, b, c, err));
}

static tare_status assign_nested(tare_pattern_config *p, const json_t *brackets, tare_error *err) {
    if (json_array_size(brackets) != 1)
        return tare__fail(err, TARE_MALFORMED_FILE, "expected one pattern, found %zu",
                          json_array_size(brackets));
    arena scratch = {0};
    pattern parsed = {0};
    const json_at root = tare__json_root(json_array_get(brackets, 0));
    tare_status status = tare__pattern_from_json(&scratch, &root, &parsed, err);
    if (status == TARE_OK) status = tare__pattern_config_assign_complex(p, &parsed, err);
    tare__arena_release(&scratch);
    return status;
}

// Adds brackets before parsing, because a pattern may be a bare string, which jansson does not
// accept as a document.
static tare_status assign_json(tare_pattern_config *p, const char *json, tare_error *err) {
    if (!json) return is_missing("a pattern", err);
    text document = {0};
    tare__text_printf(&document, "[%s]", json);
    json_t *brackets = NULL;
    tare_status status = tare__text_status(&document, err);
    if (status == TARE_OK)
        status = tare__json_parse(document.chars, document.length, &brackets, err);
    if (status == TARE_OK) status = assign_nested(p, brackets, err);
    json_decref(brackets);
    tare__text_release(&document);
    return status;
}

void tare_pattern_config_set_pattern_complex(tare_pattern_config *p, const char *json) {
    SETTER(assign_json(p, json, err));
}

void tare_pattern_config_set_observation_type(tare_pattern_config *p, tare_observation_type type) {
    SETTER(tare__pattern_config_assign_observation(p, type, err));
}

void tare_pattern_config_add_dtype_config(tare_pattern_config *p, const tare_dtype_config *d) {
    SETTER(d ? tare__pattern_config_append_dtypes(p, d, err) : is_missing("a dtype config", err));
}

void tare_pattern_config_set_dtype_configs(tare_pattern_config *p, const tare_dtype_config *d,
                                           size_t count) {
    SETTER(d || count == 0 ? tare__pattern_config_replace_dtypes(p, d, count, err)
                           : is_missing("dtype configs", err));
}

void tare_pattern_config_set_root_module(tare_pattern_config *p, const char *type) {
    SETTER(tare__pattern_config_assign_module(p, MODULE_ROOT, type, err));
}

void tare_pattern_config_set_qat_module(tare_pattern_config *p, const char *type) {
    SETTER(tare__pattern_config_assign_module(p, MODULE_QAT, type, err));
}

void tare_pattern_config_set_reference_quantized_module(tare_pattern_config *p, const char *type) {
    SETTER(tare__pattern_config_assign_module(p, MODULE_REFERENCE_QUANTIZED, type, err));
}

void tare_pattern_config_set_fused_module(tare_pattern_config *p, const char *type) {
    SETTER(tare__pattern_config_assign_module(p, MODULE_FUSED, type, err));
}

void tare_pattern_config_set_fuser_method(tare_pattern_config *p, const char *name) {
    SETTER(tare__pattern_config_assign_fuser(p, name, NULL, err));
}

void tare_pattern_config_set_fuser_callback(tare_pattern_config *p, tare_fuser fuser, void *user) {
    if (!p) return;
    p->fuser_method = NULL;
    p->fuser = fuser;
    p->fuser_user = user;
}

void tare_pattern_config_set_root_node_getter(tare_pattern_config *p, tare_root_node_getter getter,
                                              void *user) {
    if (!p) return;
    p->root_node_getter_name = NULL;
    p->root_node_getter = getter;
    p->root_node_getter_user = user;
}

void tare_pattern_config_set_extra_inputs_getter(tare_pattern_config *p,
                                                 tare_extra_inputs_getter getter, void *user) {
    if (!p) return;
    p->extra_inputs_getter_name = NULL;
    p->extra_inputs_getter = getter;
    p->extra_inputs_getter_user = user;
}

void tare_pattern_config_set_num_tensor_args_to_observation_type(tare_pattern_config *p,
                                                                 int64_t tensor_arg_count,
                                                                 tare_observation_type type) {
    SETTER(tare__pattern_config_assign_count(p, tensor_arg_count, type, err));
}

void tare_pattern_config_set_input_type_to_index(tare_pattern_config *p, const char *input,
                                                 int64_t index) {
    SETTER(input ? tare__pattern_config_assign_index(p, input, index, err)
                 : is_missing("an input's name", err));
}
