// SPDX-License-Identifier: Apache-2.0
// What the commands tell.
#include "report.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "tare/tare.h"

static void print_error(const char *where, const char *hint, const char *message) {
    end_progress();
    // What was printed so far comes before the error where both go to one terminal.
    (void)fflush(stdout);
    (void)fprintf(stderr, "tare: %s: %s", where, message);
    if (hint != NULL && hint[0] != '\0') (void)fprintf(stderr, " (%s)", hint);
    (void)fputc('\n', stderr);
}

static void print_formatted_error(const char *where, const char *hint, const char *format,
                                  va_list args) {
    char message[1024];
    (void)vsnprintf(message, sizeof message, format, args);
    print_error(where, hint, message);
}

int wrong_usage(const char *where, const char *hint, const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_formatted_error(where, hint, format, args);
    va_end(args);
    return EXIT_WRONG_USAGE;
}

tare_status fail_here(const char *where, const char *hint, const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_formatted_error(where, hint, format, args);
    va_end(args);
    return TARE_INVALID_ARGUMENT;
}

int finish_job(const char *command_name, tare_status status, const tare_error *err) {
    end_progress();
    if (status == TARE_OK) {
        if (fflush(stdout) == 0 && !ferror(stdout)) return EXIT_JOB_DONE;
        (void)fail_here("standard output", NULL, "writing failed: %s", strerror(errno));
        return EXIT_JOB_FAILED;
    }
    if (err == NULL || tare_error_status(err) == TARE_OK) {
        // Either fail_here spoke, or memory is so short that there is no error to fill in.
        if (status == TARE_OUT_OF_MEMORY) print_error(command_name, NULL, "memory is exhausted");
        return EXIT_JOB_FAILED;
    }
    const char *where = tare_error_where(err);
    print_error(where[0] != '\0' ? where : command_name, tare_error_hint(err),
                tare_error_message(err));
    return EXIT_JOB_FAILED;
}

const char *suggest(const char *found, const char *(*name_at)(const void *user, size_t index),
                    const void *user) {
    static char hint[128];
    const char *nearest = tare_nearest_name(found, name_at, user);
    if (nearest == NULL) return NULL;
    (void)snprintf(hint, sizeof hint, "did you mean '%s'?", nearest);
    return hint;
}

bool write_to_stream(void *stream, const char *chars, size_t length) {
    return fwrite(chars, 1, length, stream) == length;
}

// --- progress ---

static bool progress_is_shown;

void show_progress(const char *what, int64_t done, int64_t total) {
    enum { WIDTH = 30 };
    if (!isatty(STDERR_FILENO)) return;
    progress_is_shown = true;
    if (total <= 0) {
        (void)fprintf(stderr, "\r%s: %lld samples", what, (long long)done);
        return;
    }
    const int filled = (int)(done * WIDTH / total);
    (void)fprintf(stderr, "\r%s [%.*s%*s] %lld of %lld", what, filled,
                  "##############################", WIDTH - filled, "", (long long)done,
                  (long long)total);
}

void end_progress(void) {
    // The line is cleared: what stays on the screen is the result.
    if (progress_is_shown) (void)fprintf(stderr, "\r\033[K");
    progress_is_shown = false;
}
