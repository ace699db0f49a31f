// SPDX-License-Identifier: Apache-2.0
// Parses settings and configs of quantizers from JSON.
#include <string.h>

#include "config/qspec.h"
#include "quantizers/settings.h"

// --- a config ---

// Reads two integers: [minimum, maximum].
static tare_status read_range(const json_at *object, const char *key, bool *has, int64_t *least,
                              int64_t *most, tare_error *err) {
    if (!tare__json_has(object, key)) return TARE_OK;
    const json_at at = tare__json_get(object, key);
    TARE_TRY(tare__json_expect(&at, JSON_ARRAY, err));
    if (json_array_size(at.value) != 2)
        return tare__json_fail(&at, err, "expected the minimum and the maximum");
    const json_at first = tare__json_item(&at, 0), second = tare__json_item(&at, 1);
    TARE_TRY(tare__json_int(&first, least, err));
    TARE_TRY(tare__json_int(&second, most, err));
    *has = true;
    return TARE_OK;
}

static tare_status read_default(const json_at *at, const settings_source *source,
                                tare_quantization_config *out, tare_error *err) {
    static const char *const keys[] = {
        "is_per_channel", "is_qat",       "is_dynamic", "reduce_range",
        "act_range",      "weight_range", NULL};
    tare_quantization_options o = {.struct_size = sizeof o, .is_qat = source->is_qat};
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, err));
    TARE_TRY(tare__json_only_keys(at, keys, err));
    TARE_TRY(tare__json_flag(at, "is_per_channel", &o.is_per_channel, err));
    TARE_TRY(tare__json_flag(at, "is_qat", &o.is_qat, err));
    TARE_TRY(tare__json_flag(at, "is_dynamic", &o.is_dynamic, err));
    TARE_TRY(tare__json_flag(at, "reduce_range", &o.reduce_range, err));
    TARE_TRY(read_range(at, "act_range", &o.has_act_range, &o.act_min, &o.act_max, err));
    TARE_TRY(
        read_range(at, "weight_range", &o.has_weight_range, &o.weight_min, &o.weight_max, err));
    return tare__json_place(at, tare_quantization_config_default(source->quantizer, &o, out, err),
                            err);
}

static tare_status read_spec(const json_at *object, const char *key, tare_qspec **out,
                             tare_error *err) {
    if (!tare__json_has(object, key)) return TARE_OK;
    const json_at at = tare__json_get(object, key);
    return tare__qspec_from_json(&at, NULL, 0, out, err);
}

static tare_status read_fields(const json_at *at, tare_quantization_config *out, tare_error *err) {
    static const char *const keys[] = {
        "input_activation", "output_activation", "weight", "bias", "is_qat", NULL};
    out->struct_size = sizeof *out;
    TARE_TRY(tare__json_only_keys(at, keys, err));
    TARE_TRY(read_spec(at, "input_activation", &out->input_activation, err));
    TARE_TRY(read_spec(at, "output_activation", &out->output_activation, err));
    TARE_TRY(read_spec(at, "weight", &out->weight, err));
    TARE_TRY(read_spec(at, "bias", &out->bias, err));
    return tare__json_flag(at, "is_qat", &out->is_qat, err);
}

// null sets *is_none.
static tare_status read_config(const json_at *at, const settings_source *source, bool *is_none,
                               tare_quantization_config *out, tare_error *err) {
    static const char *const default_only[] = {"default", NULL};
    *out = (tare_quantization_config){0};
    *is_none = json_is_null(at->value);
    if (*is_none) return TARE_OK;
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, err));
    tare_status status = TARE_OK;
    if (tare__json_has(at, "default")) {
        const json_at options = tare__json_get(at, "default");
        TARE_TRY(tare__json_only_keys(at, default_only, err));
        status = read_default(&options, source, out, err);
    } else {
        status = read_fields(at, out, err);
    }
    if (status != TARE_OK) tare_quantization_config_release(out);
    return status;
}

// --- settings ---

typedef void (*key_setter)(tare_quantizer_settings *s, const char *key,
                           const tare_quantization_config *config);

