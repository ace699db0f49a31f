// SPDX-License-Identifier: Apache-2.0
// Escapes terminal output: names come from files, and a file must not control a terminal.
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdio.h>

/// After this call standard error, and standard output if it is a terminal, show as \u001b: control
/// characters of ASCII except tabs and line ends, those from U+0080 to U+009F, characters that
/// change the direction of text, and bytes that are not UTF-8. The notation is JSON's. Files and
/// pipes are not escaped.
void guard_terminals(void);

/// Standard error without escaping, for intended control sequences.
FILE *raw_terminal(void);

/// Reads the character at `at`, where `size` bytes are available. out: the text to print instead,
/// "" for the character itself. Returns its bytes; 0: it is incomplete.
#define ESCAPE_SIZE 8
size_t escape_character(const char *at, size_t size, char out[ESCAPE_SIZE]);

#endif
