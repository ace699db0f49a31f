// SPDX-License-Identifier: Apache-2.0
// Reads backend configs from JSON, in the form of torch's to_dict. Errors state the JSON path;
// unknown keys, dtypes and function names are refused.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/backend_config.h"
#include "config/constraints.h"
#include "config/pattern_form.h"
#include "core/json/json.h"

// Named definitions that entries of the file may refer to: {name: dtype with constraints} and
// {name: dtype config}. Written files have none.
typedef struct definitions {
    json_at dtypes, dtype_configs;
    const backend_functions *functions; // the user's; NULL: none
} definitions;

// Adds the place in the JSON file to a setter's error.
static tare_status placed(const json_at *at, tare_status status, tare_error *err) {
    if (status == TARE_OK || status == TARE_OUT_OF_MEMORY) return status;
    char hint[256];
    snprintf(hint, sizeof hint, "%s", tare_error_hint(err));
    tare__json_fail(at, err, "%s", tare_error_message(err));
    return tare__hint(err, TARE_MALFORMED_FILE, "%s", hint);
}

// An absent key and null both mean unset, as in torch's from_dict.
static bool is_given(const json_at *at) {
    return at->value && !json_is_null(at->value);
}

static tare_status optional_string(const json_at *at, const char **out, tare_error *err) {
    *out = NULL;
    return is_given(at) ? tare__json_string(at, out, err) : TARE_OK;
}

// The Python type of a value, for messages in torch's words.
static const char *python_type(const json_t *found) {
    switch (json_typeof(found)) {
    case JSON_OBJECT:
        return "dict";
    case JSON_ARRAY:
        return "list";
    case JSON_STRING:
        return "str";
    case JSON_INTEGER:
        return "int";
    case JSON_REAL:
        return "float";
    case JSON_TRUE:
    case JSON_FALSE:
        return "bool";
    case JSON_NULL:
        return "NoneType";
    }
    return "object";
}

static const char *dtype_name_at(const void *unused, size_t i) {
    (void)unused;
    return i + 1 < TARE_DTYPE_COUNT ? tare_dtype_name((tare_dtype)(i + 1)) : NULL;
}

static tare_status read_dtype(const json_at *at, tare_dtype *out, tare_error *err) {
    const char *name = NULL;
    TARE_TRY(tare__json_string(at, &name, err));
    *out = tare_dtype_from_name(name);
    if (*out != TARE_DTYPE_UNSET) return TARE_OK;
    tare__json_fail(at, err, "unknown dtype '%s'", name);
    return tare__suggest(err, TARE_MALFORMED_FILE, name, dtype_name_at, NULL);
}

static const char *observation_name_at(const void *unused, size_t i) {
    (void)unused;
    return tare__observation_type_name(i);
}

static tare_status read_observation(const json_at *at, tare_observation_type *out,
                                    tare_error *err) {
    const char *name = NULL;
    TARE_TRY(tare__json_string(at, &name, err));
    for (size_t i = 0; tare__observation_type_name(i); i++) {
        if (strcmp(tare__observation_type_name(i), name) != 0) continue;
        *out = (tare_observation_type)i;
        return TARE_OK;
    }
    tare__json_fail(at, err, "unknown observation type '%s'", name);
    return tare__suggest(err, TARE_MALFORMED_FILE, name, observation_name_at, NULL);
}

static tare_status read_constraint_object(const json_at *at, tare_dtype_constraints *c,
                                          tare_error *err) {
    const json_at dtype = tare__json_get(at, "dtype");
    TARE_TRY(tare__constraints_from_json(at, c, err));
    return read_dtype(&dtype, &c->dtype, err);
}

// The definition with this name; value NULL: there is none.
static json_at find_definition(const json_at *table, const json_at *name) {
    const json_at none = {0};
    return json_is_object(table->value) ? tare__json_get(table, json_string_value(name->value))
                                        : none;
}

// Reads a dtype with constraints, a name of one, or a bare dtype, which has no constraints.
static tare_status read_constraints(const json_at *object, const char *key, const definitions *defs,
                                    tare_dtype_constraints *c, tare_error *err) {
    const json_at at = tare__json_get(object, key);
    if (!is_given(&at)) return TARE_OK;
    if (json_is_string(at.value)) {
        const json_at named = find_definition(&defs->dtypes, &at);
        return named.value != NULL ? read_constraint_object(&named, c, err)
                                   : read_dtype(&at, &c->dtype, err);
    }
    if (!json_is_object(at.value))
        return tare__json_fail(&at, err, "Expected %s to be a torch.dtype or DTypeWithConstraints",
                               key);
    return read_constraint_object(&at, c, err);
}

