// SPDX-License-Identifier: Apache-2.0
// Reads and writes custom configs as JSON, with the keys of torch's to_dict.
#include <string.h>

#include "config/custom_config.h"
#include "core/json/write.h"
#include "core/memory/alloc.h"

// --- reading ---

// The strings of a list, lent by the JSON; the caller frees *out with tare__free.
static tare_status read_names(const json_at *at, const char ***out, size_t *count,
                              tare_error *err) {
    TARE_TRY(tare__json_expect(at, JSON_ARRAY, err));
    *count = json_array_size(at->value);
    const char **names = tare__alloc_zeroed(*count + 1, sizeof *names);
    if (names == NULL) return tare__out_of_memory(err);
    tare_status status = TARE_OK;
    for (size_t i = 0; i < *count && status == TARE_OK; i++) {
        const json_at item = tare__json_item(at, i);
        status = tare__json_string(&item, &names[i], err);
    }
    if (status == TARE_OK)
        *out = names;
    else
        tare__free((void *)names);
    return status;
}

// Adds the place in the JSON to the error that a setter recorded.
static tare_status check_setter(const json_at *at, const setter_failure *failure, tare_error *err) {
    if (failure->status == TARE_OUT_OF_MEMORY || failure->error == NULL)
        return tare__setter_status(failure, err);
    return tare__json_fail(at, err, "%s", tare_error_message(failure->error));
}

#define READ_NAMES(root, key, config, setter)                                                      \
    do {                                                                                           \
        const json_at list = tare__json_get(root, key);                                            \
        const char **names = NULL;                                                                 \
        size_t count = 0;                                                                          \
        if (!tare__json_has(root, key)) break;                                                     \
        TARE_TRY(read_names(&list, &names, &count, err));                                          \
        setter(config, names, count);                                                              \
        tare__free((void *)names);                                                                 \
        TARE_TRY(check_setter(&list, &(config)->failure, err));                                    \
    } while (false)

tare_status tare__index_list_from_json(const json_at *at, index_list *out, tare_error *err) {
    TARE_TRY(tare__json_expect(at, JSON_ARRAY, err));
    const size_t count = json_array_size(at->value);
    int64_t *items = tare__alloc_zeroed(count + 1, sizeof *items);
    if (items == NULL) return tare__out_of_memory(err);
    tare_status status = TARE_OK;
    for (size_t i = 0; i < count && status == TARE_OK; i++) {
        const json_at item = tare__json_item(at, i);
        status = tare__json_int(&item, &items[i], err);
        if (status == TARE_OK && items[i] < 0)
            status = tare__json_fail(&item, err, "expected an index >= 0, found %lld",
                                     (long long)items[i]);
    }
    if (status == TARE_OK) status = tare__index_list_set(out, items, count, err);
    tare__free(items);
    return status;
}

static tare_status read_indexes(const json_at *root, const char *key, index_list *out,
                                tare_error *err) {
    const json_at at = tare__json_get(root, key);
    return tare__json_has(root, key) ? tare__index_list_from_json(&at, out, err) : TARE_OK;
}

// Reads {"static": {class: class}}.
static tare_status read_pairs(const json_at *root, const char *key,
                              void (*set)(void *config, const char *from, const char *to),
                              void *config, const setter_failure *failure, tare_error *err) {
    static const char *const keys[] = {"static", NULL};
    const json_at at = tare__json_get(root, key), pairs = tare__json_get(&at, "static");
    if (!tare__json_has(root, key)) return TARE_OK;
    TARE_TRY(tare__json_expect(&at, JSON_OBJECT, err));
    if (tare__json_has(&at, "dynamic") || tare__json_has(&at, "weight_only"))
        return tare__json_fail(&at, err,
                               "set_%s_mapping is currently only supported for static "
                               "quantization",
                               tare__starts_with(key, "float") ? "float_to_observed"
                                                               : "observed_to_quantized");
    TARE_TRY(tare__json_only_keys(&at, keys, err));
    TARE_TRY(tare__json_expect(&pairs, JSON_OBJECT, err));
    const char *from = NULL, *to = NULL;
    json_t *item = NULL;
    json_object_foreach((json_t *)pairs.value, from, item) {
        const json_at to_at = tare__json_get(&pairs, from);
        TARE_TRY(tare__json_string(&to_at, &to, err));
        set(config, from, to);
        TARE_TRY(check_setter(&to_at, failure, err));
    }
    return TARE_OK;
}

static void set_float_to_observed(void *config, const char *from, const char *to) {
    tare_prepare_custom_config_set_float_to_observed(config, from, to);
}

static void set_observed_to_quantized(void *config, const char *from, const char *to) {
    tare_convert_custom_config_set_observed_to_quantized(config, from, to);
}

