// SPDX-License-Identifier: Apache-2.0
// Looks up commands by name.
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

#include "options/command.h"

/// NULL: there is none of this name.
const command *find_command(const char *name);
/// Prints an error and returns EXIT_WRONG_USAGE.
int unknown_command(const char *name);
void print_overview(FILE *stream);

#endif
