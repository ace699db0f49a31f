// SPDX-License-Identifier: Apache-2.0
// Builds the model's graph: the draft's nodes in order, with modules in place of the calls that
// they make, and names as torch.fx gives them.
#include "io/onnx/lift/lift.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "core/text/text.h"
#include "ir/call_names.h"

// --- constants that stay tensors ---

static bool is_name(const char *name) {
    if (name == NULL || strstr(name, "::") != NULL) return false;
    bool is_begin = true;
    for (const char *c = name; *c != '\0'; c++) {
        const bool is_plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                              (*c >= '0' && *c <= '9') || *c == '_';
        if (!is_plain && (*c != '.' || is_begin)) return false;
        is_begin = *c == '.';
    }
    return !is_begin;
}

// True if a tensor of this name can be added to the tree: the parent is, or can become, a
// container.
static bool is_free_name(const lift *l, const char *name) {
    const module *m = l->root;
    for (const char *at = name;;) {
        const size_t length = strcspn(at, ".");
        if (m != NULL && m->class->role != ROLE_CONTAINER) return false;
        if (at[length] == '\0')
            return m == NULL ||
                   (!tare__module_has_tensor(m, at) && tare__module_child(m, at) == NULL);
        m = m != NULL ? tare__module_child_n(m, at, length) : NULL;
        at += length + 1;
    }
}

static tare_status bind_constant(lift *l, const char *name, tare_tensor *t, const char **out) {
    while (!is_name(name) || !is_free_name(l, name)) {
        name = tare__arena_printf(&l->scratch, "_tensor_constant%zu", l->constant_count++);
        if (name == NULL) return tare__out_of_memory(l->err);
    }
    *out = name;
    return tare__module_set_tensor_path(l->root, name, t, false, &tare__class_container, l->err);
}

static tare_status add_constant(lift *l, const node *n) {
    const char *target = NULL;
    node **out = &l->mapped[n->id];
    tare_tensor *values = tare__onnx_info(l->in, n)->constant;
    const onnx_constant *c = tare__onnx_constant_of(l->in, values);
    TARE_TRY(bind_constant(l, c->name, c->quantized != NULL ? c->quantized : values, &target));
    const node_spec spec = {.op = NODE_GET_ATTR, .target = target};
    TARE_TRY(tare__graph_insert(l->g, &spec, NULL, out, l->err));
    if (c->quantized == NULL) return TARE_OK;
    // Weights that the file stores as integers stay integers.
    const value quantized = tare__node_value(*out);
    const node_spec dequantize = {
        .op = NODE_CALL_METHOD, .target = "dequantize", .args = &quantized, .arg_count = 1};
    return tare__graph_insert(l->g, &dequantize, NULL, out, l->err);
}

// Adds get_attr nodes before the first node that reads a constant as a tensor.
static tare_status add_constants(lift *l, node *const *inputs, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (inputs[i]->op == NODE_GET_ATTR && l->mapped[inputs[i]->id] == NULL)
            TARE_TRY(add_constant(l, inputs[i]));
    return TARE_OK;
}

// --- nodes ---

static node *translate(void *user, node *n) {
    const lift *l = user;
    return l->mapped[n->id];
}

static tare_status set_scope(lift *l, node *n, const char *path, const char *type) {
    if (!tare__arena_copy_text(&l->g->memory, path, &n->scope_path) ||
        !tare__arena_copy_text(&l->g->memory, type, &n->scope_type))
        return tare__out_of_memory(l->err);
    return TARE_OK;
}

// Copies arguments and maps draft nodes to the model's nodes.
static tare_status copy_args(lift *l, const node *n, node_spec *spec) {
    value *args = tare__arena_array(&l->scratch, n->arg_count + 1, sizeof *args);
    keyword *kwargs = tare__arena_array(&l->scratch, n->kwarg_count + 1, sizeof *kwargs);
    if (args == NULL || kwargs == NULL) return tare__out_of_memory(l->err);
    for (size_t i = 0; i < n->arg_count; i++)
        TARE_TRY(tare__value_copy(&l->scratch, &n->args[i], translate, l, &args[i], l->err));
    for (size_t i = 0; i < n->kwarg_count; i++) {
        kwargs[i].name = n->kwargs[i].name;
        TARE_TRY(tare__value_copy(&l->scratch, &n->kwargs[i].value, translate, l, &kwargs[i].value,
                                  l->err));
    }
    spec->args = args;
    spec->arg_count = n->arg_count;
    spec->kwargs = kwargs;
    spec->kwarg_count = n->kwarg_count;
    return TARE_OK;
}

