// SPDX-License-Identifier: Apache-2.0
// A program's metadata: shapes, the modules that were running, source lines.
// Private to io/pt2.
#ifndef IO_PT2_META_H
#define IO_PT2_META_H

#include "core/json/json.h"
#include "ir/graph.h"

/// Sets n's meta, as graph_json.h has it, and scope. tables: what has `tensor_values` and the
/// tables of symbolic numbers (value NULL: nothing); names: those of n's results, `count` of them;
/// several: a list. metadata: the node's (value NULL: none). A size that is an expression is null.
/// What the file says beyond shape and dtype, of open sizes, strides, gradients, stands in a
/// value's "tensor", and a symbolic number in "symbolic", both as in the file.
tare_status tare__pt2_set_meta(node *n, const json_at *tables, const char *const *names,
                               size_t count, const json_at *metadata, tare_error *err);

#endif
