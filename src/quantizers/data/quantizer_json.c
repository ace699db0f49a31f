// SPDX-License-Identifier: Apache-2.0
// Parses a quantizer's JSON file. Parsing is strict: a key without effect is an error.
#include <string.h>

#include "config/qspec.h"
#include "core/memory/alloc.h"
#include "quantizers/data/quantizer.h"
#include "quantizers/quantizer.h"

typedef struct reading {
    data_quantizer *q;
    tare_error *err;
} reading;

// --- specs ---

static const char *const config_names[] = {
    [SPEC_INPUT] = "input_activation",
    [SPEC_OUTPUT] = "output_activation",
    [SPEC_WEIGHT] = "weight",
    [SPEC_BIAS] = "bias",
};

static const char *spec_name_at(const void *user, size_t i) {
    const map *specs = user;
    if (i < 4) return config_names[SPEC_INPUT + i];
    return i - 4 < specs->count ? specs->entries[i - 4].key : NULL;
}

static spec_origin config_field(const char *name) {
    for (spec_origin o = SPEC_INPUT; o <= SPEC_BIAS; o++)
        if (strcmp(config_names[o], name) == 0) return o;
    return SPEC_NONE;
}

// A spec, the name of one in "specs", or the name of a config's field.
tare_status tare__data_spec_parse(const data_quantizer *q, const json_at *at, bool may_be_config,
                                  spec_source *out, tare_error *err) {
    *out = (spec_source){.origin = SPEC_NONE};
    if (json_is_null(at->value)) return TARE_OK;
    if (!json_is_string(at->value)) {
        out->origin = SPEC_OWN;
        return tare__qspec_from_json(at, NULL, 0, &out->spec, err);
    }
    const char *name = json_string_value(at->value);
    if (may_be_config) out->origin = config_field(name);
    if (out->origin != SPEC_NONE) return TARE_OK;
    out->spec = tare_qspec_retain(tare__map_get(&q->specs, name));
    out->origin = SPEC_OWN;
    if (out->spec != NULL) return TARE_OK;
    return tare__suggest(err, tare__json_fail(at, err, "no spec '%s'", name), name, spec_name_at,
                         &q->specs);
}

static tare_status read_specs(reading *r, const json_at *root) {
    if (!tare__json_has(root, "specs")) return TARE_OK;
    const json_at specs = tare__json_get(root, "specs");
    const char *key = NULL;
    json_t *ignored = NULL;
    TARE_TRY(tare__json_expect(&specs, JSON_OBJECT, r->err));
    json_object_foreach((json_t *)specs.value, key, ignored) {
        const json_at at = tare__json_get(&specs, key);
        tare_qspec *spec = NULL;
        if (config_field(key) != SPEC_NONE)
            return tare__json_fail(&at, r->err,
                                   "'%s' is an entry of the config, choose another name", key);
        TARE_TRY(tare__json_expect(&at, JSON_OBJECT, r->err));
        TARE_TRY(tare__qspec_from_json(&at, NULL, 0, &spec, r->err));
        if (tare__map_set(&r->q->specs, key, spec)) continue;
        tare_qspec_release(spec);
        return tare__out_of_memory(r->err);
    }
    return TARE_OK;
}

// --- the default config ---

static tare_status read_field(reading *r, const json_at *config, const char *key,
                              tare_qspec **out) {
    if (!tare__json_has(config, key)) return TARE_OK;
    const json_at at = tare__json_get(config, key);
    spec_source source;
    const tare_status status = tare__data_spec_parse(r->q, &at, false, &source, r->err);
    *out = source.spec;
    return status;
}

static tare_status read_fields(reading *r, const json_at *at, tare_quantization_config *out) {
    static const char *const keys[] = {
        "input_activation", "output_activation", "weight", "bias", "is_qat", NULL};
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_only_keys(at, keys, r->err));
    TARE_TRY(read_field(r, at, "input_activation", &out->input_activation));
    TARE_TRY(read_field(r, at, "output_activation", &out->output_activation));
    TARE_TRY(read_field(r, at, "weight", &out->weight));
    TARE_TRY(read_field(r, at, "bias", &out->bias));
    if (!tare__json_has(at, "is_qat")) return TARE_OK;
    const json_at is_qat = tare__json_get(at, "is_qat");
    return tare__json_bool(&is_qat, &out->is_qat, r->err);
}

static tare_status read_config(reading *r, const json_at *root) {
    const json_at at = tare__json_get(root, "config");
    tare_quantization_config config = {.struct_size = sizeof config};
    r->q->settings = tare_quantizer_settings_create();
    if (r->q->settings == NULL) return tare__out_of_memory(r->err);
    const tare_status status = read_fields(r, &at, &config);
    tare_quantizer_settings_set_global(r->q->settings, &config);
    tare_quantization_config_release(&config);
    return status;
}

// --- rules ---

