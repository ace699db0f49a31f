// SPDX-License-Identifier: Apache-2.0
// The memory of a run's results that are alive.
// Private to ops.
#ifndef OPS_LIVE_BYTES_H
#define OPS_LIVE_BYTES_H

#include "ir/graph.h"

/// results: by the ids of `g`'s nodes. A view counts the storage that it keeps alive, once; tensors
/// of the model, of files and of `inputs` do not count.
tare_status tare__live_bytes(const graph *g, const value *results, const value *inputs,
                             size_t input_count, uint64_t *out, tare_error *err);

#endif
