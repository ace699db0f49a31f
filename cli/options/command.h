// SPDX-License-Identifier: Apache-2.0
// A command: its name, its help and its options as rows, its function.
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXIT_JOB_DONE = 0, EXIT_JOB_FAILED = 1, EXIT_WRONG_USAGE = 2 };

typedef enum option_kind {
    OPTION_FLAG,   // bool
    OPTION_TEXT,   // const char *
    OPTION_NUMBER, // int64_t, at least 1
    OPTION_BYTES,  // int64_t, at least 1; with a unit: 512M, 2G
} option_kind;

/// One option of a command. A table of them ends with a row whose name is NULL.
typedef struct option {
    const char *name;  // without "--"
    const char *value; // what help calls its value; NULL for flags
    const char *help;
    size_t offset; // of its field in the command's struct of options
    option_kind kind;
    char letter; // the short form, "-o"; 0: none
    bool is_required;
    const char *(*choice_at)(const void *user, size_t index); // its values' names; NULL: none known
} option;

typedef struct command {
    const char *name, *summary;
    const char *usage;       // what follows the name: "MODEL [--json]"
    const char *operands[4]; // names of the operands, in order; NULL ends
    const char *(*operand_at)(const void *user, size_t index); // names for the first; NULL: files
    size_t least_operands;                                     // the others may be left out
    bool takes_more_operands;                                  // any number, of the last kind
    const option *options;                                     // may be NULL
    const char *notes;                                         // more help, lines; may be NULL
    int (*run)(const struct command *self, int argc, char **argv);
} command;

/// Every command, in the order of help. main.c; a NULL ends it.
extern const command *const commands[];

extern const command print_command, backend_command, qconfig_command, quantizer_command,
    quantize_command, run_command, bench_command, explain_command, compare_command,
    calibrate_command, preprocess_command, export_command, version_command, completion_command,
    help_command;

/// Reads argv[0..argc), what follows the command's name, into the fields of `options` and into
/// `operands` (an array of 4, NULL where one was left out; where there may be any number, of argc +
/// 5). On wrong usage says so and returns
/// false.
bool parse_arguments(const command *self, int argc, char **argv, void *options,
                     const char **operands);

/// Usage, options and notes, to standard output.
void print_help(const command *self);

#endif
