// SPDX-License-Identifier: Apache-2.0
// Nodes that compute numbers instead of tensors: sizes and arithmetic on them.
#ifndef OPS_NUMBERS_H
#define OPS_NUMBERS_H

#include "core/error.h"
#include "ir/graph.h"

/// out, by node id and zeroed by the caller: true for nodes whose results are sizes, other
/// properties of tensors, or numbers computed from such.
void tare__find_number_nodes(const graph *g, bool *out);

#endif
