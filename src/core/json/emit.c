// SPDX-License-Identifier: Apache-2.0
// Writes JSON value by value.
#include "core/json/emit.h"

#include <inttypes.h>

// Writes the separator between the previous value and the next value or key.
static void begin_value(json_emitter *e) {
    if (e->after_key) {
        e->after_key = false;
        return;
    }
    if (e->has_items) tare__text_char(e->out, ',');
    if (e->depth > 0) {
        tare__text_char(e->out, '\n');
        tare__text_spaces(e->out, e->depth);
    }
    e->has_items = true;
}

void tare__emit_open(json_emitter *e, char bracket) {
    begin_value(e);
    tare__text_char(e->out, bracket);
    e->depth++;
    e->has_items = false;
}

void tare__emit_close(json_emitter *e, char bracket) {
    e->depth--;
    if (e->has_items) {
        tare__text_char(e->out, '\n');
        tare__text_spaces(e->out, e->depth);
    }
    tare__text_char(e->out, bracket);
    e->has_items = true;
}

void tare__emit_key(json_emitter *e, const char *key) {
    begin_value(e);
    tare__text_json_string(e->out, key);
    tare__text_append(e->out, ": ");
    e->after_key = true;
}

void tare__emit_string(json_emitter *e, const char *value) {
    begin_value(e);
    tare__text_json_string(e->out, value);
}

void tare__emit_int(json_emitter *e, int64_t value) {
    begin_value(e);
    tare__text_printf(e->out, "%" PRId64, value);
}

void tare__emit_double(json_emitter *e, double value) {
    begin_value(e);
    tare__text_json_double(e->out, value);
}

void tare__emit_bool(json_emitter *e, bool value) {
    begin_value(e);
    tare__text_append(e->out, value ? "true" : "false");
}
