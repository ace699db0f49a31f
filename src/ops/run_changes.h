// SPDX-License-Identifier: Apache-2.0
// Determines whether a run changes the model, as in torch: batch norms in training mode update
// statistics, observers record, and operators write tensors in place.
#ifndef OPS_RUN_CHANGES_H
#define OPS_RUN_CHANGES_H

#include "core/error.h"
#include "ir/module.h"

/// *out: false if no run can change a module of the tree. It may be true although no run does:
/// written tensors are traced through first arguments only.
tare_status tare__run_changes_modules(const module *root, bool *out, tare_error *err);
/// True if a node of the module's graph, or of graphs in its tree, writes a tensor in place, one
/// that is passed to it perhaps.
bool tare__may_write(const module *root);
/// Lists the paths of the model's tensors that nodes of its own graph may overwrite, each once.
/// `paths` needs room for as many as the graph has nodes; the graph owns the strings. Returns the
/// number.
size_t tare__run_written_tensors(const module *root, const char **paths);

#endif
