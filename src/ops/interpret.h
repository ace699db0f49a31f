// SPDX-License-Identifier: Apache-2.0
// The reference interpreter: runs a graph node by node, by the operators' references. It defines
// what a model means; faster executors must agree with it.
#ifndef OPS_INTERPRET_H
#define OPS_INTERPRET_H

#include "core/math/requant.h"
#include "ops/call.h"

typedef struct interpreter {
    const module *root; // has the graph
    /// What the run may change, as torch changes a module that it runs: `root` itself, or NULL.
    /// What is written over tensors of the model is then seen by this run's later nodes alone, and
    /// observers watch for nobody.
    module *own;
    enum requant_rule linear_rule, conv_rule;
    int thread_count;
    struct float_kernels *kernels; // dnnl/float_kernels.h; NULL: portable
    uint64_t memory_limit;         // bytes of results at a time; 0: the machine's memory
    bool shapes_only;              // inputs may be meta tensors; nothing is computed
    /// With shapes_only: a node whose result depends on values is passed over, with all that takes
    /// it, instead of ending the run. `after` is not called for these.
    bool passes_over;
    /// Called after each node with its result; may be NULL. A failure ends the run.
    tare_status (*after)(void *user, const node *n, const value *result, tare_error *err);
    /// Called instead of the row's reference when not NULL and *handled is set (faster executors).
    tare_status (*execute)(void *user, const node *n, op_call *call, bool *handled);
    /// Where a node's row is kept from one run to the next (NULL at first), so that names are
    /// looked up once. May be NULL, and may return NULL.
    const struct op_info **(*remember)(void *user, const node *n);
    /// With shapes_only: called with every call whose result has its shapes, and with what would
    /// compute it. `memory` of tare__interpret holds what the call points to. May be NULL.
    tare_status (*shaped)(void *user, const node *n, const op_call *call, op_compute compute);
    /// Called with what reads a tensor of the model whose values a node then writes over, and with
    /// what it becomes. A failure ends the run. May be NULL.
    tare_status (*writes)(void *user, const node *n, tare_tensor *now, tare_error *err);
    /// What stands for the tensor of the model at a path; NULL: itself. May be NULL.
    tare_tensor *(*stand_in)(void *user, const char *path);
    void *user;
} interpreter;

/// A bool among the config of a module with a graph of an exported program: its batch norms train,
/// or do not, whatever the call says. Absent: the call decides. torch rewrites the graph instead,
/// and loses momentum, eps and the rate of dropout.
#define EXPORTED_TRAINING "exported_training"

/// Does torch write over the node's first argument (relu_, add_, inplace=True)?
bool tare__node_writes_in_place(const module *root, const node *n);
/// inputs: one value per placeholder in order (missing ones take their default). *out: the graph's
/// result, whose tensors the caller gives back with tare__value_release_tensors and whose items
/// live in `memory`. Intermediate results are released after their last use.
tare_status tare__interpret(const interpreter *it, const value *inputs, size_t input_count,
                            arena *memory, value *out, tare_error *err);

/// A run that stops where it is told to, so that its caller can look at what comes next, and change
/// the model before it does. What is lent to create is used until destroy.
typedef struct interpretation interpretation;
tare_status tare__interpretation_create(const interpreter *it, const value *inputs,
                                        size_t input_count, arena *memory, interpretation **out,
                                        tare_error *err);
void tare__interpretation_destroy(interpretation *x); // NULL is fine
/// Runs the nodes in front of `stop`, as far as they have not run; those in front of the output for
/// NULL. kernels: as in interpreter, of the thread that calls.
tare_status tare__interpretation_advance(interpretation *x, const node *stop,
                                         struct float_kernels *kernels, tare_error *err);
/// What the node would give that the run has stopped at, which must be a call; of a fused module,
/// what its layer would give before the rest. The caller releases the tensors of *out.
tare_status tare__interpretation_look(interpretation *x, struct float_kernels *kernels, value *out,
                                      tare_error *err);

#endif
