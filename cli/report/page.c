// SPDX-License-Identifier: Apache-2.0
// The page: one HTML file with its style, its scripts and its data.
#include <string.h>

#include "report/report.h"
#include "report/template.h"

// --- escaped text ---

static void put_html(const char *text, FILE *stream) {
    for (; *text != '\0'; text++) {
        if (*text == '<')
            (void)fputs("&lt;", stream);
        else if (*text == '&')
            (void)fputs("&amp;", stream);
        else if ((unsigned char)*text >= ' ')
            (void)fputc(*text, stream);
    }
}

// In JSON, "<" occurs only in strings; it is escaped, so that no name can end the HTML element.
// Line breaks occur only between values; they and the indentation are left out.
static void put_json(const char *json, FILE *stream) {
    for (;;) {
        const size_t length = strcspn(json, "<\n");
        (void)fwrite(json, 1, length, stream);
        json += length;
        if (*json == '\0') return;
        if (*json == '<') (void)fputs("\\u003c", stream);
        json++;
        if (json[-1] == '\n') json += strspn(json, " ");
    }
}

// --- the sections ---

static bool ends_with(const char *name, const char *ending) {
    const size_t length = strlen(name), end = strlen(ending);
    return length >= end && strcmp(name + length - end, ending) == 0;
}

static void put_files(const char *ending, FILE *stream) {
    for (size_t i = 0; i < report_page_file_count; i++) {
        const embedded_file *file = &report_page_files[i];
        if (ends_with(file->name, ending)) (void)fwrite(file->data, 1, file->size, stream);
    }
}

static void put_section(const char *mark, size_t length, const char *title, const char *json,
                        FILE *stream) {
    if (length == 5 && memcmp(mark, "TITLE", length) == 0)
        put_html(title, stream);
    else if (length == 5 && memcmp(mark, "STYLE", length) == 0)
        put_files(".css", stream);
    else if (length == 6 && memcmp(mark, "SCRIPT", length) == 0)
        put_files(".js", stream);
    else if (length == 4 && memcmp(mark, "DATA", length) == 0)
        put_json(json, stream);
}

// Placeholders in page.html are written "{{TITLE}}".
void report_write_page(const char *title, const char *json, FILE *stream) {
    const char *at = (const char *)report_page_files[0].data;
    for (;;) {
        const char *mark = strstr(at, "{{");
        const char *end = mark != NULL ? strstr(mark, "}}") : NULL;
        if (end == NULL) break;
        (void)fwrite(at, 1, (size_t)(mark - at), stream);
        put_section(mark + 2, (size_t)(end - mark - 2), title, json, stream);
        at = end + 2;
    }
    (void)fputs(at, stream);
}
