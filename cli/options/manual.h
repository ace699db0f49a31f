// SPDX-License-Identifier: Apache-2.0
// The section of a command in man/tare.1, generated from its table of options.
#ifndef CLI_MANUAL_H
#define CLI_MANUAL_H

#include <stdio.h>

#include "options/command.h"

/// Written in the man macros of roff.
void write_manual(const command *c, FILE *stream);

#endif