static tare_status read_dtype_config(const json_at *at, const definitions *defs,
                                     tare_dtype_config *d, tare_error *err) {
    static const char *const keys[] = {"input_dtype", "output_dtype", "weight_dtype",
                                       "bias_dtype",  "is_dynamic",   NULL};
    if (!json_is_object(at->value))
        return tare__json_fail(at, err,
                               "Expected a list of DTypeConfigs in "
                               "backend_pattern_config_dict[\"dtype_configs\"], got '<class '%s'>'",
                               python_type(at->value));
    TARE_TRY(tare__json_only_keys(at, keys, err));
    TARE_TRY(read_constraints(at, keys[0], defs, &d->input, err));
    TARE_TRY(read_constraints(at, keys[1], defs, &d->output, err));
    TARE_TRY(read_constraints(at, keys[2], defs, &d->weight, err));
    const json_at bias = tare__json_get(at, keys[3]), is_dynamic = tare__json_get(at, keys[4]);
    if (is_given(&bias)) TARE_TRY(read_dtype(&bias, &d->bias, err));
    if (!is_given(&is_dynamic)) return TARE_OK;
    bool flag = false;
    TARE_TRY(tare__json_bool(&is_dynamic, &flag, err));
    d->is_dynamic = flag;
    return TARE_OK;
}

// Lists the first names, which is enough for suggestions.
static const char *definition_name_at(const void *user, size_t index) {
    const json_at *table = user;
    if (index >= 256) return NULL;
    json_t *entries = (json_t *)table->value; // jansson's iterators do not modify it
    void *i = json_object_iter(entries);
    for (; i != NULL && index > 0; index--) i = json_object_iter_next(entries, i);
    return i != NULL ? json_object_iter_key(i) : NULL;
}

static tare_status read_named_config(const json_at *at, const definitions *defs,
                                     tare_dtype_config *d, tare_error *err) {
    const json_at named = find_definition(&defs->dtype_configs, at);
    const char *name = json_string_value(at->value);
    if (named.value != NULL) return read_dtype_config(&named, defs, d, err);
    return tare__suggest(err,
                         tare__json_fail(at, err, "the file's 'dtype_configs' lack '%s'", name),
                         name, definition_name_at, &defs->dtype_configs);
}

static tare_status read_dtype_configs(const json_at *object, const definitions *defs,
                                      tare_pattern_config *p, tare_error *err) {
    const json_at list = tare__json_get(object, "dtype_configs");
    if (!is_given(&list)) return TARE_OK;
    TARE_TRY(tare__json_expect(&list, JSON_ARRAY, err));
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        const json_at at = tare__json_item(&list, i);
        tare_dtype_config d = tare_dtype_config_init();
        const bool is_named = json_is_string(at.value) && json_is_object(defs->dtype_configs.value);
        TARE_TRY(is_named ? read_named_config(&at, defs, &d, err)
                          : read_dtype_config(&at, defs, &d, err));
        TARE_TRY(placed(&at, tare__pattern_config_append_dtypes(p, &d, err), err));
    }
    return TARE_OK;
}

static tare_status read_simple_list(const json_at *at, const char **names, tare_pattern_config *p,
                                    tare_error *err) {
    const size_t count = json_array_size(at->value);
    for (size_t i = 0; i < count; i++) {
        const json_at item = tare__json_item(at, i);
        pattern checked = {0};
        TARE_TRY(tare__json_string(&item, &names[i], err));
        TARE_TRY(placed(&item, tare__pattern_from_name(names[i], &checked, err), err));
    }
    return placed(at, tare__pattern_config_assign_simple(p, names, count, true, err), err);
}

static tare_status read_simple(const json_at *at, tare_pattern_config *p, tare_error *err) {
    const char *name = NULL;
    if (!json_is_array(at->value)) {
        TARE_TRY(tare__json_string(at, &name, err));
        return placed(at, tare__pattern_config_assign_simple(p, &name, 1, false, err), err);
    }
    arena scratch = {0};
    const size_t count = json_array_size(at->value);
    const char **names = tare__arena_array(&scratch, count ? count : 1, sizeof *names);
    const tare_status status =
        names ? read_simple_list(at, names, p, err) : tare__out_of_memory(err);
    tare__arena_release(&scratch);
    return status;
}

