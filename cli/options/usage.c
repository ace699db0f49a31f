// SPDX-License-Identifier: Apache-2.0
// The synopsis and the help text of a command.
#include "options/usage.h"

#include <string.h>

#include "options/rules.h"

typedef struct synopsis {
    const command *command;
    wrapper *out;
    bool is_written[OPTION_CAPACITY]; // by the option's index
} synopsis;

static bool is_written(const synopsis *s, const option *o) {
    return s->is_written[o - s->command->options];
}

static void put_separator(wrapper *w) {
    wrap_gap(w);
    wrap_add(w, "|");
    wrap_gap(w);
}

// --- operands ---

static void put_actions(const action *actions, wrapper *w) {
    for (const action *a = actions; a->name != NULL; a++) {
        if (a != actions) put_separator(w);
        wrap_add(w, a->name);
        if (a->operand == NULL) continue;
        wrap_add(w, " ");
        wrap_add(w, a->operand);
    }
    wrap_gap(w);
}

static void put_operands(const command *c, wrapper *w) {
    for (size_t i = 0; i < OPERAND_CAPACITY && c->operands[i] != NULL; i++) {
        const bool is_optional = i >= c->least_operands;
        wrap_add(w, is_optional ? "[" : "");
        wrap_add(w, c->operands[i]);
        wrap_add(w, c->takes_more_operands ? ".." : "");
        wrap_add(w, is_optional ? "]" : "");
        wrap_gap(w);
    }
}

// --- options ---

static void put_option(synopsis *s, const option *o) {
    char spelled[SPELLING_SIZE];
    wrap_add(s->out, spell_option(o, spelled));
    if (o->value != NULL) {
        wrap_add(s->out, " ");
        wrap_add(s->out, o->value);
    }
    s->is_written[o - s->command->options] = true;
}

// Options that require only this one follow it in brackets.
static void put_dependents(synopsis *s, const option *o) {
    for (const option *x = s->command->options; x->name != NULL; x++) {
        if (is_written(s, x) || x->is_required || required_option(s->command, x) != o) continue;
        if (required_option(s->command, o) == x) continue; // each requires the other
        wrap_gap(s->out);
        wrap_add(s->out, "[");
        put_option(s, x);
        wrap_add(s->out, "]");
    }
}

// True if `x` excludes every marked option from `first` to `x`.
static bool excludes_all(const synopsis *s, const bool *is_member, const option *x) {
    for (const option *o = s->command->options; o != x; o++)
        if (is_member[o - s->command->options] && !options_exclude(s->command, o, x)) return false;
    return true;
}

// Options that exclude each other: [--a | --b], or (--a | --b) if one is required.
static void put_choice(synopsis *s, const option *first) {
    bool is_member[OPTION_CAPACITY] = {false};
    const option *options = s->command->options;
    size_t count = 0;
    for (const option *o = first; o->name != NULL; o++)
        if (!is_written(s, o) && excludes_all(s, is_member, o)) {
            is_member[o - options] = true;
            count++;
        }
    wrap_add(s->out, !first->is_required ? "[" : count > 1 ? "(" : "");
    for (const option *o = first; o->name != NULL; o++) {
        if (!is_member[o - options] || is_written(s, o)) continue;
        if (o != first) put_separator(s->out);
        put_option(s, o);
        put_dependents(s, o);
    }
    wrap_add(s->out, !first->is_required ? "]" : count > 1 ? ")" : "");
    wrap_gap(s->out);
}

static void put_options(synopsis *s, bool are_required) {
    for (const option *o = s->command->options; o->name != NULL; o++)
        if (!is_written(s, o) && o->is_required == are_required) put_choice(s, o);
}

void write_synopsis(const command *c, wrapper *w) {
    synopsis s = {.command = c, .out = w};
    if (c->actions != NULL)
        put_actions(c->actions, w);
    else
        put_operands(c, w);
    put_options(&s, true);
    put_options(&s, false);
}

// --- the help text ---

const char *shown_default(const option *o) {
    return o->default_value != NULL ? o->default_value : o->library_default;
}

static void print_usage(const command *c, FILE *stream) {
    wrapper w = {.stream = stream, .width = 100, .indent = 7};
    wrap_add(&w, "usage: tare ");
    wrap_add(&w, c->name);
    wrap_gap(&w);
    write_synopsis(c, &w);
    wrap_end(&w);
}

static void print_row(FILE *stream, const char *left, const char *right) {
    wrapper w = {.stream = stream, .width = 110, .indent = 34, .column = 34};
    (void)fprintf(stream, "  %-30s  ", left);
    wrap_text(&w, right, strlen(right));
    wrap_end(&w);
}

static void print_action(const action *a, FILE *stream) {
    char spelled[64];
    (void)snprintf(spelled, sizeof spelled, "%s%s%s", a->name, a->operand != NULL ? " " : "",
                   a->operand != NULL ? a->operand : "");
    print_row(stream, spelled, a->help);
}

enum { VALUES_SIZE = 2 * SPELLINGS_SIZE };

// The valid values and the default, in parentheses; "": neither is known.
static const char *describe_values(const option *o, char out[VALUES_SIZE]) {
    char names[SPELLINGS_SIZE] = "";
    const char *preset = shown_default(o);
    const bool has_names = o->kind == OPTION_CHOICE;
    if (has_names) (void)spell_names(o->choice_at, NULL, names);
    out[0] = '\0';
    if (has_names || preset != NULL)
        (void)snprintf(out, VALUES_SIZE, " (%s%s%s%s)", names,
                       has_names && preset != NULL ? "; " : "", preset != NULL ? "default " : "",
                       preset != NULL ? preset : "");
    return out;
}

static void print_option(const option *o, FILE *stream) {
    char spelled[64], letter[8] = "    ", values[VALUES_SIZE], text[2 * VALUES_SIZE];
    if (o->letter != 0) (void)snprintf(letter, sizeof letter, "-%c, ", o->letter);
    (void)snprintf(spelled, sizeof spelled, "%s--%s%s%s", letter, o->name,
                   o->value != NULL ? " " : "", o->value != NULL ? o->value : "");
    (void)snprintf(text, sizeof text, "%s%s", o->help, describe_values(o, values));
    print_row(stream, spelled, text);
}

// Prints paragraphs, each beginning a new line.
static void print_paragraphs(const char *text, FILE *stream) {
    while (*text != '\0') {
        const char *next = strstr(text, "\n\n"), *end = next != NULL ? next : text + strlen(text);
        wrapper w = {.stream = stream, .width = 100};
        (void)fputc('\n', stream);
        wrap_text(&w, text, (size_t)(end - text));
        wrap_end(&w);
        text = next != NULL ? next + 2 : end;
    }
}

void write_help(const command *c, FILE *stream) {
    (void)fprintf(stream, "tare %s: %s\n\n", c->name, c->summary);
    print_usage(c, stream);
    if (c->actions != NULL) (void)fputc('\n', stream);
    for (const action *a = c->actions; a != NULL && a->name != NULL; a++) print_action(a, stream);
    (void)fputc('\n', stream);
    for (const option *o = c->options; o->name != NULL; o++) print_option(o, stream);
    if (c->details != NULL) print_paragraphs(c->details, stream);
    if (c->example != NULL) (void)fprintf(stream, "\n%s", c->example);
}
