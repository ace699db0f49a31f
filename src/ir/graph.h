// SPDX-License-Identifier: Apache-2.0
// A graph: a list of nodes in execution order, with torch.fx's rules for names and users.
// A graph owns its nodes and everything they point to (one arena); tensors live in modules.
#ifndef IR_GRAPH_H
#define IR_GRAPH_H

#include "core/error.h"
#include "core/memory/arena.h"
#include "core/memory/map.h"
#include "ir/value.h"

typedef enum node_op {
    NODE_PLACEHOLDER,   // target: the argument's name; args[0], if any, its default
    NODE_GET_ATTR,      // target: the path of a tensor, or of packed weights
    NODE_CALL_MODULE,   // target: a module's path
    NODE_CALL_FUNCTION, // target: the function's qualified name, as torch prints it
    NODE_CALL_METHOD,   // target: the method's bare name; args[0] is self
    NODE_OUTPUT,        // args[0] is the result of the graph
} node_op;
const char *tare__node_op_name(node_op op); // "call_module"
bool tare__node_op_from_name(const char *name, node_op *out);

typedef struct keyword {
    const char *name;
    value value;
} keyword;

typedef struct graph graph;

struct node {
    graph *owner;
    node *prev, *next; // NULL at the ends
    node_op op;
    const char *name, *target;
    const char *annotation; // a placeholder's type as printed; NULL if none
    value *args;
    size_t arg_count;
    keyword *kwargs;
    size_t kwarg_count;
    node **inputs; // the distinct nodes in args, then kwargs, in order of their first occurrence
    size_t input_count;
    node **users; // each once, in order of registration
    size_t user_count, user_capacity;
    // The innermost module in which the node was traced; for a call of a leaf module, that module.
    // "" and NULL at top level.
    const char *scope_path, *scope_type;
    const char
        *origin; // the float model's node that this one computes; NULL: none (observers, quantize)
    const char *meta_json; // `meta` as in the file; NULL if none
    // The numeric debugger's number of the value that this node computes; 0: none. Passes move it
    // to the node that computes the value afterwards.
    int64_t debug_handle;
    size_t id; // unique in the graph and never reused, so passes can use it as an index
};

typedef struct call_names {
    const char **items;
    size_t count;
    const char *tree; // of outputs: how they nest (ir/output_tree.h); NULL: not known
} call_names;
/// Copies into `a`; false if out of memory.
bool tare__call_names_copy(arena *a, const call_names *from, call_names *out);

struct graph {
    arena memory;
    node *first, *last;
    size_t node_count, next_id;
    map used_names;  // -> the node of that name, or 1; names are never released, as in torch
    map base_counts; // base name -> last number given
    // Additional lines of exported programs when printed: a `def` line and an unpacking line; NULL
    // for plain code.
    const char *pytree_signature, *pytree_flatten;
    // The rest of an exported program's file, kept for writing it again: a JSON object
    // (io/pt2/about.h); NULL if none.
    const char *export_json;
    // Names from the file from which the graph was read (ir/call_names.h): of inputs, one per
    // placeholder, and of outputs, one per item that the graph returns; empty if the file has none.
    call_names input_names, output_names;
};

tare_status tare__graph_create(graph **out, tare_error *err);
void tare__graph_destroy(graph *g); // NULL is fine
/// A deep copy with equal names, ids, order of users and name tables («a clone keeps the name
/// table»).
tare_status tare__graph_clone(const graph *g, graph **out, tare_error *err);

/// A name for a new node, by torch.fx's rules (spec: «create_name»), in the graph's arena.
tare_status tare__graph_name(graph *g, const char *candidate, const char **out, tare_error *err);
/// Removes the names of erased nodes from the tables, as copying a graph in torch does.
tare_status tare__graph_refresh_names(graph *g, tare_error *err);
/// The name candidate that torch derives from a target: a function's __name__, or the target in
/// snake case.
tare_status tare__graph_candidate(graph *g, node_op op, const char *target, const char **out,
                                  tare_error *err);

/// A new node before `before` (NULL: at the end). args and kwargs are copied, including strings;
/// users are registered. candidate NULL: derived from the target.
typedef struct node_spec {
    node_op op;
    const char *target, *candidate;
    const value *args;
    size_t arg_count;
    const keyword *kwargs;
    size_t kwarg_count;
    const node *like; // copies annotation, scope, origin and meta from it; may be of another graph;
                      // may be NULL
} node_spec;
tare_status tare__graph_insert(graph *g, const node_spec *spec, node *before, node **out,
                               tare_error *err);
/// Copies a node of another graph: its name is the candidate, and `map` translates its arguments.
tare_status tare__graph_copy_node(graph *g, const node *from, node *(*map)(void *user, node *n),
                                  void *user, node **out, tare_error *err);
/// Erases a node. TARE_INTERNAL if it still has users.
tare_status tare__graph_erase(graph *g, node *n, tare_error *err);
void tare__graph_move_before(node *n, node *before); // NULL: to the end
node *tare__graph_find(const graph *g, const char *name);
node *tare__graph_output(const graph *g); // NULL if there is none
/// True if a node calls or reads the module or tensor at `path`, or one inside it.
bool tare__graph_reads_path(const graph *g, const char *path);

/// Replaces the arguments and updates the lists of users (removes old uses first, then appends new
/// ones, as torch does).
tare_status tare__node_set_args(node *n, const value *args, size_t arg_count, const keyword *kwargs,
                                size_t kwarg_count, tare_error *err);
/// Replaces every use of `old` in n's arguments by `with`.
tare_status tare__node_replace_input(node *n, node *old, node *with, tare_error *err);
/// Replaces `old` by `with` in all its users except `except` (may be NULL).
tare_status tare__node_replace_uses(node *old, node *with, const node *except, tare_error *err);
/// Calls visit once for every distinct node in args, then kwargs, in order.
void tare__node_each_input(const node *n, void (*visit)(void *user, node *input), void *user);
/// args[i] as a node; NULL if it is not one or i is past the end.
node *tare__node_arg(const node *n, size_t i);
/// True if n calls a module, a function or a method.
static inline bool tare__node_is_call(const node *n) {
    return n->op == NODE_CALL_MODULE || n->op == NODE_CALL_FUNCTION || n->op == NODE_CALL_METHOD;
}
/// True if n is an input that the caller provides. A placeholder whose argument was fixed when the
/// program was exported is not: its default is its value.
static inline bool tare__node_is_input(const node *n) {
    const bool is_fixed = n->arg_count > 0 && n->meta_json == NULL && n->owner->export_json != NULL;
    return n->op == NODE_PLACEHOLDER && !is_fixed;
}
/// The value under a keyword, or NULL.
const value *tare__node_kwarg(const node *n, const char *name);

/// Erases nodes without users, from the end, except placeholders, the output, and nodes for which
/// is_impure returns true.
tare_status tare__graph_eliminate_dead(graph *g, bool (*is_impure)(const void *user, const node *n),
                                       const void *user, tare_error *err);

/// Checks every invariant: names unique, inputs before uses, user lists exact, one output at the
/// end.
tare_status tare__graph_verify(const graph *g, tare_error *err);

#endif
