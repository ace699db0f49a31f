// SPDX-License-Identifier: Apache-2.0
// Programs that torch.export.save wrote (.pt2).
#ifndef IO_PT2_PT2_H
#define IO_PT2_PT2_H

#include "core/tensor/tensor.h"
#include "ir/module.h"
#include "ops/classes/classes.h"

/// True if the data is a zip archive written by torch.export.save.
bool tare__pt2_is_archive(const unsigned char *data, size_t size);

/// The program in `size` bytes at `data`, which belong to `store`, in the form that torch's
/// `.module()` gives it: a torch.fx.GraphModule whose parameters, buffers and constants are read by
/// get_attr nodes; then the inputs, the call of the guards, the operators. Weights that are stored
/// uncompressed and contiguous are views of `store`. Dynamic sizes are symbols in the meta and
/// calls of sym_size in the graph. memory_limit: see tare__file_budget. Errors name member and JSON
/// path. The caller releases *root.
tare_status tare__pt2_read(storage *store, const unsigned char *data, size_t size,
                           const registry *classes, uint64_t memory_limit, module **root,
                           tare_error *err);

#endif
