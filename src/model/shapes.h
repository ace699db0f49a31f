// SPDX-License-Identifier: Apache-2.0
// What a graph says of its inputs and outputs, for those who run shapes or name results.
#ifndef MODEL_SHAPES_H
#define MODEL_SHAPES_H

#include "core/memory/arena.h"
#include "io/data/data.h"
#include "ir/graph.h"
#include "tare/shapes.h"

/// A meta tensor of an input; open[d] is the size that stands in for an open one. An unknown dtype
/// counts as float32. The input's ndim must be known. The caller releases *out.
tare_status tare__meta_input(const data_input *input, int64_t open, tare_tensor **out,
                             tare_error *err);

#endif
