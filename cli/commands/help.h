// SPDX-License-Identifier: Apache-2.0
// The list of commands, and finding one of them.
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

#include "options/command.h"

/// NULL: there is none of this name.
const command *find_command(const char *name);
/// Says so, and returns EXIT_WRONG_USAGE.
int unknown_command(const char *name);
void print_overview(FILE *stream);

#endif