// Reads a nested config with its own reader; does nothing for null.
static tare_status with_text(const json_at *at,
                             tare_status (*read)(const char *json, size_t size, void *out,
                                                 tare_error *err),
                             void *out, tare_error *err) {
    text inner = {0};
    if (json_is_null(at->value)) return TARE_OK;
    tare__json_write(at->value, &inner);
    tare_status status = tare__text_status(&inner, err);
    if (status == TARE_OK) status = read(tare__text_chars(&inner), inner.length, out, err);
    tare__text_release(&inner);
    return status == TARE_OK ? status : tare__json_place(at, status, err);
}

static tare_status read_inner_mapping(const char *json, size_t size, void *out, tare_error *err) {
    return tare_qconfig_mapping_from_json(json, size, out, err);
}

static tare_status read_inner_custom(const char *json, size_t size, void *out, tare_error *err) {
    return tare_prepare_custom_config_from_json(json, size, out, err);
}

static tare_status read_inner_backend(const char *json, size_t size, void *out, tare_error *err) {
    return tare_backend_config_from_json(json, size, out, err);
}

static tare_status read_backend(const json_at *at, tare_backend_config **out, tare_error *err) {
    if (!json_is_string(at->value)) return with_text(at, read_inner_backend, out, err);
    const tare_status status = tare_backend_config_builtin(json_string_value(at->value), out, err);
    return status == TARE_OK ? status : tare__json_place(at, status, err);
}

// The fields of an entry. They are owned until they are moved to the config.
typedef struct entry_fields {
    const char *key;
    tare_qconfig_mapping *mapping;
    tare_prepare_custom_config *custom;
    tare_backend_config *backend;
} entry_fields;

// Reads [key, qconfig mapping, example inputs, prepare custom config, backend].
static tare_status read_fields(const json_at *entry, entry_fields *out, tare_error *err) {
    TARE_TRY(tare__json_expect(entry, JSON_ARRAY, err));
    if (json_array_size(entry->value) != 5)
        return tare__json_fail(entry, err,
                               "expected 5 elements (key, qconfig mapping, example inputs, prepare "
                               "custom config, backend), found %zu",
                               json_array_size(entry->value));
    const json_at key = tare__json_item(entry, 0), mapping = tare__json_item(entry, 1),
                  inputs = tare__json_item(entry, 2), custom = tare__json_item(entry, 3),
                  backend = tare__json_item(entry, 4);
    TARE_TRY(tare__json_string(&key, &out->key, err));
    if (!json_is_null(inputs.value) && json_array_size(inputs.value) > 0)
        return tare__json_fail(&inputs, err,
                               "example inputs have no effect: expected null or an empty list");
    TARE_TRY(with_text(&mapping, read_inner_mapping, (void *)&out->mapping, err));
    TARE_TRY(with_text(&custom, read_inner_custom, (void *)&out->custom, err));
    return read_backend(&backend, &out->backend, err);
}

static tare_status read_standalone(const json_at *root, const char *key,
                                   tare_prepare_custom_config *config,
                                   void (*set)(tare_prepare_custom_config *config, const char *key,
                                               const tare_standalone_module *how),
                                   tare_error *err) {
    const json_at list = tare__json_get(root, key);
    if (!tare__json_has(root, key)) return TARE_OK;
    TARE_TRY(tare__json_expect(&list, JSON_ARRAY, err));
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        const json_at entry = tare__json_item(&list, i);
        entry_fields fields = {0};
        tare_status status = read_fields(&entry, &fields, err);
        if (status == TARE_OK) {
            const tare_standalone_module m = {.struct_size = sizeof m,
                                              .qconfig_mapping = fields.mapping,
                                              .custom_config = fields.custom,
                                              .backend = fields.backend};
            set(config, fields.key, &m);
            status = check_setter(&entry, &config->failure, err);
        }
        tare_qconfig_mapping_destroy(fields.mapping);
        tare_prepare_custom_config_destroy(fields.custom);
        tare_backend_config_destroy(fields.backend);
        TARE_TRY(status);
    }
    return TARE_OK;
}

