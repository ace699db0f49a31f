// SPDX-License-Identifier: Apache-2.0
// Private to runtime/session.
#ifndef RUNTIME_SESSION_THREADS_H
#define RUNTIME_SESSION_THREADS_H

#include "core/threads/threads.h"
#include "tare/session.h"

/// Applies a session's thread options: *out is the pool (NULL for one thread, and for sessions that
/// run references), *thread_count the number of threads including the caller.
tare_status tare__session_start_threads(const tare_session_options *options, int *thread_count,
                                        thread_pool **out, tare_error *err);

#endif
