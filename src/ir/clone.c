// SPDX-License-Identifier: Apache-2.0
// Clones a graph. Unlike copying node by node, cloning preserves ids, the order of users, and the
// name tables.
#include "core/memory/alloc.h"
#include "ir/graph.h"

typedef struct cloning {
    graph *to;
    node **nodes; // by id of the source
} cloning;

static node *cloned(void *user, node *n) {
    return ((cloning *)user)->nodes[n->id];
}

static tare_status clone_counts(const map *from, map *to, tare_error *err) {
    for (size_t i = 0; i < from->count; i++)
        if (!tare__map_set(to, from->entries[i].key, from->entries[i].value))
            return tare__out_of_memory(err);
    return TARE_OK;
}

// Reserves all names; the entries are set when the nodes are cloned.
static tare_status clone_names(const map *from, map *to, tare_error *err) {
    for (size_t i = 0; i < from->count; i++)
        if (!tare__map_set(to, from->entries[i].key, tare__map_int(1)))
            return tare__out_of_memory(err);
    return TARE_OK;
}

// Clones the node without its arguments, because nodes to which it refers may not be cloned yet.
static tare_status clone_node(cloning *c, const node *from, tare_error *err) {
    arena *a = &c->to->memory;
    node *n = tare__arena_alloc(a, sizeof *n);
    if (!n) return tare__out_of_memory(err);
    if (!tare__arena_copy_text(a, from->name, &n->name) ||
        !tare__arena_copy_text(a, from->target, &n->target) ||
        !tare__arena_copy_text(a, from->annotation, &n->annotation) ||
        !tare__arena_copy_text(a, from->scope_path, &n->scope_path) ||
        !tare__arena_copy_text(a, from->scope_type, &n->scope_type) ||
        !tare__arena_copy_text(a, from->origin, &n->origin) ||
        !tare__arena_copy_text(a, from->meta_json, &n->meta_json))
        return tare__out_of_memory(err);
    n->owner = c->to;
    n->op = from->op;
    n->id = from->id;
    n->debug_handle = from->debug_handle;
    n->prev = c->to->last;
    *(n->prev ? &n->prev->next : &c->to->first) = n;
    c->to->last = n;
    c->to->node_count++;
    c->nodes[from->id] = n;
    (void)tare__map_set(&c->to->used_names, n->name, n); // replaces an entry, so this cannot fail
    return TARE_OK;
}

static tare_status clone_arguments(cloning *c, const node *from, node *to, tare_error *err) {
    arena *a = &c->to->memory;
    to->args = tare__arena_array(a, from->arg_count, sizeof *to->args);
    to->kwargs = tare__arena_array(a, from->kwarg_count, sizeof *to->kwargs);
    to->users = tare__arena_array(a, from->user_count, sizeof(node *));
    to->inputs = tare__arena_array(a, from->input_count, sizeof(node *));
    if (!to->args || !to->kwargs || !to->users || !to->inputs) return tare__out_of_memory(err);
    to->arg_count = from->arg_count;
    to->kwarg_count = from->kwarg_count;
    to->user_count = to->user_capacity = from->user_count;
    for (size_t i = 0; i < from->arg_count; i++)
        TARE_TRY(tare__value_copy(a, &from->args[i], cloned, c, &to->args[i], err));
    for (size_t i = 0; i < from->kwarg_count; i++) {
        if (!tare__arena_copy_text(a, from->kwargs[i].name, &to->kwargs[i].name))
            return tare__out_of_memory(err);
        TARE_TRY(tare__value_copy(a, &from->kwargs[i].value, cloned, c, &to->kwargs[i].value, err));
    }
    to->input_count = from->input_count;
    for (size_t i = 0; i < from->input_count; i++) to->inputs[i] = c->nodes[from->inputs[i]->id];
    for (size_t i = 0; i < from->user_count; i++) to->users[i] = c->nodes[from->users[i]->id];
    return TARE_OK;
}

static tare_status clone_into(cloning *c, const graph *from, tare_error *err) {
    graph *to = c->to;
    to->next_id = from->next_id;
    TARE_TRY(clone_names(&from->used_names, &to->used_names, err));
    TARE_TRY(clone_counts(&from->base_counts, &to->base_counts, err));
    if (!tare__arena_copy_text(&to->memory, from->pytree_signature, &to->pytree_signature) ||
        !tare__arena_copy_text(&to->memory, from->pytree_flatten, &to->pytree_flatten) ||
        !tare__arena_copy_text(&to->memory, from->export_json, &to->export_json) ||
        !tare__call_names_copy(&to->memory, &from->input_names, &to->input_names) ||
        !tare__call_names_copy(&to->memory, &from->output_names, &to->output_names))
        return tare__out_of_memory(err);
    for (const node *n = from->first; n; n = n->next) TARE_TRY(clone_node(c, n, err));
    for (const node *n = from->first; n; n = n->next)
        TARE_TRY(clone_arguments(c, n, c->nodes[n->id], err));
    return TARE_OK;
}

tare_status tare__graph_clone(const graph *g, graph **out, tare_error *err) {
    cloning c = {.nodes = tare__alloc_zeroed(g->next_id, sizeof(node *))};
    if (!c.nodes) return tare__out_of_memory(err);
    tare_status status = tare__graph_create(&c.to, err);
    if (status == TARE_OK) status = clone_into(&c, g, err);
    tare__free(c.nodes);
    if (status == TARE_OK)
        *out = c.to;
    else
        tare__graph_destroy(c.to);
    return status;
}
