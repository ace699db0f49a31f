// SPDX-License-Identifier: Apache-2.0
// Verifies all invariants of graph.h. Readers call it for the graphs that they built, passes for
// the graphs that they return.
#include <string.h>

#include "core/memory/alloc.h"
#include "core/memory/map.h"
#include "core/text/text.h"
#include "ir/graph.h"
#include "ir/names.h"

typedef struct verifying {
    const graph *g;
    map names;
    const node **by_id;   // nodes seen so far
    size_t *use_counts;   // by id: number of users so far
    const node **marked;  // by id of a user: the last node whose list of users contained it
    const node **used_by; // by id of an input: the last node that used it
    const node *at;
    size_t input_index; // of the next first occurrence among `at`'s inputs
    tare_status status;
    tare_error *err;
} verifying;

static tare_status broken(const verifying *v, const char *what) {
    return tare__fail(v->err, TARE_INTERNAL, "node '%s' %s", v->at->name, what);
}

// Checks that each first occurrence of a node is the next of `inputs`, and counts the use.
static void check_input(void *user, node *input) {
    verifying *v = user;
    if (v->status != TARE_OK) return;
    if (input->owner != v->g || input->id >= v->g->next_id || v->by_id[input->id] != input) {
        v->status =
            tare__fail(v->err, TARE_INTERNAL, "node '%s' uses '%s', which does not stand before it",
                       v->at->name, input->name);
        return;
    }
    if (v->used_by[input->id] == v->at) return;
    v->used_by[input->id] = v->at;
    v->use_counts[input->id]++;
    if (v->input_index >= v->at->input_count || v->at->inputs[v->input_index] != input)
        v->status = broken(v, "does not list its inputs as its arguments mention them");
    v->input_index++;
}

static tare_status check_inputs(verifying *v) {
    const node *n = v->at;
    v->input_index = 0;
    for (size_t i = 0; i < n->arg_count; i++) tare__value_each_node(&n->args[i], check_input, v);
    for (size_t i = 0; i < n->kwarg_count; i++)
        tare__value_each_node(&n->kwargs[i].value, check_input, v);
    TARE_TRY(v->status);
    return v->input_index == n->input_count ? TARE_OK
                                            : broken(v, "lists inputs that it does not mention");
}

static tare_status check_links(const verifying *v) {
    const node *n = v->at;
    if (n->owner != v->g) return broken(v, "belongs to another graph");
    if (n->prev ? n->prev->next != n : v->g->first != n)
        return broken(v, "is linked wrongly to the left");
    if (n->next ? n->next->prev != n : v->g->last != n)
        return broken(v, "is linked wrongly to the right");
    if (n->id >= v->g->next_id) return broken(v, "has an id beyond the graph's");
    if (v->by_id[n->id]) return broken(v, "shares its id with another node");
    return TARE_OK;
}

static tare_status check_name(verifying *v) {
    const char *name = v->at->name;
    if (!tare__is_identifier(name)) return broken(v, "has a name that is no identifier");
    if (tare__map_has(&v->names, name)) return broken(v, "shares its name with another node");
    if (!tare__map_has(&v->g->used_names, name))
        return broken(v, "is missing in the table of names");
    return tare__map_set(&v->names, name, tare__map_int(1)) ? TARE_OK : tare__out_of_memory(v->err);
}

static tare_status check_form(const verifying *v) {
    const node *n = v->at;
    if (!n->target || (n->op != NODE_OUTPUT && !*n->target)) return broken(v, "has no target");
    if (n->op == NODE_CALL_METHOD && n->arg_count == 0)
        return broken(v, "calls a method of nothing");
    if (n->op == NODE_OUTPUT && n->arg_count != 1)
        return broken(v, "must return exactly one value");
    if (n->op == NODE_OUTPUT && n->next) return broken(v, "is an output in front of other nodes");
    if (n->op == NODE_OUTPUT && n->user_count) return broken(v, "is an output with users");
    for (size_t i = 0; i < n->kwarg_count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(n->kwargs[i].name, n->kwargs[j].name) == 0)
                return broken(v, "has the same keyword twice");
    return TARE_OK;
}

static tare_status check_node(verifying *v) {
    TARE_TRY(check_links(v));
    TARE_TRY(check_name(v));
    TARE_TRY(check_form(v));
    TARE_TRY(check_inputs(v));
    v->by_id[v->at->id] = v->at;
    return TARE_OK;
}

static bool uses(const node *user, const node *input) {
    for (size_t i = 0; i < user->input_count; i++)
        if (user->inputs[i] == input) return true;
    return false;
}

// Compares the list of users with the uses: if their numbers are equal and each listed user is
// distinct and uses the node, they are equal.
static tare_status check_users(verifying *v) {
    const node *n = v->at;
    if (n->user_count != v->use_counts[n->id]) return broken(v, "has a wrong number of users");
    for (size_t i = 0; i < n->user_count; i++) {
        const node *user = n->users[i];
        if (user->owner != v->g || user->id >= v->g->next_id || v->by_id[user->id] != user)
            return broken(v, "has a user outside the graph");
        if (v->marked[user->id] == n) return broken(v, "lists a user twice");
        if (!uses(user, n)) return broken(v, "lists a user that does not use it");
        v->marked[user->id] = n;
    }
    return TARE_OK;
}

static tare_status check(verifying *v) {
    size_t count = 0;
    for (v->at = v->g->first; v->at; v->at = v->at->next) {
        TARE_TRY(check_node(v));
        count++;
    }
    for (v->at = v->g->first; v->at; v->at = v->at->next) TARE_TRY(check_users(v));
    if (count != v->g->node_count)
        return tare__fail(v->err, TARE_INTERNAL, "the graph has %zu nodes and counts %zu", count,
                          v->g->node_count);
    if (!v->g->last || v->g->last->op != NODE_OUTPUT)
        return tare__fail(v->err, TARE_INTERNAL, "the graph returns nothing");
    return TARE_OK;
}

tare_status tare__graph_verify(const graph *g, tare_error *err) {
    verifying v = {.g = g,
                   .by_id = tare__alloc_zeroed(g->next_id, sizeof(node *)),
                   .use_counts = tare__alloc_zeroed(g->next_id, sizeof(size_t)),
                   .marked = tare__alloc_zeroed(g->next_id, sizeof(node *)),
                   .used_by = tare__alloc_zeroed(g->next_id, sizeof(node *)),
                   .status = TARE_OK,
                   .err = err};
    const bool has_memory = v.by_id && v.use_counts && v.marked && v.used_by;
    const tare_status status = has_memory ? check(&v) : tare__out_of_memory(err);
    tare__map_release(&v.names);
    tare__free((void *)v.by_id);
    tare__free(v.use_counts);
    tare__free((void *)v.marked);
    tare__free((void *)v.used_by);
    return status;
}
