// SPDX-License-Identifier: Apache-2.0
// Tokens: names, numbers, strings, symbols and the ends of lines.
#include "ops/text/lexer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/text/text.h"

bool tare__token_is(const token *t, const char *symbol_or_name) {
    return (t->kind == TOKEN_SYMBOL || t->kind == TOKEN_NAME) &&
           strlen(symbol_or_name) == t->length && memcmp(symbol_or_name, t->start, t->length) == 0;
}

tare_status tare__token_fail(const token *t, tare_error *err, const char *format, ...) {
    char sentence[256];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    const tare_status status = tare__fail(err, TARE_MALFORMED_FILE, "%s", sentence);
    return tare__at(err, status, "line %zu, column %zu", t->line, t->column);
}

// Skips blanks, comments and empty lines.
static void skip(lexer *l, bool at_line_start) {
    while (l->at < l->end) {
        if (*l->at == '#') {
            while (l->at < l->end && *l->at != '\n') l->at++;
        } else if (*l->at == '\n' && at_line_start) {
            l->line_start = ++l->at;
            l->line++;
        } else if (*l->at == ' ' || *l->at == '\t' || *l->at == '\r') {
            l->at++;
        } else {
            return;
        }
    }
}

static void take_number(lexer *l, token *t) {
    t->kind = TOKEN_INT;
    while (l->at < l->end) {
        const char c = *l->at;
        const bool is_exponent = (c == 'e' || c == 'E');
        const bool is_sign = (c == '+' || c == '-') && (l->at[-1] == 'e' || l->at[-1] == 'E');
        if (!tare__is_digit(c) && c != '.' && !is_exponent && !is_sign) break;
        if (!tare__is_digit(c)) t->kind = TOKEN_FLOAT;
        l->at++;
    }
}

static tare_status take_string(lexer *l, token *t, tare_error *err) {
    const char quote = *l->at++;
    t->kind = TOKEN_STRING;
    while (l->at < l->end && *l->at != quote && *l->at != '\n') {
        if (*l->at == '\\' && l->at + 1 < l->end && l->at[1] != '\n') l->at++;
        l->at++;
    }
    if (l->at == l->end || *l->at != quote)
        return tare__token_fail(t, err, "the string has no end on its line");
    l->at++;
    // A truncated sequence at the end is invalid, too, because the closing quote follows it.
    for (const char *c = t->start; c < l->at; c += tare__utf8_length(c))
        if ((unsigned char)*c < 0x20 || tare__utf8_length(c) == 0)
            return tare__token_fail(t, err, "the string holds a control character or is not UTF-8");
    return TARE_OK;
}

static tare_status take_symbol(lexer *l, token *t, tare_error *err) {
    static const char *const symbols[] = {
        "...", "**=", "//=", "<<=", ">>=", "**", "//", "<<", ">>", "->", "==", "!=",
        "<=",  ">=",  "+=",  "-=",  "*=",  "/=", "%=", "@=", "&=", "|=", "^=", "+",
        "-",   "*",   "/",   "%",   "@",   "&",  "|",  "^",  "~",  "<",  ">",  "(",
        ")",   "[",   "]",   "{",   "}",   ",",  ":",  ";",  "=",  "."};
    t->kind = TOKEN_SYMBOL;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        const size_t length = strlen(symbols[i]);
        if ((size_t)(l->end - l->at) < length || memcmp(l->at, symbols[i], length) != 0) continue;
        l->at += length;
        return TARE_OK;
    }
    const unsigned char c = (unsigned char)*l->at;
    if (c > 0x20 && c < 0x7F) return tare__token_fail(t, err, "'%c' is not expected here", c);
    return tare__token_fail(t, err, "the byte 0x%02x is not expected here", c);
}

tare_status tare__lexer_next(lexer *l, token *out, tare_error *err) {
    skip(l, l->at == l->line_start);
    token t = {.kind = TOKEN_END,
               .start = l->at,
               .line = l->line,
               .column = (size_t)(l->at - l->line_start) + 1};
    if (l->at == l->end) {
        *out = t;
        return TARE_OK;
    }
    if (*l->at == '\n') {
        t.kind = TOKEN_NEWLINE;
        l->line_start = ++l->at;
        l->line++;
    } else if (tare__is_letter(*l->at)) {
        t.kind = TOKEN_NAME;
        while (l->at < l->end && (tare__is_letter(*l->at) || tare__is_digit(*l->at))) l->at++;
    } else if (tare__is_digit(*l->at)) {
        take_number(l, &t);
    } else if (*l->at == '\'' || *l->at == '"') {
        TARE_TRY(take_string(l, &t, err));
    } else {
        TARE_TRY(take_symbol(l, &t, err));
    }
    t.length = (size_t)(l->at - t.start);
    *out = t;
    return TARE_OK;
}

void tare__lexer_rest_of_line(lexer *l, const char **start, size_t *length) {
    while (l->at < l->end && (*l->at == ' ' || *l->at == '\t')) l->at++;
    *start = l->at;
    while (l->at < l->end && *l->at != '\n') l->at++;
    const char *end = l->at;
    while (end > *start && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r')) end--;
    *length = (size_t)(end - *start);
}
