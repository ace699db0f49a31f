// SPDX-License-Identifier: Apache-2.0
// Runs jobs in processes of their own, several at a time: a job that crashes takes no other along.
#ifndef REPLAY_POOL_H
#define REPLAY_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/// Exit statuses of a job's process; every other one is a crash.
enum { VERDICT_PASS = 0, VERDICT_FAIL = 1, VERDICT_KNOWN = 2 };

typedef struct pool {
    size_t job_count, worker_count;
    /// In a process of its own: writes its answer and returns a verdict.
    int (*work)(void *user, size_t job, FILE *answer);
    /// In order of the jobs. how: NULL, or what ended a process that gave no verdict.
    void (*done)(void *user, size_t job, int verdict, const char *answer, const char *how);
    void *user;
} pool;

bool pool_run(const pool *p); // false when processes cannot be made

#endif
