// SPDX-License-Identifier: Apache-2.0
// The options --threads, --affinity and --spin: the threads of a command's sessions.
#ifndef CLI_THREADS_H
#define CLI_THREADS_H

#include "options/command.h"
#include "support/json.h"
#include "tare/tare.h"

typedef struct thread_options {
    int64_t threads;
    const char *affinity, *spin;
} thread_options;

/// Prints what is wrong with the usage of the command `where`, and returns false; else puts the
/// rest into the options of a session.
bool read_thread_options(const char *where, const thread_options *given, tare_session_options *out);
/// Puts this thread where it belongs, once the sessions are there.
tare_status keep_thread(const thread_options *given, tare_error *err);
/// What was asked for beside their number.
void print_threads_json(const thread_options *given, json_out *json);

#define THREAD_OPTIONS(struct_name, field)                                                         \
    {"threads",                                                                                    \
     "N",                                                                                          \
     "threads (default 1, or one for each processor of --affinity)",                               \
     offsetof(struct_name, field.threads),                                                         \
     OPTION_NUMBER,                                                                                \
     0,                                                                                            \
     false},                                                                                       \
        {"affinity",                                                                               \
         "0,2-5",                                                                                  \
         "keep each thread on one of these processors",                                            \
         offsetof(struct_name, field.affinity),                                                    \
         OPTION_TEXT,                                                                              \
         0,                                                                                        \
         false},                                                                                   \
    {                                                                                              \
        "spin", "US", "microseconds that threads look for work before they sleep (default 5)",     \
            offsetof(struct_name, field.spin), OPTION_TEXT, 0, false                               \
    }

#endif
