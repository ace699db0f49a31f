// SPDX-License-Identifier: Apache-2.0
// The list of nodes: creation, copying, order and removal. node_args.c handles the nodes'
// arguments.
#include "ir/graph.h"

#include <assert.h>
#include <string.h>

#include "core/memory/alloc.h"

static const char *const op_names[] = {
    [NODE_PLACEHOLDER] = "placeholder", [NODE_GET_ATTR] = "get_attr",
    [NODE_CALL_MODULE] = "call_module", [NODE_CALL_FUNCTION] = "call_function",
    [NODE_CALL_METHOD] = "call_method", [NODE_OUTPUT] = "output",
};
enum { OP_COUNT = sizeof op_names / sizeof *op_names };

const char *tare__node_op_name(node_op op) {
    return op_names[op];
}

bool tare__node_op_from_name(const char *name, node_op *out) {
    for (int i = 0; i < OP_COUNT; i++) {
        if (strcmp(op_names[i], name) != 0) continue;
        *out = (node_op)i;
        return true;
    }
    return false;
}

tare_status tare__graph_create(graph **out, tare_error *err) {
    graph *g = tare__alloc_zeroed(1, sizeof *g);
    if (!g) return tare__out_of_memory(err);
    *out = g;
    return TARE_OK;
}

void tare__graph_destroy(graph *g) {
    if (!g) return;
    tare__map_release(&g->used_names);
    tare__map_release(&g->base_counts);
    tare__arena_release(&g->memory);
    tare__free(g);
}

static void unlink_node(node *n) {
    graph *g = n->owner;
    *(n->prev ? &n->prev->next : &g->first) = n->next;
    *(n->next ? &n->next->prev : &g->last) = n->prev;
    n->prev = n->next = NULL;
    g->node_count--;
}

static void link_before(graph *g, node *n, node *before) {
    n->next = before;
    n->prev = before ? before->prev : g->last;
    *(n->prev ? &n->prev->next : &g->first) = n;
    *(before ? &before->prev : &g->last) = n;
    g->node_count++;
}

static bool copy_origin(arena *a, const node *from, node *to) {
    to->debug_handle = from->debug_handle;
    return tare__arena_copy_text(a, from->annotation, &to->annotation) &&
           tare__arena_copy_text(a, from->scope_path, &to->scope_path) &&
           tare__arena_copy_text(a, from->scope_type, &to->scope_type) &&
           tare__arena_copy_text(a, from->origin, &to->origin) &&
           tare__arena_copy_text(a, from->meta_json, &to->meta_json);
}

tare_status tare__graph_insert(graph *g, const node_spec *spec, node *before, node **out,
                               tare_error *err) {
    assert(!before || before->owner == g);
    node *n = tare__arena_alloc(&g->memory, sizeof *n);
    if (!n || !tare__arena_copy_text(&g->memory, spec->target ? spec->target : "", &n->target) ||
        (spec->like && !copy_origin(&g->memory, spec->like, n)))
        return tare__out_of_memory(err);
    if (!n->scope_path) n->scope_path = "";
    n->owner = g;
    n->op = spec->op;
    const char *candidate = spec->candidate;
    if (!candidate) TARE_TRY(tare__graph_candidate(g, n->op, n->target, &candidate, err));
    TARE_TRY(tare__graph_name(g, candidate, &n->name, err));
    TARE_TRY(
        tare__node_set_args(n, spec->args, spec->arg_count, spec->kwargs, spec->kwarg_count, err));
    n->id = g->next_id++;
    link_before(g, n, before);
    (void)tare__map_set(&g->used_names, n->name, n); // replaces an entry, so this cannot fail
    if (out) *out = n;
    return TARE_OK;
}

