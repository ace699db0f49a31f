// SPDX-License-Identifier: Apache-2.0
// The arguments of operators of control flow.
#include "ops/flow_op.h"

#include <string.h>

#include "ops/classes/classes.h"
#include "ops/op.h"

static const flow_op flow_ops[] = {
    {1, 2, 0, 3, 3, TARE_OP_HIGHER_ORDER_COND, false},
    {0, 2, 1, 2, 3, TARE_OP_HIGHER_ORDER_WHILE_LOOP, true},
    {0, 1, 0, 1, 3, TARE_OP_HIGHER_ORDER_SCAN, true},
    {0, 1, 0, 1, 2, TARE_OP_HIGHER_ORDER_MAP_IMPL, false},
    {1, 1, 0, 0, 0, TARE_OP_HIGHER_ORDER_WRAP_WITH_SET_GRAD_ENABLED, false},
    {4, 1, 0, 0, 0, TARE_OP_HIGHER_ORDER_WRAP_WITH_AUTOCAST, false},
};

const flow_op *tare__flow_op(const node *n) {
    const op_id id = tare__function_op(n);
    for (size_t i = 0; id != TARE_OP_NONE && i < sizeof flow_ops / sizeof *flow_ops; i++)
        if (flow_ops[i].op == id) return &flow_ops[i];
    return NULL;
}

node *tare__flow_reader(const node *n, const flow_op *f, size_t index) {
    node *reader = index < f->graph_count ? tare__node_arg(n, f->first_graph + index) : NULL;
    return reader != NULL && reader->op == NODE_GET_ATTR ? reader : NULL;
}

const module *tare__read_graph_const(const module *root, const node *reader) {
    const module *m = reader != NULL && reader->op == NODE_GET_ATTR
                          ? tare__module_find(root, reader->target)
                          : NULL;
    return m != NULL && m->graph != NULL ? m : NULL;
}

module *tare__read_graph_mutable(module *root, const node *reader) {
    return (module *)tare__read_graph_const(root, reader); // NOLINT: of a tree that may be changed
}

static bool is_run(const node *reader) {
    for (size_t i = 0; i < reader->user_count; i++) {
        const flow_op *f = tare__flow_op(reader->users[i]);
        for (size_t k = f != NULL ? f->deciding_count : 0; f != NULL && k < f->graph_count; k++)
            if (tare__flow_reader(reader->users[i], f, k) == reader) return true;
    }
    return false;
}

tare_status tare__flow_each_graph(const module *root, flow_visitor visit, void *user,
                                  tare_error *err) {
    map seen = {0}; // paths
    tare_status status = TARE_OK;
    for (const node *n = root->graph->first; n != NULL && status == TARE_OK; n = n->next) {
        if (tare__read_graph(root, n) == NULL || !is_run(n) || tare__map_has(&seen, n->target))
            continue;
        status = tare__map_set(&seen, n->target, NULL) ? visit(user, root, n, err)
                                                       : tare__out_of_memory(err);
    }
    tare__map_release(&seen);
    return status;
}

// How often a node takes the graph that a node reads.
static size_t times_taken(const node *n, const node *reader) {
    const flow_op *f = tare__flow_op(n);
    size_t count = 0;
    for (size_t i = 0; f != NULL && i < f->graph_count; i++)
        count += tare__flow_reader(n, f, i) == reader;
    return count;
}

tare_status tare__flow_count_reads(const module *root, arena *memory, pointer_index *reads,
                                   tare_error *err) {
    for (const node *n = root->graph->first; n != NULL; n = n->next) {
        const module *m = tare__read_graph(root, n);
        if (m == NULL) continue;
        const size_t count = tare__pointer_index_get(reads, m, 0) + 1;
        if (!tare__pointer_index_set(reads, memory, m, count)) return tare__out_of_memory(err);
    }
    return TARE_OK;
}

bool tare__is_run_once(const module *root, const pointer_index *reads, const node *reader) {
    const module *m = tare__read_graph(root, reader);
    return tare__pointer_index_get(reads, m, 0) == 1 && reader->user_count == 1 &&
           times_taken(reader->users[0], reader) == 1;
}

tare_status tare__flow_put_tensor(module *root, const named_tensor *t, const char *path,
                                  const char **name, tare_error *err) {
    arena *memory = &root->graph->memory;
    size_t number = 0;
    const tare_tensor *other = tare__module_find_tensor(root, path);
    const bool is_free = other == NULL && tare__module_find(root, path) == NULL;
    *name = is_free || other == t->tensor
                ? tare__arena_strdup(memory, path)
                : tare__module_free_name(root, memory, "_constant", &number);
    if (*name == NULL) return tare__out_of_memory(err);
    return tare__module_set_tensor_path(root, *name, t->tensor, t->is_parameter,
                                        &tare__class_container, err);
}