static tare_status read_complex(const json_at *at, tare_pattern_config *p, tare_error *err) {
    arena scratch = {0};
    pattern parsed = {0};
    tare_status status = tare__pattern_from_json(&scratch, at, &parsed, err);
    if (status == TARE_OK)
        status = placed(at, tare__pattern_config_assign_complex(p, &parsed, err), err);
    tare__arena_release(&scratch);
    return status;
}

// Reads the complex form second, so that a file with both forms is refused there.
static tare_status read_pattern(const json_at *object, tare_pattern_config *p, tare_error *err) {
    const json_at simple = tare__json_get(object, "pattern");
    const json_at complex = tare__json_get(object, "pattern_complex_format");
    if (is_given(&simple)) TARE_TRY(read_simple(&simple, p, err));
    if (is_given(&complex)) return read_complex(&complex, p, err);
    if (p->complex) return TARE_OK;
    return tare__json_fail(object, err,
                           "Either 'pattern' or 'pattern_complex_format' must be specified");
}

static tare_status read_modules(const json_at *object, tare_pattern_config *p, tare_error *err) {
    static const char *const keys[MODULE_SLOT_COUNT] = {[MODULE_ROOT] = "root_module",
                                                        [MODULE_QAT] = "qat_module",
                                                        [MODULE_REFERENCE_QUANTIZED] =
                                                            "reference_quantized_module_for_root",
                                                        [MODULE_FUSED] = "fused_module"};
    for (int slot = 0; slot < MODULE_SLOT_COUNT; slot++) {
        const json_at at = tare__json_get(object, keys[slot]);
        const char *type = NULL;
        TARE_TRY(optional_string(&at, &type, err));
        TARE_TRY(
            placed(&at, tare__pattern_config_assign_module(p, (module_slot)slot, type, err), err));
    }
    return TARE_OK;
}

// Reads the function name at `key`, and looks up the user's functions of this name. *name, *own:
// NULL if there is none.
static tare_status read_function(const json_at *object, const char *key, const definitions *defs,
                                 json_at *at, const char **name, const tare_backend_function **own,
                                 tare_error *err) {
    *at = tare__json_get(object, key);
    TARE_TRY(optional_string(at, name, err));
    *own = *name != NULL ? tare__backend_functions_find(defs->functions, *name) : NULL;
    return TARE_OK;
}

static tare_status read_functions(const json_at *object, const definitions *defs,
                                  tare_pattern_config *p, tare_error *err) {
    json_at at;
    const char *name = NULL;
    const tare_backend_function *own = NULL;
    TARE_TRY(read_function(object, "fuser_method", defs, &at, &name, &own, err));
    TARE_TRY(placed(&at, tare__pattern_config_assign_fuser(p, name, own, err), err));
    TARE_TRY(read_function(object, "root_node_getter", defs, &at, &name, &own, err));
    TARE_TRY(placed(&at, tare__pattern_config_assign_root_getter(p, name, own, err), err));
    TARE_TRY(read_function(object, "extra_inputs_getter", defs, &at, &name, &own, err));
    return placed(&at, tare__pattern_config_assign_extra_getter(p, name, own, err), err);
}

// Reads an integer ("0", "1", ..) from a string, because JSON has no integer keys.
static bool read_count(const char *key, int64_t *out) {
    char *end = NULL;
    errno = 0;
    *out = strtoll(key, &end, 10);
    const bool is_plain = key[0] >= '0' && key[0] <= '9' && (key[0] != '0' || key[1] == '\0');
    return is_plain && *end == '\0' && errno == 0;
}

static tare_status read_counts(const json_at *object, tare_pattern_config *p, tare_error *err) {
    const json_at table = tare__json_get(object, "num_tensor_args_to_observation_type");
    if (!is_given(&table)) return TARE_OK;
    TARE_TRY(tare__json_expect(&table, JSON_OBJECT, err));
    json_t *entries = (json_t *)table.value; // jansson's iterators do not modify it
    for (void *i = json_object_iter(entries); i; i = json_object_iter_next(entries, i)) {
        const char *key = json_object_iter_key(i);
        const json_at at = tare__json_get(&table, key);
        int64_t count = 0;
        tare_observation_type type = 0;
        if (!read_count(key, &count))
            return tare__json_fail(&table, err,
                                   "expected a number of tensor arguments, found \"%s\"", key);
        TARE_TRY(read_observation(&at, &type, err));
        TARE_TRY(placed(&at, tare__pattern_config_assign_count(p, count, type, err), err));
    }
    return TARE_OK;
}

