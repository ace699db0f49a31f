// SPDX-License-Identifier: Apache-2.0
// Programs as torch.export.save writes them.
#ifndef IO_PT2_WRITE_WRITE_H
#define IO_PT2_WRITE_WRITE_H

#include "ir/module.h"

/// Writes the model of `root` (with a graph of aten and quantized_decomposed operators) as an
/// archive for torch.export.load. Tensors read by get_attr are lifted into inputs.
/// TARE_UNSUPPORTED, naming the node, for what programs cannot contain: calls of modules and
/// methods, quantized tensors, values without a known shape. "-": standard output.
tare_status tare__pt2_write(const char *path, const module *root, tare_error *err);

#endif
