// SPDX-License-Identifier: Apache-2.0
// Reads and writes qconfig mappings as JSON. The default mappings are such files, compiled in.
#include <assert.h>
#include <string.h>

#include "config/qconfig.h"
#include "core/memory/alloc.h"

// --- defaults ---

typedef struct default_mapping {
    const char *name;
    const char *ptq;    // its file
    const char *qat[2]; // by version; NULL: torch has none
    bool is_of_weights; // linear layers only, with weight scales per group; no calibration
} default_mapping;

#define MAPPING_FILE(name) "qconfigs/mapping_" name ".json"
#define VERSIONED(name)                                                                            \
    {                                                                                              \
        name, MAPPING_FILE(name "_ptq_v0"), {                                                      \
            MAPPING_FILE(name "_qat_v0"), MAPPING_FILE(name "_qat_v1")                             \
        }                                                                                          \
    }
#define WEIGHTS(name)                                                                              \
    { name, MAPPING_FILE(name), {NULL, NULL}, true }
static const default_mapping defaults[] = {
    // tare's own: like x86, but activations use all eight bits, because tare's kernels cannot
    // saturate.
    {"tare", MAPPING_FILE("tare_ptq"), {NULL, MAPPING_FILE("tare_qat")}},
    VERSIONED("fbgemm"),
    VERSIONED("x86"),
    VERSIONED("qnnpack"),
    VERSIONED("onednn"),
    {"symmetric_qnnpack",
     MAPPING_FILE("symmetric_qnnpack_ptq"),
     {NULL, MAPPING_FILE("symmetric_qnnpack_qat")}},
    // Names of torchao's configs.
    WEIGHTS("int8_weight_only"),
    WEIGHTS("int4_weight_only_g32"),
    WEIGHTS("int4_weight_only_g64"),
    WEIGHTS("int4_weight_only_g128"),
    WEIGHTS("int8_dynamic_activation_int8_weight"),
    WEIGHTS("int8_dynamic_activation_int4_weight_g32"),
    WEIGHTS("int8_dynamic_activation_int4_weight_g64"),
    WEIGHTS("int8_dynamic_activation_int4_weight_g128"),
};
enum { DEFAULT_COUNT = sizeof defaults / sizeof *defaults };

const char *tare_qconfig_mapping_default_name_at(size_t index) {
    return index < DEFAULT_COUNT ? defaults[index].name : NULL;
}

bool tare__default_mapping_is_of_weights(const char *name) {
    for (size_t i = 0; i < DEFAULT_COUNT; i++)
        if (strcmp(defaults[i].name, name) == 0) return defaults[i].is_of_weights;
    return false;
}

const char *tare_qconfig_mapping_default_backend(const char *name) {
    return name != NULL && tare__default_mapping_is_of_weights(name) ? "tare" : NULL;
}

static const char *default_name_at(const void *user, size_t index) {
    (void)user;
    return tare_qconfig_mapping_default_name_at(index);
}

static tare_status refuse_name(const char *name, tare_error *err) {
    text message = {0};
    tare__text_printf(&message, "backend: %s not supported. backend must be one of [", name);
    for (size_t i = 0; i < DEFAULT_COUNT; i++)
        tare__text_printf(&message, "%s'%s'", i > 0 ? ", " : "", defaults[i].name);
    tare__text_char(&message, ']');
    const tare_status status = tare__fail(err, TARE_NOT_FOUND, "%s", tare__text_chars(&message));
    tare__text_release(&message);
    return tare__suggest(err, status, name, default_name_at, NULL);
}

static tare_status find_default(const char *name, bool is_qat, int version, const char **out,
                                tare_error *err) {
    const default_mapping *found = NULL;
    if (name == NULL) return tare__fail(err, TARE_INVALID_ARGUMENT, "a default needs a name");
    for (size_t i = 0; i < DEFAULT_COUNT; i++)
        if (strcmp(defaults[i].name, name) == 0) found = &defaults[i];
    if (found == NULL) return refuse_name(name, err);
    if (is_qat && found->is_of_weights)
        return tare__fail(err, TARE_UNSUPPORTED,
                          "the mapping '%s' is not for quantization-aware training", name);
    const int wanted = version >= 0 ? version : is_qat ? 1 : 0;
    if (!is_qat && wanted != 0)
        return tare__fail(err, TARE_UNSUPPORTED,
                          "Version number: %d in get_default_qconfig is not supported. Version "
                          "number must be 0",
                          wanted);
    if (is_qat && (wanted > 1 || found->qat[wanted] == NULL))
        return tare__fail(err, TARE_UNSUPPORTED,
                          "Version number: %d in get_default_qat_qconfig is not supported. Version "
                          "number must be %s",
                          wanted, found->qat[0] != NULL ? "0 or 1" : "1");
    *out = is_qat ? found->qat[wanted] : found->ptq;
    return TARE_OK;
}

