// SPDX-License-Identifier: Apache-2.0
// Arguments by the rows of a command's options, and the help that these rows give.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/command.h"
#include "support/report.h"
#include "tare/tare.h"

enum { OPERAND_CAPACITY = 4 };

typedef struct parser {
    const command *command;
    int argc, at;
    char **argv;
    void *options;
    const char **operands;
    size_t operand_count;
} parser;

static const char *option_name_at(const void *user, size_t index) {
    const option *options = user;
    if (options == NULL || options[index].name == NULL) return NULL;
    return options[index].name;
}

static const option *find_long(const command *c, const char *name, size_t length) {
    for (const option *o = c->options; o != NULL && o->name != NULL; o++)
        if (strlen(o->name) == length && strncmp(o->name, name, length) == 0) return o;
    return NULL;
}

static const option *find_short(const command *c, char letter) {
    for (const option *o = c->options; o != NULL && o->name != NULL; o++)
        if (o->letter == letter) return o;
    return NULL;
}

static bool is_given(const parser *p, const option *o) {
    const void *field = (const char *)p->options + o->offset;
    switch (o->kind) {
    case OPTION_FLAG:
        return *(const bool *)field;
    case OPTION_TEXT:
        return *(const char *const *)field != NULL;
    case OPTION_NUMBER:
    case OPTION_BYTES:
        return *(const int64_t *)field != 0;
    }
    return false;
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

static bool read_number(const parser *p, const option *o, const char *value) {
    char *end = NULL;
    errno = 0;
    const long long number = strtoll(value, &end, 10);
    if (errno != 0 || end == value || *end != '\0' || number < 1) {
        wrong_usage(p->command->name, NULL, "--%s: expected a number from 1 up, found '%s'",
                    o->name, value);
        return false;
    }
    *(int64_t *)(void *)((char *)p->options + o->offset) = number;
    return true;
}

// "4096", "512M": a unit is 1024 times the one before.
static bool read_bytes(const parser *p, const option *o, const char *value) {
    static const char units[] = "KMGT";
    char *end = NULL;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
    bool is_good = errno == 0 && end != value && number >= 1 &&
                   (*end == '\0' || (unit != NULL && end[1] == '\0'));
    const int shift = unit != NULL ? 10 * (int)(unit - units + 1) : 0;
    is_good = is_good && number <= INT64_MAX >> shift;
    if (!is_good) {
        wrong_usage(p->command->name, "K, M, G and T stand for powers of 1024",
                    "--%s: expected a number of bytes such as 512M or 2G, found '%s'", o->name,
                    value);
        return false;
    }
    *(int64_t *)(void *)((char *)p->options + o->offset) = (int64_t)number << shift;
    return true;
}

// Of two values the first would be ignored silently.
static bool is_new(const parser *p, const option *o) {
    if (o->kind == OPTION_FLAG || !is_given(p, o)) return true;
    wrong_usage(p->command->name, NULL, "--%s is given twice", o->name);
    return false;
}

static bool store(const parser *p, const option *o, const char *value) {
    void *field = (char *)p->options + o->offset;
    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return true;
    case OPTION_TEXT:
        *(const char **)field = value;
        return true;
    case OPTION_NUMBER:
        return read_number(p, o, value);
    case OPTION_BYTES:
        return read_bytes(p, o, value);
    }
    return false;
}

/// The option `o`, spelled `argument`; `given` is a value that stood in the same word, or NULL.
static bool take_option(parser *p, const option *o, const char *argument, const char *given) {
    if (o->kind == OPTION_FLAG) {
        if (given == NULL) return store(p, o, NULL);
        wrong_usage(p->command->name, NULL, "--%s takes no value", o->name);
        return false;
    }
    if (given == NULL && p->at < p->argc) given = p->argv[p->at++];
    if (given == NULL || given[0] == '\0') {
        wrong_usage(p->command->name, NULL, "'%s' needs a value: %s", argument, o->value);
        return false;
    }
    return is_new(p, o) && store(p, o, given);
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

static bool nothing_is_missing(const parser *p) {
    char hint[96];
    (void)snprintf(hint, sizeof hint, "see 'tare help %s'", p->command->name);
    if (p->operand_count < p->command->least_operands) {
        wrong_usage(p->command->name, hint, "%s is missing",
                    p->command->operands[p->operand_count]);
        return false;
    }
    for (const option *o = p->command->options; o != NULL && o->name != NULL; o++) {
        if (!o->is_required || is_given(p, o)) continue;
        if (o->letter != 0)
            wrong_usage(p->command->name, hint, "-%c %s is missing", o->letter, o->value);
        else
            wrong_usage(p->command->name, hint, "--%s %s is missing", o->name, o->value);
        return false;
    }
    return true;
}

bool parse_arguments(const command *self, int argc, char **argv, void *options,
                     const char **operands) {
    parser p = {
        .command = self, .argc = argc, .argv = argv, .options = options, .operands = operands};
    for (size_t i = 0; i < OPERAND_CAPACITY; i++) operands[i] = NULL;
    return take_arguments(&p) && nothing_is_missing(&p);
}

static void print_option(const option *o) {
    char spelled[64], letter[8] = "    ";
    if (o->letter != 0) (void)snprintf(letter, sizeof letter, "-%c, ", o->letter);
    (void)snprintf(spelled, sizeof spelled, "%s--%s%s%s", letter, o->name,
                   o->value != NULL ? " " : "", o->value != NULL ? o->value : "");
    printf("  %-30s  %s\n", spelled, o->help);
}

void print_help(const command *self) {
    printf("tare %s: %s\n\nusage: tare %s%s%s\n", self->name, self->summary, self->name,
           self->usage[0] != '\0' ? " " : "", self->usage);
    if (self->options != NULL) printf("\n");
    for (const option *o = self->options; o != NULL && o->name != NULL; o++) print_option(o);
    if (self->notes != NULL) printf("\n%s", self->notes);
}
