// SPDX-License-Identifier: Apache-2.0
// The code lines that define an exported program's call: the `def` line, and the line that flattens
// the arguments.
// Private to io/pt2.
#ifndef IO_PT2_SIGNATURE_H
#define IO_PT2_SIGNATURE_H

#include "core/json/json.h"
#include "ir/graph.h"

/// Sets g's two lines, as torch prints them. calls: `module_call_graph`, whose first entry holds
/// the names of forward's arguments and their tree.
tare_status tare__pt2_set_signature(graph *g, const json_at *calls, tare_error *err);

#endif
