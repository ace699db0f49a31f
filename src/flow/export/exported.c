// SPDX-License-Identifier: Apache-2.0
// Tells whether a model is an exported program, and whether it was prepared as one.
#include "model/model.h"
#include "ops/op.h"

bool tare_model_is_exported(const tare_model *model) {
    // A program may call operators in the graphs of its control flow alone.
    if (model->root->graph->export_json != NULL) return true;
    for (const node *n = model->root->graph->first; n != NULL; n = n->next)
        if (n->op == NODE_CALL_FUNCTION && tare__aten_name(n->target) != NULL) return true;
    return false;
}

bool tare_model_is_prepared_pt2e(const tare_model *model) {
    return model->stage == TARE_STAGE_PREPARED && model->prepared == NULL;
}
