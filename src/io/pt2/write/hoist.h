// SPDX-License-Identifier: Apache-2.0
// Tensors that graphs of control flow read become arguments of theirs, as programs need them.
// Private to io/pt2/write.
#ifndef IO_PT2_WRITE_HOIST_H
#define IO_PT2_WRITE_HOIST_H

#include "ir/module.h"

/// True if a graph inside, at any depth, reads a tensor.
bool tare__pt2_needs_hoist(const module *root);
/// Changes the graphs of `root`, a copy for the writer.
tare_status tare__pt2_hoist(module *root, tare_error *err);

#endif
