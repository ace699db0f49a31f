// SPDX-License-Identifier: Apache-2.0
// The files that a command line names, held against each other before any work.
#ifndef CLI_FILES_H
#define CLI_FILES_H

#include "options/command.h"

/// Prints what is wrong, and returns false, where an output is the same file as an input or as
/// another output, or lies in a folder of inputs and is there already; where two inputs are
/// standard input, or two outputs standard output. values: the command's struct of options.
bool check_files(const command *c, const void *values, const char *const *operands,
                 size_t operand_count);

#endif
