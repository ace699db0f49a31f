// SPDX-License-Identifier: Apache-2.0
// Failures of items that threads process in parallel: the failure of the first item is reported, as
// in sequential processing.
#ifndef CORE_THREADS_ITEM_FAILURE_H
#define CORE_THREADS_ITEM_FAILURE_H

#include "core/error.h"

/// Of one thread, which processes no item after a failure.
typedef struct item_failure {
    tare_status status; // TARE_OK: no failure
    tare_error *err;
    size_t item;
} item_failure;

/// The failure of the earlier item; either may be NULL. NULL if there is none.
static inline const item_failure *tare__earlier_failure(const item_failure *a,
                                                        const item_failure *b) {
    const bool has_a = a != NULL && a->status != TARE_OK;
    const bool has_b = b != NULL && b->status != TARE_OK;
    if (has_a && has_b) return b->item < a->item ? b : a;
    return has_a ? a : has_b ? b : NULL;
}

/// Its status, with the message in `err`; TARE_OK for NULL.
static inline tare_status tare__tell_failure(const item_failure *failure, tare_error *err) {
    if (failure == NULL) return TARE_OK;
    tare__error_copy(err, failure->err);
    return failure->status;
}

#endif
