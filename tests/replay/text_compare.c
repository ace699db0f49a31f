// SPDX-License-Identifier: Apache-2.0
// Text comparison, line by line and number by number.
#include "replay/text_compare.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"

typedef struct line {
    const char *chars;
    size_t length;
} line;

typedef struct lines {
    line *items;
    size_t count, capacity;
} lines;

static bool split(const char *chars, lines *out) {
    while (*chars != '\0') {
        const size_t length = strcspn(chars, "\n");
        if (!tare__grow((void **)&out->items, &out->capacity, out->count, sizeof *out->items))
            return false;
        out->items[out->count++] = (line){chars, length};
        chars += length + (chars[length] == '\n');
    }
    return true;
}

typedef struct number {
    double value;
    size_t length;
    bool is_float;
} number;

/// A literal at the start of `at`, unless `before` makes it part of a name.
static bool read_number(const char *at, const char *end, char before, number *out) {
    if (isalnum((unsigned char)before) || before == '_' || before == '.') return false;
    const char *p = at;
    while (p < end && isdigit((unsigned char)*p)) p++;
    if (p == at) return false;
    out->is_float = false;
    if (p < end && *p == '.') {
        out->is_float = true;
        p++;
        while (p < end && isdigit((unsigned char)*p)) p++;
    }
    if (p < end && *p == 'e') {
        const char *exponent = p + 1;
        if (exponent < end && (*exponent == '-' || *exponent == '+')) exponent++;
        if (exponent < end && isdigit((unsigned char)*exponent)) {
            out->is_float = true;
            while (exponent < end && isdigit((unsigned char)*exponent)) exponent++;
            p = exponent;
        }
    }
    char digits[64];
    out->length = (size_t)(p - at);
    if (out->length >= sizeof digits) return false;
    memcpy(digits, at, out->length);
    digits[out->length] = '\0';
    out->value = strtod(digits, NULL);
    return true;
}

static bool numbers_match(const agreement *numbers, const number *a, const number *b) {
    return a->is_float || b->is_float
               ? a->is_float == b->is_float && floats_agree(numbers, a->value, b->value)
               : integers_agree(numbers, a->value, b->value);
}

static const char *last_of(const line *l, const char *at, char wanted) {
    while (at > l->chars && at[-1] != wanted) at--;
    return at > l->chars ? at - 1 : NULL;
}

static bool stands_before(const line *l, const char *at, const char *name) {
    const size_t length = strlen(name);
    return at != NULL && (size_t)(at - l->chars) >= length &&
           memcmp(at - length, name, length) == 0;
}

/// Of the integers in a text, only zero points are measured: "zero_point=..", and the third
/// argument of a decomposed call.
static bool is_zero_point(const line *l, const char *at) {
    if (stands_before(l, last_of(l, at, '='), "zero_point")) return true;
    const char *call = last_of(l, at, '(');
    if (!stands_before(l, call, "quantize_per_tensor.default")) return false;
    size_t commas = 0;
    for (const char *c = call; c < at; c++) commas += *c == ',';
    return commas == 2;
}

static bool zero_points_match(const agreement *numbers, const number *a, const number *b) {
    return numbers->is_random || wide_integers_agree(numbers, a->value, b->value);
}

static bool lines_match(const line *ours, const line *recorded, const agreement *numbers) {
    const char *a = ours->chars, *a_end = a + ours->length;
    const char *b = recorded->chars, *b_end = b + recorded->length;
    char before = ' ';
    while (a < a_end && b < b_end) {
        number x, y;
        if (read_number(a, a_end, before, &x) && read_number(b, b_end, before, &y)) {
            const bool agree = is_zero_point(ours, a) && !x.is_float && !y.is_float
                                   ? zero_points_match(numbers, &x, &y)
                                   : numbers_match(numbers, &x, &y);
            if (!agree) return false;
            a += x.length;
            b += y.length;
            before = '0';
            continue;
        }
        if (*a != *b) return false;
        before = *a;
        a++;
        b++;
    }
    return a == a_end && b == b_end;
}

static size_t indent_of(const line *l) {
    size_t n = 0;
    while (n < l->length && l->chars[n] == ' ') n++;
    return n;
}

/// A line without its indentation, cut where it no longer fits on a screen.
static int shown_length(const line *l) {
    const size_t length = l->length - indent_of(l);
    return (int)(length < 160 ? length : 160);
}

static void name_first(const char *what, const lines *ours, const lines *recorded, size_t at,
                       findings *out) {
    static const line nothing = {"(nothing)", 9};
    const line *a = at < ours->count ? &ours->items[at] : &nothing;
    const line *b = at < recorded->count ? &recorded->items[at] : &nothing;
    findings_add(out, FINDING_STRUCTURE, "%s line %zu: expected '%.*s', found '%.*s'", what, at + 1,
                 shown_length(b), b->chars + indent_of(b), shown_length(a),
                 a->chars + indent_of(a));
}

static void put_line(text *out, char mark, const line *l) {
    tare__text_printf(out, "%c ", mark);
    tare__text_append_n(out, l->chars, l->length);
    tare__text_char(out, '\n');
}

/// Longest common subsequence: table[i * width + j] of the lines from i and j on.
static void write_diff(const lines *ours, const lines *recorded, const agreement *numbers,
                       text *out) {
    const size_t rows = recorded->count, width = ours->count + 1;
    unsigned *common = tare__alloc_zeroed((rows + 1) * width, sizeof *common);
    if (common == NULL) return;
    for (size_t i = rows; i-- > 0;)
        for (size_t j = ours->count; j-- > 0;) {
            const unsigned down = common[(i + 1) * width + j], right = common[i * width + j + 1];
            common[i * width + j] = lines_match(&ours->items[j], &recorded->items[i], numbers)
                                        ? common[(i + 1) * width + j + 1] + 1
                                        : (down > right ? down : right);
        }
    size_t i = 0, j = 0;
    while (i < rows || j < ours->count) {
        if (i < rows && j < ours->count &&
            lines_match(&ours->items[j], &recorded->items[i], numbers)) {
            put_line(out, ' ', &recorded->items[i]);
            i++;
            j++;
        } else if (j == ours->count ||
                   (i < rows && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
            put_line(out, '-', &recorded->items[i++]);
        } else {
            put_line(out, '+', &ours->items[j++]);
        }
    }
    tare__free(common);
}

static void compare_lines(const char *what, const lines *ours, const lines *recorded,
                          const agreement *numbers, findings *out) {
    const size_t most = ours->count > recorded->count ? ours->count : recorded->count;
    for (size_t i = 0; i < most; i++) {
        if (i < ours->count && i < recorded->count &&
            lines_match(&ours->items[i], &recorded->items[i], numbers))
            continue;
        name_first(what, ours, recorded, i, out);
        tare__text_printf(&out->detail, "--- recorded %s\n+++ ours\n", what);
        write_diff(ours, recorded, numbers, &out->detail);
        return;
    }
}

void compare_texts(const char *what, const char *ours, const char *recorded,
                   const agreement *numbers, findings *out) {
    lines a = {0}, b = {0};
    if (split(ours, &a) && split(recorded, &b))
        compare_lines(what, &a, &b, numbers, out);
    else
        findings_add(out, FINDING_STRUCTURE, "%s: memory is gone", what);
    tare__free(a.items);
    tare__free(b.items);
}
