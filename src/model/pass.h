// SPDX-License-Identifier: Apache-2.0
// Shared by the passes of FX mode: a private copy of the model, a scratch arena, an error.
#ifndef MODEL_PASS_H
#define MODEL_PASS_H

#include "config/backend_config.h"
#include "core/memory/arena.h"
#include "model/model.h"
#include "ops/op.h"

/// A pass works on a clone of the model and hands it out on success, so that a failure leaves
/// nothing half done.
typedef struct pass {
    const char *name; // "fuse", "prepare", .. for the record
    const tare_model *source;
    tare_model *model; // the clone
    const tare_backend_config *backend;
    tare_backend_config *own_backend; // the built-in native config when the caller gave none
    arena scratch;                    // lives as long as the pass
    // With one of torch's mappings: the result equals torch's, even if that cannot run.
    bool is_torchs;
    struct called_child *called_children; // of nodes of `source`; see tare__pass_put_module
    bool has_called_children;
    tare_error *err;
} pass;

/// Clones `source` and finds the backend (NULL: native). tare__pass_end releases everything that
/// was not returned.
tare_status tare__pass_begin(pass *p, const char *name, const tare_model *source,
                             const tare_backend_config *backend, tare_error *err);
/// Verifies the clone (its dtypes if it is converted; its graph in builds with TARE_VERIFY) and
/// hands it out when status is TARE_OK; releases the rest.
tare_status tare__pass_end(pass *p, tare_status status, tare_model **out);

/// Rebuilds the clone's root as torch's GraphModule(root, graph): see tare__module_from_graph. `g`
/// is consumed, on failure too. NULL: the clone's own.
tare_status tare__pass_rebuild(pass *p, graph *g);

/// Copies the attributes (tensors, modules, values) of these names from `source` to the clone's
/// root. A missing one is an error, or with is_lenient a warning in the record.
tare_status tare__pass_preserve(pass *p, const name_list *names, const module *source,
                                bool is_lenient);

/// Installs a new module at this path of the root if the status is TARE_OK. Takes m over. Returns
/// the status.
tare_status tare__pass_put_module(pass *p, const char *path, module *m, tare_status status);

/// The module that a call_module node calls; NULL for other nodes.
module *tare__called_module(const tare_model *model, const node *n);
/// The row of the module class, function or method that a node calls; NULL: unknown.
const op_info *tare__called_row(const tare_model *model, const node *n);
/// For an edge's observer or fake quantizer; observers of equalization are others.
bool tare__is_observer_node(const tare_model *model, const node *n);
/// Goes back from n through observers, which return their input; NULL: one of them has no input.
node *tare__behind_observers(const tare_model *model, node *n);
bool tare__is_equalizer_node(const tare_model *model, const node *n, bool *is_input);
/// The description of a spec's observer; all zero for NULL, torch's None.
tare_status tare__pass_spec_info(const pass *p, const tare_observer_spec *spec,
                                 tare_observer_info *out);
/// Computes the values (nodes before `before`, or constants) once, as a tuple; None if they depend
/// on an input of the model. The caller releases its tensors.
tare_status tare__pass_fold(pass *p, const value *wanted, uint32_t count, const node *before,
                            value *out);
/// The same as tensors: out[i], the caller's reference, is NULL where the value is none, and
/// everywhere if they depend on an input.
tare_status tare__pass_fold_tensors(pass *p, const value *wanted, uint32_t count,
                                    const node *before, tare_tensor **out);
/// Adds one decision about `n`.
#define TARE_DECIDE(p, n, what, by, ...)                                                           \
    tare__record_add(&(p)->model->decisions,                                                       \
                     &(tare_decision){.pass = (p)->name,                                           \
                                      .node = (n)->name,                                           \
                                      .subject = tare__node_subject((p)->model, (n)),              \
                                      .decision = (what),                                          \
                                      .rule = (by)},                                               \
                     (p)->err, __VA_ARGS__)
/// The operator of a node as users name it: a class, a function or a method; the op's name for
/// others.
const char *tare__node_subject(const tare_model *model, const node *n);

/// The steps, each on the pass's clone.
tare_status tare__fuse_steps(pass *p, bool is_qat);

#endif
