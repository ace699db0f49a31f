// SPDX-License-Identifier: Apache-2.0
// Writes JSON to a stream. The program never sets a locale, so numbers have a decimal point.
#include "support/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/terminal.h"

static void new_line(FILE *stream, int depth) {
    (void)fprintf(stream, "\n%*s", depth, "");
}

static void write_string(FILE *stream, const char *chars) {
    (void)fputc('"', stream);
    const char *end = chars + strlen(chars);
    while (chars < end) {
        char escaped[ESCAPE_SIZE];
        size_t length = escape_character(chars, (size_t)(end - chars), escaped);
        if (length == 0) { // cut off within a character
            (void)snprintf(escaped, sizeof escaped, "\\ufffd");
            length = (size_t)(end - chars);
        }
        if (*chars == '"' || *chars == '\\') (void)fputc('\\', stream);
        if (*chars == '\n' || *chars == '\t')
            (void)fprintf(stream, "\\u%04x", (unsigned)*chars);
        else if (escaped[0] != '\0')
            (void)fputs(escaped, stream);
        else
            (void)fwrite(chars, 1, length, stream);
        chars += length;
    }
    (void)fputc('"', stream);
}

static void begin_value(json_out *j, const char *key) {
    if (j->has_items) (void)fputc(',', j->stream);
    if (j->depth > 0) new_line(j->stream, j->depth);
    j->has_items = true;
    if (key == NULL) return;
    write_string(j->stream, key);
    (void)fputs(": ", j->stream);
}

json_out json_out_begin(FILE *stream) {
    json_out j = {.stream = stream};
    json_out_open(&j, NULL, '{');
    return j;
}

void json_out_end(json_out *j) {
    json_out_close(j, '}');
    (void)fputc('\n', j->stream);
}

void json_out_open(json_out *j, const char *key, char bracket) {
    begin_value(j, key);
    (void)fputc(bracket, j->stream);
    j->depth++;
    j->has_items = false;
}

void json_out_close(json_out *j, char bracket) {
    j->depth--;
    if (j->has_items) new_line(j->stream, j->depth);
    (void)fputc(bracket, j->stream);
    j->has_items = true;
}

void json_out_string(json_out *j, const char *key, const char *value) {
    begin_value(j, key);
    write_string(j->stream, value);
}

void json_out_integer(json_out *j, const char *key, uint64_t value) {
    begin_value(j, key);
    (void)fprintf(j->stream, "%" PRIu64, value);
}

void json_out_number(json_out *j, const char *key, double value) {
    char text[40] = "null";
    begin_value(j, key);
    for (int digits = 1; isfinite(value) && digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    (void)fputs(text, j->stream);
}

void json_out_bool(json_out *j, const char *key, bool value) {
    begin_value(j, key);
    (void)fputs(value ? "true" : "false", j->stream);
}

void json_out_raw(json_out *j, const char *key, const char *value) {
    begin_value(j, key);
    (void)fputs(value, j->stream);
}

/// The end of the string literal that starts at `at`.
static const char *after_string(const char *at) {
    for (at++; *at != '\0' && *at != '"'; at++)
        if (*at == '\\' && at[1] != '\0') at++;
    return *at == '"' ? at + 1 : at;
}

void json_out_indent(FILE *stream, const char *compact) {
    int depth = 0;
    for (const char *at = compact; *at != '\0';) {
        const char *end = *at == '"' ? after_string(at) : at + 1;
        const bool opens = *at == '{' || *at == '[', closes = *at == '}' || *at == ']';
        if (closes) new_line(stream, --depth);
        if (*at != ' ' && *at != '\n') (void)fwrite(at, 1, (size_t)(end - at), stream);
        if (*at == ':') (void)fputc(' ', stream);
        while (*end == ' ' || *end == '\n') end++;
        const bool is_empty = opens && (*end == '}' || *end == ']');
        if (is_empty)
            (void)fputc(*end++, stream);
        else if (opens)
            depth++;
        if ((opens && !is_empty) || *at == ',') new_line(stream, depth);
        at = end;
    }
    (void)fputc('\n', stream);
}
