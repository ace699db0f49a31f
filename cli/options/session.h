// SPDX-License-Identifier: Apache-2.0
// Options of commands that run a model in sessions: --threads, --affinity, --spin, --float and
// --tune-cache.
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include "options/common.h"
#include "support/json.h"
#include "tare/tare.h"

/// Part of a command's options; initialize with SESSION_DEFAULTS.
typedef struct session_settings {
    int64_t threads, spin_us; // spin_us < 0: not given
    const char *affinity, *float_type, *tune_cache;
} session_settings;

#define SESSION_DEFAULTS                                                                           \
    { .spin_us = -1 }

/// Fills the options of a session. For wrong usage of the command `where` prints an error and
/// returns false.
bool read_session_settings(const char *where, const session_settings *given,
                           tare_session_options *out);
/// Binds this thread to its processor. Threads that are created later would inherit the affinity.
tare_status keep_thread(const session_settings *given, tare_error *err);
/// Prints the given thread settings, except the number of threads.
void print_threads_json(const session_settings *given, json_out *json);
const char *float_type_at(const void *user, size_t index);

// clang-format off
#define SESSION_OPTIONS(type, field)                                                               \
    {.name = "threads", .value = "N", .help = "number of threads",                                 \
     .library_default = "1, or one for each processor of --affinity",                              \
     .kind = OPTION_NUMBER, .most = MOST_THREADS, .offset = offsetof(type, field.threads)},        \
    {.name = "affinity", .value = "0,2-5", .help = "keep each thread on one of these processors",  \
     .details = "Requires as many processors as threads; without --threads, runs one thread for "  \
                "each of them. Linux only.",                                                       \
     .kind = OPTION_TEXT, .offset = offsetof(type, field.affinity)},                               \
    {.name = "spin", .value = "US", .help = "microseconds that an idle thread spins before it "    \
                                            "sleeps",                                              \
     .details = "0: threads never spin. Longer spinning shortens runs on otherwise idle "          \
                "processors, but keeps them busy between runs, too. During a run threads spin "    \
                "for at least 20 microseconds, unless the value is 0. Refused with a single "      \
                "thread, which never waits.",                                                      \
     .library_default = "5", .kind = OPTION_NUMBER, .takes_zero = true, .most = 1000000,           \
     .requires = "threads|affinity", .offset = offsetof(type, field.spin_us)},                     \
    {.name = "float", .value = "TYPE",                                                             \
     .help = "type to which inputs and weights of float layers are rounded",                       \
     .details = "With bf16 convolutions and linear layers in floats may round their inputs and "   \
                "weights to bfloat16 where that is faster; sums and results stay float32. It is "  \
                "refused where the machine (AVX512-BF16) or the build (oneDNN) does not support "  \
                "it.",                                                                             \
     .default_value = "f32", .kind = OPTION_CHOICE, .choice_at = float_type_at,                    \
     .offset = offsetof(type, field.float_type)},                                                  \
    {.name = "tune-cache", .value = "FILE",                                                        \
     .help = "choose kernels by timing them, and keep the times in FILE",                          \
     .details = "Kernels that give the same bits are timed for the shape of each layer on this "   \
                "machine, and the fastest is taken. FILE keeps the times by processor and shape. " \
                "Results do not depend on it.",                                                    \
     .kind = OPTION_FILE, .writes = "", .offset = offsetof(type, field.tune_cache)}
// clang-format on

#endif
