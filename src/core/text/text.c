// SPDX-License-Identifier: Apache-2.0
// Growing strings, and numbers and strings in Python's and JSON's notation.
#include "core/text/text.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"

static bool reserve(text *t, size_t more) {
    size_t wanted = 0;
    if (t->failed) return false;
    if (!tare__add_size(t->length, more, &wanted) || !tare__add_size(wanted, 1, &wanted)) {
        t->failed = true;
        return false;
    }
    if (wanted <= t->capacity) return true;
    size_t capacity = t->capacity > wanted / 2 ? t->capacity * 2 : wanted;
    if (capacity < 32) capacity = 32;
    char *chars = tare__realloc_array(t->chars, capacity, 1);
    if (!chars) {
        t->failed = true;
        return false;
    }
    t->chars = chars;
    t->capacity = capacity;
    return true;
}

void tare__text_append_n(text *t, const char *chars, size_t length) {
    if (!reserve(t, length)) return;
    if (length) memcpy(t->chars + t->length, chars, length);
    t->length += length;
    t->chars[t->length] = '\0';
}

void tare__text_append(text *t, const char *chars) {
    tare__text_append_n(t, chars, strlen(chars));
}

void tare__text_char(text *t, char c) {
    tare__text_append_n(t, &c, 1);
}

void tare__text_printf(text *t, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, format, args);
    if (length < 0) t->failed = true;
    if (length >= 0 && reserve(t, (size_t)length)) {
        vsnprintf(t->chars + t->length, (size_t)length + 1, format, again);
        t->length += (size_t)length;
    }
    va_end(again);
    va_end(args);
}

void tare__text_spaces(text *t, size_t count) {
    if (!reserve(t, count)) return;
    memset(t->chars + t->length, ' ', count);
    t->length += count;
    t->chars[t->length] = '\0';
}

const char *tare__text_chars(const text *t) {
    return t->chars && t->length ? t->chars : "";
}

void tare__text_clear(text *t) {
    t->length = 0;
    if (t->chars) t->chars[0] = '\0';
}

void tare__text_release(text *t) {
    tare__free(t->chars);
    *t = (text){0};
}

tare_status tare__text_status(const text *t, tare_error *err) {
    return t->failed ? tare__out_of_memory(err) : TARE_OK;
}

char *tare__text_take(text *t) {
    reserve(t, 0); // an empty text also returns an allocated string
    if (t->failed) {
        tare__text_release(t);
        return NULL;
    }
    char *chars = t->chars;
    chars[t->length] = '\0';
    *t = (text){0};
    return chars;
}

tare_status tare__text_write(text *t, tare_status status, tare_writer write, void *user,
                             tare_error *err) {
    if (status == TARE_OK) status = tare__text_status(t, err);
    if (status == TARE_OK && !write(user, tare__text_chars(t), t->length))
        status = tare__fail(err, TARE_IO, "the writer refused the text");
    tare__text_release(t);
    return status;
}

bool tare__text_append_writer(void *user, const char *chars, size_t length) {
    text *t = user;
    tare__text_append_n(t, chars, length);
    return !t->failed;
}

// The significant digits of a positive finite double, and its decimal exponent:
// value = d.ddd * 10^exponent.
typedef struct decimal {
    char digits[18];
    int count, exponent;
} decimal;

static void take_digits(const char *scientific, decimal *out) {
    const char *exponent = strchr(scientific, 'e');
    out->count = 0;
    for (const char *c = scientific; c < exponent && out->count < 17; c++)
        if (*c >= '0' && *c <= '9') out->digits[out->count++] = *c;
    out->exponent = (int)strtol(exponent + 1, NULL, 10);
}

// The next larger decimal with as many digits. (All nines would carry into a power of ten, which
// has one digit and is found earlier.)
static void step_up(char *scientific) {
    char *c = strchr(scientific, 'e') - 1;
    while (c > scientific && (*c < '0' || *c >= '9')) {
        if (*c == '9') *c = '0';
        c--;
    }
    if (*c >= '0' && *c < '9') ++*c;
}

