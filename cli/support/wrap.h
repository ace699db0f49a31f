// SPDX-License-Identifier: Apache-2.0
// Wraps text into lines of a given width.
#ifndef CLI_WRAP_H
#define CLI_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/// Zero-initialized except for the stream: a single line.
typedef struct wrapper {
    FILE *stream;
    size_t width;  // of a line, unless a word is longer; 0: no limit
    size_t indent; // blanks before the second and later lines
    size_t column; // of the next character
    /// Writes a word; NULL: unchanged.
    void (*put)(FILE *stream, const char *word, bool begins_line);
    size_t length; // of the word that is being collected
    char word[512];
} wrapper;

/// Appends to the current word.
void wrap_add(wrapper *w, const char *chars);
/// Ends the word: the line may be broken here.
void wrap_gap(wrapper *w);
/// Appends words that blanks or line ends separate; the last one is not ended.
void wrap_text(wrapper *w, const char *text, size_t length);
/// Ends the word and the line.
void wrap_end(wrapper *w);

#endif
