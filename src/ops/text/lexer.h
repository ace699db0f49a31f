// SPDX-License-Identifier: Apache-2.0
// Tokens of the Python subset that generated code uses.
// Private to ops/text.
#ifndef OPS_TEXT_LEXER_H
#define OPS_TEXT_LEXER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

typedef enum token_kind {
    TOKEN_END,
    TOKEN_NEWLINE,
    TOKEN_NAME,
    TOKEN_INT,
    TOKEN_FLOAT,
    TOKEN_STRING,
    TOKEN_SYMBOL, // the longest that fits: "**=", "=="
} token_kind;

typedef struct token {
    token_kind kind;
    const char *start; // in the source, quotes of strings included
    size_t length, line, column;
} token;

typedef struct lexer {
    const char *at, *end, *line_start;
    size_t line;
} lexer;

/// The next token. Blanks, comments and empty lines are skipped. TARE_MALFORMED_FILE at a character
/// that starts no token, or at an unterminated string.
tare_status tare__lexer_next(lexer *l, token *out, tare_error *err);
/// Skips the rest of the line, without its end, and returns it without blanks around it.
void tare__lexer_rest_of_line(lexer *l, const char **start, size_t *length);
bool tare__token_is(const token *t, const char *symbol_or_name);
/// TARE_MALFORMED_FILE with the token's line and column as the place.
tare_status tare__token_fail(const token *t, tare_error *err, const char *format, ...)
    TARE_PRINTF(3, 4);

#endif
