// SPDX-License-Identifier: Apache-2.0
// What a program's file holds beside its graph.
// Private to io/pt2.
#ifndef IO_PT2_ABOUT_H
#define IO_PT2_ABOUT_H

#include "core/json/json.h"
#include "ir/graph.h"

/// Keeps in g->export_json what the writer needs again, as it stands in the file: of `top` the
/// ranges of symbols, verifiers and guards; of `graph_module` the calls of modules, the fields of
/// named tuples and metadata; and, under "kinds", tensors that are not what they seem: by path,
/// "buffer" (one that state dicts leave out), "tensor_constant" or "frozen" (a parameter without
/// gradients).
tare_status tare__pt2_keep_about(graph *g, const json_at *top, tare_error *err);

#endif