static tare_status fill_prepare(const json_at *root, void *into, tare_error *err) {
    static const char *const keys[] = {"standalone_module_name",
                                       "standalone_module_class",
                                       "float_to_observed_custom_module_class",
                                       "non_traceable_module_name",
                                       "non_traceable_module_class",
                                       "input_quantized_idxs",
                                       "output_quantized_idxs",
                                       "preserved_attributes",
                                       NULL};
    tare_prepare_custom_config *c = into;
    TARE_TRY(tare__json_only_keys(root, keys, err));
    TARE_TRY(read_standalone(root, keys[0], c,
                             tare_prepare_custom_config_set_standalone_module_name, err));
    TARE_TRY(read_standalone(root, keys[1], c,
                             tare_prepare_custom_config_set_standalone_module_class, err));
    TARE_TRY(read_pairs(root, keys[2], set_float_to_observed, c, &c->failure, err));
    READ_NAMES(root, keys[3], c, tare_prepare_custom_config_set_non_traceable_module_names);
    READ_NAMES(root, keys[4], c, tare_prepare_custom_config_set_non_traceable_module_classes);
    TARE_TRY(read_indexes(root, keys[5], &c->input_quantized, err));
    TARE_TRY(read_indexes(root, keys[6], &c->output_quantized, err));
    READ_NAMES(root, keys[7], c, tare_prepare_custom_config_set_preserved_attributes);
    return TARE_OK;
}

static tare_status fill_convert(const json_at *root, void *into, tare_error *err) {
    static const char *const keys[] = {"observed_to_quantized_custom_module_class",
                                       "preserved_attributes", NULL};
    tare_convert_custom_config *c = into;
    TARE_TRY(tare__json_only_keys(root, keys, err));
    TARE_TRY(read_pairs(root, keys[0], set_observed_to_quantized, c, &c->failure, err));
    READ_NAMES(root, keys[1], c, tare_convert_custom_config_set_preserved_attributes);
    return TARE_OK;
}

static tare_status fill_fuse(const json_at *root, void *into, tare_error *err) {
    static const char *const keys[] = {"preserved_attributes", NULL};
    tare_fuse_custom_config *c = into;
    TARE_TRY(tare__json_only_keys(root, keys, err));
    READ_NAMES(root, keys[0], c, tare_fuse_custom_config_set_preserved_attributes);
    return TARE_OK;
}

// Fills a new config from JSON, and releases the JSON.
static tare_status fill(json_t *json, void *made,
                        tare_status (*fill_from)(const json_at *root, void *into, tare_error *err),
                        tare_error *err) {
    const json_at root = tare__json_root(json);
    tare_status status = made != NULL ? TARE_OK : tare__out_of_memory(err);
    if (status == TARE_OK) status = tare__json_expect(&root, JSON_OBJECT, err);
    if (status == TARE_OK) status = fill_from(&root, made, err);
    json_decref(json);
    return status;
}

// Defines the two readers of a KIND of config.
#define DEFINE_READERS(KIND)                                                                       \
    static tare_status KIND##_from(json_t *json, tare_##KIND##_custom_config **out,                \
                                   tare_error *err) {                                              \
        tare_##KIND##_custom_config *made = tare_##KIND##_custom_config_create();                  \
        const tare_status status = fill(json, made, fill_##KIND, err);                             \
        if (status == TARE_OK)                                                                     \
            *out = made;                                                                           \
        else                                                                                       \
            tare_##KIND##_custom_config_destroy(made);                                             \
        return status;                                                                             \
    }                                                                                              \
    tare_status tare_##KIND##_custom_config_from_json(                                             \
        const char *json, size_t size, tare_##KIND##_custom_config **out, tare_error *err) {       \
        json_t *parsed = NULL;                                                                     \
        TARE_TRY(tare__json_parse(json, size, &parsed, err));                                      \
        return KIND##_from(parsed, out, err);                                                      \
    }                                                                                              \
    tare_status tare_##KIND##_custom_config_read(                                                  \
        const char *path, tare_##KIND##_custom_config **out, tare_error *err) {                    \
        json_t *parsed = NULL;                                                                     \
        TARE_TRY(tare__json_parse_file(path, &parsed, err));                                       \
        const tare_status status = KIND##_from(parsed, out, err);                                  \
        return status == TARE_OK ? TARE_OK : tare__at(err, status, "%s", path);                    \
    }

DEFINE_READERS(prepare)
DEFINE_READERS(convert)
DEFINE_READERS(fuse)

// --- writing ---

static void open_key(const char *key, text *out) {
    tare__text_append(out, out->length > 1 ? ",\n " : "\n ");
    tare__text_json_string(out, key);
    tare__text_append(out, ": ");
}

static void names_to_json(const char *key, const name_list *list, text *out) {
    if (list->count == 0) return;
    open_key(key, out);
    for (size_t i = 0; i < list->count; i++) {
        tare__text_append(out, i > 0 ? ", " : "[");
        tare__text_json_string(out, list->items[i]);
    }
    tare__text_char(out, ']');
}

void tare__index_list_to_json(const index_list *list, text *out) {
    tare__text_char(out, '[');
    for (size_t i = 0; i < list->count; i++)
        tare__text_printf(out, "%s%lld", i > 0 ? ", " : "", (long long)list->items[i]);
    tare__text_char(out, ']');
}

