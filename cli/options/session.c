// SPDX-License-Identifier: Apache-2.0
// Options of commands that run a model in sessions.
#include "options/session.h"

#include <string.h>

#include "support/report.h"

const char *float_type_at(const void *user, size_t index) {
    static const char *const names[] = {"f32", "bf16", NULL};
    (void)user;
    return names[index];
}

bool read_session_settings(const char *where, const session_settings *given,
                           tare_session_options *out) {
    const bool has_spin = given->spin_us >= 0;
    if (has_spin && given->threads == 1) {
        (void)wrong_usage(where, NULL, "--spin has no effect without --threads 2 or more");
        return false;
    }
    if (given->tune_cache != NULL && strcmp(given->tune_cache, "-") == 0) {
        (void)wrong_usage(where, NULL, "--tune-cache needs a FILE that is kept");
        return false;
    }
    if (has_spin) out->spin_us = given->spin_us > 0 ? (int32_t)given->spin_us : TARE_SPIN_NONE;
    out->thread_count = (int)given->threads;
    out->affinity = given->affinity;
    out->bfloat16 = strcmp(given->float_type, "bf16") == 0;
    out->tune_cache = given->tune_cache;
    return true;
}

tare_status keep_thread(const session_settings *given, tare_error *err) {
    return given->affinity != NULL ? tare_thread_keep(given->affinity, err) : TARE_OK;
}

void print_threads_json(const session_settings *given, json_out *json) {
    if (given->affinity != NULL) json_out_string(json, "affinity", given->affinity);
    if (given->spin_us >= 0) json_out_integer(json, "spin_us", (uint64_t)given->spin_us);
}
