// SPDX-License-Identifier: Apache-2.0
// Parses arguments according to a command's table of options.
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/command.h"
#include "options/files.h"
#include "options/rules.h"
#include "support/report.h"
#include "tare/tare.h"

typedef struct parser {
    const command *command;
    int argc, at;
    char **argv;
    void *options;
    const char **operands;
    size_t operand_count;
    bool is_given[OPTION_CAPACITY]; // by the option's index
} parser;

static const char *option_name_at(const void *user, size_t index) {
    return ((const option *)user)[index].name;
}

static const option *find_long(const command *c, const char *name, size_t length) {
    for (const option *o = c->options; o->name != NULL; o++)
        if (strlen(o->name) == length && strncmp(o->name, name, length) == 0) return o;
    return NULL;
}

static const option *find_short(const command *c, char letter) {
    for (const option *o = c->options; o->name != NULL; o++)
        if (o->letter == letter) return o;
    return NULL;
}

static bool unknown_option(const parser *p, const char *argument) {
    char hint[96] = "";
    const char *name = argument + strspn(argument, "-");
    const char *nearest = tare_nearest_name(name, option_name_at, p->command->options);
    if (nearest != NULL)
        (void)snprintf(hint, sizeof hint, "did you mean '--%s'?", nearest);
    else
        (void)snprintf(hint, sizeof hint, "see 'tare help %s'", p->command->name);
    wrong_usage(p->command->name, hint, "no option '%s'", argument);
    return false;
}

static void *field_of(const parser *p, const option *o) {
    return (char *)p->options + o->offset;
}

static bool store_choice(const parser *p, const option *o, const char *value) {
    char names[SPELLINGS_SIZE];
    size_t i = 0;
    while (o->choice_at(NULL, i) != NULL && strcmp(o->choice_at(NULL, i), value) != 0) i++;
    *(const char **)field_of(p, o) = value;
    if (o->choice_at(NULL, i) != NULL) return true;
    wrong_usage(p->command->name, suggest(value, o->choice_at, NULL),
                "--%s: expected %s, found '%s'", o->name, spell_names(o->choice_at, NULL, names),
                value);
    return false;
}

static void report_number(const parser *p, const option *o, const char *value) {
    const int least = o->takes_zero ? 0 : 1;
    if (o->most == 0)
        wrong_usage(p->command->name, NULL, "--%s: expected a number from %d up, found '%s'",
                    o->name, least, value);
    else
        wrong_usage(p->command->name, NULL, "--%s: expected a number from %d to %lld, found '%s'",
                    o->name, least, (long long)o->most, value);
}

static bool store_number(const parser *p, const option *o, const char *value) {
    char *end = NULL;
    errno = 0;
    const long long number = strtoll(value, &end, 10);
    const bool is_good = errno == 0 && end != value && *end == '\0' &&
                         number >= (o->takes_zero ? 0 : 1) && (o->most == 0 || number <= o->most);
    if (!is_good) report_number(p, o, value);
    *(int64_t *)field_of(p, o) = number;
    return is_good;
}

// "4096", "512M": a unit is 1024 times the one before.
static bool read_bytes(const char *value, int64_t *out) {
    static const char units[] = "KMGT";
    char *end = NULL;
    errno = 0;
    const long long number = strtoll(value, &end, 10);
    const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
    if (errno != 0 || end == value || number < 1) return false;
    if (*end != '\0' && (unit == NULL || end[1] != '\0')) return false;
    const int shift = unit != NULL ? 10 * (int)(unit - units + 1) : 0;
    if (number > INT64_MAX >> shift) return false;
    *out = (int64_t)number << shift;
    return true;
}

static bool store_bytes(const parser *p, const option *o, const char *value) {
    if (read_bytes(value, field_of(p, o))) return true;
    wrong_usage(p->command->name, "K, M, G and T stand for powers of 1024",
                "--%s: expected a number of bytes such as 512M or 2G, found '%s'", o->name, value);
    return false;
}

static bool store(const parser *p, const option *o, const char *value) {
    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)field_of(p, o) = true;
        return true;
    case OPTION_TEXT:
    case OPTION_FILE:
    case OPTION_FOLDER:
        *(const char **)field_of(p, o) = value;
        return true;
    case OPTION_CHOICE:
        return store_choice(p, o, value);
    case OPTION_NUMBER:
        return store_number(p, o, value);
    case OPTION_BYTES:
        return store_bytes(p, o, value);
    }
    return false;
}

