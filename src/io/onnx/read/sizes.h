// SPDX-License-Identifier: Apache-2.0
// Sizes that depend on open dimensions of the inputs. While a file with such dimensions is read,
// each has two stand-in sizes (open.h). A constant that is computed from them is *open*: it has
// values for both, and for each element an entry, which is a number or the node of the draft that
// computes the element from input sizes, as in programs of torch.export.
// Private to io/onnx.
#ifndef IO_ONNX_READ_SIZES_H
#define IO_ONNX_READ_SIZES_H

#include "io/onnx/read/state.h"

/// True if t, a constant, is open.
bool tare__onnx_is_open(const onnx_import *in, const tare_tensor *t);
/// True if v contains an open constant.
bool tare__onnx_holds_open(const onnx_import *in, const value *v);
/// The result of a node for the first (or other) stand-in sizes; any other value as it is.
value tare__onnx_known(const onnx_import *in, const value *v, bool other);
/// Element i of t, a constant: a number or a node.
value tare__onnx_entry(const onnx_import *in, const tare_tensor *t, int64_t i);
/// Sets the entries of t, a constant; they are in the import's memory. If all are numbers, t stays
/// a plain constant.
tare_status tare__onnx_set_entries(onnx_call *c, tare_tensor *t, value *entries);
/// Calls a function of numbers ("operator.add"). If an argument is a node, the graph computes it,
/// once for equal arguments. Trivial calls are resolved: x + 0, x - x, max(size, 1).
tare_status tare__onnx_scalar(onnx_call *c, const char *target, const value *args, size_t count,
                              value *out);
/// A lower bound of a number: a size is at least 1. INT64_MIN if unknown.
int64_t tare__onnx_least(const onnx_import *in, const value *v);
/// torch.full(sizes, number) with sizes that may be nodes.
tare_status tare__onnx_full(onnx_call *c, const value *sizes, size_t count, tare_dtype dtype,
                            const value *number, value *out);
/// Makes a tensor of an open constant in the graph; of a 0-dimensional one a number.
tare_status tare__onnx_open_tensor(onnx_call *c, const tare_tensor *t, value *out);
/// Computes the entries for the result of a call on open constants. folded: the result for the
/// first stand-in sizes. *done is false if the graph must compute the call.
tare_status tare__onnx_fold_open(onnx_call *c, const op_info *op, const onnx_emit *e,
                                 const value *folded, bool *done);
/// Records the input dimension that v, a node or number, depends on, for the error that says which
/// dimension needs a size.
void tare__onnx_blame(onnx_import *in, const value *v);

#endif
