// SPDX-License-Identifier: Apache-2.0
// Prints errors, progress and text.
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tare/status.h"

#if defined(__GNUC__) || defined(__clang__)
#define CLI_PRINTF(at, first) __attribute__((format(printf, at, first)))
#else
#define CLI_PRINTF(at, first)
#endif

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const tare_status try_status = (call);                                                     \
        if (try_status != TARE_OK) return try_status;                                              \
    } while (0)

/// Prints "tare: where: what (hint)" to standard error. where: the command; hint NULL: refers to
/// its help. Returns EXIT_WRONG_USAGE.
int wrong_usage(const char *where, const char *hint, const char *format, ...) CLI_PRINTF(3, 4);
/// The same for a failure of the command itself; returns `status` like a library call.
tare_status fail_here(const char *where, const char *hint, const char *format, ...)
    CLI_PRINTF(3, 4);
/// Converts the status of a job to the exit status. Prints the library's error, unless fail_here
/// already printed one.
int finish_job(const char *command_name, tare_status status, const tare_error *err);
/// A hint with the nearest of `names` (NULL at the end) to `found`, in a static buffer; NULL if
/// none is near.
const char *suggest(const char *found, const char *(*name_at)(const void *user, size_t index),
                    const void *user);

/// A tare_writer for a FILE.
bool write_to_stream(void *stream, const char *chars, size_t length);

/// Shows on a terminal how many samples are done, the speed, and the remaining time; no effect
/// elsewhere. total 0: unknown. Drawn at most ten times per second.
void show_progress(const char *what, int64_t done, int64_t total);
/// The same as a tare_progress; user: the activity, a const char *.
tare_status progress_callback(void *user, int64_t done, int64_t total, tare_error *err);
/// Switches progress off: the output is JSON, or must be quiet.
void silence_progress(void);
void end_progress(void);

#endif
