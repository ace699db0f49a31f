// SPDX-License-Identifier: Apache-2.0
// Metadata of a program's nodes: shapes, module stacks, source lines.
// Private to io/pt2.
#ifndef IO_PT2_META_H
#define IO_PT2_META_H

#include "core/json/json.h"
#include "ir/graph.h"

/// Sets n's meta, in the form of model files (graph_json.h), and its scope. tables: the object with
/// `tensor_values` and the tables of symbolic numbers (value NULL: none). names: the `count` names
/// of n's results; several make "val" a list. metadata: the node's (value NULL: none). A size that
/// is an expression becomes null. If shape and dtype do not describe a tensor completely (dynamic
/// sizes, strides, gradients), "tensor" has its entry of the file; "symbolic" has that of a
/// symbolic number.
tare_status tare__pt2_set_meta(node *n, const json_at *tables, const char *const *names,
                               size_t count, const json_at *metadata, tare_error *err);

#endif
