// SPDX-License-Identifier: Apache-2.0
// Numbers among an operator's arguments become tensors of the model, so that they can be observed
// (torchao's _convert_scalars_to_attrs).
#include "quantizers/annotate.h"
#include "tare/quantizer.h"

static tare_status insert_constant(tare_model *model, node *before, double number, node **out,
                                   tare_error *err) {
    module *root = model->root;
    graph *g = root->graph;
    tare_tensor *t = NULL;
    size_t suffix = 0;
    const char *name = tare__module_free_name(root, &g->memory, "_tensor_constant_", &suffix);
    if (name == NULL) return tare__out_of_memory(err);
    TARE_TRY(tare__tensor_scalar_float((float)number, &t, err));
    const tare_status status = tare__module_set_tensor(root, name, t, false, err);
    tare_tensor_release(t);
    TARE_TRY(status);
    const node_spec spec = {.op = NODE_GET_ATTR, .target = name};
    TARE_TRY(tare__graph_insert(g, &spec, before, out, err));
    (*out)->meta_json =
        tare__arena_strdup(&g->memory, "{\"val\": {\"shape\": [], \"dtype\": \"torch.float32\"}}");
    return (*out)->meta_json != NULL ? TARE_OK : tare__out_of_memory(err);
}

static tare_status lift(tare_model *model, node *n, arena *scratch, tare_error *err) {
    value *args = tare__arena_array(scratch, n->arg_count + 1, sizeof *args);
    bool has_scalar = false;
    if (args == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < n->arg_count; i++) {
        double number = 0;
        node *constant = NULL;
        args[i] = n->args[i];
        if (!tare__value_number(&n->args[i], &number)) continue;
        TARE_TRY(insert_constant(model, n, number, &constant, err));
        args[i] = tare__node_value(constant);
        has_scalar = true;
    }
    if (!has_scalar) return TARE_OK;
    return tare__node_set_args(n, args, n->arg_count, n->kwargs, n->kwarg_count, err);
}

tare_status tare_model_lift_scalars(tare_model *model, const char *const *operators,
                                    tare_error *err) {
    arena scratch = {0};
    tare_status status = TARE_OK;
    for (node *n = model->root->graph->first; n != NULL && status == TARE_OK; n = n->next)
        if (tare__calls(n, operators)) status = lift(model, n, &scratch, err);
    tare__arena_release(&scratch);
    return status;
}
