// SPDX-License-Identifier: Apache-2.0
// Common to the passes of FX mode: a private copy of the model, a scratch arena, and the error.
#ifndef MODEL_PASS_H
#define MODEL_PASS_H

#include "config/backend_config.h"
#include "core/memory/arena.h"
#include "model/model.h"
#include "ops/op.h"

/// The state of a pass. It works on a clone of the model and returns it on success, so a failure
/// has no effect on the source.
typedef struct pass {
    const char *name; // "fuse", "prepare", .. for the record
    const tare_model *source;
    tare_model *model; // the clone
    const tare_backend_config *backend;
    tare_backend_config *own_backend; // the built-in native config, if the caller gave none
    arena scratch;                    // lives as long as the pass
    // True for one of torch's default mappings: the result must equal torch's, even if it cannot be
    // run.
    bool is_torchs;
    struct called_child *called_children; // targets of nodes in `source`; see tare__pass_put_module
    bool has_called_children;
    tare_error *err;
} pass;

/// Clones `source` and sets the backend (NULL: native). tare__pass_end releases everything that is
/// not returned.
tare_status tare__pass_begin(pass *p, const char *name, const tare_model *source,
                             const tare_backend_config *backend, tare_error *err);
/// If status is TARE_OK, verifies the clone (its dtypes if it is converted; its graph in builds
/// with TARE_VERIFY) and returns it in *out. Releases everything else.
tare_status tare__pass_end(pass *p, tare_status status, tare_model **out);

/// Rebuilds the clone's root as torch's GraphModule(root, graph): see tare__module_from_graph. `g`
/// is consumed, after a failure too; NULL: the clone's own graph.
tare_status tare__pass_rebuild(pass *p, graph *g);

/// Copies the named attributes (tensors, modules, values) from `source` to the clone's root. A
/// missing one is an error, or, if is_lenient, a warning in the record.
tare_status tare__pass_preserve(pass *p, const name_list *names, const module *source,
                                bool is_lenient);

/// Sets a new module at this path of the root if the status is TARE_OK. Takes ownership of m.
/// Returns the status.
tare_status tare__pass_put_module(pass *p, const char *path, module *m, tare_status status);

/// The module that a call_module node calls; NULL for other nodes.
module *tare__called_module(const tare_model *model, const node *n);
/// The operator table entry of the module class, function or method that a node calls; NULL:
/// unknown.
const op_info *tare__called_row(const tare_model *model, const node *n);
/// True for an observer or fake quantizer, except observers of equalization.
bool tare__is_observer_node(const tare_model *model, const node *n);
/// Follows n backwards through observers, which return their input; NULL: an observer has no input.
node *tare__behind_observers(const tare_model *model, node *n);
bool tare__is_equalizer_node(const tare_model *model, const node *n, bool *is_input);
/// The description of a spec's observer; all zero for NULL, which is torch's None.
tare_status tare__pass_spec_info(const pass *p, const tare_observer_spec *spec,
                                 tare_observer_info *out);
/// Constant folding: computes the values (nodes before `before`, or constants) as a tuple. None if
/// they depend on an input of the model. The caller releases its tensors.
tare_status tare__pass_fold(pass *p, const value *wanted, uint32_t count, const node *before,
                            value *out);
/// The same, as tensors: out[i] is a reference for the caller, or NULL if the value is not a
/// tensor. All are NULL if the values depend on an input.
tare_status tare__pass_fold_tensors(pass *p, const value *wanted, uint32_t count,
                                    const node *before, tare_tensor **out);
/// Adds a decision about node `n` to the record.
#define TARE_DECIDE(p, n, what, by, ...)                                                           \
    tare__record_add(&(p)->model->decisions,                                                       \
                     &(tare_decision){.pass = (p)->name,                                           \
                                      .node = (n)->name,                                           \
                                      .subject = tare__node_subject((p)->model, (n)),              \
                                      .decision = (what),                                          \
                                      .rule = (by)},                                               \
                     (p)->err, __VA_ARGS__)
/// The operator of a node as users name it: a class, a function or a method; for others the name of
/// the node's op.
const char *tare__node_subject(const tare_model *model, const node *n);

/// The steps of each pass, on its clone.
tare_status tare__fuse_steps(pass *p, bool is_qat);

#endif
