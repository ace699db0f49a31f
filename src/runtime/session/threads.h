// SPDX-License-Identifier: Apache-2.0
// Private to runtime/session.
#ifndef RUNTIME_SESSION_THREADS_H
#define RUNTIME_SESSION_THREADS_H

#include "core/threads/threads.h"
#include "tare/session.h"

/// What the options of a session say of threads: *out is its pool (NULL for one thread, and for a
/// session of references), *thread_count how many there are, the caller among them.
tare_status tare__session_start_threads(const tare_session_options *options, int *thread_count,
                                        thread_pool **out, tare_error *err);

#endif