// --- reading ---

// A section of a mapping. Each entry has one key, or path, type and index (has_order), then the
// qconfig.
typedef struct section {
    const char *name;
    bool has_order; // path, type, index; else one key
    void (*set)(tare_qconfig_mapping *m, const char *key, tare_qconfig *qconfig);
} section;
static const section sections[] = {
    {"object_type", false, tare_qconfig_mapping_set_object_type},
    {"module_name_regex", false, tare_qconfig_mapping_set_module_name_regex},
    {"module_name", false, tare_qconfig_mapping_set_module_name},
    {"module_name_object_type_order", true, NULL},
};
enum { SECTION_COUNT = sizeof sections / sizeof *sections };

static tare_status set_ordered(tare_qconfig_mapping *m, const json_at *entry, const char *path,
                               tare_qconfig *qconfig, tare_error *err) {
    const json_at type_at = tare__json_item(entry, 1), index_at = tare__json_item(entry, 2);
    const char *type = NULL;
    int64_t index = 0;
    TARE_TRY(tare__json_string(&type_at, &type, err));
    TARE_TRY(tare__json_int(&index_at, &index, err));
    tare_qconfig_mapping_set_module_name_object_type_order(m, path, type, index, qconfig);
    return TARE_OK;
}

static tare_status read_entry(tare_qconfig_mapping *m, const section *s, const json_at *entry,
                              tare_error *err) {
    const size_t length = s->has_order ? 4 : 2;
    const char *key = NULL;
    tare_qconfig *qconfig = NULL;
    assert(m != NULL);
    TARE_TRY(tare__json_expect(entry, JSON_ARRAY, err));
    if (json_array_size(entry->value) != length)
        return tare__json_fail(entry, err, "expected %zu elements, found %zu", length,
                               json_array_size(entry->value));
    const json_at key_at = tare__json_item(entry, 0), last = tare__json_item(entry, length - 1);
    TARE_TRY(tare__json_string(&key_at, &key, err));
    TARE_TRY(tare__qconfig_from_json(&last, &qconfig, err));
    tare_status status = TARE_OK;
    if (s->has_order)
        status = set_ordered(m, entry, key, qconfig, err);
    else
        s->set(m, key, qconfig);
    tare_qconfig_release(qconfig);
    if (status == TARE_OK && m->first_status == TARE_OUT_OF_MEMORY)
        status = tare__out_of_memory(err);
    if (status == TARE_OK && m->first_status != TARE_OK)
        status = tare__json_fail(entry, err, "%s", tare_error_message(m->first_error));
    return status;
}

static tare_status read_section(tare_qconfig_mapping *m, const section *s, const json_at *root,
                                tare_error *err) {
    const json_at list = tare__json_get(root, s->name);
    if (!tare__json_has(root, s->name)) return TARE_OK;
    TARE_TRY(tare__json_expect(&list, JSON_ARRAY, err));
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        const json_at entry = tare__json_item(&list, i);
        TARE_TRY(read_entry(m, s, &entry, err));
    }
    return TARE_OK;
}

static tare_status read_global(tare_qconfig_mapping *m, const json_at *root, tare_error *err) {
    const json_at at = tare__json_get(root, "global");
    tare_qconfig *qconfig = NULL;
    if (!tare__json_has(root, "global")) return TARE_OK;
    TARE_TRY(tare__qconfig_from_json(&at, &qconfig, err));
    tare_qconfig_mapping_set_global(m, qconfig);
    tare_qconfig_release(qconfig);
    return TARE_OK;
}

static tare_status read_full(tare_qconfig_mapping *m, const json_at *root, tare_error *err) {
    TARE_TRY(read_global(m, root, err));
    for (size_t i = 0; i < SECTION_COUNT; i++) TARE_TRY(read_section(m, &sections[i], root, err));
    return tare__qconfig_mapping_status(m, err);
}

// Creates the mapping that {"default": ..} or {"default_qat": ..} names, or an empty one. The other
// sections override it.
static tare_status begin_mapping(const json_at *root, tare_qconfig_mapping **out, tare_error *err) {
    const bool is_ptq = tare__json_has(root, "default"),
               is_qat = tare__json_has(root, "default_qat");
    const char *name = NULL;
    if (is_ptq && is_qat)
        return tare__json_fail(root, err, "'default' and 'default_qat' exclude each other");
    if (!is_ptq && !is_qat) {
        *out = tare_qconfig_mapping_create();
        return *out != NULL ? TARE_OK : tare__out_of_memory(err);
    }
    const json_at at = tare__json_get(root, is_qat ? "default_qat" : "default");
    TARE_TRY(tare__json_string(&at, &name, err));
    const tare_status status = tare_qconfig_mapping_default(name, is_qat, -1, out, err);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "$.%s", at.key);
}

