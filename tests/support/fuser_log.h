// SPDX-License-Identifier: Apache-2.0
// What a fuser of a test saw.
#ifndef SUPPORT_FUSER_LOG_H
#define SUPPORT_FUSER_LOG_H

#include "tare/tare.h"

/// What it saw, and what it shall answer.
typedef struct fuser_log {
    char seen[256];
    bool is_qat, gives_nothing, fails;
} fuser_log;

/// The classes and functions, in order, separated by spaces; "*" for what is neither.
void note(fuser_log *log, const tare_module *const *modules, const char *const *functions,
          size_t count);

#endif
