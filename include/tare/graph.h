// SPDX-License-Identifier: Apache-2.0
/// The graph of a model, node by node, for code generators. No function here changes the graph.
/// Nodes, strings and tensors are lent by the model.
#ifndef TARE_GRAPH_H
#define TARE_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tare/model.h"
#include "tare/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// One operation. Its inputs stand before it in execution order.
typedef struct tare_node tare_node;

typedef enum tare_node_kind {
    TARE_NODE_PLACEHOLDER = 0,   // target: the argument's name
    TARE_NODE_GET_ATTR = 1,      // target: the path of a tensor
    TARE_NODE_CALL_MODULE = 2,   // target: the path of a module
    TARE_NODE_CALL_FUNCTION = 3, // target: the function's qualified name ("torch.flatten")
    TARE_NODE_CALL_METHOD = 4,   // target: the method's bare name; argument 0 is self
    TARE_NODE_OUTPUT = 5,        // argument 0 is what the graph returns
} tare_node_kind;

/// The first node in execution order. Lent by the model, like all nodes.
TARE_API const tare_node *tare_model_first_node(const tare_model *model);
/// The last node in execution order: the output.
TARE_API const tare_node *tare_model_last_node(const tare_model *model);
/// The next node in execution order; NULL after the last one.
TARE_API const tare_node *tare_node_next(const tare_node *node);
/// The previous node in execution order; NULL before the first one.
TARE_API const tare_node *tare_node_previous(const tare_node *node);
/// The number of nodes, inputs and the output included.
TARE_API size_t tare_model_node_count(const tare_model *model);
/// The node with this name; NULL if there is none.
TARE_API const tare_node *tare_model_find_node(const tare_model *model, const char *name);

/// The kind of a node: input, read of a tensor, call or output.
TARE_API tare_node_kind tare_node_get_kind(const tare_node *node);
/// The node's name, unique in its graph ("add_2").
TARE_API const char *tare_node_name(const tare_node *node);
/// What the node calls or reads; tare_node_kind says what this is for each kind.
TARE_API const char *tare_node_target(const tare_node *node);
/// The name of the float model's node whose value this node computes; NULL for observers, quantize
/// nodes and others that compute none. See also tare_model_float_node (tare/record.h).
TARE_API const char *tare_node_origin(const tare_node *node);
/// The path of the innermost module that ran when the node was traced; "" at the top level.
TARE_API const char *tare_node_scope_path(const tare_node *node);
/// The class of that module; NULL at the top level.
TARE_API const char *tare_node_scope_type(const tare_node *node);
/// The number of distinct nodes among the arguments.
TARE_API size_t tare_node_input_count(const tare_node *node);
/// The index-th distinct node among the arguments, in the order in which they occur; NULL past the
/// end.
TARE_API const tare_node *tare_node_input(const tare_node *node, size_t index);
/// The number of distinct nodes that read this one.
TARE_API size_t tare_node_user_count(const tare_node *node);
/// The index-th node that reads this one; NULL past the end.
TARE_API const tare_node *tare_node_user(const tare_node *node, size_t index);

/// Does the node call this function, operator or method? target: its exact name
/// ("torch.ops.aten.relu.default", "relu"). False if `node` is NULL.
TARE_API bool tare_node_calls(const tare_node *node, const char *target);
/// Is `input` among the arguments of `node`?
TARE_API bool tare_node_reads(const tare_node *node, const tare_node *input);
/// The only node that reads this one; NULL if none or several do.
TARE_API const tare_node *tare_node_only_user(const tare_node *node);
/// The node's metadata in the file, as JSON: shapes, the modules and functions that the node came
/// from, and entries of other exporters. NULL if there is none. Lent by the model.
/// tare_node_meta_read (tare/pt2e.h) parses it.
TARE_API const char *tare_node_meta_json(const tare_node *node);

