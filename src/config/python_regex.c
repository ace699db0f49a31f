// SPDX-License-Identifier: Apache-2.0
// Translates Python's regular expressions to POSIX extended ones. Both match the same strings, but
// may capture different groups, which does not matter here.
#include "config/python_regex.h"

#include <regex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/text/text.h"

struct python_regex {
    regex_t compiled;
};

// Limits: POSIX libraries expand repetitions and recurse on groups, so a short pattern could use up
// the memory or the stack.
enum { LONGEST_PATTERN = 1000, DEEPEST_GROUP = 32, MOST_POSITIONS = 50000 };

typedef struct translation {
    const char *pattern, *at;
    text out;
    int open_groups;
    bool can_repeat;                 // the last item written may be followed by a quantifier
    size_t last_size;                // its size: positions after repetitions are expanded
    size_t sizes[DEEPEST_GROUP + 1]; // of each open group so far; the first is the whole pattern
    tare_error *err;
} translation;

static tare_status refuse(translation *t, const char *what) {
    return tare__fail(t->err, TARE_INVALID_ARGUMENT, "regex '%s': %s at position %td", t->pattern,
                      what, t->at - t->pattern);
}

static void count_position(translation *t) {
    t->last_size = 1;
    t->sizes[t->open_groups]++;
    t->can_repeat = true;
}

// --- character classes ---

// A set of bytes. Explicit sets avoid POSIX's collation and its quoting rules inside brackets.
typedef struct byte_set {
    bool has[256];
} byte_set;

static void add_range(byte_set *s, int first, int last) {
    for (int c = first; c <= last; c++) s->has[c] = true;
}

static void invert(byte_set *s) {
    for (int c = 1; c < 256; c++) s->has[c] = !s->has[c];
}

// \d, \w, \s and their complements; false if `letter` is none of them.
static bool class_of(char letter, byte_set *out) {
    byte_set s = {0};
    switch (letter | 0x20) {
    case 'd':
        add_range(&s, '0', '9');
        break;
    case 's':
        add_range(&s, '\t', '\r');
        s.has[' '] = true;
        break;
    case 'w':
        add_range(&s, '0', '9');
        add_range(&s, 'A', 'Z');
        add_range(&s, 'a', 'z');
        s.has['_'] = true;
        break;
    default:
        return false;
    }
    if ((letter & 0x20) == 0) invert(&s);
    *out = s;
    return true;
}

static void join(byte_set *into, const byte_set *from) {
    for (int c = 0; c < 256; c++) into->has[c] |= from->has[c];
}

// Writes a bracket expression: `]` first, `-` last, `^` not first. A set with the byte 255 is
// written as its complement, because non-ASCII bytes are not characters in some locales.
static tare_status write_set(translation *t, const byte_set *s) {
    const bool is_inverted = s->has[255];
    const char *const last = "[^-";
    text members = {0};
    if (s->has[']'] != is_inverted) tare__text_char(&members, ']');
    for (int c = 1; c < 256; c++)
        if (s->has[c] != is_inverted && c != ']' && strchr(last, c) == NULL)
            tare__text_char(&members, (char)c);
    for (const char *c = last; *c != '\0'; c++)
        if (s->has[(unsigned char)*c] != is_inverted) tare__text_char(&members, *c);
    tare_status status = TARE_OK;
    const char *chars = tare__text_chars(&members);
    if (members.failed)
        status = tare__out_of_memory(t->err);
    else if (members.length == 0 && !is_inverted)
        status = refuse(t, "a class that accepts nothing");
    else if (members.length == 0)
        tare__text_char(&t->out, '.');
    else if (strcmp(chars, "^") == 0 && !is_inverted)
        tare__text_append(&t->out, "\\^");
    else
        tare__text_printf(&t->out, "[%s%s]", is_inverted ? "^" : "", chars);
    tare__text_release(&members);
    count_position(t);
    return status;
}

static bool escaped_byte(char letter, int *out) {
    static const char letters[] = "ntrfva", bytes[] = "\n\t\r\f\v\a";
    const char *found = letter != '\0' ? strchr(letters, letter) : NULL;
    if (found != NULL) {
        *out = (unsigned char)bytes[found - letters];
        return true;
    }
    const bool is_alphanumeric =
        (letter >= '0' && letter <= '9') || ((letter | 0x20) >= 'a' && (letter | 0x20) <= 'z');
    if (letter == '\0' || is_alphanumeric) return false;
    *out = (unsigned char)letter;
    return true;
}

