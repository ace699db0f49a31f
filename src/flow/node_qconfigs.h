// SPDX-License-Identifier: Apache-2.0
// The qconfig that a mapping assigns to each node (spec: torch's _generate_node_name_to_qconfig).
// Private to flow.
#ifndef FLOW_NODE_QCONFIGS_H
#define FLOW_NODE_QCONFIGS_H

#include "model/pass.h"

typedef tare_status (*qconfig_taker)(void *user, const node *n, const qconfig_choice *choice);
/// Calls `take` with the choice for every node in order; it is empty for placeholders, the output
/// and observers.
tare_status tare__choose_qconfigs(pass *base, const tare_qconfig_mapping *mapping,
                                  qconfig_taker take, void *user);

/// Assigns to each fused class in the graph the qconfig of the classes that it fuses, on which they
/// must agree. mapping may be NULL.
tare_status tare__mapping_extend_by_fusion(pass *p, tare_qconfig_mapping *mapping);
/// Assigns to each QAT class the qconfig of its float class.
tare_status tare__mapping_extend_by_qat(const tare_backend_config *backend,
                                        tare_qconfig_mapping *mapping, tare_error *err);

#endif
