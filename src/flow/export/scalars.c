// SPDX-License-Identifier: Apache-2.0
// Converts numbers among an operator's arguments to tensors of the model, so that they can be
// observed (torchao's _convert_scalars_to_attrs).
#include "core/tensor/tensor.h"
#include "ops/op.h"
#include "quantizers/annotate.h"
#include "tare/pt2e.h"
#include "tare/quantizer.h"

// torch converts numbers next to integers to floats, too. An embedding with computed indices then
// fails; here these stay integers.
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

static bool is_index_of(const node *n, const node *user) {
    return OP_IS_ANY(tare__function_op(user), TARE_OP_EMBEDDING, TARE_OP_EMBEDDING_BAG,
                     TARE_OP_EMBEDDING_BAGS, TARE_OP_INDEX, TARE_OP_INDEX_SELECT, TARE_OP_INDEX_PUT,
                     TARE_OP_INDEX_ADD, TARE_OP_INDEX_COPY, TARE_OP_GATHER, TARE_OP_SCATTER,
                     TARE_OP_SCATTER_ADD, TARE_OP_SCATTER_REDUCE, TARE_OP_TAKE,
                     TARE_OP_TAKE_ALONG_DIM) &&
           tare__node_arg(user, 0) != n;
}

// Marks, by id, integers from which an index is computed. Users follow what they read.
static tare_status find_index_sources(const graph *g, bool *out, tare_error *err) {
    for (const node *n = g->last; n != NULL; n = n->prev) {
        bool is_read = false;
        for (size_t i = 0; i < n->user_count && !is_read; i++)
            is_read = out[n->users[i]->id] || is_index_of(n, n->users[i]);
        if (is_read) TARE_TRY(gives_integers(n, &out[n->id], err));
    }
    return TARE_OK;
}

static tare_status lift(tare_model *model, node *n, bool is_integer, arena *scratch,
                        tare_error *err) {
    value *args = tare__arena_array(scratch, n->arg_count + 1, sizeof *args);
    bool has_scalar = false;
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

static tare_status lift_all(tare_model *model, const char *const *operators, arena *scratch,
                            tare_error *err) {
    const graph *g = model->root->graph;
    const size_t known = g->next_id; // nodes inserted meanwhile are no operators
    bool *are_indices = tare__arena_array(scratch, known + 1, sizeof *are_indices);
    if (are_indices == NULL) return tare__out_of_memory(err);
    TARE_TRY(find_index_sources(g, are_indices, err));
    for (node *n = g->first; n != NULL; n = n->next)
        if (n->id < known && tare__calls(n, operators))
            TARE_TRY(lift(model, n, are_indices[n->id], scratch, err));
    return TARE_OK;
}

tare_status tare_model_lift_scalars(tare_model *model, const char *const *operators,
                                    tare_error *err) {
    arena scratch = {0};
    const tare_status status = lift_all(model, operators, &scratch, err);
    tare__arena_release(&scratch);
    return status;
}