static void store_defaults(const parser *p) {
    for (const option *o = p->command->options; o->name != NULL; o++) {
        const bool is_stored = o->default_value == NULL || store(p, o, o->default_value);
        assert(is_stored && "a default is a value that the option takes");
        (void)is_stored;
    }
}

// An option must not be given twice: the first value would be ignored silently.
static bool mark_given(parser *p, const option *o) {
    bool *is_given = &p->is_given[o - p->command->options];
    if (o->kind != OPTION_FLAG && *is_given) {
        wrong_usage(p->command->name, NULL, "--%s is given twice", o->name);
        return false;
    }
    *is_given = true;
    return true;
}

/// Handles the option `o`, spelled `argument`. given: a value in the same word, or NULL.
static bool take_option(parser *p, const option *o, const char *argument, const char *given) {
    if (o->kind == OPTION_FLAG) {
        if (given == NULL) return mark_given(p, o) && store(p, o, NULL);
        wrong_usage(p->command->name, NULL, "--%s takes no value", o->name);
        return false;
    }
    if (given == NULL && p->at < p->argc) given = p->argv[p->at++];
    if (given == NULL || given[0] == '\0') {
        wrong_usage(p->command->name, NULL, "'%s' needs a value: %s", argument, o->value);
        return false;
    }
    return mark_given(p, o) && store(p, o, given);
}

static bool take_long(parser *p, const char *argument) {
    const char *name = argument + 2;
    const size_t length = strcspn(name, "=");
    const option *o = find_long(p->command, name, length);
    if (o == NULL) return unknown_option(p, argument);
    return take_option(p, o, argument, name[length] == '=' ? name + length + 1 : NULL);
}

static bool take_short(parser *p, const char *argument) {
    const option *o = find_short(p->command, argument[1]);
    if (o == NULL) return unknown_option(p, argument);
    return take_option(p, o, argument, argument[2] != '\0' ? argument + 2 : NULL);
}

static bool take_operand(parser *p, const char *argument) {
    const size_t named = p->operand_count;
    if (!p->command->takes_more_operands &&
        (named == OPERAND_CAPACITY || p->command->operands[named] == NULL)) {
        wrong_usage(p->command->name, NULL, "one operand too many: '%s'", argument);
        return false;
    }
    if (argument[0] == '\0') {
        const bool has_name = named < OPERAND_CAPACITY && p->command->operands[named] != NULL;
        wrong_usage(p->command->name, NULL, "%s is empty",
                    has_name ? p->command->operands[named] : "an operand");
        return false;
    }
    p->operands[p->operand_count++] = argument;
    return true;
}

static bool take_arguments(parser *p) {
    bool options_ended = false;
    while (p->at < p->argc) {
        const char *argument = p->argv[p->at++];
        bool taken = true;
        if (options_ended || argument[0] != '-' || argument[1] == '\0')
            taken = take_operand(p, argument); // "-" alone is standard input
        else if (strcmp(argument, "--") == 0)
            options_ended = true;
        else
            taken = argument[1] == '-' ? take_long(p, argument) : take_short(p, argument);
        if (!taken) return false;
    }
    return true;
}

static bool operand_is_missing(const parser *p) {
    if (p->operand_count >= p->command->least_operands) return false;
    wrong_usage(p->command->name, NULL, "%s is missing", p->command->operands[p->operand_count]);
    return true;
}

static void report_missing(const command *c, const option *o) {
    char spelled[SPELLING_SIZE], other[SPELLING_SIZE];
    (void)spell_option(o, spelled);
    for (const option *x = c->options; x->name != NULL; x++)
        if (options_exclude(c, o, x)) {
            wrong_usage(c->name, NULL, "%s %s is missing, or %s", spelled, o->value,
                        spell_option(x, other));
            return;
        }
    wrong_usage(c->name, NULL, "%s %s is missing", spelled, o->value);
}

static bool option_is_missing(const parser *p) {
    const command *c = p->command;
    for (const option *o = c->options; o->name != NULL; o++) {
        if (!o->is_required || p->is_given[o - c->options] || is_excused(c, o, p->is_given))
            continue;
        report_missing(c, o);
        return true;
    }
    return false;
}

bool parse_arguments(const command *self, int argc, char **argv, void *options,
                     const char **operands) {
    parser p = {
        .command = self, .argc = argc, .argv = argv, .options = options, .operands = operands};
    for (size_t i = 0; i < OPERAND_CAPACITY; i++) operands[i] = NULL;
    store_defaults(&p);
    return take_arguments(&p) && check_rules(self, options, p.is_given) &&
           !operand_is_missing(&p) && !option_is_missing(&p) &&
           check_files(self, options, operands, p.operand_count);
}
