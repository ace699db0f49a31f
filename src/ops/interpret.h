// SPDX-License-Identifier: Apache-2.0
// The reference interpreter: runs a graph node by node with the operators' references. It defines
// the meaning of a model; faster executors must agree with it.
#ifndef OPS_INTERPRET_H
#define OPS_INTERPRET_H

#include "core/math/requant.h"
#include "ops/call.h"

typedef struct interpreter {
    const module *root; // has the graph
    /// The modules that the run may change, as torch changes a module in a run: `root` itself, or
    /// NULL. With NULL, writes to tensors of the model are visible only to later nodes of this run,
    /// and observers record nothing.
    module *own;
    enum requant_rule linear_rule, conv_rule;
    int thread_count;
    struct float_kernels *kernels; // dnnl/float_kernels.h; NULL: portable
    uint64_t memory_limit;         // bytes of results at a time; 0: the machine's memory
    bool shapes_only;              // inputs may be meta tensors; nothing is computed
    /// With shapes_only: a node whose result depends on data is skipped, with all nodes that use
    /// it, instead of ending the run. `after` is not called for these nodes.
    bool passes_over;
    /// Called after each node with its result; may be NULL. A failure ends the run.
    tare_status (*after)(void *user, const node *n, const value *result, tare_error *err);
    /// Called before the row's reference, which is skipped if it sets *handled (faster executors).
    /// May be NULL.
    tare_status (*execute)(void *user, const node *n, op_call *call, bool *handled);
    /// Called before the graph of an operator of control flow (ops/flow_op.h) is run as `it`. The
    /// graph is not interpreted if it sets *handled and *out, the results as a tuple with
    /// references for the caller. May be NULL.
    tare_status (*run_graph)(void *user, const struct interpreter *it, const value *inputs,
                             size_t count, arena *memory, value *out, bool *handled,
                             tare_error *err);
    /// Whether `shaped` and `after` are called for the nodes of such graphs, too.
    bool sees_inside;
    /// How often a run of the whole model runs this graph, as far as shapes tell (scan, map; a
    /// while_loop counts one round). 0: once; -1: never.
    int64_t rounds;
    /// Returns where the row of a node is cached between runs, so that names are looked up once;
    /// the cached row is NULL at first. May be NULL, and may return NULL.
    const struct op_info **(*remember)(void *user, const node *n);
    /// With shapes_only: called for every call after its shape rule, with the function that would
    /// compute it. The data of the call are in `memory` of tare__interpret. May be NULL.
    tare_status (*shaped)(void *user, const node *n, const op_call *call, op_compute compute);
    /// Called when a later node overwrites a tensor of the model: n, the get_attr node that reads
    /// it, and now, the new value. A failure ends the run. May be NULL.
    tare_status (*writes)(void *user, const node *n, tare_tensor *now, tare_error *err);
    /// Returns a tensor that replaces the model's tensor at this path; NULL: none does. May be
    /// NULL.
    tare_tensor *(*stand_in)(void *user, const char *path);
    void *user;
} interpreter;

/// A bool in the config of a module with an exported program's graph: overrides the training
/// argument of its batch norms. If it is absent, the calls' arguments apply. torch rewrites the
/// graph instead, and loses momentum, eps and the dropout rate.
#define EXPORTED_TRAINING "exported_training"

/// True if torch overwrites the node's first argument (relu_, add_, inplace=True).
bool tare__node_writes_in_place(const module *root, const node *n);
/// inputs: one value per placeholder, in order; missing ones take their defaults. *out: the graph's
/// result. The caller releases its tensors with tare__value_release_tensors; its items are in
/// `memory`. Intermediate results are released after their last use.
tare_status tare__interpret(const interpreter *it, const value *inputs, size_t input_count,
                            arena *memory, value *out, tare_error *err);

/// A run that can be stopped at nodes, so that its caller can inspect the next node and change the
/// model before it runs. Data passed to create is used until destroy.
typedef struct interpretation interpretation;
tare_status tare__interpretation_create(const interpreter *it, const value *inputs,
                                        size_t input_count, arena *memory, interpretation **out,
                                        tare_error *err);
void tare__interpretation_destroy(interpretation *x); // NULL is fine
/// Runs the remaining nodes before `stop`; if NULL, those before the output. kernels: as in
/// interpreter, for the calling thread.
tare_status tare__interpretation_advance(interpretation *x, const node *stop,
                                         struct float_kernels *kernels, tare_error *err);
/// Computes the result of the next node, a call, without advancing; for a fused module, the result
/// of its layer. The caller releases the tensors of *out.
tare_status tare__interpretation_look(interpretation *x, struct float_kernels *kernels, value *out,
                                      tare_error *err);

#endif
