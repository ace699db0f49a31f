// SPDX-License-Identifier: Apache-2.0
// Observer specs as JSON.
#include "observe/observer_spec.h"

static void argument_to_json(const observer_argument *a, text *out) {
    switch (a->kind) {
    case ARGUMENT_NONE:
        tare__text_append(out, "null");
        break;
    case ARGUMENT_INT:
        tare__text_printf(out, "%lld", (long long)a->as.integer);
        break;
    case ARGUMENT_DOUBLE:
        tare__text_json_double(out, a->as.real);
        break;
    case ARGUMENT_BOOL:
        tare__text_append(out, a->as.boolean ? "true" : "false");
        break;
    case ARGUMENT_DTYPE:
        tare__text_json_string(out, tare_dtype_name(a->as.dtype));
        break;
    case ARGUMENT_QSCHEME:
        tare__text_json_string(out, tare_qscheme_name(a->as.qscheme));
        break;
    case ARGUMENT_STRING:
        tare__text_json_string(out, a->as.string);
        break;
    case ARGUMENT_OBSERVER:
        tare__observer_spec_to_json(a->as.observer, out);
        break;
    }
}

void tare__observer_spec_to_json(const tare_observer_spec *spec, text *out) {
    tare__text_append(out, "{\"class\": ");
    tare__text_json_string(out, spec->class_name);
    tare__text_append(out, ", \"kwargs\": {");
    for (size_t i = 0; i < spec->count; i++) {
        if (i > 0) tare__text_append(out, ", ");
        tare__text_json_string(out, spec->arguments[i].name);
        tare__text_append(out, ": ");
        argument_to_json(&spec->arguments[i], out);
    }
    tare__text_append(out, "}}");
}

// Dtypes and schemes are written by their torch names; any other string is a string.
static observer_argument argument_of_string(const char *chars) {
    const bool is_torch = tare__starts_with(chars, "torch.");
    const bool is_name = is_torch || tare__starts_with(chars, "tare.");
    const tare_dtype dtype = is_torch ? tare_dtype_from_name(chars) : TARE_DTYPE_UNSET;
    if (dtype != TARE_DTYPE_UNSET)
        return (observer_argument){.kind = ARGUMENT_DTYPE, .as.dtype = dtype};
    const tare_qscheme qscheme = is_name ? tare_qscheme_from_name(chars) : TARE_QSCHEME_UNSET;
    if (qscheme != TARE_QSCHEME_UNSET)
        return (observer_argument){.kind = ARGUMENT_QSCHEME, .as.qscheme = qscheme};
    // Lent: it is copied before the JSON is released.
    return (observer_argument){.kind = ARGUMENT_STRING, .as.string = (char *)chars};
}

static tare_status set_observer_from_json(const json_at *at, tare_observer_spec *spec,
                                          tare_error *err) {
    tare_observer_spec *inner = NULL;
    TARE_TRY(tare__observer_spec_from_json(at, &inner, err));
    tare_observer_spec_set_observer(spec, at->key, inner);
    tare_observer_spec_release(inner);
    return TARE_OK;
}

static tare_status set_from_json(const json_at *at, tare_observer_spec *spec, tare_error *err) {
    observer_argument a = {.kind = ARGUMENT_NONE};
    switch (json_typeof(at->value)) {
    case JSON_OBJECT:
        return set_observer_from_json(at, spec, err);
    case JSON_ARRAY:
        return tare__json_fail(at, err, "an observer's argument cannot be a list");
    case JSON_STRING:
        a = argument_of_string(json_string_value(at->value));
        break;
    case JSON_INTEGER:
        a = (observer_argument){.kind = ARGUMENT_INT, .as.integer = json_integer_value(at->value)};
        break;
    case JSON_REAL:
        a = (observer_argument){.kind = ARGUMENT_DOUBLE, .as.real = json_real_value(at->value)};
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        a = (observer_argument){.kind = ARGUMENT_BOOL, .as.boolean = json_is_true(at->value)};
        break;
    case JSON_NULL:
        break;
    }
    tare__observer_spec_set(spec, at->key, &a);
    return TARE_OK;
}

static tare_status check_argument(const json_at *at, const tare_observer_class *class,
                                  tare_error *err) {
    if (class == NULL) return TARE_OK;
    const tare_status status = tare__observer_class_check_argument(class, at->key, err);
    return status == TARE_OK ? TARE_OK : tare__json_place(at, status, err);
}

static tare_status set_all_from_json(const json_at *kwargs, tare_observer_spec *spec,
                                     tare_error *err) {
    const tare_observer_class *class = tare__observer_class_find(NULL, spec->class_name);
    const char *key = NULL;
    json_t *argument = NULL;
    TARE_TRY(tare__json_expect(kwargs, JSON_OBJECT, err));
    json_object_foreach((json_t *)kwargs->value, key, argument) {
        const json_at at = tare__json_get(kwargs, key);
        TARE_TRY(check_argument(&at, class, err));
        TARE_TRY(set_from_json(&at, spec, err));
    }
    return tare__observer_spec_status(spec, err);
}

tare_status tare__observer_spec_from_json(const json_at *at, tare_observer_spec **out,
                                          tare_error *err) {
    static const char *const keys[] = {"class", "kwargs", "alias", NULL};
    const char *class_name = NULL;
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, err));
    TARE_TRY(tare__json_only_keys(at, keys, err));
    const json_at class_at = tare__json_get(at, "class"), kwargs = tare__json_get(at, "kwargs");
    TARE_TRY(tare__json_string(&class_at, &class_name, err));
    tare_observer_spec *spec = tare_observer_spec_create(class_name);
    if (spec == NULL) return tare__out_of_memory(err);
    const tare_status status =
        tare__json_has(at, "kwargs") ? set_all_from_json(&kwargs, spec, err) : TARE_OK;
    if (status != TARE_OK) return tare_observer_spec_release(spec), status;
    *out = spec;
    return TARE_OK;
}