tare_status tare__qconfig_mapping_from_json(const json_at *root, tare_qconfig_mapping **out,
                                            tare_error *err) {
    static const char *const keys[] = {"default",
                                       "default_qat",
                                       "global",
                                       "object_type",
                                       "module_name",
                                       "module_name_regex",
                                       "module_name_object_type_order",
                                       NULL};
    tare_qconfig_mapping *made = NULL;
    TARE_TRY(tare__json_expect(root, JSON_OBJECT, err));
    TARE_TRY(tare__json_only_keys(root, keys, err));
    TARE_TRY(begin_mapping(root, &made, err));
    const tare_status status = read_full(made, root, err);
    if (status != TARE_OK) {
        tare_qconfig_mapping_destroy(made);
        return status;
    }
    *out = made;
    return TARE_OK;
}

static tare_status read_mapping(const json_t *json, tare_qconfig_mapping **out, tare_error *err) {
    const json_at root = tare__json_root(json);
    return tare__qconfig_mapping_from_json(&root, out, err);
}

tare_status tare_qconfig_mapping_from_json(const char *json, size_t size,
                                           tare_qconfig_mapping **out, tare_error *err) {
    json_t *parsed = NULL;
    TARE_TRY(tare__json_parse(json, size, &parsed, err));
    const tare_status status = read_mapping(parsed, out, err);
    json_decref(parsed);
    return status;
}

tare_status tare_qconfig_mapping_read(const char *path, tare_qconfig_mapping **out,
                                      tare_error *err) {
    json_t *parsed = NULL;
    TARE_TRY(tare__json_parse_file(path, &parsed, err));
    const tare_status status = read_mapping(parsed, out, err);
    json_decref(parsed);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "%s", path);
}

tare_status tare_qconfig_mapping_default(const char *name, bool is_qat, int version,
                                         tare_qconfig_mapping **out, tare_error *err) {
    const char *file = NULL;
    json_t *json = NULL;
    tare_qconfig_mapping *made = NULL;
    TARE_TRY(find_default(name, is_qat, version, &file, err));
    TARE_TRY(tare__embedded_json(file, &json, err));
    const tare_status status = read_mapping(json, &made, err);
    json_decref(json);
    TARE_TRY(status);
    made->default_name = tare__strdup(name);
    if (made->default_name == NULL) {
        tare_qconfig_mapping_destroy(made);
        return tare__out_of_memory(err);
    }
    *out = made;
    return TARE_OK;
}

// --- writing ---

static void rule_to_json(const qconfig_rule *rule, text *out) {
    tare__text_char(out, '[');
    tare__text_json_string(out, rule->key);
    if (rule->object_type != NULL) {
        tare__text_append(out, ", ");
        tare__text_json_string(out, rule->object_type);
        tare__text_printf(out, ", %lld", (long long)rule->index);
    }
    tare__text_append(out, ", ");
    tare__qconfig_to_json(rule->qconfig, out);
    tare__text_char(out, ']');
}

static void rules_to_json(const char *name, const qconfig_rules *rules, text *out) {
    tare__text_printf(out, ",\n \"%s\": [", name);
    for (size_t i = 0; i < rules->count; i++) {
        tare__text_append(out, i > 0 ? ",\n  " : "\n  ");
        rule_to_json(&rules->items[i], out);
    }
    tare__text_append(out, rules->count > 0 ? "\n ]" : "]");
}

void tare__qconfig_mapping_to_json(const tare_qconfig_mapping *mapping, text *out) {
    tare__text_append(out, "{\n \"global\": ");
    tare__qconfig_to_json(mapping->global, out);
    rules_to_json("object_type", &mapping->object_type, out);
    rules_to_json("module_name_regex", &mapping->module_name_regex, out);
    rules_to_json("module_name", &mapping->module_name, out);
    rules_to_json("module_name_object_type_order", &mapping->module_name_object_type_order, out);
    tare__text_append(out, "\n}\n");
}

tare_status tare_qconfig_mapping_to_json(const tare_qconfig_mapping *mapping, char **out,
                                         tare_error *err) {
    text json = {0};
    if (mapping == NULL) return tare__fail(err, TARE_INVALID_ARGUMENT, "the mapping is NULL");
    TARE_TRY(tare__qconfig_mapping_status(mapping, err));
    tare__qconfig_mapping_to_json(mapping, &json);
    const tare_status status = tare__text_status(&json, err);
    if (status == TARE_OK) *out = tare__text_take(&json);
    tare__text_release(&json);
    return status;
}
