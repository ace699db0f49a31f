// SPDX-License-Identifier: Apache-2.0
// Failures of items that threads process in parallel: the failure of the first item is reported, as
// if the items had been processed in order.
#ifndef CORE_THREADS_ITEM_FAILURE_H
#define CORE_THREADS_ITEM_FAILURE_H

#include "core/error.h"

/// Of one thread, which takes no item after it has failed.
typedef struct item_failure {
    tare_status status; // TARE_OK: it has not failed
    tare_error *err;
    size_t item;
} item_failure;

/// The earlier one of two, each of which may be NULL; NULL if none is a failure.
static inline const item_failure *tare__earlier_failure(const item_failure *a,
                                                        const item_failure *b) {
    const bool has_a = a != NULL && a->status != TARE_OK;
    const bool has_b = b != NULL && b->status != TARE_OK;
    if (has_a && has_b) return b->item < a->item ? b : a;
    return has_a ? a : has_b ? b : NULL;
}

/// Its status, and what it says in `err`; TARE_OK for NULL.
static inline tare_status tare__tell_failure(const item_failure *failure, tare_error *err) {
    if (failure == NULL) return TARE_OK;
    tare__error_copy(err, failure->err);
    return failure->status;
}

#endif
