// SPDX-License-Identifier: Apache-2.0
// Inserts observers into the graph.
#include "flow/insert.h"

#include <string.h>

#define OBSERVER_PREFIX "activation_post_process_"

tare_status tare__call_new_module(pass *p, module *m, const char *prefix, size_t *number, node *arg,
                                  node *before, node **out) {
    module *root = p->model->root;
    const char *name = tare__module_free_name(root, &p->scratch, prefix, number);
    if (name == NULL) return tare__out_of_memory(p->err);
    TARE_TRY(tare__module_set_child(root, name, m, p->err));
    const value input = tare__node_value(arg);
    const node_spec made = {.op = NODE_CALL_MODULE, .target = name, .args = &input, .arg_count = 1};
    return tare__graph_insert(root->graph, &made, before, out, p->err);
}

tare_status tare__insert_observer(pass *p, const observer_wish *wish, const char *prefix,
                                  size_t *number, node *watched, node **out) {
    module *observer = tare__module_retain(wish->observer);
    if (observer == NULL)
        TARE_TRY(tare__observer_spec_instantiate(&p->model->context->observers, wish->spec,
                                                 &observer, p->err));
    const tare_status status =
        tare__call_new_module(p, observer, prefix, number, watched, watched->next, out);
    tare__module_release(observer);
    if (status == TARE_OK) (*out)->debug_handle = watched->debug_handle;
    return status;
}

// --- inputs ---

static bool fits(const module *m, const observer_wish *wish) {
    if (wish->observer != NULL) return m == wish->observer;
    return m != NULL && m->class->role == ROLE_OBSERVER &&
           strcmp(tare__observer_class_of(m)->name, tare__observer_spec_class(wish->spec)) == 0 &&
           tare__observer_info(m)->dtype == wish->dtype;
}

static node *find_existing(const insertion *in, const node *watched, const observer_wish *wish) {
    for (size_t i = 0; i < watched->user_count; i++)
        if (fits(tare__called_module(in->p->model, watched->users[i]), wish))
            return watched->users[i];
    return NULL;
}

static tare_status observe_node(insertion *in, const node *n, value *v, bool is_first) {
    observer_wish wish = {0};
    TARE_TRY(in->choose(in, n, v->as.node, is_first, &wish));
    if (wish.observer == NULL && wish.spec == NULL) return TARE_OK;
    node *observer = find_existing(in, v->as.node, &wish);
    const bool is_new = observer == NULL;
    if (in->tell != NULL) TARE_TRY(in->tell(in, n, v->as.node, &wish, is_new));
    if (is_new)
        TARE_TRY(tare__insert_observer(in->p, &wish, OBSERVER_PREFIX, &in->next_number, v->as.node,
                                       &observer));
    v->as.node = observer;
    return TARE_OK;
}

static tare_status observe_value(insertion *in, const node *n, value *v, bool is_first) {
    if (v->kind == VALUE_NODE) return observe_node(in, n, v, is_first);
    if (v->kind != VALUE_LIST && v->kind != VALUE_TUPLE) return TARE_OK;
    for (uint32_t i = 0; i < v->count; i++) TARE_TRY(observe_value(in, n, &v->as.items[i], false));
    return TARE_OK;
}

// *out: a copy of the value in which observers replace the nodes that they observe.
static tare_status observe_argument(insertion *in, const node *n, const value *v, bool is_first,
                                    value *out) {
    TARE_TRY(tare__value_copy(&in->p->scratch, v, NULL, NULL, out, in->p->err));
    return observe_value(in, n, out, is_first);
}

tare_status tare__observe_inputs(insertion *in, node *n) {
    arena *scratch = &in->p->scratch;
    value *args = tare__arena_array(scratch, n->arg_count + 1, sizeof *args);
    keyword *kwargs = tare__arena_array(scratch, n->kwarg_count + 1, sizeof *kwargs);
    if (args == NULL || kwargs == NULL) return tare__out_of_memory(in->p->err);
    for (size_t i = 0; i < n->arg_count; i++)
        TARE_TRY(observe_argument(in, n, &n->args[i], i == 0, &args[i]));
    for (size_t i = 0; i < n->kwarg_count; i++) {
        kwargs[i].name = n->kwargs[i].name;
        TARE_TRY(observe_argument(in, n, &n->kwargs[i].value, false, &kwargs[i].value));
    }
    return tare__node_set_args(n, args, n->arg_count, kwargs, n->kwarg_count, in->p->err);
}

// --- outputs ---

tare_status tare__observe_output(insertion *in, node *n, const observer_wish *wish) {
    node *observer = NULL;
    TARE_TRY(tare__insert_observer(in->p, wish, OBSERVER_PREFIX, &in->next_number, n, &observer));
    return tare__node_replace_uses(n, observer, observer, in->p->err);
}

tare_status tare__spend_observer_number(insertion *in) {
    const pass *p = in->p;
    const char *name =
        tare__module_free_name(p->model->root, &in->p->scratch, OBSERVER_PREFIX, &in->next_number);
    in->next_number++;
    return name != NULL ? TARE_OK : tare__out_of_memory(p->err);
}

// --- the walk ---

tare_status tare__insert_observers(insertion *in) {
    const graph *g = in->p->model->root->graph;
    const size_t first_new = g->next_id;
    for (node *n = g->first, *next; n != NULL; n = next) {
        next = n->next;
        if (n->id < first_new) TARE_TRY(in->visit(in, n));
    }
    return TARE_OK;
}
