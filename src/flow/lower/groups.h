// SPDX-License-Identifier: Apache-2.0
// Lowering of linear layers whose weights have group-wise scales, in both modes.
// Private to flow.
#ifndef FLOW_LOWER_GROUPS_H
#define FLOW_LOWER_GROUPS_H

#include "model/pass.h"

/// The reference module inside a called module; NULL if there is none.
const module *tare__reference_of(const module *called);
/// If n calls a reference module with such a weight, replaces it by a tare.GroupedLinear, which
/// also quantizes the rows of its input if n reads quantized rows. No effect on other nodes.
tare_status tare__lower_groups(pass *p, node *n);

#endif
