// SPDX-License-Identifier: Apache-2.0
// A graph as the `nodes` and `codegen` of a JSON object.
// Private to io/native.
#ifndef IO_NATIVE_GRAPH_JSON_H
#define IO_NATIVE_GRAPH_JSON_H

#include "core/json/json.h"
#include "ir/module.h"

/// The graph described by `object`, verified. `owner` is the module that the graph will belong to;
/// targets of call_module and get_attr must exist in it. Function names may be any synonym; the
/// graph stores the canonical one. The caller destroys *out.
tare_status tare__graph_from_json(const json_at *object, module *owner, graph **out,
                                  tare_error *err);
/// Appends `"nodes": [..], "codegen": ..` (without braces).
tare_status tare__graph_to_json(const graph *g, text *out, tare_error *err);

#endif
