// SPDX-License-Identifier: Apache-2.0
// Which qconfig a mapping gives to each node (spec: torch's _generate_node_name_to_qconfig).
// Private to flow.
#ifndef FLOW_NODE_QCONFIGS_H
#define FLOW_NODE_QCONFIGS_H

#include "model/pass.h"

typedef tare_status (*qconfig_taker)(void *user, const node *n, const qconfig_choice *choice);
/// Tells `take` the choice for every node in order; that of placeholders, the output and observers
/// is empty.
tare_status tare__choose_qconfigs(pass *base, const tare_qconfig_mapping *mapping,
                                  qconfig_taker take, void *user);

/// Gives each fused class of the graph the qconfig that the fused classes agree on. NULL is fine.
tare_status tare__mapping_extend_by_fusion(pass *p, tare_qconfig_mapping *mapping);
/// Gives each QAT class the qconfig of its float class.
tare_status tare__mapping_extend_by_qat(const tare_backend_config *backend,
                                        tare_qconfig_mapping *mapping, tare_error *err);

#endif
