// SPDX-License-Identifier: Apache-2.0
// Lowering of linear layers whose weights have scales of groups, in both modes. Private to flow.
#ifndef FLOW_LOWER_GROUPS_H
#define FLOW_LOWER_GROUPS_H

#include "model/pass.h"

/// The reference module inside a called one; NULL if there is none.
const module *tare__reference_of(const module *called);
/// A reference module with such a weight that n calls becomes a tare.GroupedLinear, which also
/// quantizes the rows of its input where n reads quantized rows. Nothing happens to others.
tare_status tare__lower_groups(pass *p, node *n);

#endif
