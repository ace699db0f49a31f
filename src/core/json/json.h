// SPDX-License-Identifier: Apache-2.0
// Reads JSON: text to jansson's values, and typed reads whose error messages name the JSON path.
#ifndef CORE_JSON_JSON_H
#define CORE_JSON_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/text/text.h"

/// A value and its path. Paths are linked through the callers' stack frames and cost nothing until
/// an error needs one: "$.configs[3].dtype_configs[0].input_dtype".
typedef struct json_at {
    const json_t *value;
    const struct json_at *parent; // NULL for the root
    const char *key;              // if the parent is an object
    size_t index;                 // if the parent is an array
} json_at;

/// Parses `size` bytes (need not be NUL-terminated). Duplicate keys are refused, depth is limited
/// to 64, \u0000 is refused. Errors name line and column. The caller json_decref's *out.
tare_status tare__json_parse(const char *bytes, size_t size, json_t **out, tare_error *err);
tare_status tare__json_parse_file(const char *path, json_t **out, tare_error *err);

json_at tare__json_root(const json_t *value);
/// The child under key; value is NULL if absent (check with tare__json_has).
json_at tare__json_get(const json_at *object, const char *key);
json_at tare__json_item(const json_at *array, size_t index);
bool tare__json_has(const json_at *object, const char *key);

/// TARE_MALFORMED_FILE at this path: "$.a[0]: expected an object, found a string".
tare_status tare__json_expect(const json_at *at, json_type type, tare_error *err);
tare_status tare__json_fail(const json_at *at, tare_error *err, const char *format, ...)
    TARE_PRINTF(3, 4);
/// Prepends this path to the place of an error; returns status.
tare_status tare__json_place(const json_at *at, tare_status status, tare_error *err);
/// Refuses keys outside the NULL-terminated list, with the nearest known key as a hint. The
/// document's root may have "$schema", for editors.
tare_status tare__json_only_keys(const json_at *object, const char *const *keys, tare_error *err);

/// Typed reads; a missing or wrong value is an error at its path. A double may be an integer too,
/// or {"float": "inf"}, "-inf", "nan".
tare_status tare__json_string(const json_at *at, const char **out, tare_error *err);
/// An optional member: if it is absent, *out is unchanged.
tare_status tare__json_flag(const json_at *object, const char *key, bool *out, tare_error *err);
/// A copy of a string; the caller frees *out.
tare_status tare__json_text(const json_at *at, char **out, tare_error *err);
tare_status tare__json_int(const json_at *at, int64_t *out, tare_error *err);
tare_status tare__json_double(const json_at *at, double *out, tare_error *err);
/// Parses "inf", "-inf" or "nan", which JSON lacks; false for anything else.
bool tare__json_float_named(const char *name, double *out);
tare_status tare__json_bool(const json_at *at, bool *out, tare_error *err);

/// "$.configs[3].pattern" into out.
void tare__json_path(const json_at *at, text *out);

#endif
