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

// Any argument that is true may be the one that says so: overloads have them in other places.
static bool may_train(const module *root, const node *n) {
    const op_info *op = n->op == NODE_CALL_FUNCTION ? tare__op_function(n->target) : NULL;
    if (op == NULL || (strcmp(op->id, "batch_norm") != 0 && strcmp(op->id, "instance_norm") != 0))
        return false;
    bool found = tare__module_bool(root, EXPORTED_TRAINING, false);
    for (size_t i = 0; i < n->arg_count; i++) found = found || is_true(&n->args[i]);
    for (size_t i = 0; i < n->kwarg_count; i++) found = found || is_true(&n->kwargs[i].value);
    return found;
}

// is_part, by node id: it may be a tensor of the model, a part of one or another name for it.
static bool graph_changes(const module *root, bool *is_part) {
    for (const node *n = root->graph->first; n != NULL; n = n->next) {
        const node *first = tare__node_arg(n, 0);
        const bool of_part = first != NULL && is_part[first->id];
        if (may_train(root, n) || (of_part && tare__node_writes_in_place(root, n))) return true;
        is_part[n->id] = n->op == NODE_GET_ATTR || of_part;
    }
    return false;
}

static tare_status look_at_graph(const module *m, bool *out, tare_error *err) {
    bool *is_part = tare__alloc_zeroed(m->graph->next_id + 1, sizeof *is_part);
    if (is_part == NULL) return tare__out_of_memory(err);
    *out = graph_changes(m, is_part);
    tare__free(is_part);
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

// What a node's first argument is a part of, or another name for; NULL: nothing of the model.
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
