// SPDX-License-Identifier: Apache-2.0
// Collects differences.
#include "replay/findings.h"

#include <stdarg.h>
#include <stdio.h>

bool findings_any(const findings *f) {
    return f->structure_count + f->value_count > 0;
}

void findings_add(findings *f, finding_kind kind, const char *format, ...) {
    char line[2048];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    for (char *c = line; *c != '\0'; c++)
        if (*c == '\n') *c = ' ';
    // A structural difference is told first, even if values were found to differ before it.
    const bool leads = kind == FINDING_STRUCTURE ? f->structure_count == 0 : !findings_any(f);
    if (leads) {
        tare__text_clear(&f->first);
        tare__text_append(&f->first, line);
    }
    tare__text_printf(&f->detail, "%s\n", line);
    if (kind == FINDING_STRUCTURE)
        f->structure_count++;
    else
        f->value_count++;
}

void findings_add_error(findings *f, finding_kind kind, const char *step, const tare_error *err) {
    const char *where = tare_error_where(err);
    findings_add(f, kind, "%s: %s%s%s", step, where, where[0] != '\0' ? ": " : "",
                 tare_error_message(err));
}

void findings_join(findings *f, const findings *more) {
    if (!findings_any(more)) return;
    const bool leads = more->structure_count > 0 ? f->structure_count == 0 : !findings_any(f);
    if (leads) {
        tare__text_clear(&f->first);
        tare__text_append(&f->first, tare__text_chars(&more->first));
    }
    tare__text_append(&f->detail, tare__text_chars(&more->detail));
    f->structure_count += more->structure_count;
    f->value_count += more->value_count;
}

void findings_release(findings *f) {
    tare__text_release(&f->first);
    tare__text_release(&f->detail);
    *f = (findings){0};
}
