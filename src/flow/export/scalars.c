// SPDX-License-Identifier: Apache-2.0
// Numbers among an operator's arguments become tensors of the model, so that they can be observed
// (torchao's _convert_scalars_to_attrs).
#include "core/tensor/tensor.h"
#include "quantizers/annotate.h"
#include "tare/pt2e.h"
#include "tare/quantizer.h"

// torch makes floats of the numbers beside integers, too: indices that are computed become floats,
// and the embedding that they choose from fails. Here they stay integers.
static tare_status new_constant(const value *v, bool is_integer, tare_tensor **out,
                                tare_error *err) {
    double number = 0;
    (void)tare__value_number(v, &number);
    if (!is_integer || v->kind != VALUE_INT)
        return tare__tensor_scalar_float((float)number, out, err);
    return tare__tensor_scalar_int(v->as.integer, out, err);
}

static tare_status insert_constant(tare_model *model, node *before, tare_tensor *t, node **out,
                                   tare_error *err) {
    module *root = model->root;
    graph *g = root->graph;
    size_t suffix = 0;
    const char *name = tare__module_free_name(root, &g->memory, "_tensor_constant_", &suffix);
    if (name == NULL) return tare__out_of_memory(err);
    TARE_TRY(tare__module_set_tensor(root, name, t, false, err));
    const node_spec spec = {.op = NODE_GET_ATTR, .target = name};
    TARE_TRY(tare__graph_insert(g, &spec, before, out, err));
    (*out)->meta_json = tare__arena_printf(
        &g->memory, "{\"val\": {\"shape\": [], \"dtype\": \"%s\"}}", tare_dtype_name(t->dtype));
    return (*out)->meta_json != NULL ? TARE_OK : tare__out_of_memory(err);
}

static tare_status gives_integers(const node *n, bool *out, tare_error *err) {
    tare_node_meta *meta = NULL;
    *out = false;
    if (n->meta_json == NULL) return TARE_OK;
    TARE_TRY(tare_node_meta_read((const tare_node *)n, &meta, err));
    *out = meta->value_count == 1 && !tare__dtype(meta->values[0].dtype)->is_float;
    tare_node_meta_destroy(meta);
    return TARE_OK;
}

static tare_status lift(tare_model *model, node *n, arena *scratch, tare_error *err) {
    value *args = tare__arena_array(scratch, n->arg_count + 1, sizeof *args);
    bool has_scalar = false, is_integer = false;
    TARE_TRY(gives_integers(n, &is_integer, err));
    if (args == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < n->arg_count; i++) {
        double number = 0;
        node *constant = NULL;
        tare_tensor *t = NULL;
        args[i] = n->args[i];
        if (!tare__value_number(&n->args[i], &number)) continue;
        TARE_TRY(new_constant(&n->args[i], is_integer, &t, err));
        const tare_status status = insert_constant(model, n, t, &constant, err);
        tare_tensor_release(t);
        TARE_TRY(status);
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
