// SPDX-License-Identifier: Apache-2.0
// The threads of a session: their number, their CPU affinity, and how long they spin.
#include "runtime/session/threads.h"

#include <pthread.h>

#include "core/memory/alloc.h"
#include "core/threads/processors.h"

enum { MOST_THREADS = 1024, MOST_SPIN_US = 1000000 };

static tare_status read_processors(const char *affinity, int **out, size_t *count,
                                   tare_error *err) {
    int *processors = NULL;
    TARE_TRY(tare__processors_read(affinity, &processors, count, err));
    const tare_status status = tare__processors_check(processors, *count, err);
    if (status == TARE_OK)
        *out = processors;
    else
        tare__free(processors);
    return status;
}

static tare_status place_threads(const tare_session_options *o, thread_settings *s,
                                 int **processors, tare_error *err) {
    size_t count = 0;
    if (o->affinity == NULL) return TARE_OK;
    TARE_TRY(read_processors(o->affinity, processors, &count, err));
    if (s->thread_count == 0) s->thread_count = (int)count;
    s->processors = *processors;
    if (s->thread_count < 0 || count == (size_t)s->thread_count) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "affinity '%s': expected a processor for each of %d threads, found %zu",
                      o->affinity, s->thread_count, count);
}

static tare_status choose_waiting(int32_t spin_us, thread_settings *s, tare_error *err) {
    if (spin_us < TARE_SPIN_NONE || spin_us > MOST_SPIN_US)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "spin_us: expected TARE_SPIN_NONE or 0 to %d, found %d", MOST_SPIN_US,
                          (int)spin_us);
    s->spin_us = USUAL_SPIN_US;
    if (spin_us != 0) s->spin_us = spin_us == TARE_SPIN_NONE ? 0 : (uint32_t)spin_us;
    return TARE_OK;
}

static tare_status start(const tare_session_options *o, int **processors, int *thread_count,
                         thread_pool **out, tare_error *err) {
    thread_settings s = {.thread_count = o->thread_count};
    TARE_TRY(choose_waiting(o->spin_us, &s, err));
    TARE_TRY(place_threads(o, &s, processors, err));
    if (s.thread_count < 0 || s.thread_count > MOST_THREADS)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected 0 to %d threads, found %d",
                          MOST_THREADS, s.thread_count);
    if (s.thread_count == 0) s.thread_count = 1;
    if (s.thread_count == 1 && o->spin_us != 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "spin_us has no effect with one thread");
    *thread_count = s.thread_count;
    return o->reference ? TARE_OK : tare__thread_pool_create_with(&s, out, err);
}

tare_status tare__session_start_threads(const tare_session_options *options, int *thread_count,
                                        thread_pool **out, tare_error *err) {
    int *processors = NULL;
    if (options->reference && (options->affinity != NULL || options->spin_us != 0))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "a session of references has no threads of its own (affinity, spin_us)");
    const tare_status status = start(options, &processors, thread_count, out, err);
    tare__free(processors);
    return status;
}

tare_status tare_thread_keep(const char *affinity, tare_error *err) {
    int *processors = NULL;
    size_t count = 0;
    if (affinity == NULL) return tare__fail(err, TARE_INVALID_ARGUMENT, "no processors are named");
    TARE_TRY(read_processors(affinity, &processors, &count, err));
    const tare_status status = tare__thread_keep(pthread_self(), processors[0], err);
    tare__free(processors);
    return status;
}
