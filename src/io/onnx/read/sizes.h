// SPDX-License-Identifier: Apache-2.0
// Sizes that follow open dimensions of the inputs. While a file with such dimensions is read, a
// size of two values stands in for each (open.h). A constant that is computed from them is *open*:
// it has the numbers for both, and for each element an entry: a plain number, or the node of the
// draft that computes it from the inputs' sizes, as torch.export's programs do. Private to
// io/onnx/read.
#ifndef IO_ONNX_READ_SIZES_H
#define IO_ONNX_READ_SIZES_H

#include "io/onnx/read/state.h"

/// Is t, a constant, open?
bool tare__onnx_is_open(const onnx_import *in, const tare_tensor *t);
/// The same of any constant inside v.
bool tare__onnx_holds_open(const onnx_import *in, const value *v);
/// v where it is not a node; else the node's result for the sizes that stand in, or for the others.
value tare__onnx_known(const onnx_import *in, const value *v, bool other);
/// Element i of t, a constant: a number or a node.
value tare__onnx_entry(const onnx_import *in, const tare_tensor *t, int64_t i);
/// Gives t, a constant, its entries, of the import's memory. Those of numbers alone leave t as
/// plain as it is.
tare_status tare__onnx_set_entries(onnx_call *c, tare_tensor *t, value *entries);
/// A function of numbers ("operator.add"), computed by the graph where one of them is a node, once
/// for equal arguments. What is known without is not computed: x + 0, x - x, max(size, 1).
tare_status tare__onnx_scalar(onnx_call *c, const char *target, const value *args, size_t count,
                              value *out);
/// What a number is at least, as far as that is known: a size is never below 1.
int64_t tare__onnx_least(const onnx_import *in, const value *v);
/// torch.full(sizes, number), of which some are nodes.
tare_status tare__onnx_full(onnx_call *c, const value *sizes, size_t count, tare_dtype dtype,
                            const value *number, value *out);
/// An open constant as a tensor that the graph makes; one without dimensions as a number.
tare_status tare__onnx_open_tensor(onnx_call *c, const tare_tensor *t, value *out);
/// The result of a call on constants of which some are open gets its entries. folded: the result
/// for the sizes that stand in. *done: false where the graph must compute it.
tare_status tare__onnx_fold_open(onnx_call *c, const op_info *op, const onnx_emit *e,
                                 const value *folded, bool *done);
/// Remembers which input dimension v, a node or number, follows, for the error that says which one
/// needs a size.
void tare__onnx_blame(onnx_import *in, const value *v);

#endif