static void indexes_to_json(const char *key, const index_list *list, text *out) {
    if (list->count == 0) return;
    open_key(key, out);
    tare__index_list_to_json(list, out);
}

static void pairs_to_json(const char *key, const class_pairs *pairs, text *out) {
    if (pairs->count == 0) return;
    open_key(key, out);
    for (size_t i = 0; i < pairs->count; i++) {
        tare__text_append(out, i > 0 ? ", " : "{\"static\": {");
        tare__text_json_string(out, pairs->items[i].from);
        tare__text_append(out, ": ");
        tare__text_json_string(out, pairs->items[i].to);
    }
    tare__text_append(out, "}}");
}

// Appends the JSON text of a nested config, or null. Takes ownership of the string.
static void append_inner(char *inner, text *out) {
    size_t length = inner != NULL ? strlen(inner) : 0;
    while (length > 0 && inner[length - 1] == '\n') length--;
    if (inner == NULL)
        tare__text_append(out, "null");
    else
        tare__text_append_n(out, inner, length);
    tare_string_free(inner);
}

static tare_status entry_to_json(const standalone_entry *e, text *out, tare_error *err) {
    char *mapping = NULL, *custom = NULL, *backend = NULL;
    tare__text_char(out, '[');
    tare__text_json_string(out, e->key);
    tare__text_append(out, ", ");
    if (e->mapping != NULL) TARE_TRY(tare_qconfig_mapping_to_json(e->mapping, &mapping, err));
    append_inner(mapping, out);
    tare__text_append(out, ", null, ");
    if (e->custom != NULL) TARE_TRY(tare_prepare_custom_config_to_json(e->custom, &custom, err));
    append_inner(custom, out);
    tare__text_append(out, ", ");
    if (e->backend != NULL) TARE_TRY(tare_backend_config_to_json(e->backend, &backend, err));
    append_inner(backend, out);
    tare__text_char(out, ']');
    return TARE_OK;
}

static tare_status standalone_to_json(const char *key, const standalone_list *list, text *out,
                                      tare_error *err) {
    if (list->count == 0) return TARE_OK;
    open_key(key, out);
    for (size_t i = 0; i < list->count; i++) {
        tare__text_append(out, i > 0 ? ", " : "[");
        TARE_TRY(entry_to_json(&list->items[i], out, err));
    }
    tare__text_char(out, ']');
    return TARE_OK;
}

static tare_status finish(text *json, tare_status status, char **out, tare_error *err) {
    tare__text_append(json, json->length > 1 ? "\n}\n" : "}\n");
    if (status == TARE_OK) status = tare__text_status(json, err);
    if (status == TARE_OK) *out = tare__text_take(json);
    tare__text_release(json);
    return status;
}

static tare_status write_prepare(const tare_prepare_custom_config *c, text *out, tare_error *err) {
    TARE_TRY(standalone_to_json("standalone_module_name", &c->standalone_names, out, err));
    TARE_TRY(standalone_to_json("standalone_module_class", &c->standalone_classes, out, err));
    pairs_to_json("float_to_observed_custom_module_class", &c->float_to_observed, out);
    names_to_json("non_traceable_module_name", &c->non_traceable_names, out);
    names_to_json("non_traceable_module_class", &c->non_traceable_classes, out);
    indexes_to_json("input_quantized_idxs", &c->input_quantized, out);
    indexes_to_json("output_quantized_idxs", &c->output_quantized, out);
    names_to_json("preserved_attributes", &c->preserved_attributes, out);
    return TARE_OK;
}

static tare_status begin(const setter_failure *failure, text *json, tare_error *err) {
    TARE_TRY(tare__setter_status(failure, err));
    tare__text_char(json, '{');
    return TARE_OK;
}

tare_status tare_prepare_custom_config_to_json(const tare_prepare_custom_config *config, char **out,
                                               tare_error *err) {
    text json = {0};
    TARE_TRY(begin(&config->failure, &json, err));
    return finish(&json, write_prepare(config, &json, err), out, err);
}

tare_status tare_convert_custom_config_to_json(const tare_convert_custom_config *config, char **out,
                                               tare_error *err) {
    text json = {0};
    TARE_TRY(begin(&config->failure, &json, err));
    pairs_to_json("observed_to_quantized_custom_module_class", &config->observed_to_quantized,
                  &json);
    names_to_json("preserved_attributes", &config->preserved_attributes, &json);
    return finish(&json, TARE_OK, out, err);
}

tare_status tare_fuse_custom_config_to_json(const tare_fuse_custom_config *config, char **out,
                                            tare_error *err) {
    text json = {0};
    TARE_TRY(begin(&config->failure, &json, err));
    names_to_json("preserved_attributes", &config->preserved_attributes, &json);
    return finish(&json, TARE_OK, out, err);
}