static tare_status read_indexes(const json_at *object, tare_pattern_config *p, tare_error *err) {
    const json_at table = tare__json_get(object, "input_type_to_index");
    if (!is_given(&table)) return TARE_OK;
    TARE_TRY(tare__json_expect(&table, JSON_OBJECT, err));
    json_t *entries = (json_t *)table.value; // jansson's iterators do not modify it
    for (void *i = json_object_iter(entries); i; i = json_object_iter_next(entries, i)) {
        const char *key = json_object_iter_key(i);
        const json_at at = tare__json_get(&table, key);
        int64_t index = 0;
        TARE_TRY(tare__json_int(&at, &index, err));
        TARE_TRY(placed(&at, tare__pattern_config_assign_index(p, key, index, err), err));
    }
    return TARE_OK;
}

// Suggests the right key for the name of torch's setter, which differs too much from the key of
// torch's dictionary to be found as similar.
static tare_status refuse_setters_name(const json_at *object, tare_error *err) {
    if (!tare__json_has(object, "reference_quantized_module")) return TARE_OK;
    tare__json_fail(object, err, "unknown key 'reference_quantized_module'");
    return tare__hint(err, TARE_MALFORMED_FILE,
                      "did you mean 'reference_quantized_module_for_root'?");
}

static tare_status read_pattern_config(const json_at *at, const definitions *defs,
                                       tare_pattern_config *p, tare_error *err) {
    static const char *const keys[] = {"pattern",
                                       "observation_type",
                                       "dtype_configs",
                                       "root_module",
                                       "qat_module",
                                       "reference_quantized_module_for_root",
                                       "fused_module",
                                       "fuser_method",
                                       "root_node_getter",
                                       "extra_inputs_getter",
                                       "num_tensor_args_to_observation_type",
                                       "input_type_to_index",
                                       "pattern_complex_format",
                                       NULL};
    if (!json_is_object(at->value))
        return tare__json_fail(at, err,
                               "Expected backend_config_dict['configs'] to be a dictionary");
    TARE_TRY(refuse_setters_name(at, err));
    TARE_TRY(tare__json_only_keys(at, keys, err));
    TARE_TRY(read_pattern(at, p, err));
    const json_at observation = tare__json_get(at, "observation_type");
    if (is_given(&observation)) TARE_TRY(read_observation(&observation, &p->observation_type, err));
    TARE_TRY(read_dtype_configs(at, defs, p, err));
    TARE_TRY(read_modules(at, p, err));
    TARE_TRY(read_functions(at, defs, p, err));
    TARE_TRY(read_counts(at, p, err));
    return read_indexes(at, p, err);
}

static tare_status read_config(const json_at *at, const definitions *defs, tare_backend_config *b,
                               tare_error *err) {
    tare_pattern_config *p = tare_pattern_config_create();
    if (!p) return tare__out_of_memory(err);
    const tare_status status = read_pattern_config(at, defs, p, err);
    p->has_place = true;
    p->place = at->index;
    if (status == TARE_OK) return tare__backend_config_store(b, p, err);
    tare_pattern_config_destroy(p);
    return status;
}

static tare_status read_configs(const json_at *root, const definitions *defs,
                                tare_backend_config *b, tare_error *err) {
    const json_at list = tare__json_get(root, "configs");
    if (!is_given(&list)) return TARE_OK;
    TARE_TRY(tare__json_expect(&list, JSON_ARRAY, err));
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        const json_at at = tare__json_item(&list, i);
        TARE_TRY(read_config(&at, defs, b, err));
    }
    return TARE_OK;
}

// --- definitions ---

