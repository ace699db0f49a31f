// SPDX-License-Identifier: Apache-2.0
// The parts of a program's file that are not in its graph.
// Private to io/pt2.
#ifndef IO_PT2_ABOUT_H
#define IO_PT2_ABOUT_H

#include "core/json/json.h"
#include "ir/graph.h"

/// Stores in g->export_json what the writer needs, unchanged: from `top` the ranges of symbols,
/// verifiers and guards; from `graph_module` the calls of modules, the fields of named tuples and
/// metadata. "kinds" lists special tensors by path: "buffer" (not persistent: state dicts omit it),
/// "tensor_constant", or "frozen" (a parameter with requires_grad=False).
tare_status tare__pt2_keep_about(graph *g, const json_at *top, tare_error *err);

#endif
