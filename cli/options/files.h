// SPDX-License-Identifier: Apache-2.0
// Checks the files that a command line names for conflicts, before any work.
#ifndef CLI_FILES_H
#define CLI_FILES_H

#include "options/command.h"

/// Prints an error and returns false if an output is the same file as an input or another output,
/// if an existing output is in an input folder, or if standard input or output is used twice.
/// values: the command's struct of options.
bool check_files(const command *c, const void *values, const char *const *operands,
                 size_t operand_count);

/// Whether there is a file, or anything else, at this path.
bool path_exists(const char *path);

#endif
