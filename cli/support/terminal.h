// SPDX-License-Identifier: Apache-2.0
// What is shown to people: names come from files, and a file must not steer a terminal.
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdio.h>

/// From here on standard error, and standard output where it is a terminal, show control characters
/// as \u001b: those of ASCII but tabs and ends of lines, those from U+0080 to U+009F, those that
/// turn the direction of text, and bytes that are no UTF-8. The form is JSON's. Files and pipes get
/// what is written.
void guard_terminals(void);

/// Standard error without that, for what steers a terminal on purpose.
FILE *raw_terminal(void);

/// Reads the character at `at`, of which `size` bytes are there. out: the text to show instead, ""
/// for the character itself. Returns its bytes; 0: it is incomplete.
#define ESCAPE_SIZE 8
size_t escape_character(const char *at, size_t size, char out[ESCAPE_SIZE]);

#endif
