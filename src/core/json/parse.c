// SPDX-License-Identifier: Apache-2.0
// Parses JSON text to jansson's values. jansson's own parser is not used: if memory for a token
// runs out it drops characters, reports most failed allocations as syntax errors, and can abort by
// an assertion (2.14).
#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/json/json.h"
#include "core/system/file.h"

enum { DEEPEST = 64 };

typedef struct json_reader {
    const char *at, *end;
    const char *line_start;
    size_t line;
    int depth;
    text string; // the one being read
    tare_error *err;
} json_reader;

// Fails, with the line and column of `at`.
static tare_status fail_here(const json_reader *r, const char *what) {
    tare__fail(r->err, TARE_MALFORMED_FILE, "not valid JSON: %s", what);
    return tare__at(r->err, TARE_MALFORMED_FILE, "line %zu column %zu", r->line,
                    (size_t)(r->at - r->line_start));
}

static void skip_blanks(json_reader *r) {
    for (; r->at < r->end && strchr(" \t\r\n", *r->at) != NULL && *r->at != '\0'; r->at++)
        if (*r->at == '\n') {
            r->line++;
            r->line_start = r->at + 1;
        }
}

// Consumes the next symbol if it is this one.
static bool take(json_reader *r, char symbol) {
    skip_blanks(r);
    if (r->at == r->end || *r->at != symbol) return false;
    r->at++;
    return true;
}

// Fails at a character that is not the expected one.
static tare_status unexpected(json_reader *r, const char *what) {
    skip_blanks(r);
    if (r->at < r->end) r->at++;
    return fail_here(r, what);
}

// --- strings ---

static bool read_hex(json_reader *r, unsigned *out) {
    static const char hex[] = "0123456789abcdef0123456789ABCDEF";
    *out = 0;
    for (int i = 0; i < 4; i++) {
        const char *digit = r->at < r->end ? memchr(hex, *r->at, sizeof hex - 1) : NULL;
        if (digit == NULL) return false;
        *out = *out * 16 + (unsigned)(digit - hex) % 16;
        r->at++;
    }
    return true;
}

// After "\u": a code point as one escape, or as two if it is beyond the first 65536.
static tare_status read_code_point(json_reader *r) {
    unsigned code = 0, low = 0;
    if (!read_hex(r, &code)) return fail_here(r, "invalid escape");
    if (code == 0) return fail_here(r, "\\u0000 is not allowed");
    if (code >= 0xD800 && code < 0xDC00) {
        const bool has_low = r->end - r->at > 2 && r->at[0] == '\\' && r->at[1] == 'u';
        if (has_low) r->at += 2;
        if (!has_low || !read_hex(r, &low) || low < 0xDC00 || low > 0xDFFF)
            return fail_here(r, "invalid Unicode surrogate pair");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
        return fail_here(r, "invalid Unicode surrogate pair");
    }
    tare__text_code_point(&r->string, code);
    return TARE_OK;
}

static tare_status read_escape(json_reader *r) {
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (r->at == r->end) return fail_here(r, "premature end of input");
    const char c = *r->at++;
    if (c == 'u') return read_code_point(r);
    const char *letter = memchr(letters, c, sizeof letters - 1);
    if (letter == NULL) return fail_here(r, "invalid escape");
    tare__text_char(&r->string, meanings[letter - letters]);
    return TARE_OK;
}

static tare_status read_character(json_reader *r) {
    char near[5] = {0}; // a sequence that the end of the text cuts off
    memcpy(near, r->at, (size_t)(r->end - r->at < 4 ? r->end - r->at : 4));
    const unsigned code = (unsigned char)near[0];
    char what[48];
    if (code < 0x20) {
        (void)snprintf(what, sizeof what, "control character 0x%x", code);
        return fail_here(r, what);
    }
    const size_t length = tare__utf8_length(near);
    if (length == 0) {
        (void)snprintf(what, sizeof what, "unable to decode byte 0x%x", code);
        return fail_here(r, what);
    }
    tare__text_append_n(&r->string, r->at, length);
    r->at += length;
    return TARE_OK;
}

