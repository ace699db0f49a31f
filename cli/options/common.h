// SPDX-License-Identifier: Apache-2.0
// Options that several commands share. `type` is the command's struct of option values.
#ifndef CLI_COMMON_H
#define CLI_COMMON_H

#include "options/command.h"

enum { MOST_THREADS = 1024 };

// clang-format off
#define JSON_OPTION(type, field)                                                                   \
    {.name = "json", .help = "print the result as JSON",                                           \
     .kind = OPTION_FLAG, .offset = offsetof(type, field)}

#define QUIET_OPTION(type, field)                                                                  \
    {.name = "quiet", .letter = 'q', .help = "show no progress",                                   \
     .details = "Progress is shown on terminals only, and not with --json.",                       \
     .kind = OPTION_FLAG, .offset = offsetof(type, field)}

#define THREADS_OPTION(type, field)                                                                \
    {.name = "threads", .value = "N", .help = "number of threads", .default_value = "1",           \
     .kind = OPTION_NUMBER, .most = MOST_THREADS, .offset = offsetof(type, field)}

#define MODEL_OUTPUT_OPTION(type, field)                                                           \
    {.name = "output", .letter = 'o', .value = "OUT",                                              \
     .help = "the model to write; '-': standard output",                                           \
     .kind = OPTION_FILE, .writes = "", .is_required = true, .offset = offsetof(type, field)}
// clang-format on

#endif
