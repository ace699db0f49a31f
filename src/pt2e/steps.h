// SPDX-License-Identifier: Apache-2.0
// The passes of pt2e, step by step.
#ifndef PT2E_STEPS_H
#define PT2E_STEPS_H

#include "pt2e/quantizer.h"
#include "quant/pass.h"

/// A convolution or linear function of exported programs, from the table in layer_calls.c.
typedef struct layer_call {
    const char *target;     // "torch.ops.aten.conv2d.default"
    const char *class_name; // of the module that computes the same
    int dims;               // spatial dimensions; 0: linear
    bool is_transposed;
} layer_call;
/// NULL: the node is none.
const layer_call *tare__layer_call(const node *n);
/// The batch norm functions. *eps_index: where the argument stands; *is_plain: one output, and a
/// `training` argument.
bool tare__is_batch_norm_call(const node *n, size_t *eps_index, bool *is_plain);
/// Does the graph hold a batch norm?
bool tare__has_batch_norm(const pass *p);
/// The first node after n that reads it; NULL: none.
node *tare__first_user(const node *n);

/// Step: batch norms into the convolutions (then linear functions) before them.
tare_status tare__pt2e_fuse(pass *p);
/// Folds one batch norm call into one layer call and redirects its users; the batch norm stays,
/// unused. A layer without a bias gets one.
typedef struct norm_fold {
    node *layer, *norm;
    node *weight, *bias; // get_attr nodes of the layer's parameters; bias NULL: none
    const layer_call *row;
    double eps;        // of the batch norm
    bool fold_weights; // false leaves weight and bias as they are
} norm_fold;
tare_status tare__pt2e_fold_norm(pass *p, const norm_fold *wanted);
/// Step of training: conv and batch norm become torch's pattern with a scaled weight.
tare_status tare__pt2e_rewrite_for_training(pass *p);
/// Step: observers into the graph by the annotations.
tare_status tare__pt2e_insert_observers(pass *p, const tare_quantizer *quantizer, bool is_qat);

/// prepare with a look at the annotations just before observers are inserted, and with a last word
/// on them. For replays of recorded cases.
typedef struct pt2e_given {
    const char *json; // replaces all annotations (with these rules); NULL: the quantizer's stay
    size_t size;
    const tare_derive_rule *rules;
    size_t rule_count;
    char **annotations;    // the quantizer's as JSON; NULL: not wanted
    char **annotated_text; // what the model looked like then; NULL: not wanted
} pt2e_given;
tare_status tare__pt2e_prepare(const tare_model *model, const tare_quantizer *quantizer,
                               bool is_qat, const pt2e_given *given, tare_model **out,
                               tare_error *err);

/// Graphs that are arguments: torch prepares and converts those of scan and while_loop, each as a
/// model of its own. run makes one of `branch`, which takes its place.
typedef tare_status (*branch_pass)(void *user, const tare_model *branch, tare_model **out,
                                   tare_error *err);
tare_status tare__pt2e_each_branch(pass *p, tare_model_stage stage, branch_pass run, void *user);

/// Erases nodes without users, but those with effects: writes in place, guards.
tare_status tare__pt2e_eliminate_dead(pass *p);
/// "torch.ops.aten.add_.Tensor": an operator that writes its first argument.
bool tare__writes_first_argument(const node *n);
/// Does it write, or check something? Such a call stays though nobody reads its result.
bool tare__has_effect(const node *n);
/// The node's value is several tensors.
tare_status tare__has_many_values(const node *n, bool *out, tare_error *err);

#endif