/// The module that a call_module node calls, lent by the model; NULL for other nodes.
TARE_API const tare_module *tare_node_module(const tare_model *model, const tare_node *node);
/// The tensor that a get_attr node reads, lent by the model; NULL for other nodes and for packed
/// weights.
TARE_API const tare_tensor *tare_node_tensor(const tare_model *model, const tare_node *node);
/// A tensor by its name in torch's state_dict(), which tare_model_print lists (TARE_PRINT_STATE): a
/// parameter or buffer, shared with the model, or a copy of an observer's statistic. The caller owns
/// *out. TARE_NOT_FOUND for other names, and for what torch lists as one packed object.
TARE_API tare_status tare_model_state_tensor(const tare_model *model, const char *name,
                                             tare_tensor **out, tare_error *err);

typedef enum tare_argument_kind {
    TARE_ARGUMENT_NONE = 0,
    TARE_ARGUMENT_BOOL = 1,
    TARE_ARGUMENT_INT = 2,
    TARE_ARGUMENT_FLOAT = 3,
    TARE_ARGUMENT_TEXT = 4, // a string, device, layout, type or symbol
    TARE_ARGUMENT_DTYPE = 5,
    TARE_ARGUMENT_NODE = 6,
    TARE_ARGUMENT_LIST = 7,   // a list or tuple: count items
    TARE_ARGUMENT_DICT = 8,   // count items: key, value, key, value, ..
    TARE_ARGUMENT_SLICE = 9,  // 3 items: start, stop, step
    TARE_ARGUMENT_OTHER = 10, // a scheme, a tensor, an ellipsis, ..: not described further
} tare_argument_kind;

/// An argument: a constant, a node, or a container of arguments. The comment of a field names the
/// kinds for which it is set.
typedef struct tare_argument {
    uint32_t struct_size;
    tare_argument_kind kind;
    bool boolean;          // BOOL
    int64_t integer;       // INT, and BOOL as 0 or 1
    double real;           // FLOAT, and INT
    const char *text;      // TEXT
    tare_dtype dtype;      // DTYPE
    const tare_node *node; // NODE
    size_t count;          // the number of items of LIST, DICT and SLICE
    const void *items;     // for tare_argument_item
} tare_argument;

/// The number of positional arguments.
TARE_API size_t tare_node_argument_count(const tare_node *node);
/// Reads the index-th positional argument. False past the end; *out then has the kind NONE. What
/// *out points to is lent by the model.
TARE_API bool tare_node_argument(const tare_node *node, size_t index, tare_argument *out);
/// Reads the keyword argument `name`. False if there is none; *out then has the kind NONE.
TARE_API bool tare_node_keyword(const tare_node *node, const char *name, tare_argument *out);
/// The name of the index-th keyword argument, in the order of the call; NULL past the end.
TARE_API const char *tare_node_keyword_name(const tare_node *node, size_t index);
/// Reads an item of a list, tuple, dict or slice. False past the end and for other kinds; *out then
/// has the kind NONE.
TARE_API bool tare_argument_item(const tare_argument *container, size_t index, tare_argument *out);

/// Does the library know the function (TARE_NODE_CALL_FUNCTION: "torch.relu", "operator.add",
/// "torch.ops.aten.relu.default") or the method of tensors (TARE_NODE_CALL_METHOD: "view") of this
/// name? False for other kinds. Graphs may call functions that it does not know; they do not run.
TARE_API bool tare_operator_is_known(tare_node_kind kind, const char *name);

/// Reads a constructor value of a module ("stride", a number or a list). False if there is none;
/// *out then has the kind NONE. Lent by the module.
TARE_API bool tare_module_config(const tare_module *module, const char *key, tare_argument *out);
/// The name of the index-th constructor value, in the order of the file; NULL past the end. Lent by
/// the module.
TARE_API const char *tare_module_config_key(const tare_module *module, size_t index);
/// Reads an integer or a list of integers into out, [count]: a single integer fills all of it, as
/// in torch's stride=2. False if the key is absent, has other values, or has another number of
/// integers; out is then unchanged.
TARE_API bool tare_module_config_ints(const tare_module *module, const char *key, size_t count,
                                      int64_t *out);
/// The name of the index-th parameter or buffer; NULL past the end. Lent by the module.
TARE_API const char *tare_module_tensor_name(const tare_module *module, size_t index);
/// The name of the index-th child; NULL past the end. Lent by the module.
TARE_API const char *tare_module_child_name(const tare_module *module, size_t index);

#ifdef __cplusplus
}
#endif
#endif
