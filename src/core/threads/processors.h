// SPDX-License-Identifier: Apache-2.0
// Sets of processors that threads may run on, by the system's numbers.
#ifndef CORE_THREADS_PROCESSORS_H
#define CORE_THREADS_PROCESSORS_H

#include <pthread.h>
#include <stddef.h>

#include "core/error.h"

/// Reads "0,2-5": numbers and ranges, in their order, none twice. *out is an array of *count >= 1
/// numbers, which the caller frees (tare__free). TARE_INVALID_ARGUMENT for other texts.
tare_status tare__processors_read(const char *chars, int **out, size_t *count, tare_error *err);
/// TARE_INVALID_ARGUMENT if the calling thread may not use one of them: it does not exist, or the
/// process is not allowed to use it. TARE_UNSUPPORTED on systems other than Linux.
tare_status tare__processors_check(const int *processors, size_t count, tare_error *err);
/// Binds a thread to a processor that was checked before.
tare_status tare__thread_keep(pthread_t thread, int processor, tare_error *err);

#endif
