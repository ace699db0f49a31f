// SPDX-License-Identifier: Apache-2.0
// Evaluates size expressions by recursive descent.
#include "io/pt2/expression.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/text.h"

enum { MOST_DEPTH = 32, LONGEST_SYMBOL = 64 };
static const int64_t limit = INT64_C(1) << 31; // of operands: products of two never overflow

typedef struct parser {
    const char *at;
    const map *symbols;
    int depth;
} parser;

// --- functions, applied to their arguments as a left fold ---

static bool add(int64_t a, int64_t b, int64_t *out) {
    *out = a + b;
    return true;
}
static bool multiply(int64_t a, int64_t b, int64_t *out) {
    *out = a * b;
    return true;
}
// Python's: rounds down, and the remainder has the divisor's sign.
static bool divide(int64_t a, int64_t b, int64_t *out) {
    if (b == 0) return false;
    *out = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
    return true;
}
static bool remain(int64_t a, int64_t b, int64_t *out) {
    if (!divide(a, b, out)) return false;
    *out = a - *out * b;
    return true;
}
static bool greater(int64_t a, int64_t b, int64_t *out) {
    *out = a > b ? a : b;
    return true;
}
static bool lesser(int64_t a, int64_t b, int64_t *out) {
    *out = a < b ? a : b;
    return true;
}
static bool power(int64_t a, int64_t b, int64_t *out) {
    *out = 1;
    if (b > 62) return false;
    for (; b > 0 && *out<limit && * out> - limit; b--) *out *= a;
    return b == 0;
}

static const struct {
    const char *name;
    bool (*fold)(int64_t a, int64_t b, int64_t *out);
} functions[] = {
    {"Add", add},    {"Mul", multiply},       {"FloorDiv", divide}, {"CleanDiv", divide},
    {"Mod", remain}, {"PythonMod", remain},   {"Max", greater},     {"Min", lesser},
    {"Pow", power},  {"PowByNatural", power},
};

// --- the text ---

static bool take(parser *p, char c) {
    while (*p->at == ' ') p->at++;
    if (*p->at != c) return false;
    p->at++;
    return true;
}

static bool read_number(parser *p, int64_t *out) {
    char *end = NULL;
    while (*p->at == ' ') p->at++;
    errno = 0;
    const long long number = strtoll(p->at, &end, 10);
    if (end == p->at || errno != 0 || number > limit || number < -limit) return false;
    p->at = end;
    *out = number;
    return true;
}

// 's0', positive=True, integer=True
static bool read_symbol(parser *p, int64_t *out) {
    char name[LONGEST_SYMBOL + 1];
    if (!take(p, '\'')) return false;
    const size_t length = strcspn(p->at, "'");
    if (length > LONGEST_SYMBOL || p->at[length] != '\'') return false;
    memcpy(name, p->at, length);
    name[length] = '\0';
    p->at += length + 1;
    p->at += strcspn(p->at, ")");
    *out = (int64_t)(size_t)tare__map_get(p->symbols, name);
    return tare__map_has(p->symbols, name);
}

static bool read_value(parser *p, int64_t *out);

static bool read_function(parser *p, size_t index, int64_t *out) {
    if (!read_value(p, out)) return false;
    while (take(p, ',')) {
        int64_t next;
        if (!read_value(p, &next) || !functions[index].fold(*out, next, out) || *out > limit ||
            *out < -limit)
            return false;
    }
    return true;
}

static bool read_body(parser *p, const char *word, size_t length, int64_t *out) {
    if (tare__is_word(word, length, "Integer")) return read_number(p, out);
    if (tare__is_word(word, length, "Symbol")) return read_symbol(p, out);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (tare__is_word(word, length, functions[i].name)) return read_function(p, i, out);
    return false;
}

static bool read_value(parser *p, int64_t *out) {
    while (*p->at == ' ') p->at++;
    const char *word = p->at;
    const size_t length = strcspn(word, "(), ");
    if (word[length] != '(') return read_number(p, out);
    if (p->depth == MOST_DEPTH) return false;
    p->at += length + 1;
    p->depth++;
    const bool ok = read_body(p, word, length, out) && take(p, ')');
    p->depth--;
    return ok;
}

bool tare__expression_value(const char *chars, const map *symbols, int64_t *out) {
    parser p = {.at = chars, .symbols = symbols};
    int64_t result;
    if (!read_value(&p, &result) || *p.at != '\0') return false;
    *out = result;
    return true;
}

bool tare__expression_symbols(const char *chars,
                              bool (*visit)(void *user, const char *name, size_t length),
                              void *user) {
    static const char mark[] = "Symbol('";
    for (const char *at = strstr(chars, mark); at != NULL; at = strstr(at, mark)) {
        at += sizeof mark - 1;
        const size_t length = strcspn(at, "'");
        if (!visit(user, at, length)) return false;
    }
    return true;
}
