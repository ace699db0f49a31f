// SPDX-License-Identifier: Apache-2.0
// The ranks of a job: the processes that mpirun started. Without MPI there is one.
#ifndef CLI_RANKS_H
#define CLI_RANKS_H

#include <stdint.h>

#include "tare/status.h"

typedef struct ranks {
    int index, count; // 0 of 1: a single process
} ranks;

/// Joins the other ranks; a process that mpirun did not start is alone. In a build without MPI
/// several processes of mpirun are refused, because all would do the same job.
tare_status ranks_begin(ranks *out);
/// Merges the ranks' state files pairwise: after log2(count) rounds the file of rank 0 has all.
/// Every rank calls it with the status of its calibration. The state of a failed rank is not read,
/// and rank 0 then fails, too.
tare_status ranks_merge_states(const ranks *r, const char *state, tare_status status,
                               tare_error *err);
/// Leaves the other ranks. No effect for a single process.
void ranks_end(const ranks *r);

#endif
