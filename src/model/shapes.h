// SPDX-License-Identifier: Apache-2.0
// A graph's description of its inputs and outputs, for code that runs shape rules or names results.
#ifndef MODEL_SHAPES_H
#define MODEL_SHAPES_H

#include "core/memory/arena.h"
#include "io/data/data.h"
#include "ir/graph.h"
#include "tare/model.h"
#include "tare/shapes.h"

/// A meta tensor of an input; open[d] is the stand-in size for open dimension d. An unknown dtype
/// counts as float32. The input's ndim must be known. The caller releases *out.
tare_status tare__meta_input(const data_input *input, int64_t open, tare_tensor **out,
                             tare_error *err);

/// Where the shape rules let `source` pass, on the inputs that its file describes, they let pass
/// `made`, which a pass made of it, too: no node gets a dtype that its operator has no form for,
/// and outputs of integers and bools stay what they are. Else an error that names the node, what it
/// expects and what it found. Whatever the file does not describe is not looked at,
/// nor are models whose caller quantizes an input.
tare_status tare__verify_dtypes(const tare_model *made, const tare_model *source, tare_error *err);

#endif