static tare_status read_pair(const json_at *pair, const settings_source *source, key_setter set,
                             tare_quantizer_settings *s, tare_error *err) {
    TARE_TRY(tare__json_expect(pair, JSON_ARRAY, err));
    if (json_array_size(pair->value) != 2)
        return tare__json_fail(pair, err, "expected a name and a config");
    const json_at key_at = tare__json_item(pair, 0), config_at = tare__json_item(pair, 1);
    const char *key = NULL;
    bool is_none = false;
    tare_quantization_config config;
    TARE_TRY(tare__json_string(&key_at, &key, err));
    TARE_TRY(read_config(&config_at, source, &is_none, &config, err));
    set(s, key, is_none ? NULL : &config);
    tare_quantization_config_release(&config);
    return s->status == TARE_OK ? TARE_OK : tare__out_of_memory(err);
}

// Refuses a key that is set twice, because the first setting would have no effect.
static tare_status check_once(const json_at *list, size_t index, tare_error *err) {
    const json_at pair = tare__json_item(list, index);
    const json_t *key = json_array_get(pair.value, 0);
    for (size_t i = 0; i < index; i++)
        if (json_equal(json_array_get(json_array_get(list->value, i), 0), key))
            return tare__json_fail(&pair, err, "'%s' is set twice", json_string_value(key));
    return TARE_OK;
}

static tare_status read_pairs(const json_at *root, const char *key, const settings_source *source,
                              key_setter set, tare_quantizer_settings *s, tare_error *err) {
    if (!tare__json_has(root, key)) return TARE_OK;
    const json_at list = tare__json_get(root, key);
    TARE_TRY(tare__json_expect(&list, JSON_ARRAY, err));
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        const json_at pair = tare__json_item(&list, i);
        TARE_TRY(read_pair(&pair, source, set, s, err));
        TARE_TRY(check_once(&list, i, err));
    }
    return TARE_OK;
}

static tare_status read_settings(const json_at *root, const settings_source *source,
                                 tare_quantizer_settings *s, tare_error *err) {
    static const char *const keys[] = {"global", "module_name", "module_type", "operator", NULL};
    TARE_TRY(tare__json_expect(root, JSON_OBJECT, err));
    TARE_TRY(tare__json_only_keys(root, keys, err));
    if (tare__json_has(root, "global")) {
        const json_at at = tare__json_get(root, "global");
        bool is_none = false;
        tare_quantization_config config;
        TARE_TRY(read_config(&at, source, &is_none, &config, err));
        tare_quantizer_settings_set_global(s, is_none ? NULL : &config);
        tare_quantization_config_release(&config);
    }
    TARE_TRY(
        read_pairs(root, "module_name", source, tare_quantizer_settings_set_module_name, s, err));
    TARE_TRY(
        read_pairs(root, "module_type", source, tare_quantizer_settings_set_module_type, s, err));
    return read_pairs(root, "operator", source, tare_quantizer_settings_set_operator, s, err);
}

tare_status tare__settings_from_json(const json_at *at, const settings_source *source,
                                     tare_quantizer_settings **out, tare_error *err) {
    tare_quantizer_settings *made = tare_quantizer_settings_create();
    const tare_status status =
        made != NULL ? read_settings(at, source, made, err) : tare__out_of_memory(err);
    if (status == TARE_OK)
        *out = made;
    else
        tare_quantizer_settings_destroy(made);
    return status;
}

static tare_status settings_of(json_t *json, const char *quantizer, tare_quantizer_settings **out,
                               tare_error *err) {
    const json_at root = tare__json_root(json);
    const settings_source source = {.quantizer = quantizer};
    return tare__settings_from_json(&root, &source, out, err);
}

tare_status tare_quantizer_settings_from_json(const char *json, size_t size, const char *quantizer,
                                              tare_quantizer_settings **out, tare_error *err) {
    json_t *parsed = NULL;
    TARE_TRY(tare__json_parse(json, size, &parsed, err));
    const tare_status status = settings_of(parsed, quantizer, out, err);
    json_decref(parsed);
    return status;
}

tare_status tare_quantizer_settings_read(const char *path, const char *quantizer,
                                         tare_quantizer_settings **out, tare_error *err) {
    json_t *parsed = NULL;
    TARE_TRY(tare__json_parse_file(path, &parsed, err));
    const tare_status status = settings_of(parsed, quantizer, out, err);
    json_decref(parsed);
    return status == TARE_OK ? status : tare__at(err, status, "%s", path);
}
