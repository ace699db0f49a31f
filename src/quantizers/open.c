// SPDX-License-Identifier: Apache-2.0
// Opens quantizers by name: built-in ones, rule files, and sequences of these.
#include <string.h>

#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "quantizers/data/quantizer.h"
#include "quantizers/quantizer.h"

typedef struct opening {
    tare_quantizer_open_options options;
    json_at settings;  // value NULL: none
    bool is_composed;  // settings are grouped by quantizer
    size_t used_count; // members of "quantizers" that were used
    tare_error *err;
} opening;

// --- training and inference configs ---

static tare_status check_config(const opening *o, const char *where, const setting *s) {
    if (s->is_none || s->config.is_qat == o->options.is_qat) return TARE_OK;
    const tare_status status =
        tare__fail(o->err, TARE_INVALID_ARGUMENT, "the config of %s says is_qat: %s", where,
                   s->config.is_qat ? "true" : "false");
    return tare__hint(o->err, status,
                      s->config.is_qat ? "it is a config for training, ask for it"
                                       : "training needs configs of fake quantizers");
}

static tare_status check_list(const opening *o, const setting_list *list) {
    for (size_t i = 0; i < list->count; i++)
        TARE_TRY(check_config(o, list->items[i].key, &list->items[i]));
    return TARE_OK;
}

static tare_status check_training(const opening *o, const tare_quantizer_settings *s) {
    if (s->has_global) TARE_TRY(check_config(o, "the whole model", &s->global));
    TARE_TRY(check_list(o, &s->module_names));
    TARE_TRY(check_list(o, &s->module_types));
    return check_list(o, &s->operators);
}

// --- settings ---

// Finds the settings object of one quantizer; value NULL: none. `all`, to which *out refers if
// settings are grouped, belongs to the caller.
static tare_status find_settings(opening *o, const char *name, json_at *all, json_at *out) {
    *out = o->settings;
    if (o->settings.value == NULL || !o->is_composed) return TARE_OK;
    static const char *const keys[] = {"quantizers", NULL};
    TARE_TRY(tare__json_expect(&o->settings, JSON_OBJECT, o->err));
    TARE_TRY(tare__json_only_keys(&o->settings, keys, o->err));
    *all = tare__json_get(&o->settings, "quantizers");
    TARE_TRY(tare__json_expect(all, JSON_OBJECT, o->err));
    *out = tare__json_get(all, name);
    o->used_count += out->value != NULL;
    return TARE_OK;
}

static tare_status default_settings(const opening *o, const char *name,
                                    tare_quantizer_settings **out) {
    const tare_quantization_options options = {.struct_size = sizeof options,
                                               .is_qat = o->options.is_qat};
    tare_quantization_config config;
    TARE_TRY(tare_quantization_config_default(name, &options, &config, o->err));
    *out = tare_quantizer_settings_create();
    tare_quantizer_settings_set_global(*out, &config);
    tare_quantization_config_release(&config);
    return *out != NULL ? TARE_OK : tare__out_of_memory(o->err);
}

// *out: NULL if there are no settings.
static tare_status read_settings(opening *o, const char *name, tare_quantizer_settings **out) {
    const settings_source source = {.quantizer = name, .is_qat = o->options.is_qat};
    json_at all = {0}, at = {0};
    TARE_TRY(find_settings(o, name, &all, &at));
    if (at.value == NULL) return TARE_OK;
    TARE_TRY(tare__settings_from_json(&at, &source, out, o->err));
    const tare_status status = tare__json_place(&at, check_training(o, *out), o->err);
    if (status == TARE_OK) return TARE_OK;
    tare_quantizer_settings_destroy(*out);
    *out = NULL;
    return status;
}

static tare_status at_settings(const opening *o, tare_status status) {
    if (status == TARE_OK || o->options.settings_path == NULL) return status;
    return tare__at(o->err, status, "%s", o->options.settings_path);
}

// --- opening one quantizer ---

static bool is_builtin(const char *name) {
    for (size_t i = 0; tare_quantizer_builtin_name_at(i) != NULL; i++)
        if (strcmp(tare_quantizer_builtin_name_at(i), name) == 0) return true;
    return false;
}

static tare_status open_builtin(opening *o, const char *name, tare_quantizer **out) {
    tare_quantizer_settings *settings = NULL;
    if (!is_builtin(name)) return tare_quantizer_builtin(name, NULL, out, o->err); // unknown name
    tare_status status = at_settings(o, read_settings(o, name, &settings));
    if (status == TARE_OK && settings == NULL) status = default_settings(o, name, &settings);
    tare_quantizer_settings_set_lenient(settings, o->options.is_lenient);
    if (status == TARE_OK) status = tare_quantizer_builtin(name, settings, out, o->err);
    tare_quantizer_settings_destroy(settings);
    return status;
}