// Refuses definitions with the name of a dtype, which would be ambiguous.
static tare_status check_dtypes(const definitions *defs, tare_error *err) {
    const json_at *table = &defs->dtypes;
    const char *name = NULL;
    json_t *item = NULL;
    if (!is_given(table)) return TARE_OK;
    TARE_TRY(tare__json_expect(table, JSON_OBJECT, err));
    json_object_foreach((json_t *)table->value, name, item) {
        const json_at at = tare__json_get(table, name);
        tare_dtype_config unused = tare_dtype_config_init();
        if (tare_dtype_from_name(name) != TARE_DTYPE_UNSET)
            return tare__json_fail(&at, err, "'%s' is a dtype, and cannot be a name for one", name);
        TARE_TRY(tare__json_expect(&at, JSON_OBJECT, err));
        TARE_TRY(read_constraint_object(&at, &unused.input, err));
    }
    return TARE_OK;
}

static tare_status check_dtype_configs(const definitions *defs, tare_error *err) {
    const json_at *table = &defs->dtype_configs;
    const char *name = NULL;
    json_t *item = NULL;
    if (!is_given(table)) return TARE_OK;
    TARE_TRY(tare__json_expect(table, JSON_OBJECT, err));
    json_object_foreach((json_t *)table->value, name, item) {
        const json_at at = tare__json_get(table, name);
        tare_dtype_config unused = tare_dtype_config_init();
        TARE_TRY(tare__json_expect(&at, JSON_OBJECT, err));
        TARE_TRY(read_dtype_config(&at, defs, &unused, err));
    }
    return TARE_OK;
}

// --- documents ---

// Creates an empty config, or a copy of the built-in config that the file extends. Patterns of the
// file replace equal patterns of that config.
static tare_status begin_config(const json_at *root, tare_backend_config **out, tare_error *err) {
    const json_at name_at = tare__json_get(root, "name"), base = tare__json_get(root, "extends");
    const char *name = NULL, *extended = NULL;
    TARE_TRY(optional_string(&name_at, &name, err));
    TARE_TRY(optional_string(&base, &extended, err));
    if (extended == NULL) {
        *out = tare_backend_config_create(name);
        return *out != NULL ? TARE_OK : tare__out_of_memory(err);
    }
    TARE_TRY(placed(&base, tare_backend_config_builtin(extended, out, err), err));
    for (size_t i = 0; i < (*out)->count; i++) (*out)->configs[i]->is_inherited = true;
    if (name != NULL) tare_backend_config_set_name(*out, name);
    return TARE_OK;
}

static tare_status read_document(const json_at *root, const backend_functions *functions,
                                 tare_backend_config **out, tare_error *err) {
    static const char *const keys[] = {"name",          "extends", "dtypes",
                                       "dtype_configs", "configs", NULL};
    tare_backend_config *b = NULL;
    TARE_TRY(tare__json_only_keys(root, keys, err));
    const definitions defs = {.dtypes = tare__json_get(root, "dtypes"),
                              .dtype_configs = tare__json_get(root, "dtype_configs"),
                              .functions = functions};
    TARE_TRY(check_dtypes(&defs, err));
    TARE_TRY(check_dtype_configs(&defs, err));
    TARE_TRY(begin_config(root, &b, err));
    const tare_status status = read_configs(root, &defs, b, err);
    if (status != TARE_OK) {
        tare_backend_config_destroy(b);
        return status;
    }
    *out = b;
    return TARE_OK;
}

// Takes ownership of the document.
static tare_status read_and_release(json_t *document, const backend_functions *functions,
                                    tare_backend_config **out, tare_error *err) {
    const json_at root = tare__json_root(document);
    const tare_status status = read_document(&root, functions, out, err);
    json_decref(document);
    return status;
}

tare_status tare__backend_config_parse(const backend_functions *functions, const char *json,
                                       size_t size, tare_backend_config **out, tare_error *err) {
    json_t *document = NULL;
    TARE_TRY(tare__json_parse(json, size, &document, err));
    return read_and_release(document, functions, out, err);
}

tare_status tare__backend_config_load(const backend_functions *functions, const char *path,
                                      tare_backend_config **out, tare_error *err) {
    json_t *document = NULL;
    TARE_TRY(tare__json_parse_file(path, &document, err));
    return tare__at(err, read_and_release(document, functions, out, err), "%s", path);
}

tare_status tare_backend_config_from_json(const char *json, size_t size, tare_backend_config **out,
                                          tare_error *err) {
    return tare__backend_config_parse(NULL, json, size, out, err);
}

tare_status tare_backend_config_read(const char *path, tare_backend_config **out, tare_error *err) {
    return tare__backend_config_load(NULL, path, out, err);
}
