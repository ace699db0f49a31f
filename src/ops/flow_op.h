// SPDX-License-Identifier: Apache-2.0
// Operators of control flow: which of their arguments are graphs, and which values these take. A
// graph is a module of the root that holds the operator's graph; a get_attr node reads it.
#ifndef OPS_FLOW_OP_H
#define OPS_FLOW_OP_H

#include "core/memory/pointer_index.h"
#include "ir/module.h"
#include "ops/ids.h"

/// The values that a graph takes, at most.
enum { FLOW_MOST_VALUES = 256 };

typedef struct flow_op {
    size_t first_graph, graph_count;
    size_t deciding_count; // of its graphs, the first ones only decide whether another one runs
    // Positions of the lists of values that each graph takes, one after another. Those of the last
    // list are the same in every round. `last_list` 0: the values follow the graph singly.
    size_t first_list, last_list;
    op_id op;
    bool is_torchs; // torch's flow prepares and converts its graphs, too
} flow_op;

/// The description of the operator that a node calls; NULL for all other nodes.
const flow_op *tare__flow_op(const node *n);
/// The get_attr node of an operator's graph, by its index among the graphs; NULL: there is none.
node *tare__flow_reader(const node *n, const flow_op *f, size_t index);
/// The module whose graph a node reads; NULL for all other nodes. Of a const tree a const module.
const module *tare__read_graph_const(const module *root, const node *reader);
module *tare__read_graph_mutable(module *root, const node *reader);
// NOLINTNEXTLINE(readability-identifier-naming)
#define tare__read_graph(root, reader) MODULE_AS_CONST(root, tare__read_graph)(root, reader)
/// Visits the graphs that operators of a graph run, except those that only decide: the graphs
/// inside that passes process like the graph itself. `reader`: the first node that reads the graph;
/// they come in the order of these nodes.
typedef tare_status (*flow_visitor)(void *user, const module *root, const node *reader,
                                    tare_error *err);
tare_status tare__flow_each_graph(const module *root, flow_visitor visit, void *user,
                                  tare_error *err);
/// Counts the nodes that read each of the graphs inside, under whatever path.
tare_status tare__flow_count_reads(const module *root, arena *memory, pointer_index *reads,
                                   tare_error *err);
/// True if no other node reads the graph, by those counts, and one operator takes it, once.
bool tare__is_run_once(const module *root, const pointer_index *reads, const node *reader);
/// Gives `root` a tensor of a graph around it or inside it, under this path if that is free or has
/// the same tensor. *name: in the memory of the graph.
tare_status tare__flow_put_tensor(module *root, const named_tensor *t, const char *path,
                                  const char **name, tare_error *err);

#endif