// One member of a class: a byte into *byte, or a set into `s` and *byte = -1.
static tare_status read_member(translation *t, byte_set *s, int *byte) {
    if (*t->at == '\0') return refuse(t, "unterminated character set");
    if (*t->at != '\\') {
        *byte = (unsigned char)*t->at++;
        return TARE_OK;
    }
    byte_set class = {0};
    t->at++;
    if (class_of(*t->at, &class)) {
        join(s, &class);
        *byte = -1;
    } else if (!escaped_byte(*t->at, byte))
        return refuse(t, "an escape that is not supported");
    t->at++;
    return TARE_OK;
}

static tare_status translate_set(translation *t) {
    byte_set s = {0};
    t->at++;
    const bool is_inverted = *t->at == '^';
    if (is_inverted) t->at++;
    for (bool is_first = true; is_first || *t->at != ']'; is_first = false) {
        int first = 0, last = 0;
        TARE_TRY(read_member(t, &s, &first));
        last = first;
        if (first >= 0 && t->at[0] == '-' && t->at[1] != ']' && t->at[1] != '\0') {
            t->at++;
            TARE_TRY(read_member(t, &s, &last));
            if (last < first) return refuse(t, "bad character range");
        }
        if (first >= 0) add_range(&s, first, last);
    }
    t->at++;
    if (is_inverted) invert(&s);
    return write_set(t, &s);
}

// --- escapes, groups and quantifiers ---

static tare_status translate_escape(translation *t) {
    byte_set class = {0};
    int byte = 0;
    const char letter = *++t->at;
    if (letter == 'A' || letter == 'Z') {
        tare__text_char(&t->out, letter == 'A' ? '^' : '$');
        t->can_repeat = false;
    } else if (class_of(letter, &class))
        TARE_TRY(write_set(t, &class));
    else if (escaped_byte(letter, &byte)) {
        byte_set one = {0};
        one.has[byte] = true;
        TARE_TRY(write_set(t, &one));
    } else
        return refuse(t, letter == '\0' ? "bad escape" : "an escape that is not supported");
    t->at++;
    return TARE_OK;
}

static tare_status translate_open(translation *t) {
    t->at++;
    if (t->at[0] == '?' && t->at[1] == ':')
        t->at += 2;
    else if (t->at[0] == '?' && t->at[1] == 'P' && t->at[2] == '<') {
        const char *end = strchr(t->at, '>');
        if (end == NULL) return refuse(t, "unterminated group name");
        t->at = end + 1;
    } else if (t->at[0] == '?')
        return refuse(t, "a group extension that is not supported");
    if (t->open_groups == DEEPEST_GROUP) return refuse(t, "too many groups in groups");
    tare__text_char(&t->out, '(');
    t->sizes[++t->open_groups] = 1;
    t->can_repeat = false;
    return TARE_OK;
}

// Writes a byte repeated zero times for an empty alternative, which POSIX leaves undefined. Literal
// parentheses and bars are written as sets, so the last byte written shows whether the alternative
// is empty.
static void end_alternative(translation *t) {
    const char last = t->out.length > 0 ? t->out.chars[t->out.length - 1] : '\0';
    if (last == '(' || last == '|') tare__text_append(&t->out, "x{0}");
}

static tare_status translate_close(translation *t) {
    if (t->open_groups == 0) return refuse(t, "unbalanced parenthesis");
    end_alternative(t);
    tare__text_char(&t->out, ')');
    t->last_size = t->sizes[t->open_groups--];
    t->sizes[t->open_groups] += t->last_size;
    t->at++;
    t->can_repeat = true;
    return TARE_OK;
}

// The length of a quantifier `{m}`, `{m,}`, `{,n}` or `{m,n}` at p; 0: the brace is literal, as in
// Python.
static size_t bounds_length(const char *p) {
    const char *start = p++;
    const size_t first = strspn(p, "0123456789");
    p += first;
    if (*p == ',') {
        p++;
        p += strspn(p, "0123456789");
        if (p[-1] == ',' && first == 0) return 0; // {,} is literal
    } else if (first == 0)
        return 0;
    return *p == '}' ? (size_t)(p + 1 - start) : 0;
}

