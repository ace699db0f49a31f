// SPDX-License-Identifier: Apache-2.0
// What the commands tell: errors, progress, and text on a stream.
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

/// "tare: where: what (hint)" on standard error. where: the command; hint NULL: its help. Returns
/// EXIT_WRONG_USAGE.
int wrong_usage(const char *where, const char *hint, const char *format, ...) CLI_PRINTF(3, 4);
/// The same for a job that failed in the command itself; ends a function as a failing call of the
/// library would.
tare_status fail_here(const char *where, const char *hint, const char *format, ...)
    CLI_PRINTF(3, 4);
/// Turns a job's status into the exit status. Says what the library's error says, unless fail_here
/// spoke already.
int finish_job(const char *command_name, tare_status status, const tare_error *err);
/// A hint that names the nearest of `names` (NULL ends them) to `found`, in a static buffer; NULL
/// when none is near.
const char *suggest(const char *found, const char *(*name_at)(const void *user, size_t index),
                    const void *user);

/// A tare_writer onto a FILE.
bool write_to_stream(void *stream, const char *chars, size_t length);

/// Says on a terminal how many samples are through, how fast, and how long it will take; elsewhere
/// nothing. total 0: unknown. Drawn ten times a second at most.
void show_progress(const char *what, int64_t done, int64_t total);
/// The same as a tare_progress; user: what is being done, a const char *.
tare_status progress_callback(void *user, int64_t done, int64_t total, tare_error *err);
/// From here on nothing is shown: the command prints JSON for a program, or shall be quiet.
void silence_progress(void);
void end_progress(void);

#endif
