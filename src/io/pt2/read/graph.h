// SPDX-License-Identifier: Apache-2.0
// Shared code for reading a program's graphs: the reader's state, and the creation of nodes.
// Private to io/pt2/read.
#ifndef IO_PT2_READ_GRAPH_H
#define IO_PT2_READ_GRAPH_H

#include "core/json/json.h"
#include "core/tensor/map.h"
#include "io/pt2/read/archive.h"
#include "ir/graph.h"
#include "ir/module.h"
#include "ops/classes/classes.h"

/// The reader of one graph. Graphs of branches and contexts have their own readers.
typedef struct pt2_reader {
    pt2_archive *archive;
    const registry *classes;
    const char *model;      // the name of the program in the archive
    map weights, constants; // tensors by name; references owned
    json_at graph, signature, tensors;
    module *root;
    graph *g;
    map values;  // name of a value -> node * that computes it, lent
    map targets; // get_attr nodes by target, lent
    map taken;   // names of the program's own nodes
    // For a graph that is inlined: names that its nodes cannot have, and new names of the nodes
    // that compute its results.
    const map *reserved;
    map renamed;        // lent
    bool is_in_context; // while the arguments of an autocast call are read that is not inlined
    bool keeps_graphs;  // nothing is inlined: the graph is inside an autocast with an effect
    arena scratch;
    tare_error *err;
} pt2_reader;

/// An empty root of the class GraphModule with an empty graph.
tare_status tare__pt2_make_root(pt2_reader *r);
/// Frees the reader's maps and scratch memory, but not root and archive.
void tare__pt2_release_graph(pt2_reader *r);

// --- names (graph.c) ---

/// Registers node n as the one that computes the value `name`. Fails if there is one already.
tare_status tare__pt2_keep_value(pt2_reader *r, const json_at *at, const char *name, node *n);
/// Collects the names of nodes and of their items, which get_attr nodes of tensors must not take.
tare_status tare__pt2_note_names(pt2_reader *r, const json_at *nodes);
/// The name itself, or the name with a number if it is taken. In the scratch arena.
tare_status tare__pt2_free_name(pt2_reader *r, const char *name, const char **out);
/// Appends a node. Fails if it cannot have the candidate's name, unless the graph is inlined.
tare_status tare__pt2_insert(pt2_reader *r, const json_at *at, const node_spec *spec, node **out);

// --- nodes (graph.c) ---

typedef struct pt2_results {
    const char **names;
    size_t count;
    bool are_items; // the results are items of a tuple or list, each read by a getitem node
} pt2_results;
/// Names in the scratch arena.
tare_status tare__pt2_read_results(pt2_reader *r, const json_at *outputs, pt2_results *out);
/// Appends the calls of a list of nodes; frees the scratch arena after each.
tare_status tare__pt2_read_nodes(pt2_reader *r, const json_at *nodes);

// --- inputs and outputs (lifted.c) ---

/// A placeholder for {"as_tensor": {"name": ..}} and the like.
tare_status tare__pt2_add_named_input(pt2_reader *r, const json_at *arg);
/// Reads the program's own graph with its signature's inputs and outputs.
tare_status tare__pt2_read_signed_graph(pt2_reader *r);

// --- graphs as arguments (nested.c) ---

/// Reads the graph of a branch or a body into a module of r->root; *out: the node that reads it.
/// user: a pt2_reader.
tare_status tare__pt2_add_subgraph(void *user, const json_at *at, value *out);
bool tare__pt2_is_autocast(const json_at *target);
/// True for a context without effect here. *graph_at: index of the argument with its graph.
bool tare__pt2_is_idle_context(const json_at *target, const json_at *inputs, size_t *graph_at);
/// Appends the nodes of such a graph to r's. *done false: not all of its inputs and outputs are
/// tensors of nodes, and nothing was appended.
tare_status tare__pt2_inline_graph(pt2_reader *r, const json_at *at, size_t graph_at, bool *done);

#endif
