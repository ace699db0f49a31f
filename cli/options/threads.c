// SPDX-License-Identifier: Apache-2.0
#include "options/threads.h"

#include <errno.h>
#include <stdlib.h>

#include "support/report.h"

enum { MOST_THREADS = 1024, MOST_SPIN_US = 1000000 };

static bool read_spin(const char *where, const char *text, int32_t *out) {
    char *end = NULL;
    errno = 0;
    const long us = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || us < 0 || us > MOST_SPIN_US) {
        (void)wrong_usage(where, NULL, "--spin: expected 0 to %d microseconds, found '%s'",
                          MOST_SPIN_US, text);
        return false;
    }
    *out = us > 0 ? (int32_t)us : TARE_SPIN_NONE;
    return true;
}

bool read_thread_options(const char *where, const thread_options *given,
                         tare_session_options *out) {
    if (given->threads > MOST_THREADS) {
        (void)wrong_usage(where, NULL, "--threads: at most %d, found %lld", MOST_THREADS,
                          (long long)given->threads);
        return false;
    }
    const bool is_alone = given->threads == 1 || (given->threads == 0 && given->affinity == NULL);
    if (given->spin != NULL && is_alone) {
        (void)wrong_usage(where, NULL, "--spin has no effect without --threads 2 or more");
        return false;
    }
    if (given->spin != NULL && !read_spin(where, given->spin, &out->spin_us)) return false;
    out->thread_count = (int)given->threads;
    out->affinity = given->affinity;
    return true;
}

tare_status keep_thread(const thread_options *given, tare_error *err) {
    return given->affinity != NULL ? tare_thread_keep(given->affinity, err) : TARE_OK;
}

void print_threads_json(const thread_options *given, json_out *json) {
    if (given->affinity != NULL) json_out_string(json, "affinity", given->affinity);
    if (given->spin != NULL)
        json_out_integer(json, "spin_us", (uint64_t)strtol(given->spin, NULL, 10));
}
