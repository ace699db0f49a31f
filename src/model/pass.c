// SPDX-License-Identifier: Apache-2.0
// Common functions of the passes in FX mode.
#include "model/pass.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "ir/call_names.h"
#include "model/shapes.h"
#include "ops/interpret.h"

tare_status tare__pass_begin(pass *p, const char *name, const tare_model *source,
                             const tare_backend_config *backend, tare_error *err) {
    *p = (pass){.name = name, .source = source, .backend = backend, .err = err};
    if (source == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "%s: expected a model, found NULL", name);
    if (backend == NULL) {
        TARE_TRY(tare_backend_config_builtin("native", &p->own_backend, err));
        p->backend = p->own_backend;
    }
    TARE_TRY(tare_backend_config_check(p->backend, err));
    module *root = NULL;
    TARE_TRY(tare__module_clone(source->root, &root, err));
    const tare_status status =
        tare__model_create(source->context, root, source->stage, source, &p->model, err);
    if (status != TARE_OK) tare__module_release(root);
    return status;
}

tare_status tare__pass_end(pass *p, tare_status status, tare_model **out) {
#ifdef TARE_VERIFY
    if (status == TARE_OK) {
        status = tare__graph_verify(p->model->root->graph, p->err);
        if (status != TARE_OK) status = tare__at(p->err, status, "after pass '%s'", p->name);
    }
#endif
    if (status == TARE_OK && p->model->stage >= TARE_STAGE_REFERENCE && !p->is_torchs) {
        status = tare__verify_dtypes(p->model, p->source, p->err);
        if (status != TARE_OK)
            status = tare__at(p->err, status, "pass '%s' made a model that cannot run", p->name);
    }
    if (status == TARE_OK) {
        *out = p->model;
        p->model = NULL;
    }
    tare_model_destroy(p->model);
    tare_backend_config_destroy(p->own_backend);
    tare__arena_release(&p->scratch);
    return status;
}

tare_status tare__pass_rebuild(pass *p, graph *g) {
    module *rebuilt = NULL;
    graph *before = p->model->root->graph;
    tare_status status = TARE_OK;
    if (g == NULL) {
        g = before;
        p->model->root->graph = NULL;
    } else {
        status = tare__call_names_set(g, &before->input_names, &before->output_names, p->err);
    }
    if (status == TARE_OK)
        status = tare__module_from_graph(p->model->root, g, &tare__class_container,
                                         &tare__class_graph_module, &rebuilt, p->err);
    if (status != TARE_OK) {
        tare__graph_destroy(g);
        return status;
    }
    rebuilt->training = p->model->root->training;
    const value *mode = tare__module_config(p->model->root, EXPORTED_TRAINING);
    const tare_status kept =
        mode != NULL ? tare__module_set_config(rebuilt, EXPORTED_TRAINING, mode, p->err) : TARE_OK;
    tare__module_release(p->model->root);
    p->model->root = rebuilt;
    return kept;
}

static tare_status preserve_one(pass *p, const char *name, const module *source, bool *found) {
    module *root = p->model->root;
    const named_tensor *tensor = tare__module_named_tensor(source, name);
    const module *child = tare__module_child(source, name);
    const value *config = tare__module_config(source, name);
    *found = tensor != NULL || child != NULL || config != NULL;
    if (tensor != NULL && !tare__module_has_tensor(root, name))
        return tare__module_set_tensor(root, name, tensor->tensor, tensor->is_parameter, p->err);
    if (config != NULL) return tare__module_set_config(root, name, config, p->err);
    if (child == NULL || tare__module_child(root, name) != NULL) return TARE_OK;
    module *copy = NULL;
    TARE_TRY(tare__module_clone(child, &copy, p->err));
    const tare_status status = tare__module_set_child(root, name, copy, p->err);
    tare__module_release(copy);
    return status;
}

tare_status tare__pass_preserve(pass *p, const name_list *names, const module *source,
                                bool is_lenient) {
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->items[i];
        bool found = false;
        TARE_TRY(preserve_one(p, name, source, &found));
        if (found) continue;
        if (!is_lenient)
            return tare__fail(p->err, TARE_NOT_FOUND,
                              "%s: the model has no attribute '%s' to preserve", p->name, name);
        const tare_decision d = {.pass = p->name, .decision = "warning", .rule = name};
        TARE_TRY(tare__record_add(&p->model->decisions, &d, p->err,
                                  "the model has no attribute '%s' to preserve", name));
    }
    return TARE_OK;
}

// A node's target that is a child of a module which is not just a container.
typedef struct called_child {
    const char *target;
    struct called_child *next;
} called_child;

