// SPDX-License-Identifier: Apache-2.0
// What every unit test includes: cmocka with what it needs in front of it.
#ifndef SUPPORT_TEST_H
#define SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/error.h"
#include "core/memory/alloc.h"
#include "support/faults.h"

#define CHECK_OK(call) assert_int_equal((call), TARE_OK)

/// For a main that cannot test anything in this build: says why; the exit status of a skip.
static inline int skip_tests(const char *why) {
    printf("skipped: %s\n", why);
    return 77;
}

/// Runs `statement` with the 1st, 2nd, 3rd .. allocation failing until none fails any more.
/// `status` is what the statement assigns: OUT_OF_MEMORY whenever an allocation failed; at last OK.
/// `undo` runs after each success.
#define EVERY_ALLOCATION_FAILS(status, statement, undo)                                            \
    SOME_ALLOCATIONS_FAIL(1, status, statement, undo)

/// The same with every `step`-th allocation only, for long jobs that repeat themselves.
#define SOME_ALLOCATIONS_FAIL(step, status, statement, undo)                                       \
    for (long request = 1;; request += (step)) {                                                   \
        tare__alloc_fail_at(request);                                                              \
        statement;                                                                                 \
        const bool was_denied = tare__alloc_failed();                                              \
        tare__alloc_fail_at(0);                                                                    \
        if ((status) == TARE_OK) {                                                                 \
            undo;                                                                                  \
        } else {                                                                                   \
            assert_int_equal((status), TARE_OUT_OF_MEMORY);                                        \
        }                                                                                          \
        if (!was_denied) {                                                                         \
            assert_int_equal((status), TARE_OK);                                                   \
            break;                                                                                 \
        }                                                                                          \
    }

#endif
