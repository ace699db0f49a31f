// SPDX-License-Identifier: Apache-2.0
// Prints errors, progress and text.
#include "support/report.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "options/command.h"
#include "support/terminal.h"
#include "tare/tare.h"

// Prints one line, even if names contain line breaks.
static void print_on_line(const char *text) {
    const char *end = text + strlen(text);
    while (text < end) {
        char escaped[ESCAPE_SIZE];
        size_t length = escape_character(text, (size_t)(end - text), escaped);
        if (*text == '\n' || *text == '\t')
            (void)snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)*text);
        if (length == 0) length = (size_t)(end - text); // cut off within a character
        if (escaped[0] != '\0')
            (void)fputs(escaped, stderr);
        else
            (void)fwrite(text, 1, length, stderr);
        text += length;
    }
}

static void print_error(const char *where, const char *hint, const char *message) {
    end_progress();
    // Output printed before must appear before the error if both go to a terminal.
    (void)fflush(stdout);
    (void)fputs("tare: ", stderr);
    print_on_line(where);
    (void)fputs(": ", stderr);
    print_on_line(message);
    if (hint != NULL && hint[0] != '\0') {
        (void)fputs(" (", stderr);
        print_on_line(hint);
        (void)fputc(')', stderr);
    }
    (void)fputc('\n', stderr);
}

static void print_formatted_error(const char *where, const char *hint, const char *format,
                                  va_list args) {
    char message[1024];
    (void)vsnprintf(message, sizeof message, format, args);
    print_error(where, hint, message);
}

int wrong_usage(const char *where, const char *hint, const char *format, ...) {
    char help[64];
    va_list args;
    va_start(args, format);
    (void)snprintf(help, sizeof help, "see 'tare help %s'", where);
    print_formatted_error(where, hint != NULL ? hint : help, format, args);
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

// The hint for this kind of failure if the library has no better one.
static const char *general_hint(tare_status status) {
    switch (status) {
    case TARE_MALFORMED_FILE:
        return "correct it, or make it again if it is damaged";
    case TARE_IO:
        return "check the path, its permissions and the free space of the device";
    case TARE_OUT_OF_MEMORY:
        return "give it more memory, or lower --batch or --threads";
    case TARE_UNSUPPORTED:
        return "'man tare' says what is supported";
    case TARE_NOT_FOUND:
        return "'tare print' and 'tare explain' list the names of a model";
    case TARE_INTERNAL:
        return "a bug in tare, please report it";
    default:
        return "'man tare' says what is expected";
    }
}

int finish_job(const char *command_name, tare_status status, const tare_error *err) {
    end_progress();
    if (status == TARE_OK) {
        if (fflush(stdout) == 0 && !ferror(stdout)) return EXIT_JOB_DONE;
        (void)fail_here("standard output", general_hint(TARE_IO), "writing failed: %s",
                        strerror(errno));
        return EXIT_JOB_FAILED;
    }
    const tare_status told = tare_error_status(err);
    if (told == TARE_OK || (status == TARE_OUT_OF_MEMORY && told != status)) {
        // Either fail_here printed the error, or the command ran out of memory itself.
        if (status == TARE_OUT_OF_MEMORY)
            print_error(command_name, general_hint(status), "memory is exhausted");
        return EXIT_JOB_FAILED;
    }
    const char *where = tare_error_where(err), *hint = tare_error_hint(err);
    print_error(where[0] != '\0' ? where : command_name,
                hint[0] != '\0' ? hint : general_hint(status), tare_error_message(err));
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

static struct {
    const char *what; // NULL: progress is off
    double begin_s, drawn_s;
    bool is_silent;
} progress;

static double now_s(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void silence_progress(void) {
    progress.is_silent = true;
}

static void format_duration(double seconds, char *out, size_t size) {
    const long long s = seconds < 1e12 ? (long long)(seconds + 0.5) : 1000000000000;
    if (s >= 3600)
        (void)snprintf(out, size, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        (void)snprintf(out, size, "%lld:%02lld", s / 60, s % 60);
}

// A line that fills the last column would wrap and could not be overwritten.
static int usable_columns(void) {
    struct winsize size = {0};
    const bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return (is_known ? size.ws_col : 80) - 1;
}

// Draws as much of "WHAT [####  ] NUMBERS" as fits: the bar shrinks first, then disappears, then
// the numbers are cut.
static void draw_line(const char *what, const char *numbers, double share, int columns) {
    enum { WIDTH = 30, LEAST = 6 };
    const int left = columns - (int)(strlen(what) + strlen(numbers)) - 4;
    const int width = share < 0 || left < LEAST ? 0 : left < WIDTH ? left : WIDTH;
    char line[512];
    if (width > 0) {
        const int filled = share < 1 ? (int)(share * width) : width;
        (void)snprintf(line, sizeof line, "%s [%.*s%*s] %s", what, filled,
                       "##############################", width - filled, "", numbers);
    } else {
        (void)snprintf(line, sizeof line, "%s: %s", what, numbers);
    }
    (void)fprintf(raw_terminal(), "\r%.*s\033[K", columns > 0 ? columns : 0, line);
}

static void draw_progress(const char *what, int64_t done, int64_t total, double rate) {
    char numbers[160], left[32];
    const int digits = rate < 10 ? 1 : 0;
    if (total > 0) {
        format_duration(rate > 0 ? (double)(total - done) / rate : 0, left, sizeof left);
        (void)snprintf(numbers, sizeof numbers, "%lld of %lld, %.*f/s, %s left", (long long)done,
                       (long long)total, digits, rate, left);
    } else {
        (void)snprintf(numbers, sizeof numbers, "%lld samples, %.*f/s", (long long)done, digits,
                       rate);
    }
    draw_line(what, numbers, total > 0 ? (double)done / (double)total : -1, usable_columns());
}

void show_progress(const char *what, int64_t done, int64_t total) {
    if (progress.is_silent || !isatty(STDERR_FILENO)) return;
    const double now = now_s();
    if (progress.what == NULL) {
        progress.begin_s = now;
        progress.drawn_s = 0;
    }
    progress.what = what;
    if (now - progress.drawn_s < 0.1 && done != total) return;
    progress.drawn_s = now;
    const double rate = now > progress.begin_s ? (double)done / (now - progress.begin_s) : 0;
    draw_progress(what, done, total, rate);
}

tare_status progress_callback(void *user, int64_t done, int64_t total, tare_error *err) {
    (void)err;
    show_progress(user, done, total);
    return TARE_OK;
}

void end_progress(void) {
    // Clears the line: only the result stays on the screen.
    if (progress.what != NULL) (void)fprintf(raw_terminal(), "\r\033[K");
    progress.what = NULL;
}
