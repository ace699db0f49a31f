// SPDX-License-Identifier: Apache-2.0
// Indexing: slices, and tensors of indices.
// Private to ops/families.
#ifndef OPS_FAMILIES_INDEX_H
#define OPS_FAMILIES_INDEX_H

#include "ops/call.h"

/// A slice of a dimension of `size` elements: the elements start, start + step, .., `count` of
/// them. A step beyond the end is cut to it.
tare_status tare__slice_of(op_call *call, const value *slice, int64_t size, int64_t *start,
                           int64_t *step, int64_t *count);
/// True if an index contains a tensor that is no scalar; false for NULL, a missing index.
bool tare__index_has_tensor(const value *index);
/// Shape rule and reference of param[0][param[1]] where that is so.
tare_status tare__index_shape(op_call *call);
tare_status tare__index_reference(op_call *call);

#endif
