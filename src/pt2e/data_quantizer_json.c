// SPDX-License-Identifier: Apache-2.0
// A quantizer's JSON file. Reading is strict: what is read is honoured.
#include <string.h>

#include "core/alloc.h"
#include "pt2e/data_quantizer.h"
#include "pt2e/quantizer.h"
#include "quant/qspec.h"

typedef struct reading {
    data_quantizer *q;
    tare_error *err;
} reading;

static tare_status keep_text(const json_at *at, char **out, tare_error *err) {
    const char *chars = NULL;
    TARE_TRY(tare__json_string(at, &chars, err));
    *out = tare__strdup(chars);
    return *out != NULL ? TARE_OK : tare__out_of_memory(err);
}

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

static spec_origin config_part(const char *name) {
    for (spec_origin o = SPEC_INPUT; o <= SPEC_BIAS; o++)
        if (strcmp(config_names[o], name) == 0) return o;
    return SPEC_NONE;
}

// A name of "specs" or of a part of the config, or a spec.
static tare_status read_source(reading *r, const json_at *at, bool may_be_config,
                               spec_source *out) {
    *out = (spec_source){.origin = SPEC_NONE};
    if (json_is_null(at->value)) return TARE_OK;
    if (!json_is_string(at->value)) {
        out->origin = SPEC_OWN;
        return tare__qspec_from_json(at, NULL, 0, &out->spec, r->err);
    }
    const char *name = json_string_value(at->value);
    if (may_be_config) out->origin = config_part(name);
    if (out->origin != SPEC_NONE) return TARE_OK;
    out->spec = tare_qspec_retain(tare__map_get(&r->q->specs, name));
    out->origin = SPEC_OWN;
    if (out->spec != NULL) return TARE_OK;
    return tare__suggest(r->err, tare__json_fail(at, r->err, "no spec '%s'", name), name,
                         spec_name_at, &r->q->specs);
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
        if (config_part(key) != SPEC_NONE)
            return tare__json_fail(&at, r->err, "'%s' is a part of the config, take another name",
                                   key);
        TARE_TRY(tare__json_expect(&at, JSON_OBJECT, r->err));
        TARE_TRY(tare__qspec_from_json(&at, NULL, 0, &spec, r->err));
        if (tare__map_set(&r->q->specs, key, spec)) continue;
        tare_qspec_release(spec);
        return tare__out_of_memory(r->err);
    }
    return TARE_OK;
}

// --- what is done where nobody asks for anything else ---

static tare_status read_part(reading *r, const json_at *config, const char *key, tare_qspec **out) {
    if (!tare__json_has(config, key)) return TARE_OK;
    const json_at at = tare__json_get(config, key);
    spec_source source;
    const tare_status status = read_source(r, &at, false, &source);
    *out = source.spec;
    return status;
}

static tare_status read_parts(reading *r, const json_at *at, tare_quantization_config *out) {
    static const char *const keys[] = {
        "input_activation", "output_activation", "weight", "bias", "is_qat", NULL};
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_only_keys(at, keys, r->err));
    TARE_TRY(read_part(r, at, "input_activation", &out->input_activation));
    TARE_TRY(read_part(r, at, "output_activation", &out->output_activation));
    TARE_TRY(read_part(r, at, "weight", &out->weight));
    TARE_TRY(read_part(r, at, "bias", &out->bias));
    if (!tare__json_has(at, "is_qat")) return TARE_OK;
    const json_at is_qat = tare__json_get(at, "is_qat");
    return tare__json_bool(&is_qat, &out->is_qat, r->err);
}

static tare_status read_config(reading *r, const json_at *root) {
    const json_at at = tare__json_get(root, "config");
    tare_quantization_config config = {.struct_size = sizeof config};
    r->q->settings = tare_quantizer_settings_create();
    if (r->q->settings == NULL) return tare__out_of_memory(r->err);
    const tare_status status = read_parts(r, &at, &config);
    tare_quantizer_settings_set_global(r->q->settings, &config);
    tare_quantization_config_release(&config);
    return status;
}

// --- rules ---

static tare_status read_form(reading *r, const json_at *at, const subgraph_options *options,
                             data_rule *rule) {
    const char *code = NULL;
    subgraph_pattern *form = NULL;
    TARE_TRY(tare__json_string(at, &code, r->err));
    if (!tare__grow((void **)&rule->forms, &rule->form_capacity, rule->form_count,
                    sizeof *rule->forms))
        return tare__out_of_memory(r->err);
    const tare_status status = tare__subgraph_parse(code, strlen(code), options, &form, r->err);
    if (status != TARE_OK) return tare__json_place(at, status, r->err);
    rule->forms[rule->form_count++] = form;
    return TARE_OK;
}

// One form, or a list of them.
static tare_status read_forms(reading *r, const json_at *object, data_rule *rule) {
    const json_at at = tare__json_get(object, "pattern");
    subgraph_options options = {.ignore_literals = true};
    if (tare__json_has(object, "match_literals")) {
        const json_at flag = tare__json_get(object, "match_literals");
        bool matches = false;
        TARE_TRY(tare__json_bool(&flag, &matches, r->err));
        options.ignore_literals = !matches;
    }
    if (json_is_string(at.value)) return read_form(r, &at, &options, rule);
    TARE_TRY(tare__json_expect(&at, JSON_ARRAY, r->err));
    if (json_array_size(at.value) == 0) return tare__json_fail(&at, r->err, "no pattern");
    for (size_t i = 0; i < json_array_size(at.value); i++) {
        const json_at item = tare__json_item(&at, i);
        TARE_TRY(read_form(r, &item, &options, rule));
    }
    return TARE_OK;
}

