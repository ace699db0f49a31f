// SPDX-License-Identifier: Apache-2.0
/// Changing the graph of a float model, for a quantizer's transform_for_annotation. Every call
/// leaves a graph that holds together: inputs stand before their readers, nothing is read that is
/// gone. Nodes that are not erased stay where they are in memory.
#ifndef TARE_EDIT_H
#define TARE_EDIT_H

#include "tare/graph.h"
#include "tare/model.h"
#include "tare/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A call to be inserted.
typedef struct tare_new_call {
    uint32_t struct_size;
    tare_node_kind kind; // TARE_NODE_CALL_FUNCTION or TARE_NODE_CALL_METHOD
    const char *target;  // "torch.ops.aten.add.Tensor"; a method's bare name
    /// Its arguments in the form of a model file: {"args": [{"node": "x"}, 2], "kwargs": {"alpha":
    /// 1}}. They may name nodes that stand before it.
    const char *arguments;
    /// The node whose shape, dtype, module and origin it takes over; NULL: unknown.
    const tare_node *like;
} tare_new_call;

/// Inserts a call before `before` (NULL: before the output). *out is lent by the model.
/// TARE_NOT_FOUND for a function that is not known; TARE_MALFORMED_FILE names the place in the
/// arguments.
TARE_API tare_status tare_model_insert_call(tare_model *model, const tare_new_call *call,
                                            const tare_node *before, const tare_node **out,
                                            tare_error *err);
/// Adds a tensor to the model as a buffer and a node that reads it, before `before` (NULL: before
/// the output). The model takes its own reference. *out is lent by the model.
TARE_API tare_status tare_model_insert_tensor(tare_model *model, tare_tensor *tensor,
                                              const tare_node *before, const tare_node **out,
                                              tare_error *err);
/// Replaces all arguments of a call; `arguments` as in tare_new_call.
TARE_API tare_status tare_model_set_arguments(tare_model *model, const tare_node *node,
                                              const char *arguments, tare_error *err);
/// Lets every reader of `node`, but `except` (may be NULL), read `with` instead.
/// TARE_INVALID_ARGUMENT where one of them stands before `with`, or is `with`.
TARE_API tare_status tare_model_replace_uses(tare_model *model, const tare_node *node,
                                             const tare_node *with, const tare_node *except,
                                             tare_error *err);
/// Erases a node that nothing reads. TARE_INVALID_ARGUMENT for others, inputs and the output.
TARE_API tare_status tare_model_erase_node(tare_model *model, const tare_node *node,
                                           tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
