// SPDX-License-Identifier: Apache-2.0
// The synopsis and the help text of a command, generated from its table of options.
#ifndef CLI_USAGE_H
#define CLI_USAGE_H

#include "options/command.h"
#include "support/wrap.h"

/// The operands and options that follow the command's name.
void write_synopsis(const command *c, wrapper *w);
/// The value of an option that is not given; NULL: none.
const char *shown_default(const option *o);
/// Synopsis, actions, options, details and example.
void write_help(const command *c, FILE *stream);

#endif
