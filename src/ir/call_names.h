// SPDX-License-Identifier: Apache-2.0
// Names of inputs and outputs. Nested values are named by their path: "both.0" is the first item of
// the value under "both" in a mapping that the model returns. An output outside of mappings is
// "output", or "output.0" if there are several.
#ifndef IR_CALL_NAMES_H
#define IR_CALL_NAMES_H

#include "core/json/json.h"
#include "ir/graph.h"

/// Sets g's names from the trees of arguments and results in `about`, an object with
/// `module_call_graph` and `treespec_namedtuple_fields` as torch.export writes them. Sets no names
/// if there are no trees, or if they do not fit the graph. Errors name the place.
tare_status tare__call_names_read(graph *g, const json_at *about, tare_error *err);
/// Sets g's names to copies of these; an empty list removes the names.
tare_status tare__call_names_set(graph *g, const call_names *inputs, const call_names *outputs,
                                 tare_error *err);

/// The name of an input; lent by the graph.
const char *tare__input_name(const node *placeholder);
/// The names of the tensors that g returns, in order and unique. result: of a run or of shape
/// inference; NULL: derived from the graph, where each node counts as one tensor unless its meta
/// describes others. The names live in `memory`, as does the tree of how they nest.
tare_status tare__output_names(const graph *g, const value *result, arena *memory, call_names *out,
                               tare_error *err);

#endif
