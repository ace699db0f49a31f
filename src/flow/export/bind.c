// SPDX-License-Identifier: Apache-2.0
// Gives graphs that operators of control flow run their constants: torch.export passes parameters,
// buffers and constants to them as arguments. A graph that reads them itself has weights that can
// be folded and packed like those of any other graph.
#include <string.h>

#include "flow/export/steps.h"
#include "ops/flow_op.h"
#include "ops/interpret.h"
#include "ops/run_changes.h"

// An operator, its graphs, and the list of values that are the same in every round.
typedef struct binding {
    pass *p;
    node *n;
    const flow_op *f;
    const value *list;
    size_t first;         // position of the list's first value among the inputs of a graph
    const char **written; // paths of tensors that runs change
    size_t written_count;
    const pointer_index *reads; // of graphs; see tare__flow_count_reads
} binding;

static node *input_at(const graph *g, size_t index) {
    for (node *n = g->first; n != NULL; n = n->next)
        if (n->op == NODE_PLACEHOLDER && index-- == 0) return n;
    return NULL;
}

static size_t count_inputs(const graph *g) {
    size_t count = 0;
    for (const node *n = g->first; n != NULL; n = n->next) count += n->op == NODE_PLACEHOLDER;
    return count;
}

// Other operators that run the graph may pass other values.
static bool takes_the_values(const binding *b, const node *reader) {
    const module *m = tare__read_graph(b->p->model->root, reader);
    return m != NULL && tare__is_run_once(b->p->model->root, b->reads, reader) &&
           m->graph->input_names.count == 0 && !tare__may_write(m) &&
           count_inputs(m->graph) == b->first + b->list->count;
}

static bool find_list(binding *b) {
    if (b->f->last_list == 0 || b->n->arg_count <= b->f->last_list || b->n->kwarg_count > 0)
        return false;
    for (size_t i = b->f->first_list; i < b->f->last_list; i++) {
        if (!tare__value_is_list(&b->n->args[i])) return false;
        b->first += b->n->args[i].count;
    }
    b->list = &b->n->args[b->f->last_list];
    for (size_t i = 0; i < b->f->graph_count && tare__value_is_list(b->list); i++) {
        const node *reader = tare__flow_reader(b->n, b->f, i);
        if (reader == NULL || !takes_the_values(b, reader)) return false;
    }
    // Longer lists stay: no such operator runs.
    return tare__value_is_list(b->list) && b->list->count <= FLOW_MOST_VALUES;
}

// --- one value ---

static bool is_written(const binding *b, const char *path) {
    for (size_t i = 0; i < b->written_count; i++)
        if (strcmp(b->written[i], path) == 0) return true;
    return false;
}

// The tensor of the model that value `at` of the list always is; NULL: it is none.
static const named_tensor *constant_at(const binding *b, size_t at) {
    const value *v = &b->list->as.items[at];
    const node *read = v->kind == VALUE_NODE ? v->as.node : NULL;
    if (read == NULL || read->op != NODE_GET_ATTR || is_written(b, read->target)) return NULL;
    const named_tensor *t = tare__module_find_named_tensor(b->p->model->root, read->target);
    return t != NULL && t->tensor != NULL ? t : NULL;
}

static module *graph_of(const binding *b, size_t index) {
    return tare__read_graph(b->p->model->root, tare__flow_reader(b->n, b->f, index));
}

static tare_status put_constant(const binding *b, module *m, const named_tensor *t,
                                const char *path, node *input) {
    node *read = NULL, *before = input;
    const char *name = NULL;
    TARE_TRY(tare__flow_put_tensor(m, t, path, &name, b->p->err));
    while (before->op == NODE_PLACEHOLDER) before = before->next;
    const node_spec spec = {.op = NODE_GET_ATTR, .target = name, .like = input};
    TARE_TRY(tare__graph_insert(m->graph, &spec, before, &read, b->p->err));
    read->debug_handle = input->debug_handle;
    TARE_TRY(tare__node_replace_uses(input, read, NULL, b->p->err));
    return tare__graph_erase(m->graph, input, b->p->err);
}

// --- all values ---

// Takes the constants, of which there are `count`, from the list.
static tare_status shorten(const binding *b, const bool *is_constant, size_t count) {
    graph *g = b->n->owner;
    value *args = tare__arena_array(&b->p->scratch, b->n->arg_count, sizeof *args);
    value rest =
        tare__value_sequence(&b->p->scratch, b->list->kind, b->list->count - (uint32_t)count);
    if (args == NULL || rest.as.items == NULL) return tare__out_of_memory(b->p->err);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < b->list->count; i++)
        if (!is_constant[i]) rest.as.items[kept++] = b->list->as.items[i];
    for (size_t i = 0; i < b->n->arg_count; i++)
        args[i] = i == b->f->last_list ? rest : b->n->args[i];
    node **reads = tare__arena_array(&b->p->scratch, b->list->count + 1, sizeof *reads);
    if (reads == NULL) return tare__out_of_memory(b->p->err);
    const uint32_t whole = b->list->count;
    for (uint32_t i = 0; i < whole; i++)
        reads[i] = is_constant[i] ? b->list->as.items[i].as.node : NULL;
    TARE_TRY(tare__node_set_args(b->n, args, b->n->arg_count, NULL, 0, b->p->err));
    for (uint32_t i = 0; i < whole; i++) {
        for (uint32_t k = 0; k < i && reads[i] != NULL; k++)
            if (reads[k] == reads[i]) reads[i] = NULL;
        if (reads[i] != NULL && reads[i]->user_count == 0)
            TARE_TRY(tare__graph_erase(g, reads[i], b->p->err));
    }
    return TARE_OK;
}

static tare_status bind_all(const binding *b) {
    size_t count = 0;
    bool *is_constant = tare__arena_array(&b->p->scratch, b->list->count + 1, sizeof *is_constant);
    if (is_constant == NULL) return tare__out_of_memory(b->p->err);
    for (size_t at = b->list->count; at-- > 0;) { // from the end, so that positions stay
        const named_tensor *t = constant_at(b, at);
        for (size_t i = 0; t != NULL && i < b->f->graph_count; i++) {
            module *m = graph_of(b, i);
            TARE_TRY(put_constant(b, m, t, b->list->as.items[at].as.node->target,
                                  input_at(m->graph, b->first + at)));
        }
        is_constant[at] = t != NULL;
        count += t != NULL;
    }
    return count > 0 ? shorten(b, is_constant, count) : TARE_OK;
}

tare_status tare__pt2e_bind_constants(pass *p, bool all) {
    const module *root = p->model->root;
    const char **written =
        tare__arena_array(&p->scratch, root->graph->node_count + 1, sizeof *written);
    if (written == NULL) return tare__out_of_memory(p->err);
    const size_t written_count = tare__run_written_tensors(root, written);
    pointer_index reads = {0};
    TARE_TRY(tare__flow_count_reads(root, &p->scratch, &reads, p->err));
    for (node *n = root->graph->first; n != NULL; n = n->next) {
        binding b = {.p = p,
                     .n = n,
                     .f = tare__flow_op(n),
                     .written = written,
                     .written_count = written_count,
                     .reads = &reads};
        if (b.f != NULL && (all || !b.f->is_torchs) && find_list(&b)) TARE_TRY(bind_all(&b));
    }
    return TARE_OK;
}
