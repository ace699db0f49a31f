// SPDX-License-Identifier: Apache-2.0
// Rules between options: which other options an option requires or excludes.
#include "options/rules.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "support/report.h"

// --- terms ---

static const option *find_option(const command *c, const char *name, size_t length) {
    const option *o = c->options;
    while (o->name != NULL && (strlen(o->name) != length || strncmp(o->name, name, length) != 0))
        o++;
    assert(o->name != NULL && "a rule names an option of its command");
    return o;
}

bool rule_next(const command *c, const char **list, rule_term *out) {
    if (*list == NULL || **list == '\0') return false;
    const char *begin = *list;
    const size_t length = strcspn(begin, "|"), name_length = strcspn(begin, "=|");
    *out = (rule_term){.option = find_option(c, begin, name_length)};
    if (name_length < length) {
        out->value = begin + name_length + 1;
        out->value_length = length - name_length - 1;
    }
    *list = begin + length + (begin[length] == '|');
    return true;
}

static bool lists_option(const command *c, const char *list, const option *o) {
    for (rule_term t; rule_next(c, &list, &t);)
        if (t.option == o && t.value == NULL) return true;
    return false;
}

bool options_exclude(const command *c, const option *a, const option *b) {
    return lists_option(c, a->excludes, b) || lists_option(c, b->excludes, a);
}

const option *required_option(const command *c, const option *o) {
    const char *list = o->requires;
    rule_term first, second;
    if (!rule_next(c, &list, &first) || first.value != NULL) return NULL;
    return rule_next(c, &list, &second) ? NULL : first.option;
}

// --- spelling ---

const char *spell_option(const option *o, char out[SPELLING_SIZE]) {
    if (o->letter == 'o')
        (void)snprintf(out, SPELLING_SIZE, "-o");
    else
        (void)snprintf(out, SPELLING_SIZE, "--%s", o->name);
    return out;
}

const char *spell_term(const rule_term *term, char out[SPELLING_SIZE]) {
    (void)spell_option(term->option, out);
    const size_t length = strlen(out);
    if (term->value != NULL)
        (void)snprintf(out + length, SPELLING_SIZE - length, " %.*s", (int)term->value_length,
                       term->value);
    return out;
}

// Appends an element of a list: "a, b or c".
static void append(char out[SPELLINGS_SIZE], const char *element, bool is_last) {
    const size_t length = strlen(out);
    const char *separator = length == 0 ? "" : is_last ? " or " : ", ";
    (void)snprintf(out + length, SPELLINGS_SIZE - length, "%s%s", separator, element);
}

const char *spell_terms(const command *c, const char *list, char out[SPELLINGS_SIZE]) {
    char one[SPELLING_SIZE];
    out[0] = '\0';
    for (rule_term t; rule_next(c, &list, &t);) append(out, spell_term(&t, one), *list == '\0');
    return out;
}

// The next option of the table that excludes `o`; NULL: none.
static const option *next_excluder(const command *c, const option *from, const option *o) {
    while (from->name != NULL && !lists_option(c, from->excludes, o)) from++;
    return from->name != NULL ? from : NULL;
}

const char *spell_excluded(const command *c, const option *o, char out[SPELLINGS_SIZE]) {
    char one[SPELLING_SIZE];
    const char *list = o->excludes;
    const option *x = next_excluder(c, c->options, o);
    out[0] = '\0';
    for (rule_term t; rule_next(c, &list, &t);)
        append(out, spell_term(&t, one), x == NULL && *list == '\0');
    while (x != NULL) {
        const option *next = next_excluder(c, x + 1, o);
        append(out, spell_option(x, one), next == NULL);
        x = next;
    }
    return out;
}

const char *spell_names(names_at at, const void *user, char out[SPELLINGS_SIZE]) {
    out[0] = '\0';
    for (size_t i = 0; at(user, i) != NULL; i++) append(out, at(user, i), at(user, i + 1) == NULL);
    return out;
}

// --- checks ---

typedef struct checked {
    const command *command;
    const void *values;
    const bool *is_given;
} checked;

// A default value counts like a given one.
static bool holds(const checked *c, const rule_term *term) {
    const void *field = (const char *)c->values + term->option->offset;
    if (term->value == NULL) return c->is_given[term->option - c->command->options];
    assert(term->option->kind == OPTION_CHOICE && "values are compared as text");
    const char *text = *(const char *const *)field;
    return text != NULL && strlen(text) == term->value_length &&
           strncmp(text, term->value, term->value_length) == 0;
}

static bool check_excludes(const checked *c, const option *o) {
    char one[SPELLING_SIZE], other[SPELLING_SIZE];
    const char *list = o->excludes;
    for (rule_term t; rule_next(c->command, &list, &t);) {
        if (!holds(c, &t)) continue;
        wrong_usage(c->command->name, "leave one of them out", "%s and %s exclude each other",
                    spell_option(o, one), spell_term(&t, other));
        return false;
    }
    return true;
}

static void report_required(const command *c, const option *o) {
    char one[SPELLING_SIZE], others[SPELLINGS_SIZE], hint[SPELLING_SIZE + SPELLINGS_SIZE + 32];
    (void)spell_option(o, one);
    (void)spell_terms(c, o->requires, others);
    (void)snprintf(hint, sizeof hint, "give %s, or leave out %s", others, one);
    if (strchr(o->requires, '=') != NULL)
        wrong_usage(c->name, hint, "%s has an effect with %s only", one, others);
    else
        wrong_usage(c->name, hint, "%s has no effect without %s", one, others);
}

static bool check_requires(const checked *c, const option *o) {
    const char *list = o->requires;
    if (list == NULL) return true;
    for (rule_term t; rule_next(c->command, &list, &t);)
        if (holds(c, &t)) return true;
    report_required(c->command, o);
    return false;
}

bool check_rules(const command *c, const void *values, const bool *is_given) {
    const checked all = {c, values, is_given};
    for (size_t i = 0; c->options[i].name != NULL; i++)
        if (is_given[i] && !check_excludes(&all, &c->options[i])) return false;
    for (size_t i = 0; c->options[i].name != NULL; i++)
        if (is_given[i] && !check_requires(&all, &c->options[i])) return false;
    return true;
}

bool is_excused(const command *c, const option *required, const bool *is_given) {
    for (size_t i = 0; c->options[i].name != NULL; i++)
        if (is_given[i] && options_exclude(c, required, &c->options[i])) return true;
    return false;
}
