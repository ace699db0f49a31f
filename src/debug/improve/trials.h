// SPDX-License-Identifier: Apache-2.0
// Results of trials in a file, so that an interrupted ladder can continue.
// Private to debug/improve.
#ifndef DEBUG_IMPROVE_TRIALS_H
#define DEBUG_IMPROVE_TRIALS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "tare/improve.h"

typedef struct trial_outcome {
    char *key; // the step and its change
    double db, ms, seconds;
    int64_t bytes;
    tare_improve_refusal refusal;
    bool is_new; // from this run, not from the file
} trial_outcome;

typedef struct trial_book {
    const char *path; // NULL: no file
    uint64_t identity;
    trial_outcome *items;
    size_t count, capacity;
} trial_book;

/// Reads the file if it exists. TARE_INVALID_ARGUMENT if it belongs to another job.
tare_status tare__trials_read(trial_book *b, tare_error *err);
const trial_outcome *tare__trials_find(const trial_book *b, const char *key); // NULL: not tried
/// Adds a result (the key is copied), or replaces the one of the same key, and rewrites the file.
tare_status tare__trials_add(trial_book *b, const trial_outcome *outcome, tare_error *err);
void tare__trials_release(trial_book *b);

#endif