// After the opening quote. The text is in r->string.
static tare_status read_string(json_reader *r) {
    tare__text_clear(&r->string);
    while (r->at < r->end && *r->at != '"') {
        // Most characters are plain; runs of them are copied at once.
        const char *plain = r->at;
        while (r->at < r->end && *r->at >= 0x20 && *r->at < 0x7F && *r->at != '"' && *r->at != '\\')
            r->at++;
        tare__text_append_n(&r->string, plain, (size_t)(r->at - plain));
        if (r->at == r->end || *r->at == '"') break;
        if (*r->at != '\\') {
            TARE_TRY(read_character(r));
        } else {
            r->at++;
            TARE_TRY(read_escape(r));
        }
    }
    if (r->at == r->end) return fail_here(r, "premature end of input");
    r->at++;
    return tare__text_status(&r->string, r->err);
}

// --- numbers and words ---

static size_t skip_digits(json_reader *r) {
    const char *start = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9') r->at++;
    return (size_t)(r->at - start);
}

static tare_status make_integer(json_reader *r, const char *start, json_t **out) {
    const bool is_negative = *start == '-';
    json_int_t sum = 0; // summed as a negative number, because the range of these is larger by one
    for (const char *c = start + is_negative; c < r->at; c++) {
        const int digit = *c - '0';
        if (sum < (LLONG_MIN + digit) / 10 || (!is_negative && sum * 10 - digit < -LLONG_MAX))
            return fail_here(r, is_negative ? "too big negative integer" : "too big integer");
        sum = sum * 10 - digit;
    }
    *out = json_integer(is_negative ? sum : -sum);
    return *out != NULL ? TARE_OK : tare__out_of_memory(r->err);
}

static tare_status make_real(json_reader *r, const char *start, json_t **out) {
    double number = 0;
    if (!tare__parse_double(start, (size_t)(r->at - start), &number))
        return fail_here(r, "a number of too many digits");
    if (isinf(number)) return fail_here(r, "real number overflow");
    *out = json_real(number);
    return *out != NULL ? TARE_OK : tare__out_of_memory(r->err);
}

static tare_status read_number(json_reader *r, json_t **out) {
    const char *start = r->at;
    bool is_real = false;
    if (*r->at == '-') r->at++;
    const bool has_zero = r->at < r->end && *r->at == '0';
    const size_t digits = skip_digits(r);
    if (digits == 0 || (has_zero && digits > 1)) return fail_here(r, "invalid number");
    if (r->at < r->end && *r->at == '.') {
        is_real = true;
        r->at++;
        if (skip_digits(r) == 0) return fail_here(r, "invalid number");
    }
    if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
        is_real = true;
        r->at++;
        if (r->at < r->end && (*r->at == '+' || *r->at == '-')) r->at++;
        if (skip_digits(r) == 0) return fail_here(r, "invalid number");
    }
    return is_real ? make_real(r, start, out) : make_integer(r, start, out);
}

static tare_status read_word(json_reader *r, json_t **out) {
    const char *start = r->at;
    while (r->at < r->end && *r->at >= 'a' && *r->at <= 'z') r->at++;
    const size_t length = (size_t)(r->at - start);
    if (length == 4 && memcmp(start, "true", 4) == 0)
        *out = json_true();
    else if (length == 5 && memcmp(start, "false", 5) == 0)
        *out = json_false();
    else if (length == 4 && memcmp(start, "null", 4) == 0)
        *out = json_null();
    else
        return length > 0 ? fail_here(r, "invalid token") : unexpected(r, "invalid token");
    return TARE_OK;
}

// --- containers ---

static tare_status read_value(json_reader *r, json_t **out);

