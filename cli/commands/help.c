// SPDX-License-Identifier: Apache-2.0
// tare help: describes commands and their options as text, as JSON, or as sections of the manual
// page.
#include "commands/help.h"

#include <string.h>

#include "options/common.h"
#include "options/manual.h"
#include "options/usage.h"
#include "support/json.h"
#include "support/page.h"
#include "support/report.h"

typedef struct help_options {
    bool as_json, as_man;
} help_options;

static const char *command_name_at(const void *user, size_t index) {
    (void)user;
    return commands[index] != NULL ? commands[index]->name : NULL;
}

const command *find_command(const char *name) {
    for (size_t i = 0; commands[i] != NULL; i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

int unknown_command(const char *name) {
    const char *hint = suggest(name, command_name_at, NULL);
    return wrong_usage("command line", hint != NULL ? hint : "see 'tare help'", "no command '%s'",
                       name);
}

void print_overview(FILE *stream) {
    (void)fprintf(stream,
                  "tare: quantizes float neural networks for a given backend, and runs them in "
                  "integers\n\nusage: tare COMMAND ..\n\n");
    for (size_t i = 0; commands[i] != NULL; i++)
        (void)fprintf(stream, "  %-10s  %s\n", commands[i]->name, commands[i]->summary);
    (void)fprintf(stream, "\n'tare help COMMAND' says more about one of them.\n");
}

// --- JSON ---

static void describe_names(json_out *json, const char *key, names_at at) {
    if (at == NULL) return;
    json_out_open(json, key, '[');
    for (size_t i = 0; at(NULL, i) != NULL; i++) json_out_string(json, NULL, at(NULL, i));
    json_out_close(json, ']');
}

// Writes the terms of a list that '|' separates.
static void describe_terms(json_out *json, const char *key, const char *list) {
    if (list == NULL) return;
    json_out_open(json, key, '[');
    while (*list != '\0') {
        char term[64];
        const size_t length = strcspn(list, "|");
        (void)snprintf(term, sizeof term, "%.*s", (int)length, list);
        json_out_string(json, NULL, term);
        list += length + (list[length] == '|');
    }
    json_out_close(json, ']');
}

static const char *kind_name(option_kind kind) {
    switch (kind) {
    case OPTION_FLAG:
        return "flag";
    case OPTION_TEXT:
        return "text";
    case OPTION_FILE:
        return "file";
    case OPTION_FOLDER:
        return "folder";
    case OPTION_CHOICE:
        return "choice";
    case OPTION_NUMBER:
        return "number";
    case OPTION_BYTES:
        return "bytes";
    }
    return "";
}

static void describe_value(json_out *json, const option *o) {
    json_out_string(json, "kind", kind_name(o->kind));
    if (o->value != NULL) json_out_string(json, "value", o->value);
    if (o->kind == OPTION_NUMBER) json_out_integer(json, "least", o->takes_zero ? 0 : 1);
    if (o->most != 0) json_out_integer(json, "most", (uint64_t)o->most);
    if (shown_default(o) != NULL) json_out_string(json, "default", shown_default(o));
    describe_names(json, "choices", o->choice_at);
}

static void describe_option(json_out *json, const option *o) {
    const char letter[] = {o->letter, '\0'};
    json_out_open(json, NULL, '{');
    json_out_string(json, "name", o->name);
    if (o->letter != 0) json_out_string(json, "letter", letter);
    describe_value(json, o);
    json_out_string(json, "help", o->help);
    json_out_bool(json, "required", o->is_required);
    describe_terms(json, "requires", o->requires);
    describe_terms(json, "excludes", o->excludes);
    json_out_close(json, '}');
}

static void describe_action(json_out *json, const action *a) {
    json_out_open(json, NULL, '{');
    json_out_string(json, "name", a->name);
    if (a->operand != NULL) json_out_string(json, "operand", a->operand);
    json_out_string(json, "help", a->help);
    json_out_close(json, '}');
}

static tare_status describe_usage(json_out *json, const command *c) {
    page text;
    TRY(page_open(&text));
    wrapper w = {.stream = text.stream};
    write_synopsis(c, &w);
    wrap_gap(&w);
    const tare_status status = page_close(&text, TARE_OK);
    if (status == TARE_OK) json_out_string(json, "usage", text.chars);
    page_release(&text);
    return status;
}

static tare_status describe_command(json_out *json, const command *c) {
    json_out_open(json, NULL, '{');
    json_out_string(json, "name", c->name);
    json_out_string(json, "summary", c->summary);
    TRY(describe_usage(json, c));
    json_out_open(json, "operands", '[');
    for (size_t i = 0; i < OPERAND_CAPACITY && c->operands[i] != NULL; i++)
        json_out_string(json, NULL, c->operands[i]);
    json_out_close(json, ']');
    if (c->actions != NULL) {
        json_out_open(json, "actions", '[');
        for (const action *a = c->actions; a->name != NULL; a++) describe_action(json, a);
        json_out_close(json, ']');
    }
    json_out_open(json, "options", '[');
    for (const option *o = c->options; o->name != NULL; o++) describe_option(json, o);
    json_out_close(json, ']');
    json_out_close(json, '}');
    return TARE_OK;
}

// --- the command ---

/// only NULL: all commands.
static tare_status print_help_json(const command *only, FILE *stream) {
    json_out json = json_out_begin(stream);
    json_out_open(&json, "commands", '[');
    for (size_t i = 0; commands[i] != NULL; i++)
        if (only == NULL || commands[i] == only) TRY(describe_command(&json, commands[i]));
    json_out_close(&json, ']');
    json_out_end(&json);
    return TARE_OK;
}

static void print_manual(const command *only) {
    for (size_t i = 0; commands[i] != NULL; i++)
        if (only == NULL || commands[i] == only) write_manual(commands[i], stdout);
}

static tare_status print_chosen(const help_options *o, const command *only) {
    if (o->as_json) return print_help_json(only, stdout);
    if (o->as_man)
        print_manual(only);
    else if (only != NULL)
        write_help(only, stdout);
    else
        print_overview(stdout);
    return TARE_OK;
}

static int run(const command *self, int argc, char **argv) {
    help_options o = {0};
    const char *operands[OPERAND_CAPACITY];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    const command *found = operands[0] != NULL ? find_command(operands[0]) : NULL;
    if (operands[0] != NULL && found == NULL) return unknown_command(operands[0]);
    return finish_job(self->name, print_chosen(&o, found), NULL);
}

static const option options[] = {
    {.name = "man",
     .help = "print the manual page's section on commands",
     .kind = OPTION_FLAG,
     .excludes = "json",
     .offset = offsetof(help_options, as_man)},
    JSON_OPTION(help_options, as_json),
    {.name = NULL},
};

const command help_command = {
    .name = "help",
    .summary = "list the commands, or explain one",
    .operands = {"COMMAND"},
    .operand_at = command_name_at,
    .options = options,
    .run = run,
};