// Rounds value to `count` digits. True if they read back as the same double. The C library may use
// another decimal point than '.', consistently; only digits are taken.
static bool round_to(double value, int count, decimal *out) {
    char buffer[64];
    snprintf(buffer, sizeof buffer, "%.*e", count - 1, value);
    bool same = strtod(buffer, NULL) == value;
    if (!same) {
        // Below a power of two, doubles are twice as dense as above, so the nearest decimal may
        // fail while the next larger one reads back.
        step_up(buffer);
        same = strtod(buffer, NULL) == value;
    }
    take_digits(buffer, out);
    return same;
}

// A normal double can represent every decimal of 15 digits, so its shortest form has 15 digits,
// without trailing zeros, or 16, or 17. Subnormals have fewer and are tried one by one.
static void shortest(double value, decimal *out) {
    int count = value < DBL_MIN ? 1 : DBL_DIG;
    while (!round_to(value, count, out) && count < 17) count++;
    while (out->count > 1 && out->digits[out->count - 1] == '0') out->count--;
}

// Python's rule ("%r"): positional for exponents -4 .. 15, else scientific with two exponent
// digits.
static void layout(const decimal *d, char *out, size_t size) {
    const char *digits = d->digits;
    const int n = d->count, point = d->exponent + 1; // digits in front of the point
    if (d->exponent < -4 || d->exponent >= 16)
        snprintf(out, size, "%.1s%s%.*se%c%02d", digits, n > 1 ? "." : "", n - 1, digits + 1,
                 d->exponent < 0 ? '-' : '+', abs(d->exponent));
    else if (point <= 0)
        snprintf(out, size, "0.%.*s%.*s", -point, "0000", n, digits);
    else if (point >= n)
        snprintf(out, size, "%.*s%.*s.0", n, digits, point - n, "0000000000000000");
    else
        snprintf(out, size, "%.*s.%.*s", point, digits, n - point, digits + point);
}

void tare__format_double(double value, char out[32]) {
    const char *sign = signbit(value) && !isnan(value) ? "-" : "";
    if (isnan(value) || isinf(value) || value == 0) {
        snprintf(out, 32, "%s%s", sign, isnan(value) ? "nan" : isinf(value) ? "inf" : "0.0");
        return;
    }
    decimal d = {.count = 0};
    shortest(fabs(value), &d);
    char number[30];
    layout(&d, number, sizeof number);
    snprintf(out, 32, "%s%s", sign, number);
}

bool tare__parse_double(const char *chars, size_t length, double *out) {
    static const char letters[] = "0123456789.+-eE";
    // The C library expects the locale's decimal point.
    char number[128];
    const char *point = localeconv()->decimal_point;
    size_t at = 0;
    for (size_t i = 0; i < length; i++) {
        const char *piece = chars[i] == '.' ? point : &chars[i];
        const size_t piece_length = chars[i] == '.' ? strlen(point) : 1;
        // memchr, because strchr would also find NUL.
        if (at + piece_length >= sizeof number || !memchr(letters, chars[i], sizeof letters - 1))
            return false;
        memcpy(number + at, piece, piece_length);
        at += piece_length;
    }
    number[at] = '\0';
    char *end = number;
    const double value = strtod(number, &end);
    if (end == number || *end != '\0') return false;
    *out = value;
    return true;
}

double tare__double_of_float(float value) {
    // Both directions use the locale's decimal point.
    for (int digits = 1; digits < 9; digits++) {
        char number[32];
        snprintf(number, sizeof number, "%.*g", digits, (double)value);
        const double found = strtod(number, NULL);
        if ((float)found == value) return found;
    }
    return (double)value;
}

void tare__text_double(text *t, double value) {
    char number[32];
    tare__format_double(value, number);
    tare__text_append(t, number);
}

void tare__text_json_double(text *t, double value) {
    char number[32];
    tare__format_double(value, number);
    tare__text_printf(t, isfinite(value) ? "%s" : "{\"float\": \"%s\"}", number);
}

