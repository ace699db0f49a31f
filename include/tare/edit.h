// SPDX-License-Identifier: Apache-2.0
/// Editing the graph of a float model, for a quantizer's transform_for_annotation. Every call keeps
/// the graph valid: nodes stand before the nodes that read them, and every node that is read
/// exists. Pointers to nodes that are not erased stay valid.
#ifndef TARE_EDIT_H
#define TARE_EDIT_H

#include "tare/graph.h"
#include "tare/model.h"
#include "tare/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A call to insert. Strings are lent for the call.
typedef struct tare_new_call {
    uint32_t struct_size;
    tare_node_kind kind; // TARE_NODE_CALL_FUNCTION or TARE_NODE_CALL_METHOD
    const char *target;  // "torch.ops.aten.add.Tensor"; a method's bare name
    /// The arguments in the JSON form of a model file: {"args": [{"node": "x"}, 2], "kwargs":
    /// {"alpha": 1}}. They may name nodes that stand before the new one.
    const char *arguments;
    /// The node from which the new one copies shape, dtype, module and origin; NULL: they stay
    /// unknown.
    const tare_node *like;
} tare_new_call;

/// Inserts a call before `before` (NULL: before the output). *out is lent by the model.
/// TARE_NOT_FOUND for an unknown function; TARE_MALFORMED_FILE, with the JSON path, for wrong
/// arguments.
TARE_API tare_status tare_model_insert_call(tare_model *model, const tare_new_call *call,
                                            const tare_node *before, const tare_node **out,
                                            tare_error *err);
/// Adds a tensor to the model as a buffer, and a node that reads it before `before` (NULL: before
/// the output). The model takes its own reference of the tensor. *out is lent by the model.
TARE_API tare_status tare_model_insert_tensor(tare_model *model, tare_tensor *tensor,
                                              const tare_node *before, const tare_node **out,
                                              tare_error *err);
/// Replaces all arguments of a call; `arguments` as in tare_new_call.
TARE_API tare_status tare_model_set_arguments(tare_model *model, const tare_node *node,
                                              const char *arguments, tare_error *err);
/// Makes every reader of `node`, except `except` (may be NULL), read `with` instead.
/// TARE_INVALID_ARGUMENT if a reader stands before `with` or is `with`.
TARE_API tare_status tare_model_replace_uses(tare_model *model, const tare_node *node,
                                             const tare_node *with, const tare_node *except,
                                             tare_error *err);
/// Erases a node that no other node reads. TARE_INVALID_ARGUMENT if one reads it, and for inputs
/// and the output.
TARE_API tare_status tare_model_erase_node(tare_model *model, const tare_node *node,
                                           tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
