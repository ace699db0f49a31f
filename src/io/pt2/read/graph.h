// SPDX-License-Identifier: Apache-2.0
// Shared by the readers of a program's graphs: the state of one graph, and creating its nodes.
// Private to io/pt2/read.
#ifndef IO_PT2_READ_GRAPH_H
#define IO_PT2_READ_GRAPH_H

#include "core/json/json.h"
#include "core/tensor/map.h"
#include "io/pt2/read/archive.h"
#include "ir/graph.h"
#include "ir/module.h"
#include "ops/classes/classes.h"

/// For one graph; graphs of branches and contexts have readers of their own.
typedef struct pt2_reader {
    pt2_archive *archive;
    const registry *classes;
    const char *model;      // the name of the one that is read
    map weights, constants; // tensors by name; references owned
    json_at graph, signature, tensors;
    module *root;
    graph *g;
    map values;  // what gives a value: name -> node *, lent
    map targets; // get_attr nodes by target, lent
    map taken;   // names of the program's own nodes
    // For a graph that is inlined: names that its nodes cannot have, and names that they get
    // instead of their own, because they are results of that graph.
    const map *reserved;
    map renamed;        // lent
    bool is_in_context; // the arguments of an autocast that stays are being read
    bool keeps_graphs;  // what contexts hold stays in graphs: it is within one that matters
    arena scratch;
    tare_error *err;
} pt2_reader;

/// An empty root of the class GraphModule with an empty graph.
tare_status tare__pt2_make_root(pt2_reader *r);
/// Frees what belongs to the graph's reading; root and archive stay.
void tare__pt2_release_graph(pt2_reader *r);

// --- names (graph.c) ---

/// Notes that node n gives the value `name`. Fails where another does.
tare_status tare__pt2_keep_value(pt2_reader *r, const json_at *at, const char *name, node *n);
/// Notes the names of nodes and their items, which no tensor's node may take.
tare_status tare__pt2_note_names(pt2_reader *r, const json_at *nodes);
/// The name itself, or that with a number. In the scratch arena.
tare_status tare__pt2_free_name(pt2_reader *r, const char *name, const char **out);
/// Appends a node, whose name must be the candidate unless the graph is inlined into another.
tare_status tare__pt2_insert(pt2_reader *r, const json_at *at, const node_spec *spec, node **out);

// --- nodes (graph.c) ---

typedef struct pt2_results {
    const char **names;
    size_t count;
    bool are_items; // of a tuple or list, each to be taken out by getitem
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

// --- graphs that nodes hold (nested.c) ---

/// Reads the graph of a branch or a body into a module of r->root; *out: the node that reads it.
/// user: a pt2_reader.
tare_status tare__pt2_add_subgraph(void *user, const json_at *at, value *out);
bool tare__pt2_is_autocast(const json_at *target);
/// True for a context without effect here. *graph_at: index of the argument with its graph.
bool tare__pt2_is_idle_context(const json_at *target, const json_at *inputs, size_t *graph_at);
/// Appends the nodes of such a graph to r's. *done false: it takes or gives anything but tensors.
tare_status tare__pt2_inline_graph(pt2_reader *r, const json_at *at, size_t graph_at, bool *done);

#endif
