// SPDX-License-Identifier: Apache-2.0
// Writes JSON value by value, one per line, indented by one blank per level (as Python's
// json.dumps(.., indent=1)). The emitter sets the commas.
#ifndef CORE_JSON_EMIT_H
#define CORE_JSON_EMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/text/text.h"

typedef struct json_emitter {
    text *out;
    size_t depth;
    bool has_items; // the open object or array has an element already
    bool after_key; // a key was written and waits for its value
} json_emitter;

/// Opens an object ('{') or array ('['); close takes the matching '}' or ']'.
void tare__emit_open(json_emitter *e, char bracket);
void tare__emit_close(json_emitter *e, char bracket);
void tare__emit_key(json_emitter *e, const char *key);

void tare__emit_string(json_emitter *e, const char *value);
void tare__emit_int(json_emitter *e, int64_t value);
void tare__emit_double(json_emitter *e, double value); // as tare__text_json_double
void tare__emit_bool(json_emitter *e, bool value);

#endif
