// SPDX-License-Identifier: Apache-2.0
// Descriptions of a graph's inputs and outputs, for running shape rules and naming results.
#ifndef MODEL_SHAPES_H
#define MODEL_SHAPES_H

#include "core/memory/arena.h"
#include "io/data/data.h"
#include "ir/graph.h"
#include "tare/model.h"
#include "tare/shapes.h"

/// Creates a meta tensor for an input; `open` is the size for open dimensions. An unknown dtype
/// counts as float32. The input's ndim must be known. The caller releases *out.
tare_status tare__meta_input(const data_input *input, int64_t open, tare_tensor **out,
                             tare_error *err);

/// Checks the dtypes of `made`, a pass's result: if the shape rules accept `source` with the inputs
/// that its file describes, they must accept `made`. That is, every operator supports its dtypes,
/// and integer and bool outputs are unchanged. The error names the node, what it expects, and what
/// it found. Does not check what the file does not describe, or models whose caller quantizes an
/// input.
tare_status tare__verify_dtypes(const tare_model *made, const tare_model *source, tare_error *err);

#endif
