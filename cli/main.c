// SPDX-License-Identifier: Apache-2.0
// tare, the command line: finds the command and hands over to it.
#define _XOPEN_SOURCE 700 // SIGPIPE
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "options/command.h"
#include "support/json.h"
#include "support/report.h"
#include "support/terminal.h"
#include "tare/file.h"

// To add a command: a file of its own that ends in its row, the row's name in command.h, and a line
// here.
const command *const commands[] = {
    &print_command,    &backend_command,    &qconfig_command,    &quantizer_command,
    &quantize_command, &run_command,        &bench_command,      &explain_command,
    &compare_command,  &calibrate_command,  &preprocess_command, &export_command,
    &version_command,  &completion_command, &help_command,       NULL,
};

static const char *command_name_at(const void *user, size_t index) {
    (void)user;
    return commands[index] != NULL ? commands[index]->name : NULL;
}

static const command *find_command(const char *name) {
    for (size_t i = 0; commands[i] != NULL; i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

static int unknown_command(const char *name) {
    const char *hint = suggest(name, command_name_at, NULL);
    return wrong_usage("command line", hint != NULL ? hint : "see 'tare help'", "no command '%s'",
                       name);
}

static void print_overview(FILE *stream) {
    (void)fprintf(stream,
                  "tare: quantizes float neural networks for a given backend, and runs them in "
                  "integers\n\nusage: tare COMMAND ..\n\n");
    for (size_t i = 0; commands[i] != NULL; i++)
        (void)fprintf(stream, "  %-10s  %s\n", commands[i]->name, commands[i]->summary);
    (void)fprintf(stream, "\n'tare help COMMAND' says more about one of them.\n");
}

typedef struct help_options {
    bool as_json;
} help_options;

static void describe_option(json_out *json, const option *o) {
    const char letter[] = {o->letter, '\0'};
    json_out_open(json, NULL, '{');
    json_out_string(json, "name", o->name);
    if (o->letter != 0) json_out_string(json, "letter", letter);
    if (o->value != NULL) json_out_string(json, "value", o->value);
    json_out_string(json, "help", o->help);
    json_out_bool(json, "required", o->is_required);
    if (o->choice_at != NULL) {
        json_out_open(json, "choices", '[');
        for (size_t i = 0; o->choice_at(NULL, i) != NULL; i++)
            json_out_string(json, NULL, o->choice_at(NULL, i));
        json_out_close(json, ']');
    }
    json_out_close(json, '}');
}

static void describe_command(json_out *json, const command *c) {
    json_out_open(json, NULL, '{');
    json_out_string(json, "name", c->name);
    json_out_string(json, "summary", c->summary);
    json_out_string(json, "usage", c->usage);
    json_out_open(json, "operands", '[');
    for (size_t i = 0; i < 4 && c->operands[i] != NULL; i++)
        json_out_string(json, NULL, c->operands[i]);
    json_out_close(json, ']');
    json_out_open(json, "options", '[');
    for (const option *o = c->options; o != NULL && o->name != NULL; o++) describe_option(json, o);
    json_out_close(json, ']');
    json_out_close(json, '}');
}

/// only NULL: all commands.
static void print_help_json(const command *only) {
    json_out json = json_out_begin(stdout);
    json_out_open(&json, "commands", '[');
    for (size_t i = 0; commands[i] != NULL; i++)
        if (only == NULL || commands[i] == only) describe_command(&json, commands[i]);
    json_out_close(&json, ']');
    json_out_end(&json);
}

static int run_help(const command *self, int argc, char **argv) {
    help_options o = {0};
    const char *operands[4];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    const command *found = operands[0] != NULL ? find_command(operands[0]) : NULL;
    if (operands[0] != NULL && found == NULL) return unknown_command(operands[0]);
    if (o.as_json)
        print_help_json(found);
    else if (found != NULL)
        print_help(found);
    else
        print_overview(stdout);
    return finish_job(self->name, TARE_OK, NULL);
}

static const option help_option_rows[] = {
    {"json", NULL, "print commands and options as JSON", offsetof(help_options, as_json),
     OPTION_FLAG, 0, false},
    {.name = NULL},
};

const command help_command = {
    .name = "help",
    .summary = "list the commands, or explain one",
    .usage = "[COMMAND] [--json]",
    .operands = {"COMMAND"},
    .operand_at = command_name_at,
    .options = help_option_rows,
    .run = run_help,
};

static bool asks_for_help(int argc, char **argv) {
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    return false;
}

static int run_command_line(int argc, char **argv) {
    const char *name = argv[0];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = help_command.name;
    if (strcmp(name, "--version") == 0) name = version_command.name;
    const command *found = find_command(name);
    if (found == NULL) return unknown_command(name);
    if (!asks_for_help(argc - 1, argv + 1)) return found->run(found, argc - 1, argv + 1);
    print_help(found);
    return finish_job(found->name, TARE_OK, NULL);
}

int main(int argc, char **argv) {
    // A reader that goes away is an error of the job, which says so and leaves nothing half done.
    (void)signal(SIGPIPE, SIG_IGN);
    guard_terminals();
    // A program that cannot have the guard does without.
    (void)tare_file_guard(NULL);
    if (argc >= 2) return run_command_line(argc - 1, argv + 1);
    print_overview(stderr);
    return EXIT_WRONG_USAGE;
}
