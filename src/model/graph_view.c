// SPDX-License-Identifier: Apache-2.0
// The public view of a graph. tare_node and tare_match_node are public names of node.
#include "tare/graph.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "core/tensor/map.h"
#include "model/graph_view.h"
#include "model/pass.h"
#include "observe/observer.h"

static const tare_node *view(const node *n) {
    return (const tare_node *)n;
}
static const node *look(const tare_node *n) {
    return (const node *)n;
}

const tare_node *tare_model_first_node(const tare_model *model) {
    return view(model->root->graph->first);
}

const tare_node *tare_node_next(const tare_node *n) {
    return view(look(n)->next);
}

const tare_node *tare_model_last_node(const tare_model *model) {
    return view(model->root->graph->last);
}

const tare_node *tare_node_previous(const tare_node *n) {
    return view(look(n)->prev);
}

size_t tare_model_node_count(const tare_model *model) {
    return model->root->graph->node_count;
}

const tare_node *tare_model_find_node(const tare_model *model, const char *name) {
    return view(tare__graph_find(model->root->graph, name));
}

tare_node_kind tare_node_get_kind(const tare_node *n) {
    switch (look(n)->op) {
    case NODE_PLACEHOLDER:
        return TARE_NODE_PLACEHOLDER;
    case NODE_GET_ATTR:
        return TARE_NODE_GET_ATTR;
    case NODE_CALL_MODULE:
        return TARE_NODE_CALL_MODULE;
    case NODE_CALL_FUNCTION:
        return TARE_NODE_CALL_FUNCTION;
    case NODE_CALL_METHOD:
        return TARE_NODE_CALL_METHOD;
    case NODE_OUTPUT:
        break;
    }
    return TARE_NODE_OUTPUT;
}

const char *tare_node_name(const tare_node *n) {
    return look(n)->name;
}

const char *tare_node_target(const tare_node *n) {
    return look(n)->target;
}

const char *tare_node_origin(const tare_node *n) {
    return look(n)->origin;
}

const char *tare_node_scope_path(const tare_node *n) {
    return look(n)->scope_path != NULL ? look(n)->scope_path : "";
}

const char *tare_node_scope_type(const tare_node *n) {
    return look(n)->scope_type;
}

size_t tare_node_input_count(const tare_node *n) {
    return look(n)->input_count;
}

const tare_node *tare_node_input(const tare_node *n, size_t i) {
    return i < look(n)->input_count ? view(look(n)->inputs[i]) : NULL;
}

size_t tare_node_user_count(const tare_node *n) {
    return look(n)->user_count;
}

const tare_node *tare_node_user(const tare_node *n, size_t i) {
    return i < look(n)->user_count ? view(look(n)->users[i]) : NULL;
}

bool tare_node_calls(const tare_node *n, const char *target) {
    if (n == NULL) return false;
    const node_op op = look(n)->op;
    return (op == NODE_CALL_FUNCTION || op == NODE_CALL_METHOD) &&
           strcmp(look(n)->target, target) == 0;
}

bool tare_node_reads(const tare_node *n, const tare_node *input) {
    for (size_t i = 0; i < look(n)->input_count; i++)
        if (look(n)->inputs[i] == look(input)) return true;
    return false;
}

const tare_node *tare_node_only_user(const tare_node *n) {
    return look(n)->user_count == 1 ? view(look(n)->users[0]) : NULL;
}

const char *tare_node_meta_json(const tare_node *n) {
    return look(n)->meta_json;
}

const tare_module *tare_node_module(const tare_model *model, const tare_node *n) {
    return (const tare_module *)tare__called_module(model, look(n));
}

const tare_tensor *tare_node_tensor(const tare_model *model, const tare_node *n) {
    return look(n)->op == NODE_GET_ATTR ? tare__module_find_tensor(model->root, look(n)->target)
                                        : NULL;
}

// Gets a tensor of an observer's statistics, which are not stored as module tensors.
static tare_status copy_statistic(const module *root, const char *name, tare_tensor **out,
                                  tare_error *err) {
    const char *dot = strrchr(name, '.');
    map tensors = {0};
    if (dot == NULL) return TARE_OK;
    char *path = tare__strndup(name, (size_t)(dot - name));
    if (path == NULL) return tare__out_of_memory(err);
    const module *owner = tare__module_find(root, path);
    tare__free(path);
    if (owner == NULL || owner->class->role != ROLE_OBSERVER || owner->state == NULL) return TARE_OK;
    const tare_status status = tare__observer_state_io.save(owner, &tensors, err);
    tare_tensor *found = tare__map_get(&tensors, dot + 1);
    if (status == TARE_OK && found != NULL) *out = tare_tensor_retain(found);
    tare__tensor_map_release(&tensors);
    return status;
}