// The number of copies of its operand to which a quantifier expands.
static size_t copies_of(const char *quantifier) {
    if (*quantifier != '{') return *quantifier == '+' ? 2 : 1;
    char *end = NULL;
    const unsigned long least = strtoul(quantifier + 1, &end, 10);
    const unsigned long most =
        *end == ',' && end[1] != '}' ? strtoul(end + 1, NULL, 10) : least + 1;
    const unsigned long more = least > most ? least : most;
    return more < MOST_POSITIONS ? (size_t)more + 1 : MOST_POSITIONS;
}

static tare_status translate_quantifier(translation *t, size_t length) {
    if (!t->can_repeat) return refuse(t, "nothing to repeat");
    t->sizes[t->open_groups] += t->last_size * (copies_of(t->at) - 1);
    if (t->sizes[t->open_groups] > MOST_POSITIONS) return refuse(t, "too many repetitions");
    if (length > 1 && t->at[1] == ',') { // {,n}
        tare__text_append(&t->out, "{0");
        t->at++;
        length--;
    }
    tare__text_append_n(&t->out, t->at, length);
    t->at += length;
    if (*t->at == '+') return refuse(t, "a possessive quantifier, which is not supported,");
    if (*t->at == '?') t->at++; // lazy: captures differ, but it matches the same
    t->can_repeat = false;
    return TARE_OK;
}

static void translate_literal(translation *t) {
    const char c = *t->at++;
    if (strchr("{}]", c) != NULL) tare__text_char(&t->out, '\\');
    tare__text_char(&t->out, c);
    count_position(t);
}

static void translate_assertion(translation *t) {
    if (*t->at == '|') end_alternative(t);
    tare__text_char(&t->out, *t->at++);
    t->can_repeat = false;
}

static tare_status translate_one(translation *t) {
    size_t bounds = 0;
    switch (*t->at) {
    case '\\':
        return translate_escape(t);
    case '[':
        return translate_set(t);
    case '(':
        return translate_open(t);
    case ')':
        return translate_close(t);
    case '*':
    case '+':
    case '?':
        return translate_quantifier(t, 1);
    case '{':
        bounds = bounds_length(t->at);
        if (bounds > 0) return translate_quantifier(t, bounds);
        translate_literal(t);
        return TARE_OK;
    case '|':
    case '^':
    case '$':
        translate_assertion(t);
        return TARE_OK;
    default:
        translate_literal(t);
        return TARE_OK;
    }
}

static tare_status translate(translation *t) {
    if (strlen(t->pattern) > LONGEST_PATTERN) return refuse(t, "more than 1000 bytes");
    tare__text_append(&t->out, "^(");
    while (*t->at != '\0') TARE_TRY(translate_one(t));
    if (t->open_groups > 0) return refuse(t, "missing )");
    end_alternative(t);
    tare__text_char(&t->out, ')');
    return tare__text_status(&t->out, t->err);
}

static tare_status compile(const char *pattern, const char *posix, python_regex *out,
                           tare_error *err) {
    char reason[128];
    const int code = regcomp(&out->compiled, posix, REG_EXTENDED | REG_NOSUB);
    if (code == 0) return TARE_OK;
    if (code == REG_ESPACE) return tare__out_of_memory(err);
    regerror(code, &out->compiled, reason, sizeof reason);
    return tare__fail(err, TARE_INVALID_ARGUMENT, "regex '%s': %s", pattern, reason);
}

tare_status tare__python_regex_compile(const char *pattern, python_regex **out, tare_error *err) {
    translation t = {.pattern = pattern, .at = pattern, .err = err};
    python_regex *made = tare__alloc_zeroed(1, sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    tare_status status = translate(&t);
    if (status == TARE_OK) status = compile(pattern, tare__text_chars(&t.out), made, err);
    tare__text_release(&t.out);
    if (status != TARE_OK) {
        tare__free(made);
        return status;
    }
    *out = made;
    return TARE_OK;
}

void tare__python_regex_destroy(python_regex *regex) {
    if (regex == NULL) return;
    regfree(&regex->compiled);
    tare__free(regex);
}

bool tare__python_regex_match(const python_regex *regex, const char *name) {
    return regexec(&regex->compiled, name, 0, NULL, 0) == 0;
}
