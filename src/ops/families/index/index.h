// SPDX-License-Identifier: Apache-2.0
// Indexing by slices and by tensors of indices.
// Private to ops/families.
#ifndef OPS_FAMILIES_INDEX_INDEX_H
#define OPS_FAMILIES_INDEX_INDEX_H

#include "ops/parts.h"

/// Reads a slice of a dimension of `size` elements: `count` elements start, start + step, ... A
/// step beyond the end is reduced to it.
tare_status tare__slice_of(op_call *call, const value *slice, int64_t size, int64_t *start,
                           int64_t *step, int64_t *count);
/// True if an index contains a tensor with dimensions; false for NULL, a missing index.
bool tare__index_has_tensor(const value *index);
/// Shape rule, parts and reference of param[0][param[1]] for such an index.
tare_status tare__index_shape(op_call *call);
tare_status tare__index_parts(op_call *call, call_parts *out);
tare_status tare__index_reference(op_call *call);

#endif
