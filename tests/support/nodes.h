// SPDX-License-Identifier: Apache-2.0
// Building graphs in few words. What fails here fails the test.
#ifndef SUPPORT_NODES_H
#define SUPPORT_NODES_H

#include "ir/graph.h"

#define VALUES(...)                                                                                \
    (const value[]){__VA_ARGS__}, sizeof((const value[]){__VA_ARGS__}) / sizeof(value)

graph *new_graph(void);
node *new_placeholder(graph *g, const char *target);
/// A node at the end with positional arguments: new_node(g, NODE_CALL_FUNCTION, "torch.add",
/// VALUES(a, b)).
node *new_node(graph *g, node_op op, const char *target, const value *args, size_t arg_count);
/// A call of a function on nodes alone.
node *new_call(graph *g, const char *target, node *a, node *b);
node *new_output(graph *g, node *returned);
/// The name that the graph gives to a candidate.
const char *name_for(graph *g, const char *candidate);
/// "a b c": the names of all nodes, in order; of all users of n. Static storage, reused by the next
/// call.
const char *node_names(const graph *g);
const char *user_names(const node *n);

#endif
