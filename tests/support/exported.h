// SPDX-License-Identifier: Apache-2.0
// Exported programs in few words.
#ifndef SUPPORT_EXPORTED_H
#define SUPPORT_EXPORTED_H

#include "model/model.h"
#include "tare/tare.h"

/// A model whose forward is `code`, over `root` (taken; NULL: an empty one). Every node gives a
/// float tensor of shape [1, 4, 4, 4], as far as its meta says.
tare_model *new_exported(module *root, const char *code);
/// The node gives a tensor of that dtype, as its meta says.
void set_dtype(tare_model *model, const char *node, tare_dtype dtype);
/// Sets a node's meta beside its value: source (NULL: none) as [name, function] of
/// source_fn_stack, and the innermost module's path and class.
void set_source(tare_model *model, const char *node, const char *name, const char *function);
void set_module(tare_model *model, const char *node, const char *path, const char *class_name);
/// "conv2d[x: int8, w: int8]; relu -> uint8": every annotated node with the dtypes of its specs;
/// shared ones as "=node" or "=from/node", None as "-". Marks alone are left out. Static storage,
/// good for the next four calls.
const char *annotated(const tare_model *model);

#endif
