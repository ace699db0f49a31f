// SPDX-License-Identifier: Apache-2.0
// The section of a command in man/tare.1.
#include "options/manual.h"

#include <string.h>

#include "options/rules.h"
#include "options/usage.h"

// A control character at the beginning of a line would be interpreted as a request.
static void put_word(FILE *stream, const char *word, bool begins_line) {
    if (begins_line && (*word == '.' || *word == '\'')) (void)fputs("\\&", stream);
    for (; *word != '\0'; word++) {
        if (*word == '\\')
            (void)fputs("\\e", stream);
        else
            (void)fprintf(stream, "%s%c", *word == '-' ? "\\" : "", *word);
    }
}

// Writes the lines of a paragraph.
static void put_text(FILE *stream, const char *text, size_t length) {
    wrapper w = {.stream = stream, .width = 110, .put = put_word};
    wrap_text(&w, text, length);
    wrap_end(&w);
}

static void put_paragraphs(FILE *stream, const char *text) {
    for (const char *next = text; next != NULL; text = next + 2) {
        next = strstr(text, "\n\n");
        (void)fputs(".PP\n", stream);
        put_text(stream, text, next != NULL ? (size_t)(next - text) : strlen(text));
    }
}

static void put_example(FILE *stream, const char *example) {
    (void)fputs(".PP\n.nf\n", stream);
    while (*example != '\0') {
        char line[256];
        const size_t length = strcspn(example, "\n");
        (void)snprintf(line, sizeof line, "%.*s", (int)length, example);
        put_word(stream, line, true);
        (void)fputc('\n', stream);
        example += length + (example[length] == '\n');
    }
    (void)fputs(".fi\n", stream);
}

// Adds a capital letter at the beginning and a full stop.
static void put_sentence(FILE *stream, const char *sentence) {
    char text[256];
    (void)snprintf(text, sizeof text, "%s.", sentence);
    if (text[0] >= 'a' && text[0] <= 'z') text[0] = (char)(text[0] - 'a' + 'A');
    put_text(stream, text, strlen(text));
}

// --- options ---

static void put_values(FILE *stream, const option *o) {
    char names[SPELLINGS_SIZE], text[SPELLINGS_SIZE + 32] = "";
    if (o->kind == OPTION_CHOICE)
        (void)snprintf(text, sizeof text, "One of %s.", spell_names(o->choice_at, NULL, names));
    if (o->most != 0)
        (void)snprintf(text, sizeof text, "From %d to %lld.", o->takes_zero ? 0 : 1,
                       (long long)o->most);
    if (text[0] != '\0') put_text(stream, text, strlen(text));
    if (shown_default(o) == NULL) return;
    (void)snprintf(text, sizeof text, "Default: %s.", shown_default(o));
    put_text(stream, text, strlen(text));
}

// terms "": there are none.
static void put_rule(FILE *stream, const char *word, const char *terms) {
    char text[SPELLINGS_SIZE + 32];
    if (*terms == '\0') return;
    (void)snprintf(text, sizeof text, "%s %s.", word, terms);
    put_text(stream, text, strlen(text));
}

static void put_rules(FILE *stream, const command *c, const option *o) {
    char terms[SPELLINGS_SIZE];
    put_rule(stream, "Only with", spell_terms(c, o->requires, terms));
    put_rule(stream, "Not with", spell_excluded(c, o, terms));
}

static void put_option(FILE *stream, const command *c, const option *o) {
    (void)fputs(".TP\n", stream);
    if (o->letter != 0) (void)fprintf(stream, "\\fB\\-%c\\fR, ", o->letter);
    (void)fputs("\\fB\\-\\-", stream);
    put_word(stream, o->name, false);
    (void)fputs("\\fR", stream);
    if (o->value != NULL) {
        (void)fputs(" \\fI", stream);
        put_word(stream, o->value, false);
        (void)fputs("\\fR", stream);
    }
    (void)fputc('\n', stream);
    put_sentence(stream, o->help);
    if (o->details != NULL) put_text(stream, o->details, strlen(o->details));
    put_values(stream, o);
    put_rules(stream, c, o);
}

// --- the section ---

static void put_action(FILE *stream, const action *a) {
    (void)fprintf(stream, ".TP\n\\fB%s\\fR", a->name);
    if (a->operand != NULL) (void)fprintf(stream, " \\fI%s\\fR", a->operand);
    (void)fputc('\n', stream);
    put_sentence(stream, a->help);
}

static void put_synopsis(FILE *stream, const command *c) {
    wrapper w = {.stream = stream, .width = 110, .put = put_word};
    (void)fprintf(stream, ".PP\n\\fBtare %s\\fR\n", c->name);
    write_synopsis(c, &w);
    wrap_end(&w);
}

void write_manual(const command *c, FILE *stream) {
    (void)fprintf(stream, ".SS tare %s\n", c->name);
    put_sentence(stream, c->summary);
    put_synopsis(stream, c);
    if (c->details != NULL) put_paragraphs(stream, c->details);
    for (const action *a = c->actions; a != NULL && a->name != NULL; a++) put_action(stream, a);
    for (const option *o = c->options; o->name != NULL; o++) put_option(stream, c, o);
    if (c->example != NULL) put_example(stream, c->example);
}
