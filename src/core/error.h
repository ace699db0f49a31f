// SPDX-License-Identifier: Apache-2.0
// How functions of the library report failure.
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

/// Records `status` with one sentence and returns it. err may be NULL. A failure that was recorded
/// earlier and not cleared is overwritten: the caller that fails anew knows better.
tare_status tare__fail(tare_error *err, tare_status status, const char *format, ...)
    TARE_PRINTF(3, 4);
/// TARE_OUT_OF_MEMORY with the standard sentence.
tare_status tare__out_of_memory(tare_error *err);

/// Adds a place in front of the ones already there ("model.safetensors" + "node 'conv1'" reads
/// "model.safetensors: node 'conv1'"). Returns its status argument, so that it can end a function.
tare_status tare__at(tare_error *err, tare_status status, const char *format, ...)
    TARE_PRINTF(3, 4);
/// Sets the hint. Returns its status argument.
tare_status tare__hint(tare_error *err, tare_status status, const char *format, ...)
    TARE_PRINTF(3, 4);
/// A hint that names the candidate nearest to `found` by edit distance ("did you mean 'x86'?");
/// none when nothing is near. candidate(user, i) returns NULL past the end.
tare_status tare__suggest(tare_error *err, tare_status status, const char *found,
                          const char *(*candidate)(const void *user, size_t i), const void *user);
/// The nearest of `count` names to `found`, or NULL when none is near.
const char *tare__nearest_name(const char *found,
                               const char *(*candidate)(const void *user, size_t i),
                               const void *user);

/// Copies `from` into `to` (both may be NULL).
void tare__error_copy(tare_error *to, const tare_error *from);

#endif