static tare_status read_rules(reading *r, const json_at *root) {
    const json_at list = tare__json_get(root, "rules");
    data_quantizer *q = r->q;
    TARE_TRY(tare__json_expect(&list, JSON_ARRAY, r->err));
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        const json_at at = tare__json_item(&list, i);
        if (!tare__grow((void **)&q->rules, &q->rule_capacity, q->rule_count, sizeof *q->rules))
            return tare__out_of_memory(r->err);
        data_rule *rule = &q->rules[q->rule_count++];
        *rule = (data_rule){0};
        TARE_TRY(tare__data_rule_parse(q, &at, rule, r->err));
    }
    return TARE_OK;
}

// --- lists of operators ---

tare_status tare__data_names_parse(data_quantizer *q, const json_at *object, const char *key,
                                   const char ***out, tare_error *err) {
    const json_at list = tare__json_get(object, key);
    const bool is_given = tare__json_has(object, key);
    if (is_given) TARE_TRY(tare__json_expect(&list, JSON_ARRAY, err));
    const size_t count = is_given ? json_array_size(list.value) : 0;
    const char **names = tare__arena_array(&q->memory, count + 1, sizeof *names);
    if (names == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < count; i++) {
        const json_at at = tare__json_item(&list, i);
        const char *name = NULL;
        TARE_TRY(tare__json_string(&at, &name, err));
        names[i] = tare__arena_strdup(&q->memory, name);
        if (names[i] == NULL) return tare__out_of_memory(err);
    }
    *out = names;
    return TARE_OK;
}

static tare_status read_lists(reading *r, const json_at *root) {
    data_quantizer *q = r->q;
    TARE_TRY(tare__data_names_parse(q, root, "keeps_observer", &q->keeps_observer, r->err));
    TARE_TRY(tare__data_names_parse(q, root, "joins_inputs", &q->joins_inputs, r->err));
    return tare__data_names_parse(q, root, "lifts_scalars", &q->lifts_scalars, r->err);
}

tare_status tare__data_quantizer_parse(const json_t *json, data_quantizer *out, tare_error *err) {
    static const char *const keys[] = {"format",        "version", "name",           "specs",
                                       "config",        "rules",   "keeps_observer", "joins_inputs",
                                       "lifts_scalars", NULL};
    reading r = {.q = out, .err = err};
    const json_at root = tare__json_root(json);
    TARE_TRY(tare__json_expect(&root, JSON_OBJECT, err));
    TARE_TRY(tare__json_only_keys(&root, keys, err));
    const json_at format = tare__json_get(&root, "format"), name = tare__json_get(&root, "name"),
                  version = tare__json_get(&root, "version");
    const char *format_name = NULL;
    int64_t number = 0;
    TARE_TRY(tare__json_string(&format, &format_name, err));
    if (strcmp(format_name, "tare-quantizer") != 0)
        return tare__json_fail(&format, err, "expected 'tare-quantizer', found '%s'", format_name);
    TARE_TRY(tare__json_int(&version, &number, err));
    if (number != 1)
        return tare__json_fail(&version, err, "expected version 1, found %lld", (long long)number);
    TARE_TRY(tare__json_text(&name, &out->name, err));
    TARE_TRY(read_specs(&r, &root));
    TARE_TRY(read_config(&r, &root));
    TARE_TRY(read_lists(&r, &root));
    return read_rules(&r, &root);
}

// --- the quantizer ---

const data_quantizer *tare__data_quantizer_of(const tare_quantizer *q) {
    return q->class.annotate == tare__data_annotate ? q->self : NULL;
}

tare_status tare__data_quantizer_create(const json_t *json, const tare_quantizer_settings *settings,
                                        tare_quantizer **out, tare_error *err) {
    data_quantizer *q = tare__alloc_zeroed(1, sizeof *q);
    if (q == NULL) return tare__out_of_memory(err);
    tare_status status = tare__data_quantizer_parse(json, q, err);
    if (status == TARE_OK && settings != NULL) {
        tare_quantizer_settings_destroy(q->settings);
        q->settings = NULL;
        status = tare__settings_clone(settings, &q->settings, err);
    }
    if (status == TARE_OK) {
        const tare_quantizer_class class = {.struct_size = sizeof class,
                                            .name = q->name,
                                            .transform_for_annotation = tare__data_transform,
                                            .annotate = tare__data_annotate,
                                            .destroy = tare__data_quantizer_destroy};
        status = tare_quantizer_create(&class, q, out, err);
        if (status == TARE_OK) (*out)->settings = q->settings;
    }
    if (status != TARE_OK) tare__data_quantizer_destroy(q);
    return status;
}

tare_status tare_quantizer_from_json(const char *json, size_t size,
                                     const tare_quantizer_settings *settings, tare_quantizer **out,
                                     tare_error *err) {
    json_t *parsed = NULL;
    TARE_TRY(tare__json_parse(json, size, &parsed, err));
    const tare_status status = tare__data_quantizer_create(parsed, settings, out, err);
    json_decref(parsed);
    return status;
}

tare_status tare_quantizer_read(const char *path, const tare_quantizer_settings *settings,
                                tare_quantizer **out, tare_error *err) {
    json_t *parsed = NULL;
    TARE_TRY(tare__json_parse_file(path, &parsed, err));
    const tare_status status = tare__data_quantizer_create(parsed, settings, out, err);
    json_decref(parsed);
    return status == TARE_OK ? status : tare__at(err, status, "%s", path);
}