static tare_status add_plain(lift *l, const node *n) {
    const onnx_scope *scope = tare__onnx_info(l->in, n)->scope;
    node_spec spec = {.op = n->op, .target = n->target};
    if (n->op == NODE_PLACEHOLDER) spec.like = n;
    TARE_TRY(add_constants(l, n->inputs, n->input_count));
    TARE_TRY(copy_args(l, n, &spec));
    node **out = &l->mapped[n->id];
    TARE_TRY(tare__graph_insert(l->g, &spec, NULL, out, l->err));
    return scope != NULL && *scope->path != '\0' ? set_scope(l, *out, scope->path, scope->type)
                                                 : TARE_OK;
}

// A call of a module takes the first input; the module holds the other ones.
static tare_status add_module(lift *l, const node *n, const lift_choice *choice) {
    const char *path = NULL;
    TARE_TRY(tare__lift_bind(l, n, choice, &path));
    node_spec spec = {.op = NODE_CALL_MODULE, .target = path};
    value first = tare__none();
    if (n->op == NODE_CALL_MODULE) {
        TARE_TRY(add_constants(l, n->inputs, n->input_count));
        TARE_TRY(copy_args(l, n, &spec));
    } else {
        TARE_TRY(add_constants(l, &n->args[0].as.node, 1));
        first = tare__node_value(l->mapped[n->args[0].as.node->id]);
        spec.args = &first;
        spec.arg_count = 1;
    }
    node **out = &l->mapped[n->id];
    TARE_TRY(tare__graph_insert(l->g, &spec, NULL, out, l->err));
    return set_scope(l, *out, path, tare__module_find(l->root, path)->class->name);
}

static tare_status add_node(lift *l, const node *n) {
    lift_choice choice = {0};
    if (n->op == NODE_GET_ATTR) return TARE_OK; // added where it is used
    TARE_TRY(tare__lift_choose(l, n, &choice));
    if (n->op == NODE_CALL_MODULE) {
        const draft_info *info = tare__onnx_info(l->in, n);
        const bool has_path = info->scope != NULL && *info->scope->path != '\0';
        choice.path = has_path                   ? info->scope->path
                      : *info->file_name != '\0' ? info->file_name
                                                 : n->name;
        return add_module(l, n, &choice);
    }
    return choice.class != NULL ? add_module(l, n, &choice) : add_plain(l, n);
}

// --- the whole ---

// ONNX files hold models in evaluation mode. Containers are created with training set.
static void leave_training(module *m) {
    m->training = false;
    for (size_t i = 0; i < m->child_count; i++) leave_training(m->children[i].module);
}

static tare_status build(lift *l) {
    const value class_name = tare__string("GraphModule");
    TARE_TRY(tare__lift_count_calls(l));
    TARE_TRY(tare__lift_respell(l));
    l->mapped = tare__arena_array(&l->scratch, l->in->draft->next_id + 1, sizeof *l->mapped);
    if (l->mapped == NULL) return tare__out_of_memory(l->err);
    TARE_TRY(tare__module_create(&tare__class_graph_module, &l->root, l->err));
    TARE_TRY(tare__module_set_config(l->root, "class_name", &class_name, l->err));
    TARE_TRY(tare__graph_create(&l->g, l->err));
    for (const node *n = l->in->draft->first; n != NULL; n = n->next) TARE_TRY(add_node(l, n));
    leave_training(l->root);
    TARE_TRY(tare__call_names_set(l->g, &l->in->draft->input_names, &l->in->draft->output_names,
                                  l->err));
    return tare__graph_verify(l->g, l->err);
}

tare_status tare__onnx_lift(onnx_import *in, module **out) {
    lift l = {.in = in, .err = in->err};
    const tare_status status = build(&l);
    tare__map_release(&l.calls);
    tare__arena_release(&l.scratch);
    if (status != TARE_OK) {
        tare__graph_destroy(l.g);
        tare__module_release(l.root);
        return status;
    }
    l.root->graph = l.g;
    *out = l.root;
    return TARE_OK;
}
