// SPDX-License-Identifier: Apache-2.0
// How library functions report failures.
#ifndef CORE_ERROR_H
#define CORE_ERROR_H

#include <stdarg.h>
#include <stddef.h>

#include "tare/status.h"

#define TARE_TRY(call)                                                                             \
    do {                                                                                           \
        const tare_status tare_try_status = (call);                                                \
        if (tare_try_status != TARE_OK) return tare_try_status;                                    \
    } while (0)

#if defined(__GNUC__) || defined(__clang__)
#define TARE_PRINTF(at, first) __attribute__((format(printf, at, first)))
#else
#define TARE_PRINTF(at, first)
#endif

/// Records `status` with one sentence and returns it. err may be NULL. Overwrites an earlier
/// failure that was not cleared.
tare_status tare__fail(tare_error *err, tare_status status, const char *format, ...)
    TARE_PRINTF(3, 4);
/// TARE_OUT_OF_MEMORY with the standard sentence.
tare_status tare__out_of_memory(tare_error *err);

/// Adds an outer place in front of the current one ("model.safetensors" + "node 'conv1'" reads
/// "model.safetensors: node 'conv1'"). Returns its status argument, so that it can end a function.
tare_status tare__at(tare_error *err, tare_status status, const char *format, ...)
    TARE_PRINTF(3, 4);
/// Sets the hint. Returns its status argument.
tare_status tare__hint(tare_error *err, tare_status status, const char *format, ...)
    TARE_PRINTF(3, 4);
/// Sets a hint with the candidate nearest to `found` by edit distance ("did you mean 'x86'?"), if
/// one is near. candidate(user, i) returns NULL past the end.
tare_status tare__suggest(tare_error *err, tare_status status, const char *found,
                          const char *(*candidate)(const void *user, size_t i), const void *user);

/// Copies `from` into `to` (both may be NULL).
void tare__error_copy(tare_error *to, const tare_error *from);

// The analyser reads one file at a time, and would follow paths on which these functions return
// TARE_OK. The macros show it that they return their status.
#if defined(__clang_analyzer__) && !defined(CORE_ERROR_DEFINITIONS)
// NOLINTBEGIN(readability-identifier-naming)
#define tare__fail(err, status, ...)    ((void)tare__fail(err, status, __VA_ARGS__), (status))
#define tare__out_of_memory(err)        ((void)tare__out_of_memory(err), TARE_OUT_OF_MEMORY)
#define tare__at(err, status, ...)      ((void)tare__at(err, status, __VA_ARGS__), (status))
#define tare__hint(err, status, ...)    ((void)tare__hint(err, status, __VA_ARGS__), (status))
#define tare__suggest(err, status, ...) ((void)tare__suggest(err, status, __VA_ARGS__), (status))
// NOLINTEND(readability-identifier-naming)
#endif

#endif
