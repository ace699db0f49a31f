// SPDX-License-Identifier: Apache-2.0
// Appends a jansson value as text. The depth is bounded by the creator of the value: the parser
// refuses more than 64 levels.
#include "core/json/write.h"

#include <inttypes.h>

static void write_object(const json_t *object, text *out) {
    tare__text_char(out, '{');
    const char *key = NULL;
    json_t *item = NULL;
    bool first = true;
    // jansson's iterator takes a non-const object but only reads it.
    json_object_foreach((json_t *)object, key, item) {
        if (!first) tare__text_append(out, ", ");
        first = false;
        tare__text_json_string(out, key);
        tare__text_append(out, ": ");
        tare__json_write(item, out);
    }
    tare__text_char(out, '}');
}

static void write_array(const json_t *array, text *out) {
    tare__text_char(out, '[');
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i > 0) tare__text_append(out, ", ");
        tare__json_write(json_array_get(array, i), out);
    }
    tare__text_char(out, ']');
}

void tare__json_write(const json_t *value, text *out) {
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        write_object(value, out);
        break;
    case JSON_ARRAY:
        write_array(value, out);
        break;
    case JSON_STRING:
        tare__text_json_string(out, json_string_value(value));
        break;
    case JSON_INTEGER:
        tare__text_printf(out, "%" PRId64, (int64_t)json_integer_value(value));
        break;
    case JSON_REAL:
        tare__text_json_double(out, json_real_value(value));
        break;
    case JSON_TRUE:
        tare__text_append(out, "true");
        break;
    case JSON_FALSE:
        tare__text_append(out, "false");
        break;
    case JSON_NULL:
        tare__text_append(out, "null");
        break;
    }
}
