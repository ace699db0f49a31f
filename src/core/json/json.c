// SPDX-License-Identifier: Apache-2.0
// Reads JSON values and keeps the path of each in the document for error messages.
#include "core/json/json.h"

#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"

json_at tare__json_root(const json_t *value) {
    return (json_at){.value = value};
}

json_at tare__json_get(const json_at *object, const char *key) {
    return (json_at){.value = json_object_get(object->value, key), .parent = object, .key = key};
}

json_at tare__json_item(const json_at *array, size_t index) {
    return (json_at){.value = json_array_get(array->value, index), .parent = array, .index = index};
}

bool tare__json_has(const json_at *object, const char *key) {
    return json_object_get(object->value, key) != NULL;
}

void tare__json_path(const json_at *at, text *out) {
    if (!at->parent) {
        tare__text_char(out, '$');
        return;
    }
    tare__json_path(at->parent, out); // recursion is as deep as the callers' frames
    if (!at->key) {
        tare__text_printf(out, "[%zu]", at->index);
    } else if (tare__is_identifier(at->key)) {
        tare__text_printf(out, ".%s", at->key);
    } else {
        tare__text_char(out, '[');
        tare__text_json_string(out, at->key);
        tare__text_char(out, ']');
    }
}

// If memory for the path runs out, the message has no path.
tare_status tare__json_place(const json_at *at, tare_status status, tare_error *err) {
    text path = {0};
    tare__json_path(at, &path);
    (void)tare__at(err, status, "%s", tare__text_chars(&path));
    tare__text_release(&path);
    return status;
}

tare_status tare__json_fail(const json_at *at, tare_error *err, const char *format, ...) {
    char sentence[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    tare__fail(err, TARE_MALFORMED_FILE, "%s", sentence);
    return tare__json_place(at, TARE_MALFORMED_FILE, err);
}

// With its article, for use after "expected" and "found".
static const char *type_name(json_type type) {
    static const char *const names[] = {
        [JSON_OBJECT] = "an object",   [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
        [JSON_INTEGER] = "an integer", [JSON_REAL] = "a number",  [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",        [JSON_NULL] = "null"};
    return names[type];
}

static tare_status expected(const json_at *at, const char *what, tare_error *err) {
    return tare__json_fail(at, err, "expected %s, found %s", what,
                           at->value ? type_name(json_typeof(at->value)) : "nothing");
}

tare_status tare__json_expect(const json_at *at, json_type type, tare_error *err) {
    const bool is_type = at->value && json_typeof(at->value) == type;
    return is_type ? TARE_OK : expected(at, type_name(type), err);
}

static const char *key_at(const void *user, size_t i) {
    return ((const char *const *)user)[i];
}

// Editors find a document's schema by this key.
static bool is_for_editors(const json_at *object, const char *key) {
    return object->parent == NULL && strcmp(key, "$schema") == 0;
}

static bool is_known(const char *key, const char *const *keys) {
    while (*keys && strcmp(*keys, key) != 0) keys++;
    return *keys != NULL;
}

static tare_status unknown_key(const json_at *object, const char *key, const char *const *keys,
                               tare_error *err) {
    const tare_status status = tare__json_fail(object, err, "unknown key '%s'", key);
    if (tare_nearest_name(key, key_at, keys)) return tare__suggest(err, status, key, key_at, keys);
    text known = {0};
    for (size_t i = 0; keys[i]; i++)
        tare__text_printf(&known, "%s%s", i ? ", " : "the keys here are ", keys[i]);
    if (known.length) tare__hint(err, status, "%s", tare__text_chars(&known));
    tare__text_release(&known);
    return status;
}

tare_status tare__json_only_keys(const json_at *object, const char *const *keys, tare_error *err) {
    TARE_TRY(tare__json_expect(object, JSON_OBJECT, err));
    // jansson's iterators want a mutable object, but only read it.
    json_t *value = (json_t *)object->value;
    for (void *i = json_object_iter(value); i; i = json_object_iter_next(value, i))
        if (!is_known(json_object_iter_key(i), keys) &&
            !is_for_editors(object, json_object_iter_key(i)))
            return unknown_key(object, json_object_iter_key(i), keys, err);
    return TARE_OK;
}

tare_status tare__json_string(const json_at *at, const char **out, tare_error *err) {
    TARE_TRY(tare__json_expect(at, JSON_STRING, err));
    *out = json_string_value(at->value);
    return TARE_OK;
}

tare_status tare__json_flag(const json_at *object, const char *key, bool *out, tare_error *err) {
    if (!tare__json_has(object, key)) return TARE_OK;
    const json_at at = tare__json_get(object, key);
    return tare__json_bool(&at, out, err);
}

tare_status tare__json_text(const json_at *at, char **out, tare_error *err) {
    const char *chars = NULL;
    TARE_TRY(tare__json_string(at, &chars, err));
    *out = tare__strdup(chars);
    return *out != NULL ? TARE_OK : tare__out_of_memory(err);
}

tare_status tare__json_int(const json_at *at, int64_t *out, tare_error *err) {
    TARE_TRY(tare__json_expect(at, JSON_INTEGER, err));
    *out = json_integer_value(at->value);
    return TARE_OK;
}

bool tare__json_float_named(const char *name, double *out) {
    if (strcmp(name, "inf") == 0)
        *out = INFINITY;
    else if (strcmp(name, "-inf") == 0)
        *out = -INFINITY;
    else if (strcmp(name, "nan") == 0)
        *out = NAN;
    else
        return false;
    return true;
}

// JSON cannot express non-finite numbers; tare writes {"float": "inf"}.
static bool special_float(const json_t *value, double *out) {
    const char *name = json_string_value(json_object_get(value, "float"));
    return name && json_object_size(value) == 1 && tare__json_float_named(name, out);
}

tare_status tare__json_double(const json_at *at, double *out, tare_error *err) {
    if (special_float(at->value, out)) return TARE_OK;
    if (!json_is_number(at->value)) return expected(at, "a number", err);
    *out = json_number_value(at->value);
    return TARE_OK;
}

tare_status tare__json_bool(const json_at *at, bool *out, tare_error *err) {
    if (!json_is_boolean(at->value)) return expected(at, "true or false", err);
    *out = json_is_true(at->value);
    return TARE_OK;
}