size_t tare__utf8_length(const char *chars) {
    const unsigned char *c = (const unsigned char *)chars;
    static const struct {
        unsigned char first, last; // of the first byte
        unsigned char least, most; // of the second byte: no overlong forms, no surrogates
        unsigned char length;
    } rows[] = {
        {0x01, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        if (c[0] < rows[r].first || c[0] > rows[r].last) continue;
        if (rows[r].length > 1 && (c[1] < rows[r].least || c[1] > rows[r].most)) return 0;
        for (size_t i = 2; i < rows[r].length; i++)
            if ((c[i] & 0xC0) != 0x80) return 0;
        return rows[r].length;
    }
    return 0;
}

void tare__text_code_point(text *t, unsigned long code) {
    if (code < 0x80) {
        tare__text_char(t, (char)code);
    } else if (code < 0x800) {
        tare__text_char(t, (char)(0xC0 | code >> 6));
        tare__text_char(t, (char)(0x80 | (code & 0x3F)));
    } else if (code < 0x10000) {
        tare__text_char(t, (char)(0xE0 | code >> 12));
        tare__text_char(t, (char)(0x80 | (code >> 6 & 0x3F)));
        tare__text_char(t, (char)(0x80 | (code & 0x3F)));
    } else {
        tare__text_char(t, (char)(0xF0 | code >> 18));
        tare__text_char(t, (char)(0x80 | (code >> 12 & 0x3F)));
        tare__text_char(t, (char)(0x80 | (code >> 6 & 0x3F)));
        tare__text_char(t, (char)(0x80 | (code & 0x3F)));
    }
}

// The escapes that Python and JSON share.
static const char *short_escape(char c) {
    return c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : c == '\\' ? "\\\\" : NULL;
}

void tare__text_quoted(text *t, const char *chars) {
    const char quote = strchr(chars, '\'') && !strchr(chars, '"') ? '"' : '\'';
    tare__text_char(t, quote);
    while (*chars) {
        const size_t length = tare__utf8_length(chars);
        const unsigned code = (unsigned char)*chars;
        if (*chars == quote)
            tare__text_printf(t, "\\%c", quote);
        else if (short_escape(*chars))
            tare__text_append(t, short_escape(*chars));
        else if (length == 0 || code < 0x20 || code == 0x7F)
            tare__text_printf(t, "\\x%02x", code);
        else
            tare__text_append_n(t, chars, length);
        chars += length ? length : 1;
    }
    tare__text_char(t, quote);
}

void tare__text_json_string(text *t, const char *chars) {
    tare__text_char(t, '"');
    while (*chars) {
        const size_t length = tare__utf8_length(chars);
        const unsigned code = (unsigned char)*chars;
        if (*chars == '"')
            tare__text_append(t, "\\\"");
        else if (short_escape(*chars))
            tare__text_append(t, short_escape(*chars));
        else if (length == 0)
            tare__text_append(t, "\\ufffd"); // JSON cannot express an invalid byte
        else if (code < 0x20)
            tare__text_printf(t, "\\u%04x", code);
        else
            tare__text_append_n(t, chars, length);
        chars += length ? length : 1;
    }
    tare__text_char(t, '"');
}

bool tare__starts_with(const char *chars, const char *prefix) {
    return strncmp(chars, prefix, strlen(prefix)) == 0;
}

bool tare__ends_with(const char *chars, const char *suffix) {
    const size_t length = strlen(chars), end = strlen(suffix);
    return end <= length && strcmp(chars + length - end, suffix) == 0;
}

bool tare__is_word(const char *chars, size_t length, const char *word) {
    return length == strlen(word) && memcmp(chars, word, length) == 0;
}

bool tare__is_identifier_n(const char *name, size_t length) {
    if (length == 0 || !tare__is_letter(*name)) return false;
    for (size_t i = 1; i < length; i++)
        if (!tare__is_letter(name[i]) && !tare__is_digit(name[i])) return false;
    return true;
}

bool tare__is_identifier(const char *name) {
    return tare__is_identifier_n(name, strlen(name));
}
