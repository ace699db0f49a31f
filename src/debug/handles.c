// SPDX-License-Identifier: Apache-2.0
// Debug handles: numbers of a model's values, which passes and files preserve.
#include <inttypes.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/memory/map.h"
#include "model/model.h"
#include "ops/flow_op.h"
#include "tare/debug.h"

// The graphs of a model, breadth first; one that two nodes refer to occurs twice.
typedef struct graph_queue {
    module **items;
    size_t count, capacity;
} graph_queue;

static tare_status append(graph_queue *q, module *m, tare_error *err) {
    if (!tare__grow((void **)&q->items, &q->capacity, q->count, sizeof(module *)))
        return tare__out_of_memory(err);
    q->items[q->count++] = m;
    return TARE_OK;
}

// torch's walk visits the graphs that operators of control flow run, without a loop's condition and
// the graphs of contexts.
static tare_status append_branches(graph_queue *q, module *owner, const node *n, tare_error *err) {
    const flow_op *f = tare__flow_op(n);
    if (f == NULL || f->last_list == 0) return TARE_OK;
    for (size_t k = f->deciding_count; k < f->graph_count; k++) {
        module *branch = tare__read_graph(owner, tare__flow_reader(n, f, k));
        if (branch != NULL) TARE_TRY(append(q, branch, err));
    }
    return TARE_OK;
}

static tare_status list_graphs(module *root, graph_queue *q, tare_error *err) {
    TARE_TRY(append(q, root, err));
    for (size_t i = 0; i < q->count; i++) {
        module *owner = q->items[i];
        for (const node *n = owner->graph->first; n != NULL; n = n->next)
            TARE_TRY(append_branches(q, owner, n, err));
    }
    return TARE_OK;
}

// True for a node of the program itself. Guards and reads of tensors are added by .module().
static bool has_value(const module *owner, const node *n) {
    if (n->op == NODE_PLACEHOLDER || n->op == NODE_OUTPUT) return false;
    if (n->op == NODE_GET_ATTR) return tare__module_find(owner, n->target) != NULL;
    if (n->op != NODE_CALL_MODULE) return true;
    const module *called = tare__module_find(owner, n->target);
    return called == NULL || called->class->op == NULL || strcmp(called->class->op, "guards") != 0;
}

static int64_t greatest_handle(const graph_queue *q) {
    int64_t greatest = 0;
    for (size_t i = 0; i < q->count; i++)
        for (const node *n = q->items[i]->graph->first; n != NULL; n = n->next)
            if (n->debug_handle > greatest) greatest = n->debug_handle;
    return greatest;
}

static tare_status number(const graph_queue *q, tare_error *err) {
    int64_t last = greatest_handle(q);
    for (size_t i = 0; i < q->count; i++)
        for (node *n = q->items[i]->graph->first; n != NULL; n = n->next) {
            if (n->debug_handle != 0 || !has_value(q->items[i], n)) continue;
            if (last == INT64_MAX)
                return tare__fail(err, TARE_INVALID_ARGUMENT,
                                  "node '%s': no debug handle is left above %" PRId64, n->name,
                                  last);
            n->debug_handle = ++last;
        }
    return TARE_OK;
}

tare_status tare_debug_handles_generate(tare_model *model, tare_error *err) {
    if (model == NULL) return tare__fail(err, TARE_INVALID_ARGUMENT, "debug handles need a model");
    graph_queue q = {0};
    tare_status status = list_graphs(model->root, &q, err);
    if (status == TARE_OK) status = number(&q, err);
    tare__free(q.items);
    return status;
}

int64_t tare_node_debug_handle(const tare_node *n) {
    return ((const node *)n)->debug_handle;
}

bool tare_model_has_debug_handles(const tare_model *model) {
    for (const node *n = model->root->graph->first; n != NULL; n = n->next)
        if (n->debug_handle != 0) return true;
    return false;
}