static tare_status map_arguments(arena *scratch, const node *from,
                                 node *(*translate)(void *, node *), void *user, node_spec *spec,
                                 tare_error *err) {
    value *args = tare__arena_array(scratch, from->arg_count, sizeof *args);
    keyword *kwargs = tare__arena_array(scratch, from->kwarg_count, sizeof *kwargs);
    if (!args || !kwargs) return tare__out_of_memory(err);
    for (size_t i = 0; i < from->arg_count; i++)
        TARE_TRY(tare__value_copy(scratch, &from->args[i], translate, user, &args[i], err));
    for (size_t i = 0; i < from->kwarg_count; i++) {
        kwargs[i].name = from->kwargs[i].name;
        TARE_TRY(tare__value_copy(scratch, &from->kwargs[i].value, translate, user,
                                  &kwargs[i].value, err));
    }
    spec->args = args;
    spec->kwargs = kwargs;
    return TARE_OK;
}

tare_status tare__graph_copy_node(graph *g, const node *from,
                                  node *(*translate)(void *user, node *n), void *user, node **out,
                                  tare_error *err) {
    arena scratch = {0};
    node_spec spec = {.op = from->op,
                      .target = from->target,
                      .candidate = from->name,
                      .arg_count = from->arg_count,
                      .kwarg_count = from->kwarg_count,
                      .like = from};
    tare_status status = map_arguments(&scratch, from, translate, user, &spec, err);
    if (status == TARE_OK) status = tare__graph_insert(g, &spec, NULL, out, err);
    tare__arena_release(&scratch);
    return status;
}

tare_status tare__graph_erase(graph *g, node *n, tare_error *err) {
    assert(n->owner == g);
    if (n->user_count > 0)
        return tare__fail(err, TARE_INTERNAL, "node '%s' cannot be erased: '%s' uses it", n->name,
                          n->users[0]->name);
    TARE_TRY(tare__node_set_args(n, NULL, 0, NULL, 0, err));
    unlink_node(n);
    (void)tare__map_set(&g->used_names, n->name, tare__map_int(1));
    return TARE_OK;
}

bool tare__call_names_copy(arena *a, const call_names *from, call_names *out) {
    call_names copy = {.items = tare__arena_array(a, from->count, sizeof *copy.items)};
    if (copy.items == NULL && from->count > 0) return false;
    for (; copy.count < from->count; copy.count++) {
        copy.items[copy.count] = tare__arena_strdup(a, from->items[copy.count]);
        if (copy.items[copy.count] == NULL) return false;
    }
    if (!tare__arena_copy_text(a, from->tree, &copy.tree)) return false;
    *out = copy;
    return true;
}

void tare__graph_move_before(node *n, node *before) {
    if (n == before) return;
    graph *g = n->owner;
    unlink_node(n);
    link_before(g, n, before);
}

node *tare__graph_find(const graph *g, const char *name) {
    void *found = tare__map_get(&g->used_names, name);
    return found != tare__map_int(1) ? found : NULL;
}

node *tare__graph_output(const graph *g) {
    for (node *n = g->last; n; n = n->prev)
        if (n->op == NODE_OUTPUT) return n;
    return NULL;
}

bool tare__graph_reads_path(const graph *g, const char *path) {
    const size_t length = strlen(path);
    for (const node *n = g->first; n != NULL; n = n->next) {
        if (n->op != NODE_CALL_MODULE && n->op != NODE_GET_ATTR) continue;
        if (strncmp(n->target, path, length) == 0 &&
            (n->target[length] == '\0' || n->target[length] == '.'))
            return true;
    }
    return false;
}

tare_status tare__graph_eliminate_dead(graph *g, bool (*is_impure)(const void *user, const node *n),
                                       const void *user, tare_error *err) {
    for (node *n = g->last, *prev; n; n = prev) {
        prev = n->prev;
        if (n->user_count > 0 || n->op == NODE_PLACEHOLDER || n->op == NODE_OUTPUT) continue;
        if (is_impure && is_impure(user, n)) continue;
        TARE_TRY(tare__graph_erase(g, n, err));
    }
    return TARE_OK;
}
