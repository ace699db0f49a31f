// SPDX-License-Identifier: Apache-2.0
// Public functions that edit the graph of a float model.
#include "tare/edit.h"

#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "io/native/node_json.h"
#include "model/model.h"
#include "ops/op.h"
#include "tare/pt2e.h"

static tare_status check_model(const tare_model *model, tare_error *err) {
    if (model != NULL && model->stage == TARE_STAGE_FLOAT && model->root->graph != NULL)
        return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT, "expected a float model, found %s",
                      model != NULL ? "one of a later stage" : "NULL");
}

// Checks that the node belongs to the model. Public nodes are const, but the caller may change the
// model to which they belong.
static tare_status own_node(const tare_model *model, const tare_node *given, node **out,
                            tare_error *err) {
    TARE_TRY(check_model(model, err));
    node *n = (node *)(void *)given;
    if (n == NULL || n->owner != model->root->graph)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected a node of the model, found %s",
                          n != NULL ? n->name : "NULL");
    *out = n;
    return TARE_OK;
}

// The position for a new node: before `before` (NULL: before the output), but not between inputs.
static tare_status find_position(const tare_model *model, const tare_node *before, node **out,
                                 tare_error *err) {
    TARE_TRY(check_model(model, err));
    if (before == NULL) {
        *out = tare__graph_output(model->root->graph);
        return TARE_OK;
    }
    TARE_TRY(own_node(model, before, out, err));
    if ((*out)->op != NODE_PLACEHOLDER) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT, "nothing can stand before the input '%s'",
                      (*out)->name);
}

static tare_status check_target(const tare_new_call *call, tare_error *err) {
    if (call->target == NULL || call->arguments == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "a call needs a target and arguments");
    const bool is_function = call->kind == TARE_NODE_CALL_FUNCTION;
    if (!is_function && call->kind != TARE_NODE_CALL_METHOD)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "expected the kind of a function or a method, found %d", (int)call->kind);
    const op_info *row =
        is_function ? tare__op_function(call->target) : tare__op_method(call->target);
    if (row != NULL) return TARE_OK;
    return tare__fail(err, TARE_NOT_FOUND, "no %s is called '%s'",
                      is_function ? "function" : "method", call->target);
}

tare_status tare_model_insert_call(tare_model *model, const tare_new_call *given,
                                   const tare_node *before, const tare_node **out,
                                   tare_error *err) {
    tare_new_call call = {0};
    node *at = NULL, *made = NULL, *like = NULL;
    TARE_TRY(find_position(model, before, &at, err));
    tare__struct_copy(&call, sizeof call, given);
    TARE_TRY(check_target(&call, err));
    if (call.like != NULL) TARE_TRY(own_node(model, call.like, &like, err));
    const bool is_function = call.kind == TARE_NODE_CALL_FUNCTION;
    const node_spec spec = {.op = is_function ? NODE_CALL_FUNCTION : NODE_CALL_METHOD,
                            .target =
                                is_function ? tare__function_canonical(call.target) : call.target,
                            .like = like};
    TARE_TRY(tare__graph_insert_json(model->root->graph, &spec, call.arguments, at, &made, err));
    *out = (const tare_node *)made;
    return TARE_OK;
}

static tare_status insert_tensor(tare_model *model, tare_tensor *tensor, node *before, node **out,
                                 tare_error *err) {
    graph *g = model->root->graph;
    size_t suffix = 0;
    const char *name =
        tare__module_free_name(model->root, &g->memory, "_tensor_constant_", &suffix);
    if (name == NULL) return tare__out_of_memory(err);
    TARE_TRY(tare__module_set_tensor(model->root, name, tensor, false, err));
    const node_spec spec = {.op = NODE_GET_ATTR, .target = name};
    return tare__graph_insert(g, &spec, before, out, err);
}

// Stores the result's shape and dtype as meta, like exporters do, because passes need it.
static tare_status note_value(node *n, const tare_tensor *t, tare_error *err) {
    text said = {0};
    tare__text_append(&said, "{\"val\": {\"shape\": [");
    for (int d = 0; d < t->ndim; d++)
        tare__text_printf(&said, "%s%lld", d > 0 ? ", " : "", (long long)t->shape[d]);
    tare__text_printf(&said, "], \"dtype\": \"%s\"}}", tare_dtype_name(t->dtype));
    tare_status status = tare__text_status(&said, err);
    if (status == TARE_OK) {
        n->meta_json = tare__arena_strdup(&n->owner->memory, tare__text_chars(&said));
        if (n->meta_json == NULL) status = tare__out_of_memory(err);
    }
    tare__text_release(&said);
    return status;
}

tare_status tare_model_insert_tensor(tare_model *model, tare_tensor *tensor,
                                     const tare_node *before, const tare_node **out,
                                     tare_error *err) {
    node *at = NULL, *made = NULL;
    TARE_TRY(find_position(model, before, &at, err));
    if (tensor == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected a tensor, found NULL");
    TARE_TRY(insert_tensor(model, tensor, at, &made, err));
    TARE_TRY(note_value(made, tensor, err));
    *out = (const tare_node *)made;
    return TARE_OK;
}

tare_status tare_model_set_arguments(tare_model *model, const tare_node *given,
                                     const char *arguments, tare_error *err) {
    node *n = NULL;
    TARE_TRY(own_node(model, given, &n, err));
    if (!tare__node_is_call(n) || arguments == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected a call and its arguments");
    return tare__node_set_json(n, arguments, err);
}

static bool stands_before(const node *a, const node *b) {
    while (a != NULL && a != b) a = a->next;
    return a != NULL;
}

static tare_status check_readers(const node *n, const node *with, const node *except,
                                 tare_error *err) {
    for (size_t i = 0; i < n->user_count; i++) {
        const node *reader = n->users[i];
        if (reader == except) continue;
        if (reader == with || !stands_before(with, reader))
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "'%s' reads '%s' and does not stand after '%s'", reader->name,
                              n->name, with->name);
    }
    return TARE_OK;
}

tare_status tare_model_replace_uses(tare_model *model, const tare_node *given,
                                    const tare_node *with, const tare_node *except,
                                    tare_error *err) {
    node *n = NULL, *other = NULL, *kept = NULL;
    TARE_TRY(own_node(model, given, &n, err));
    TARE_TRY(own_node(model, with, &other, err));
    if (except != NULL) TARE_TRY(own_node(model, except, &kept, err));
    if (n == other) return TARE_OK;
    TARE_TRY(check_readers(n, other, kept, err));
    return tare__node_replace_uses(n, other, kept, err);
}

tare_status tare_model_erase_node(tare_model *model, const tare_node *given, tare_error *err) {
    node *n = NULL;
    TARE_TRY(own_node(model, given, &n, err));
    if (n->op == NODE_PLACEHOLDER || n->op == NODE_OUTPUT)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "inputs and the output cannot be erased");
    if (n->user_count > 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "'%s' is read by '%s'", n->name,
                          n->users[0]->name);
    tare_model_clear_annotation(model, given);
    return tare__graph_erase(model->root->graph, n, err);
}
