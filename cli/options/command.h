// SPDX-License-Identifier: Apache-2.0
// A command and its options as tables. The parser, the checks, help, the manual page and shell
// completion read these tables.
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tare/status.h"

enum { EXIT_JOB_DONE = 0, EXIT_JOB_FAILED = 1, EXIT_WRONG_USAGE = 2 };
enum { OPERAND_CAPACITY = 4, OPTION_CAPACITY = 64 };

/// Name `index` of a list; NULL at the end.
typedef const char *(*names_at)(const void *user, size_t index);

typedef enum option_kind {
    OPTION_FLAG,   // bool
    OPTION_TEXT,   // const char *
    OPTION_FILE,   // const char *: a file, or a name that may stand for one
    OPTION_FOLDER, // const char *
    OPTION_CHOICE, // const char *: one of the names of choice_at
    OPTION_NUMBER, // int64_t
    OPTION_BYTES,  // int64_t, at least 1; with a unit: 512M, 2G
} option_kind;

/// An option of a command. A table of options ends with a row whose name is NULL.
typedef struct option {
    const char *name;    // without "--"
    const char *value;   // the name of its value in help; NULL for flags
    const char *help;    // a short sentence
    const char *details; // more sentences, for the manual page; may be NULL
    size_t offset;       // of its field in the command's struct of options
    option_kind kind;
    char letter;                 // the short form, "-o"; 0: none
    bool is_required;            // unless an option that excludes it is given
    bool takes_zero;             // OPTION_NUMBER: from 0 up; else from 1 up
    int64_t most;                // OPTION_NUMBER: the largest value; 0: no limit
    names_at choice_at;          // names that its value may have; NULL: any value
    const char *default_value;   // stored if the option is not given; NULL: none
    const char *library_default; // printed as the default, but left to the library
    /// OPTION_FILE and OPTION_FOLDER: what is written there. "": the file itself; else names of
    /// files in the folder, separated by '|'. NULL: it is read.
    const char *writes;
    /// Names of other options, separated by '|'; "stop=lower" is an option with this value.
    const char *requires; // one of them must be given; NULL: nothing is required
    const char *excludes; // none of them may be given; stated at one of the two options
} option;

/// An action of a command, its first operand: "tare backend show NAME".
typedef struct action {
    const char *name;    // NULL ends a table
    const char *operand; // the name of the second operand; NULL: there is none
    const char *help;    // a short sentence
    tare_status (*run)(const char *operand, bool as_json, tare_error *err);
} action;

typedef struct command {
    const char *name, *summary;
    const char *operands[OPERAND_CAPACITY]; // names of the operands, in order; NULL ends
    size_t least_operands;                  // the others are optional
    bool takes_more_operands;               // the last kind may be repeated
    names_at operand_at;                    // names for the first operand; NULL: files
    const action *actions;                  // choices for the first operand; NULL: none
    const option *options;
    const char *details; // paragraphs separated by empty lines; may be NULL
    const char *example; // lines; may be NULL
    int (*run)(const struct command *self, int argc, char **argv);
} command;

/// All commands in the order of help, in main.c; NULL at the end.
extern const command *const commands[];

extern const command print_command, backend_command, qconfig_command, quantizer_command,
    quantize_command, run_command, bench_command, explain_command, compare_command, analyze_command,
    improve_command, calibrate_command, preprocess_command, export_command, report_command,
    version_command, completion_command, help_command;

/// Parses argv[0..argc), the arguments after the command's name, into the fields of `options` and
/// into `operands` (an array of OPERAND_CAPACITY, or of argc + 5 if operands may be repeated; NULL
/// for those not given). For wrong usage prints an error and returns false.
bool parse_arguments(const command *self, int argc, char **argv, void *options,
                     const char **operands);

#endif