static tare_status read_input(reading *r, const json_at *pair, rule_node *n) {
    TARE_TRY(tare__json_expect(pair, JSON_ARRAY, r->err));
    if (json_array_size(pair->value) != 2)
        return tare__json_fail(pair, r->err, "expected a name of the pattern and a spec");
    const json_at name = tare__json_item(pair, 0), spec = tare__json_item(pair, 1);
    if (!tare__grow((void **)&n->inputs, &n->input_capacity, n->input_count, sizeof *n->inputs))
        return tare__out_of_memory(r->err);
    rule_input *input = &n->inputs[n->input_count];
    *input = (rule_input){0};
    TARE_TRY(keep_text(&name, &input->input, r->err));
    n->input_count++;
    return read_source(r, &spec, true, &input->source);
}

static tare_status read_node(reading *r, const json_at *at, rule_node *n) {
    static const char *const keys[] = {"input_qspec_map", "output_qspec", "allow_implicit_sharing",
                                       NULL};
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_only_keys(at, keys, r->err));
    if (tare__json_has(at, "input_qspec_map")) {
        const json_at inputs = tare__json_get(at, "input_qspec_map");
        TARE_TRY(tare__json_expect(&inputs, JSON_ARRAY, r->err));
        for (size_t i = 0; i < json_array_size(inputs.value); i++) {
            const json_at pair = tare__json_item(&inputs, i);
            TARE_TRY(read_input(r, &pair, n));
        }
    }
    if (tare__json_has(at, "output_qspec")) {
        const json_at output = tare__json_get(at, "output_qspec");
        TARE_TRY(read_source(r, &output, true, &n->output));
        n->has_output = true;
    }
    if (!tare__json_has(at, "allow_implicit_sharing")) return TARE_OK;
    const json_at flag = tare__json_get(at, "allow_implicit_sharing");
    bool allows = true;
    TARE_TRY(tare__json_bool(&flag, &allows, r->err));
    n->refuses_sharing = !allows;
    return TARE_OK;
}

static tare_status read_nodes(reading *r, const json_at *object, data_rule *rule) {
    const json_at list = tare__json_get(object, "annotations");
    const char *key = NULL;
    json_t *ignored = NULL;
    TARE_TRY(tare__json_expect(&list, JSON_OBJECT, r->err));
    json_object_foreach((json_t *)list.value, key, ignored) {
        const json_at at = tare__json_get(&list, key);
        if (!tare__grow((void **)&rule->nodes, &rule->node_capacity, rule->node_count,
                        sizeof *rule->nodes))
            return tare__out_of_memory(r->err);
        rule_node *n = &rule->nodes[rule->node_count];
        *n = (rule_node){.name = tare__strdup(key)};
        if (n->name == NULL) return tare__out_of_memory(r->err);
        rule->node_count++;
        TARE_TRY(read_node(r, &at, n));
    }
    return TARE_OK;
}

static tare_status read_rule(reading *r, const json_at *at) {
    static const char *const keys[] = {"name", "pattern", "match_literals", "annotations", NULL};
    data_quantizer *q = r->q;
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_only_keys(at, keys, r->err));
    if (!tare__grow((void **)&q->rules, &q->rule_capacity, q->rule_count, sizeof *q->rules))
        return tare__out_of_memory(r->err);
    data_rule *rule = &q->rules[q->rule_count++];
    *rule = (data_rule){0};
    const json_at name = tare__json_get(at, "name");
    TARE_TRY(keep_text(&name, &rule->name, r->err));
    for (size_t i = 0; i + 1 < q->rule_count; i++)
        if (strcmp(q->rules[i].name, rule->name) == 0)
            return tare__json_fail(&name, r->err, "a second rule '%s'", rule->name);
    TARE_TRY(read_forms(r, at, rule));
    TARE_TRY(read_nodes(r, at, rule));
    return tare__json_place(at, tare__data_rule_check(rule, r->err), r->err);
}

static tare_status read_rules(reading *r, const json_at *root) {
    const json_at list = tare__json_get(root, "rules");
    TARE_TRY(tare__json_expect(&list, JSON_ARRAY, r->err));
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        const json_at at = tare__json_item(&list, i);
        TARE_TRY(read_rule(r, &at));
    }
    return TARE_OK;
}

static tare_status read_operators(reading *r, const json_at *root, const char *key,
                                  const char ***out) {
    const json_at list = tare__json_get(root, key);
    const bool is_given = tare__json_has(root, key);
    if (is_given) TARE_TRY(tare__json_expect(&list, JSON_ARRAY, r->err));
    const size_t count = is_given ? json_array_size(list.value) : 0;
    const char **names = tare__arena_array(&r->q->memory, count + 1, sizeof *names);
    if (names == NULL) return tare__out_of_memory(r->err);
    for (size_t i = 0; i < count; i++) {
        const json_at at = tare__json_item(&list, i);
        const char *name = NULL;
        TARE_TRY(tare__json_string(&at, &name, r->err));
        names[i] = tare__arena_strdup(&r->q->memory, name);
        if (names[i] == NULL) return tare__out_of_memory(r->err);
    }
    *out = names;
    return TARE_OK;
}

tare_status tare__data_quantizer_parse(const json_t *json, data_quantizer *out, tare_error *err) {
    static const char *const keys[] = {"format",         "version",      "name",
                                       "specs",          "config",       "rules",
                                       "keeps_observer", "joins_inputs", NULL};
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
    TARE_TRY(keep_text(&name, &out->name, err));
    TARE_TRY(read_specs(&r, &root));
    TARE_TRY(read_config(&r, &root));
    TARE_TRY(read_operators(&r, &root, "keeps_observer", &out->keeps_observer));
    TARE_TRY(read_operators(&r, &root, "joins_inputs", &out->joins_inputs));
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
