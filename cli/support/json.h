// SPDX-License-Identifier: Apache-2.0
// Writes JSON to a stream, value by value, indented by one blank per level.
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct json_out {
    FILE *stream;
    int depth;
    bool has_items; // the open object or array is not empty
} json_out;

/// Opens the outermost object; json_out_end closes it and ends the line.
json_out json_out_begin(FILE *stream);
void json_out_end(json_out *j);
/// key: NULL inside an array. open takes '{' or '[', close the matching one.
void json_out_open(json_out *j, const char *key, char bracket);
void json_out_close(json_out *j, char bracket);
void json_out_string(json_out *j, const char *key, const char *value);
void json_out_integer(json_out *j, const char *key, uint64_t value);
/// The shortest text that reads back as the same number; null if it is not finite.
void json_out_number(json_out *j, const char *key, double value);
void json_out_bool(json_out *j, const char *key, bool value);
/// A value that is JSON text already.
void json_out_raw(json_out *j, const char *key, const char *value);

/// Writes compact JSON with line breaks and indentation.
void json_out_indent(FILE *stream, const char *compact);

#endif
