// SPDX-License-Identifier: Apache-2.0
// The steps of prepare for exported programs, and what they share with convert.
#ifndef FLOW_EXPORT_STEPS_H
#define FLOW_EXPORT_STEPS_H

#include "flow/layer_calls.h"
#include "model/pass.h"
#include "quantizers/quantizer.h"

/// Step: replaces operators that write tensors in place by those that return what is written, where
/// the tensor is read later.
tare_status tare__pt2e_replace_writes(pass *p);
/// Step: folds batch norms into the convolutions (then linear functions) before them.
tare_status tare__pt2e_fuse(pass *p);
/// Folds a batch norm call into a layer call and redirects its users; the unused batch norm stays.
/// A layer without a bias gets one.
typedef struct norm_fold {
    node *layer, *norm;
    node *weight, *bias; // get_attr nodes of the layer's parameters; bias NULL: none
    const op_info *row;  // row of the layer
    double eps;          // of the batch norm
    bool fold_weights;   // false: leaves weight and bias unchanged
} norm_fold;
tare_status tare__pt2e_fold_norm(pass *p, const norm_fold *wanted);
/// Step of training: replaces a convolution and its batch norm by torch's pattern with a scaled
/// weight.
tare_status tare__pt2e_rewrite_for_training(pass *p);
/// Step: inserts observers according to the annotations.
tare_status tare__pt2e_insert_observers(pass *p, const tare_quantizer *quantizer, bool is_qat);

/// prepare, with access to the annotations just before observers are inserted, and the possibility
/// to replace them. For replays of recorded cases.
typedef struct pt2e_given {
    const char *json; // replaces all annotations by these; NULL: keeps the quantizer's
    size_t size;
    const tare_derive_rule *rules;
    size_t rule_count;
    char **annotations;    // the quantizer's annotations as JSON; NULL: not needed
    char **annotated_text; // text of the model at that time; NULL: not needed
} pt2e_given;
tare_status tare__pt2e_prepare(const tare_model *model, const tare_quantizer *quantizer,
                               bool is_qat, const pt2e_given *given, tare_model **out,
                               tare_error *err);

/// Applies a pass to the graphs that operators of control flow run (model/nested/nested.h). run
/// makes the model that replaces `branch`, which is of this stage; `number`: that of the graph in
/// tare__nested_list.
typedef tare_status (*branch_pass)(void *user, const tare_model *branch, size_t number,
                                   tare_model **out, tare_error *err);
tare_status tare__pt2e_each_branch(pass *p, tare_model_stage stage, branch_pass run, void *user);
/// Why an operator of control flow is not in integers itself.
#define FLOW_REASON                                                                                \
    "it only runs graphs, whose operators are listed as GRAPH/NODE; values go in and out in float"
/// Step: parameters and constants that such graphs take as arguments become tensors that they read,
/// so that weights are constants for them, too. Without `all`: not of operators whose graphs torch
/// prepares, which shall be torch's until they are lowered.
tare_status tare__pt2e_bind_constants(pass *p, bool all);

#endif
