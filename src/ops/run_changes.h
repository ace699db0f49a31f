// SPDX-License-Identifier: Apache-2.0
// Whether a run changes the model, as in torch: batch norms in training mode update statistics,
// observers record, and operators write tensors in place.
#ifndef OPS_RUN_CHANGES_H
#define OPS_RUN_CHANGES_H

#include "core/error.h"
#include "ir/module.h"

/// *out is false where no run can change any module of the tree. It may be true where none does:
/// what an operator writes over is followed through first arguments only.
tare_status tare__run_changes_modules(const module *root, bool *out, tare_error *err);
/// Paths of the tensors of the model that nodes of its own graph may write over, each once: `paths`
/// has room for as many as the graph has nodes; they are lent by the graph. How many is returned.
size_t tare__run_written_tensors(const module *root, const char **paths);

#endif
