// SPDX-License-Identifier: Apache-2.0
// How the outputs of a model nest, as JSON. A number is an output tensor, by its position. A
// container is {"type": "tuple", "items": [..]}; "dict" and named fields have "keys", one per item;
// a named tuple or another class also has its "name". {"value": ..} is a result that is not a
// tensor. Private to ir.
#ifndef IR_OUTPUT_TREE_H
#define IR_OUTPUT_TREE_H

#include "core/json/json.h"
#include "ir/value.h"

/// Each appends to `tree`, and does nothing if that is NULL.
void tare__tree_leaf(text *tree, size_t index);
/// What is not a tensor; null where JSON has no form for it.
void tare__tree_constant(text *tree, const value *v);
/// The start of a list, tuple or dict, and its end.
void tare__tree_open(text *tree, const value *v);
void tare__tree_close(text *tree, const value *v);
/// The same for a container of torch.utils._pytree. context: of the class, may be NULL; keys: an
/// array with one key per item; NULL: it has none.
void tare__tree_open_class(text *tree, const char *type, const char *context);
void tare__tree_close_class(text *tree, const json_t *keys);

/// Where the leaves of a tree stand in another text.
typedef struct tree_leaves {
    const char *chars;
    const size_t *starts, *ends; // [count]: leaf i has the characters from starts[i] to ends[i]
    size_t count;
} tree_leaves;
/// Writes `tree` with leaf i in place of the number i. tree: as the functions above write it.
tare_status tare__tree_fill(const char *tree, const tree_leaves *leaves, text *out,
                            tare_error *err);

#endif