static bool names_inner_child(const module *root, const char *path) {
    for (const module *m = root;; path++) {
        const size_t length = strcspn(path, ".");
        const module *child = tare__module_child_n(m, path, length);
        if (child == NULL) return false;
        if (m != root && m->class != &tare__class_container) return true;
        path += length;
        if (*path == '\0') return false;
        m = child;
    }
}

// Lists such targets once; there are few, mostly none. Scanning the graph for each child of each
// new module would take quadratic time.
static tare_status find_called_children(pass *p) {
    const module *root = p->source->root;
    if (p->has_called_children || root->graph == NULL) return TARE_OK;
    for (const node *n = root->graph->first; n != NULL; n = n->next) {
        if (n->op != NODE_CALL_MODULE && n->op != NODE_GET_ATTR) continue;
        if (!names_inner_child(root, n->target)) continue;
        called_child *found = tare__arena_alloc(&p->scratch, sizeof *found);
        if (found == NULL) return tare__out_of_memory(p->err);
        *found = (called_child){n->target, p->called_children};
        p->called_children = found;
    }
    p->has_called_children = true;
    return TARE_OK;
}

static bool is_child_called(const pass *p, const module *outer, const char *path) {
    const size_t length = strlen(path);
    const called_child *c = p->called_children;
    while (c != NULL && strncmp(c->target, path, length) != 0) c = c->next;
    return (c != NULL || outer->class == &tare__class_container) &&
           tare__graph_reads_path(p->model->root->graph, path);
}

// Moves children that nodes call directly (an activation inside a subclass of a norm) from the
// module at `path` to the module that replaces it.
static tare_status keep_called_children(pass *p, const char *path, module *m) {
    const module *old = tare__module_find(p->model->root, path);
    if (old == NULL || old == m) return TARE_OK;
    TARE_TRY(find_called_children(p));
    for (size_t i = 0; i < old->child_count; i++) {
        const named_module *child = &old->children[i];
        if (tare__module_child_const(m, child->name) != NULL) continue;
        const char *child_path = tare__arena_printf(&p->scratch, "%s.%s", path, child->name);
        if (child_path == NULL) return tare__out_of_memory(p->err);
        if (is_child_called(p, old, child_path))
            TARE_TRY(tare__module_set_child(m, child->name, child->module, p->err));
    }
    return TARE_OK;
}

tare_status tare__pass_put_module(pass *p, const char *path, module *m, tare_status status) {
    if (status == TARE_OK) status = keep_called_children(p, path, m);
    if (status == TARE_OK)
        status = tare__module_set_path(p->model->root, path, m, &tare__class_container, p->err);
    tare__module_release(m);
    return status;
}

module *tare__called_module(const tare_model *model, const node *n) {
    return n->op == NODE_CALL_MODULE ? tare__module_find(model->root, n->target) : NULL;
}

const op_info *tare__called_row(const tare_model *model, const node *n) {
    const module *m = tare__called_module(model, n);
    return m != NULL ? tare__class_row(m->class) : tare__node_row(n);
}

bool tare__is_observer_node(const tare_model *model, const node *n) {
    const module *m = tare__called_module(model, n);
    bool is_input = false;
    return m != NULL && m->class->role == ROLE_OBSERVER &&
           !tare__observer_class_is_equalizer(tare__observer_class_of(m), &is_input);
}

node *tare__behind_observers(const tare_model *model, node *n) {
    while (n != NULL && tare__is_observer_node(model, n)) n = tare__node_arg(n, 0);
    return n;
}

bool tare__is_equalizer_node(const tare_model *model, const node *n, bool *is_input) {
    const module *m = tare__called_module(model, n);
    *is_input = false;
    return m != NULL && m->class->role == ROLE_OBSERVER &&
           tare__observer_class_is_equalizer(tare__observer_class_of(m), is_input);
}

tare_status tare__pass_spec_info(const pass *p, const tare_observer_spec *spec,
                                 tare_observer_info *out) {
    *out = (tare_observer_info){0};
    if (spec == NULL) return TARE_OK;
    const tare_status status =
        tare__observer_spec_info(&p->model->context->observers, spec, out, p->err);
    return tare__at(p->err, status, "qconfig, %s", tare__observer_spec_class(spec));
}

const char *tare__node_subject(const tare_model *model, const node *n) {
    if (n->op == NODE_CALL_MODULE) {
        const module *m = tare__called_module(model, n);
        return m != NULL ? m->class->name : n->target;
    }
    if (n->op == NODE_CALL_FUNCTION || n->op == NODE_CALL_METHOD) return n->target;
    return tare__node_op_name(n->op);
}