static tare_status read_items(json_reader *r, json_t *array) {
    if (take(r, ']')) return TARE_OK;
    do {
        json_t *item = NULL;
        TARE_TRY(read_value(r, &item));
        if (json_array_append_new(array, item) != 0) return tare__out_of_memory(r->err);
    } while (take(r, ','));
    return take(r, ']') ? TARE_OK : unexpected(r, "']' expected");
}

static tare_status read_member(json_reader *r, json_t *object) {
    if (!take(r, '"')) return unexpected(r, "string or '}' expected");
    TARE_TRY(read_string(r));
    if (json_object_get(object, tare__text_chars(&r->string)) != NULL)
        return fail_here(r, "duplicate object key");
    text key = r->string;
    r->string = (text){0};
    json_t *value = NULL;
    tare_status status = TARE_OK;
    if (!take(r, ':')) status = unexpected(r, "':' expected");
    if (status == TARE_OK) status = read_value(r, &value);
    if (status == TARE_OK &&
        json_object_set_new_nocheck(object, tare__text_chars(&key), value) != 0)
        status = tare__out_of_memory(r->err);
    tare__text_release(&key);
    return status;
}

static tare_status read_members(json_reader *r, json_t *object) {
    if (take(r, '}')) return TARE_OK;
    do TARE_TRY(read_member(r, object));
    while (take(r, ','));
    return take(r, '}') ? TARE_OK : unexpected(r, "'}' expected");
}

static tare_status read_container(json_reader *r, bool is_object, json_t **out) {
    if (++r->depth > DEEPEST) {
        tare__fail(r->err, TARE_MALFORMED_FILE, "expected at most %d levels of nesting, found more",
                   DEEPEST);
        return tare__at(r->err, TARE_MALFORMED_FILE, "line %zu column %zu", r->line,
                        (size_t)(r->at - r->line_start));
    }
    json_t *made = is_object ? json_object() : json_array();
    if (made == NULL) return tare__out_of_memory(r->err);
    const tare_status status = is_object ? read_members(r, made) : read_items(r, made);
    r->depth--;
    if (status == TARE_OK)
        *out = made;
    else
        json_decref(made);
    return status;
}

static tare_status read_value(json_reader *r, json_t **out) {
    if (take(r, '{')) return read_container(r, true, out);
    if (take(r, '[')) return read_container(r, false, out);
    if (take(r, '"')) {
        TARE_TRY(read_string(r));
        *out = json_stringn_nocheck(tare__text_chars(&r->string), r->string.length);
        return *out != NULL ? TARE_OK : tare__out_of_memory(r->err);
    }
    if (r->at == r->end) return fail_here(r, "premature end of input");
    const bool is_number = *r->at == '-' || (*r->at >= '0' && *r->at <= '9');
    return is_number ? read_number(r, out) : read_word(r, out);
}

tare_status tare__json_parse(const char *bytes, size_t size, json_t **out, tare_error *err) {
    json_reader r = {.at = bytes, .end = bytes + size, .line_start = bytes, .line = 1, .err = err};
    json_t *parsed = NULL;
    tare_status status = TARE_OK;
    skip_blanks(&r);
    if (r.at == r.end || (*r.at != '[' && *r.at != '{'))
        status = unexpected(&r, "'[' or '{' expected");
    if (status == TARE_OK) status = read_value(&r, &parsed);
    skip_blanks(&r);
    if (status == TARE_OK && r.at < r.end) status = unexpected(&r, "end of file expected");
    tare__text_release(&r.string);
    if (status == TARE_OK)
        *out = parsed;
    else
        json_decref(parsed);
    return status;
}

tare_status tare__json_parse_file(const char *path, json_t **out, tare_error *err) {
    storage *store = NULL;
    const unsigned char *data = NULL;
    size_t size = 0;
    TARE_TRY(tare__file_map(path, &store, &data, &size, err));
    const tare_status status = tare__json_parse((const char *)data, size, out, err);
    tare__storage_release(store);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "%s", path);
}