tare_status tare_model_state_tensor(const tare_model *model, const char *name, tare_tensor **out,
                                    tare_error *err) {
    tare_tensor *own = tare__module_find_tensor(model->root, name);
    *out = own != NULL ? tare_tensor_retain(own) : NULL;
    if (own == NULL) TARE_TRY(copy_statistic(model->root, name, out, err));
    return *out != NULL ? TARE_OK
                        : tare__fail(err, TARE_NOT_FOUND, "the model has no tensor '%s'", name);
}

static void fill_items(const value *v, tare_argument_kind kind, tare_argument *out) {
    out->kind = kind;
    out->count = v->count;
    out->items = v->as.items;
}

void tare__argument_of(const value *v, tare_argument *out) {
    *out = (tare_argument){.struct_size = sizeof *out, .kind = TARE_ARGUMENT_OTHER};
    switch (v->kind) {
    case VALUE_NONE:
        out->kind = TARE_ARGUMENT_NONE;
        break;
    case VALUE_BOOL:
        out->kind = TARE_ARGUMENT_BOOL;
        out->boolean = v->as.boolean;
        out->integer = v->as.boolean;
        break;
    case VALUE_INT:
        out->kind = TARE_ARGUMENT_INT;
        out->integer = v->as.integer;
        out->real = (double)v->as.integer;
        break;
    case VALUE_FLOAT:
        out->kind = TARE_ARGUMENT_FLOAT;
        out->real = v->as.real;
        break;
    case VALUE_STRING:
    case VALUE_LAYOUT:
    case VALUE_DEVICE:
    case VALUE_SYMBOL:
    case VALUE_TYPE:
        out->kind = TARE_ARGUMENT_TEXT;
        out->text = v->as.text;
        break;
    case VALUE_NODE:
        out->kind = TARE_ARGUMENT_NODE;
        out->node = view(v->as.node);
        break;
    case VALUE_LIST:
    case VALUE_TUPLE:
        fill_items(v, TARE_ARGUMENT_LIST, out);
        break;
    case VALUE_DICT:
        fill_items(v, TARE_ARGUMENT_DICT, out);
        break;
    case VALUE_SLICE:
        fill_items(v, TARE_ARGUMENT_SLICE, out);
        break;
    case VALUE_DTYPE:
        out->kind = TARE_ARGUMENT_DTYPE;
        out->dtype = v->as.dtype;
        break;
    case VALUE_ELLIPSIS:
    case VALUE_QSCHEME:
    case VALUE_SCALAR:
    case VALUE_TENSOR:
    case VALUE_MODULE:
        break;
    }
}

static bool fill_if(const value *v, tare_argument *out) {
    const value none = tare__none();
    tare__argument_of(v != NULL ? v : &none, out);
    return v != NULL;
}

bool tare_operator_is_known(tare_node_kind kind, const char *name) {
    return (kind == TARE_NODE_CALL_FUNCTION && tare__op_function(name) != NULL) ||
           (kind == TARE_NODE_CALL_METHOD && tare__op_method(name) != NULL);
}

size_t tare_node_argument_count(const tare_node *n) {
    return look(n)->arg_count;
}

bool tare_node_argument(const tare_node *n, size_t i, tare_argument *out) {
    return fill_if(i < look(n)->arg_count ? &look(n)->args[i] : NULL, out);
}

bool tare_node_keyword(const tare_node *n, const char *name, tare_argument *out) {
    return fill_if(tare__node_kwarg(look(n), name), out);
}

const char *tare_node_keyword_name(const tare_node *n, size_t i) {
    return i < look(n)->kwarg_count ? look(n)->kwargs[i].name : NULL;
}

bool tare_argument_item(const tare_argument *container, size_t i, tare_argument *out) {
    const value *items = container->items;
    return fill_if(items != NULL && i < container->count ? &items[i] : NULL, out);
}

// --- modules ---

static const module *look_at(const tare_module *m) {
    return (const module *)m;
}

bool tare_module_config(const tare_module *m, const char *key, tare_argument *out) {
    return fill_if(tare__module_config(look_at(m), key), out);
}

const char *tare_module_config_key(const tare_module *m, size_t i) {
    return i < look_at(m)->config_count ? look_at(m)->config[i].name : NULL;
}

bool tare_module_config_ints(const tare_module *m, const char *key, size_t count, int64_t *out) {
    const value *v = tare__module_config(look_at(m), key);
    if (v == NULL) return false;
    const bool is_list = v->kind == VALUE_LIST || v->kind == VALUE_TUPLE;
    const value *items = is_list ? v->as.items : v;
    const size_t found = is_list ? v->count : 1;
    if (found != count && (is_list || count == 0)) return false;
    for (size_t i = 0; i < found; i++)
        if (items[i].kind != VALUE_INT) return false;
    for (size_t i = 0; i < count; i++) out[i] = items[is_list ? i : 0].as.integer;
    return true;
}

const char *tare_module_tensor_name(const tare_module *m, size_t i) {
    return i < look_at(m)->tensor_count ? look_at(m)->tensors[i].name : NULL;
}

const char *tare_module_child_name(const tare_module *m, size_t i) {
    return i < look_at(m)->child_count ? look_at(m)->children[i].name : NULL;
}