static tare_status create(const opening *o, const char *path, const json_t *json,
                          const tare_quantizer_settings *settings, tare_quantizer **out) {
    return tare__at(o->err, tare__data_quantizer_create(json, settings, out, o->err), "%s", path);
}

// Reads the file twice: first to get its name, which selects the settings.
static tare_status open_rules(opening *o, const char *path, const json_t *json,
                              tare_quantizer **out) {
    tare_quantizer *plain = NULL;
    tare_quantizer_settings *settings = NULL;
    TARE_TRY(create(o, path, json, NULL, &plain));
    tare_status status = at_settings(o, read_settings(o, plain->class.name, &settings));
    tare_quantizer_settings *used =
        settings != NULL ? settings : tare__data_quantizer_of(plain)->settings;
    if (status == TARE_OK && settings == NULL)
        status = tare__at(o->err, check_training(o, used), "%s", path);
    tare_quantizer_settings_set_lenient(used, o->options.is_lenient);
    if (status == TARE_OK && settings != NULL)
        status = create(o, path, json, settings, out);
    else if (status == TARE_OK)
        *out = plain;
    if (status != TARE_OK || settings != NULL) tare_quantizer_destroy(plain);
    tare_quantizer_settings_destroy(settings);
    return status;
}

static tare_status open_file(opening *o, const char *path, tare_quantizer **out) {
    json_t *json = NULL;
    TARE_TRY(tare__json_parse_file(path, &json, o->err));
    const tare_status status = open_rules(o, path, json, out);
    json_decref(json);
    return status;
}

static tare_status open_one(opening *o, const char *name, tare_quantizer **out) {
    const bool is_file = !is_builtin(name) && (strpbrk(name, "./") != NULL || !strcmp(name, "-"));
    return is_file ? open_file(o, name, out) : open_builtin(o, name, out);
}

// --- opening several quantizers ---

static size_t count_names(const char *names) {
    size_t count = 1;
    for (; *names != '\0'; names++) count += *names == ',';
    return count;
}

static tare_status check_all_used(const opening *o) {
    if (o->settings.value == NULL || !o->is_composed) return TARE_OK;
    const json_at all = tare__json_get(&o->settings, "quantizers");
    if (o->used_count == json_object_size(all.value)) return TARE_OK;
    return at_settings(o,
                       tare__json_fail(&all, o->err, "settings for a quantizer that is not used"));
}

// Refuses two quantizers with one name: settings are found by name, and a repeated quantizer would
// have no effect.
static tare_status check_name(const opening *o, tare_quantizer *const *list, size_t index) {
    const char *name = list[index]->class.name;
    for (size_t i = 0; i < index; i++) {
        if (strcmp(list[i]->class.name, name) != 0) continue;
        tare__fail(o->err, TARE_INVALID_ARGUMENT, "two quantizers are called '%s'", name);
        return tare__hint(o->err, TARE_INVALID_ARGUMENT, "leave one out, or rename it");
    }
    return TARE_OK;
}

// Opens each of the comma-separated names, which are cut in place.
static tare_status open_several(opening *o, char *names, tare_quantizer **list, size_t count,
                                tare_quantizer **out) {
    for (size_t i = 0; i < count; i++) {
        char *end = names + strcspn(names, ",");
        *end = '\0';
        if (*names == '\0')
            return tare__fail(o->err, TARE_INVALID_ARGUMENT, "an empty name of a quantizer");
        TARE_TRY(open_one(o, names, &list[i]));
        TARE_TRY(check_name(o, list, i));
        names = end + 1;
    }
    TARE_TRY(check_all_used(o));
    return tare_quantizer_compose(list, count, out, o->err);
}

static tare_status open_names(opening *o, const char *names, tare_quantizer **out) {
    const size_t count = count_names(names);
    o->is_composed = count > 1;
    if (!o->is_composed) return open_one(o, names, out);
    tare_quantizer **list = tare__alloc_zeroed(count + 1, sizeof *list);
    char *copy = tare__strdup(names);
    tare_status status = list != NULL && copy != NULL ? open_several(o, copy, list, count, out)
                                                      : tare__out_of_memory(o->err);
    for (size_t i = 0; list != NULL && status != TARE_OK && i < count; i++)
        tare_quantizer_destroy(list[i]);
    tare__free(list);
    tare__free(copy);
    return status;
}

tare_status tare_quantizer_open(const char *names, const tare_quantizer_open_options *options,
                                tare_quantizer **out, tare_error *err) {
    opening o = {.err = err};
    json_t *json = NULL;
    if (options != NULL) tare__struct_copy(&o.options, sizeof o.options, options);
    if (o.options.settings_path != NULL) {
        TARE_TRY(tare__json_parse_file(o.options.settings_path, &json, err));
        o.settings = tare__json_root(json);
    }
    const tare_status status = open_names(&o, names, out);
    json_decref(json);
    return status;
}
