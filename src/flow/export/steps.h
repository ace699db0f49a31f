// SPDX-License-Identifier: Apache-2.0
// The passes of pt2e, step by step.
#ifndef FLOW_EXPORT_STEPS_H
#define FLOW_EXPORT_STEPS_H

#include "flow/layer_calls.h"
#include "model/pass.h"
#include "quantizers/quantizer.h"

/// Step: batch norms into the convolutions (then linear functions) before them.
tare_status tare__pt2e_fuse(pass *p);
/// Folds one batch norm call into one layer call and redirects its users; the batch norm stays,
/// unused. A layer without a bias gets one.
typedef struct norm_fold {
    node *layer, *norm;
    node *weight, *bias; // get_attr nodes of the layer's parameters; bias NULL: none
    const op_info *row;  // the layer's
    double eps;          // of the batch norm
    bool fold_weights;   // false leaves weight and bias as they are
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
/// model of its own. run makes the model that replaces `branch`.
typedef tare_status (*branch_pass)(void *user, const tare_model *branch, tare_model **out,
                                   tare_error *err);
tare_status tare__pt2e_each_branch(pass *p, tare_model_stage stage, branch_pass run, void *user);

#endif
