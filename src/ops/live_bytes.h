// SPDX-License-Identifier: Apache-2.0
// The memory of the live results of a run.
// Private to ops.
#ifndef OPS_LIVE_BYTES_H
#define OPS_LIVE_BYTES_H

#include "ir/graph.h"

/// results: by node id of `g`. Each storage counts once, including storages that only views keep
/// alive; tensors of the model, of files and of `inputs` do not count.
tare_status tare__live_bytes(const graph *g, const value *results, const value *inputs,
                             size_t input_count, uint64_t *out, tare_error *err);

#endif
