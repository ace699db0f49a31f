// SPDX-License-Identifier: Apache-2.0
// Programs hold tensors at the top only. What graphs of control flow read themselves (weights that
// were bound to them, scales per channel, integers of weights) becomes an argument of theirs again.
#include "io/pt2/write/hoist.h"

#include <inttypes.h>

#include "core/text/text.h"
#include "ops/flow_op.h"

typedef struct hoisting {
    module *root; // whose operator n runs the graphs
    node *n;
    const flow_op *f;
    const pointer_index *reads; // of the graphs inside; see tare__flow_count_reads
    tare_error *err;
} hoisting;

static bool reads_tensor(const module *m, const node *n) {
    return n->op == NODE_GET_ATTR && tare__module_find_tensor((module *)m, n->target) != NULL;
}

bool tare__pt2_needs_hoist(const module *root) {
    for (const node *n = root->graph->first; n != NULL; n = n->next) {
        const module *m = tare__read_graph(root, n);
        for (const node *k = m != NULL ? m->graph->first : NULL; k != NULL; k = k->next)
            if (reads_tensor(m, k)) return true;
        if (m != NULL && tare__pt2_needs_hoist(m)) return true;
    }
    return false;
}

// --- one tensor ---

static tare_status put_tensor(const hoisting *h, const named_tensor *t, const char *path,
                              node **out) {
    const char *name = NULL;
    TARE_TRY(tare__flow_put_tensor(h->root, t, path, &name, h->err));
    const node_spec spec = {.op = NODE_GET_ATTR, .target = name};
    return tare__graph_insert(h->root->graph, &spec, h->n, out, h->err);
}

// The lists of an operator end with that of the values that are the same in every round.
static tare_status pass_on(const hoisting *h, node *read) {
    arena *memory = &h->root->graph->memory;
    const size_t count = h->n->arg_count, last = h->f->last_list;
    value *args = tare__arena_array(memory, count + 2, sizeof *args);
    if (args == NULL) return tare__out_of_memory(h->err);
    for (size_t i = 0; i < count; i++) args[i] = h->n->args[i];
    if (last == 0) { // single values
        args[count] = tare__node_value(read);
        return tare__node_set_args(h->n, args, count + 1, h->n->kwargs, h->n->kwarg_count, h->err);
    }
    const uint32_t before = last < count ? args[last].count : 0;
    value list =
        tare__value_sequence(memory, last < count ? args[last].kind : VALUE_TUPLE, before + 1);
    if (list.as.items == NULL) return tare__out_of_memory(h->err);
    for (uint32_t i = 0; i < before; i++) list.as.items[i] = args[last].as.items[i];
    list.as.items[before] = tare__node_value(read);
    args[last] = list;
    return tare__node_set_args(h->n, args, last + 1, h->n->kwargs, h->n->kwarg_count, h->err);
}

static tare_status describe(const hoisting *h, const tare_tensor *t, node *input) {
    text meta = {0};
    tare__text_append(&meta, "{\"val\": {\"shape\": [");
    for (int d = 0; d < t->ndim; d++)
        tare__text_printf(&meta, "%s%" PRId64, d > 0 ? ", " : "", t->shape[d]);
    tare__text_printf(&meta, "], \"dtype\": \"%s\"}}", tare_dtype_name(t->dtype));
    const tare_status status = tare__text_status(&meta, h->err);
    if (status == TARE_OK)
        input->meta_json = tare__arena_strdup(&input->owner->memory, tare__text_chars(&meta));
    tare__text_release(&meta);
    return status != TARE_OK || input->meta_json != NULL ? status : tare__out_of_memory(h->err);
}

// Adds an input behind the others.
static tare_status add_input(const hoisting *h, module *m, const tare_tensor *t, node **out) {
    node *before = m->graph->first;
    const char *name = NULL;
    for (node *n = m->graph->first; n != NULL; n = n->next)
        if (n->op == NODE_PLACEHOLDER) before = n->next;
    TARE_TRY(tare__graph_name(m->graph, "constant", &name, h->err));
    const node_spec spec = {.op = NODE_PLACEHOLDER, .target = name, .candidate = name};
    TARE_TRY(tare__graph_insert(m->graph, &spec, before, out, h->err));
    (*out)->target = (*out)->name;
    return describe(h, t, *out);
}

// All graphs of the operator take the same values.
static tare_status hoist(const hoisting *h, node *inside) {
    module *of = NULL;
    node *read = NULL;
    for (size_t i = 0; i < h->f->graph_count; i++) {
        module *m = tare__read_graph(h->root, tare__flow_reader(h->n, h->f, i));
        if (m != NULL && m->graph == inside->owner) of = m;
    }
    const named_tensor *t = tare__module_find_named_tensor(of, inside->target);
    TARE_TRY(put_tensor(h, t, inside->target, &read));
    TARE_TRY(pass_on(h, read));
    for (size_t i = 0; i < h->f->graph_count; i++) {
        module *m = tare__read_graph(h->root, tare__flow_reader(h->n, h->f, i));
        node *input = NULL;
        if (m != NULL) TARE_TRY(add_input(h, m, t->tensor, &input));
        if (m == of) TARE_TRY(tare__node_replace_uses(inside, input, NULL, h->err));
    }
    return tare__graph_erase(inside->owner, inside, h->err);
}

// --- all ---

// A graph that several operators run is left as it is: the writer refuses what it reads.
static tare_status hoist_graph(const hoisting *h, const node *reader) {
    module *m = reader != NULL ? tare__read_graph(h->root, reader) : NULL;
    if (m == NULL || !tare__is_run_once(h->root, h->reads, reader)) return TARE_OK;
    TARE_TRY(tare__pt2_hoist(m, h->err));
    for (node *n = m->graph->first, *next; n != NULL; n = next) {
        next = n->next;
        if (reads_tensor(m, n)) TARE_TRY(hoist(h, n));
    }
    return TARE_OK;
}

static tare_status hoist_all(module *root, const pointer_index *reads, tare_error *err) {
    for (node *n = root->graph->first; n != NULL; n = n->next) {
        const hoisting h = {root, n, tare__flow_op(n), reads, err};
        for (size_t i = 0; h.f != NULL && i < h.f->graph_count; i++) {
            const node *reader = tare__flow_reader(n, h.f, i);
            for (size_t k = 0; k < i && reader != NULL; k++)
                if (tare__flow_reader(n, h.f, k) == reader)
                    return tare__fail(err, TARE_UNSUPPORTED,
                                      "node '%s': takes the graph '%s' twice, which .pt2 files "
                                      "cannot say (give each its own)",
                                      n->name, reader->target);
            TARE_TRY(hoist_graph(&h, reader));
        }
    }
    return TARE_OK;
}

tare_status tare__pt2_hoist(module *root, tare_error *err) {
    arena memory = {0};
    pointer_index reads = {0};
    tare_status status = tare__flow_count_reads(root, &memory, &reads, err);
    if (status == TARE_OK) status = hoist_all(root, &reads, err);
    tare__arena_release(&memory);
    return status;
}
