// SPDX-License-Identifier: Apache-2.0
// Wraps text into lines of a given width.
#include "support/wrap.h"

#include <string.h>

static void put_word(wrapper *w, bool begins_line) {
    if (w->put != NULL)
        w->put(w->stream, w->word, begins_line);
    else
        (void)fputs(w->word, w->stream);
}

static void begin_line(wrapper *w) {
    (void)fprintf(w->stream, "\n%*s", (int)w->indent, "");
    w->column = w->indent;
}

void wrap_gap(wrapper *w) {
    if (w->length == 0) return;
    const bool has_words = w->column > w->indent;
    const bool is_full = has_words && w->width != 0 && w->column + 1 + w->length > w->width;
    if (is_full)
        begin_line(w);
    else if (has_words) {
        (void)fputc(' ', w->stream);
        w->column++;
    }
    w->word[w->length] = '\0';
    put_word(w, w->column == w->indent);
    w->column += w->length;
    w->length = 0;
}

static void add_char(wrapper *w, char c) {
    if (w->length + 1 == sizeof w->word) wrap_gap(w);
    w->word[w->length++] = c;
}

void wrap_add(wrapper *w, const char *chars) {
    for (; *chars != '\0'; chars++) add_char(w, *chars);
}

void wrap_text(wrapper *w, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (text[i] == ' ' || text[i] == '\n')
            wrap_gap(w);
        else
            add_char(w, text[i]);
}

void wrap_end(wrapper *w) {
    wrap_gap(w);
    (void)fputc('\n', w->stream);
    w->column = 0;
}
