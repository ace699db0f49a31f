// SPDX-License-Identifier: Apache-2.0
// Constant folding: nodes that do not depend on a placeholder are computed once, by the
// interpreter.
#include "model/pass.h"
#include "ops/interpret.h"
#include "ops/op.h"

typedef struct folding {
    pass *pass;
    bool *is_wanted; // by node id
    node **copies;   // by node id, in `graph`
    graph *graph;
    bool is_constant;
} folding;

static void want(void *user, node *input) {
    folding *f = user;
    f->is_wanted[input->id] = true;
}

static node *copy_of(void *user, node *n) {
    const folding *f = user;
    return f->copies[n->id];
}

// Marks the nodes that `wanted` needs. Inputs precede their users, so one backward walk suffices.
static void mark(folding *f, const value *wanted, size_t count, const node *before) {
    f->is_constant = true;
    for (size_t i = 0; i < count; i++) tare__value_each_node(&wanted[i], want, f);
    for (const node *n = before->prev; n != NULL; n = n->prev) {
        if (!f->is_wanted[n->id]) continue;
        if (n->op == NODE_PLACEHOLDER) f->is_constant = false;
        tare__node_each_input(n, want, f);
    }
}

static tare_status copy_nodes(folding *f, const value *wanted, uint32_t count, const node *before) {
    tare_error *err = f->pass->err;
    for (const node *n = f->pass->model->root->graph->first; n != before; n = n->next)
        if (f->is_wanted[n->id])
            TARE_TRY(tare__graph_copy_node(f->graph, n, copy_of, f, &f->copies[n->id], err));
    value tuple = tare__value_sequence(&f->graph->memory, VALUE_TUPLE, count);
    if (tuple.as.items == NULL) return tare__out_of_memory(err);
    for (uint32_t i = 0; i < count; i++)
        TARE_TRY(
            tare__value_copy(&f->graph->memory, &wanted[i], copy_of, f, &tuple.as.items[i], err));
    const node_spec spec = {.op = NODE_OUTPUT, .target = "output", .args = &tuple, .arg_count = 1};
    node *output = NULL;
    return tare__graph_insert(f->graph, &spec, NULL, &output, err);
}

static tare_status run_copy(folding *f, value *out) {
    pass *base = f->pass;
    module *m = NULL;
    TARE_TRY(tare__module_from_graph(base->model->root, f->graph, &tare__class_container,
                                     &tare__class_graph_module, &m, base->err));
    f->graph = NULL; // now owned by m
    const interpreter it = {.root = m, .own = m, .thread_count = 1};
    const tare_status status = tare__interpret(&it, NULL, 0, &base->scratch, out, base->err);
    tare__module_release(m);
    return status;
}

tare_status tare__pass_fold(pass *p, const value *wanted, uint32_t count, const node *before,
                            value *out) {
    arena *memory = &p->scratch;
    const size_t id_count = p->model->root->graph->next_id + 1;
    folding f = {.pass = p,
                 .is_wanted = tare__arena_array(memory, id_count, sizeof(bool)),
                 .copies = tare__arena_array(memory, id_count, sizeof(node *))};
    *out = tare__none();
    if (f.is_wanted == NULL || f.copies == NULL) return tare__out_of_memory(p->err);
    mark(&f, wanted, count, before);
    if (!f.is_constant) return TARE_OK;
    TARE_TRY(tare__graph_create(&f.graph, p->err));
    tare_status status = copy_nodes(&f, wanted, count, before);
    if (status == TARE_OK) status = run_copy(&f, out);
    tare__graph_destroy(f.graph);
    return status;
}

tare_status tare__pass_fold_tensors(pass *p, const value *wanted, uint32_t count,
                                    const node *before, tare_tensor **out) {
    value found = tare__none();
    for (uint32_t i = 0; i < count; i++) out[i] = NULL;
    TARE_TRY(tare__pass_fold(p, wanted, count, before, &found));
    for (uint32_t i = 0; found.kind == VALUE_TUPLE && i < count; i++) {
        const value *v = &found.as.items[i];
        if (v->kind == VALUE_TENSOR && v->as.tensor->data != NULL)
            out[i] = tare_tensor_retain(v->as.tensor);
    }
    tare__value_release_tensors(&found);
    return TARE_OK;
}
