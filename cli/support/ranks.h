// SPDX-License-Identifier: Apache-2.0
// The processes that mpirun started for one job, its ranks. A build without MPI knows one only.
#ifndef CLI_RANKS_H
#define CLI_RANKS_H

#include <stdint.h>

#include "tare/status.h"

typedef struct ranks {
    int index, count; // 0 of 1: alone
} ranks;

/// Joins the other ranks. Alone where mpirun did not start this process. A build without MPI that
/// mpirun started several times is refused: all of them would do the same job.
tare_status ranks_begin(ranks *out);
/// Merges the state files of all ranks in pairs, the pairs' again, and so on: after log2(count)
/// rounds rank 0 has all in its file. Every rank calls it with the status of its calibration. The
/// state of a failed rank is not read; then rank 0 fails, too.
tare_status ranks_merge_states(const ranks *r, const char *state, tare_status status,
                               tare_error *err);
/// Leaves the other ranks. No effect if there are none.
void ranks_end(const ranks *r);

#endif
