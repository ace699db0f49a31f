// SPDX-License-Identifier: Apache-2.0
// The names of inputs and outputs. Nested ones are named by their path: "both.0" is the first item
// under "both" of the mapping that a model returns. An output outside of mappings is "output", or
// "output.0" if there are several.
#ifndef IR_CALL_NAMES_H
#define IR_CALL_NAMES_H

#include "core/json/json.h"
#include "ir/graph.h"

/// Sets g's names from the trees of arguments and results in `about`, an object with
/// `module_call_graph` and `treespec_namedtuple_fields` as torch.export writes them. None are set
/// where it has no trees, or trees of another graph. Errors name the place.
tare_status tare__call_names_read(graph *g, const json_at *about, tare_error *err);
/// Sets g's names to copies of these; a list without items takes the names away.
tare_status tare__call_names_set(graph *g, const call_names *inputs, const call_names *outputs,
                                 tare_error *err);

/// The name of an input. Lent by the graph.
const char *tare__input_name(const node *placeholder);
/// The names of the tensors that g returns, in order, each once. result: of a run or of shape
/// inference; NULL: as far as the graph tells, which counts a node as one tensor unless its meta
/// says otherwise. In `memory`.
tare_status tare__output_names(const graph *g, const value *result, arena *memory, call_names *out,
                               tare_error *err);

#endif
