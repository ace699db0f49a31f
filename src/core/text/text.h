// SPDX-License-Identifier: Apache-2.0
// A growing string. A failed append is remembered, so that a sequence of appends needs only one
// check at the end.
#ifndef CORE_TEXT_TEXT_H
#define CORE_TEXT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "tare/writer.h"

typedef struct text {
    char *chars; // NUL-terminated once something was appended; see tare__text_chars
    size_t length, capacity;
    bool failed; // memory ran out; the content is incomplete
} text;

void tare__text_append(text *t, const char *chars);
void tare__text_append_n(text *t, const char *chars, size_t length);
void tare__text_char(text *t, char c);
void tare__text_printf(text *t, const char *format, ...) TARE_PRINTF(2, 3);
void tare__text_spaces(text *t, size_t count);
/// Never NULL; "" when empty.
const char *tare__text_chars(const text *t);
/// Keeps the memory, and the flag of a failed append, so that a caller in a loop can check once at
/// the end.
void tare__text_clear(text *t);
void tare__text_release(text *t);
/// TARE_OUT_OF_MEMORY if an append failed.
tare_status tare__text_status(const text *t, tare_error *err);
/// Returns the string to the caller (tare__free); NULL if an append failed. The text is empty
/// afterwards.
char *tare__text_take(text *t);

/// Passes a finished text to a writer and releases it. status: of creating it; if it failed,
/// nothing is written.
tare_status tare__text_write(text *t, tare_status status, tare_writer write, void *user,
                             tare_error *err);
/// A writer that appends; `user` is a text.
bool tare__text_append_writer(void *user, const char *chars, size_t length);

/// Python's repr of a float: the shortest decimal that reads back as the same double ("0.1",
/// "1e-05", "inf", "nan"), independent of the locale. Writes at most 32 bytes including the NUL.
void tare__format_double(double value, char out[32]);
void tare__text_double(text *t, double value);
/// Parses `length` characters of a decimal number ("1e-05"), independent of the locale. False
/// unless all of them belong to the number.
bool tare__parse_double(const char *chars, size_t length, double *out);
/// The double that was probably written for `value`: of those that round to it, the one with the
/// shortest decimal (0.1f -> 0.1).
double tare__double_of_float(float value);
/// Python's repr of a string: single quotes unless the text contains one and no double quote; with
/// escapes.
void tare__text_quoted(text *t, const char *chars);
/// A JSON string literal with its quotes.
void tare__text_json_string(text *t, const char *chars);
/// A JSON number that reads back the same: integers keep ".0"; not finite -> {"float": "inf"}.
void tare__text_json_double(text *t, double value);

/// Unicode as UTF-8. code: at most 0x10FFFF.
void tare__text_code_point(text *t, unsigned long code);
/// The length of the UTF-8 sequence at `chars`, which must end in NUL or another invalid byte; 0 if
/// it is malformed.
size_t tare__utf8_length(const char *chars);
bool tare__starts_with(const char *chars, const char *prefix);
bool tare__ends_with(const char *chars, const char *suffix);
/// True if the `length` characters are this word.
bool tare__is_word(const char *chars, size_t length, const char *word);
/// Letters of Python's identifiers: ASCII only, regardless of the locale.
static inline bool tare__is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static inline bool tare__is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool tare__is_identifier(const char *name); // Python's, ASCII
bool tare__is_identifier_n(const char *name, size_t length);

#endif
