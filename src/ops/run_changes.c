// SPDX-License-Identifier: Apache-2.0
// Decides from a model's graphs and modules whether running it changes it.
#include "ops/run_changes.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "ops/interpret.h"
#include "ops/op.h"

static bool is_true(const value *v) {
    return v->kind == VALUE_BOOL && v->as.boolean;
}

// Any true argument counts as `training`: its position differs between overloads.
static bool may_train(const module *root, const node *n) {
    const op_info *op = n->op == NODE_CALL_FUNCTION ? tare__op_function(n->target) : NULL;
    if (op == NULL || (strcmp(op->id, "batch_norm") != 0 && strcmp(op->id, "instance_norm") != 0))
        return false;
    bool found = tare__module_bool(root, EXPORTED_TRAINING, false);
    for (size_t i = 0; i < n->arg_count; i++) found = found || is_true(&n->args[i]);
    for (size_t i = 0; i < n->kwarg_count; i++) found = found || is_true(&n->kwargs[i].value);
    return found;
}

// is_of_model: by node id, true if the node's value may be a tensor of the model or a view of one.
static bool graph_changes(const module *root, bool *is_of_model) {
    for (const node *n = root->graph->first; n != NULL; n = n->next) {
        const node *first = tare__node_arg(n, 0);
        const bool of_model = first != NULL && is_of_model[first->id];
        if (may_train(root, n) || (of_model && tare__node_writes_in_place(root, n))) return true;
        is_of_model[n->id] = n->op == NODE_GET_ATTR || of_model;
    }
    return false;
}

static tare_status look_at_graph(const module *m, bool *out, tare_error *err) {
    bool *is_of_model = tare__alloc_zeroed(m->graph->next_id + 1, sizeof *is_of_model);
    if (is_of_model == NULL) return tare__out_of_memory(err);
    *out = graph_changes(m, is_of_model);
    tare__free(is_of_model);
    return TARE_OK;
}

static bool module_changes(const module *m) {
    const bool has_statistics = tare__module_has_tensor(m, "running_mean");
    return m->class->role == ROLE_OBSERVER || (m->training && has_statistics);
}

tare_status tare__run_changes_modules(const module *root, bool *out, tare_error *err) {
    bool changes = module_changes(root);
    if (!changes && root->graph != NULL) TARE_TRY(look_at_graph(root, &changes, err));
    for (size_t i = 0; !changes && i < root->child_count; i++)
        TARE_TRY(tare__run_changes_modules(root->children[i].module, &changes, err));
    *out = changes;
    return TARE_OK;
}

// The path of the model's tensor that a node's first argument is or is a view of; NULL: none.
static const char *written_by(const node *n) {
    const node *from = tare__node_arg(n, 0);
    while (from != NULL && from->op != NODE_GET_ATTR) from = tare__node_arg(from, 0);
    return from != NULL ? from->target : NULL;
}

static bool is_listed(const char *const *paths, size_t count, const char *path) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(paths[i], path) == 0) return true;
    return false;
}

bool tare__may_write(const module *root) {
    for (const node *n = root->graph->first; n != NULL; n = n->next)
        if (may_train(root, n) || tare__node_writes_in_place(root, n)) return true;
    for (size_t i = 0; i < root->child_count; i++) {
        const module *child = root->children[i].module;
        if (child->graph != NULL && tare__may_write(child)) return true;
    }
    return false;
}

size_t tare__run_written_tensors(const module *root, const char **paths) {
    size_t count = 0;
    for (const node *n = root->graph->first; n != NULL; n = n->next) {
        const char *path = tare__node_writes_in_place(root, n) ? written_by(n) : NULL;
        if (path != NULL && tare__module_find_tensor(root, path) != NULL &&
            !is_listed(paths, count, path))
            paths[count++] = path;
    }
    return count;
}
