// SPDX-License-Identifier: Apache-2.0
// Observers into the graph, by the annotations.
#include <string.h>

#include "flow/export/observers.h"
#include "flow/export/steps.h"

typedef struct insertion {
    pass *p;
    tare_observer_map *set;
    size_t next_number; // of activation_post_process_N
} insertion;

static tare_status bind(insertion *in, module *observer, const char **name) {
    module *root = in->p->model->root;
    do {
        *name =
            tare__arena_printf(&in->p->scratch, "activation_post_process_%zu", in->next_number++);
        if (*name == NULL) return tare__out_of_memory(in->p->err);
    } while (tare__module_child(root, *name) != NULL);
    return tare__module_set_child(root, *name, observer, in->p->err);
}

static tare_status insert_after(insertion *in, node *watched, module *observer, node **out) {
    const char *name = NULL;
    TARE_TRY(bind(in, observer, &name));
    const value arg = tare__node_value(watched);
    const node_spec made = {.op = NODE_CALL_MODULE, .target = name, .args = &arg, .arg_count = 1};
    TARE_TRY(tare__graph_insert(in->p->model->root->graph, &made, watched->next, out, in->p->err));
    (*out)->debug_handle = watched->debug_handle;
    return TARE_OK;
}

// --- inputs ---

static node *without_observers(const pass *p, node *n) {
    while (n != NULL && tare__is_observer_node(p->model, n)) n = tare__node_arg(n, 0);
    return n;
}

static node *watching(const pass *p, const node *watched, const module *observer) {
    for (size_t i = 0; i < watched->user_count; i++)
        if (tare__called_module(p->model, watched->users[i]) == observer) return watched->users[i];
    return NULL;
}

// What a chain of producers reads.
typedef struct chain {
    const pass *p;
    bool *seen; // by id
    bool has_placeholder, has_buffer;
} chain;

static void follow(void *user, node *n) {
    chain *c = user;
    if (c->seen[n->id]) return;
    c->seen[n->id] = true;
    if (n->op == NODE_PLACEHOLDER) c->has_placeholder = true;
    if (n->op == NODE_GET_ATTR) {
        const char *dot = strrchr(n->target, '.');
        char *path = NULL;
        const module *owner = c->p->model->root;
        if (dot != NULL) {
            path =
                tare__arena_strndup((arena *)&c->p->scratch, n->target, (size_t)(dot - n->target));
            owner = path != NULL ? tare__module_find(c->p->model->root, path) : NULL;
        }
        const named_tensor *t =
            owner != NULL ? tare__module_named_tensor(owner, dot != NULL ? dot + 1 : n->target)
                          : NULL;
        if (t != NULL && !t->is_parameter) c->has_buffer = true;
    }
    tare__node_each_input(n, follow, c);
}

// A state that is written in place must not be read through an observer.
static tare_status writes_buffer(insertion *in, const node *n, node *arg, bool *out) {
    *out = false;
    if (!tare__writes_first_argument(n) || tare__node_arg(n, 0) != arg) return TARE_OK;
    chain c = {.p = in->p};
    c.seen =
        tare__arena_array(&in->p->scratch, in->p->model->root->graph->next_id + 1, sizeof *c.seen);
    if (c.seen == NULL) return tare__out_of_memory(in->p->err);
    follow(&c, arg);
    *out = c.has_buffer && !c.has_placeholder;
    return TARE_OK;
}

// torch inserts the observer, which fails when it first sees a tuple.
static tare_status check_single(const insertion *in, const node *input, const node *n) {
    bool has_many = false;
    TARE_TRY(tare__has_many_values(input, &has_many, in->p->err));
    if (!has_many) return TARE_OK;
    return tare__hint(in->p->err,
                      tare__fail(in->p->err, TARE_INVALID_ARGUMENT,
                                 "node '%s' is annotated with a spec for its input '%s', which "
                                 "gives several tensors",
                                 n->name, input->name),
                      "annotate what reads one of them");
}

static tare_status observe_node(insertion *in, const node *n, value *v, node *first) {
    node *arg = v->as.node, *original = without_observers(in->p, arg);
    if (original == NULL) return TARE_OK;
    module *observer = tare__observer_map_get(in->set, original, n);
    if (observer == NULL) return TARE_OK;
    TARE_TRY(check_single(in, original, n));
    bool is_state = false;
    // The chain starts at what the call was given, before its own observers came.
    TARE_TRY(writes_buffer(in, n, first != NULL ? arg : NULL, &is_state));
    if (is_state || tare__observer_map_get(in->set, NULL, original) == observer) return TARE_OK;
    node *existing = watching(in->p, arg, observer);
    if (existing == NULL) TARE_TRY(insert_after(in, arg, observer, &existing));
    v->as.node = existing;
    return TARE_OK;
}

static tare_status observe_value(insertion *in, const node *n, value *v, node *first) {
    if (v->kind == VALUE_NODE) return observe_node(in, n, v, first);
    if (v->kind != VALUE_LIST && v->kind != VALUE_TUPLE) return TARE_OK;
    for (uint32_t i = 0; i < v->count; i++) TARE_TRY(observe_value(in, n, &v->as.items[i], NULL));
    return TARE_OK;
}

static void note_node(void *user, node *n) {
    (void)n;
    *(bool *)user = true;
}

static tare_status check_keywords(const insertion *in, const node *n) {
    for (size_t i = 0; i < n->kwarg_count; i++) {
        bool has_node = false;
        tare__value_each_node(&n->kwargs[i].value, note_node, &has_node);
        if (has_node)
            return tare__fail(in->p->err, TARE_INVALID_ARGUMENT,
                              "node '%s': Kwarg '%s' contained type <class "
                              "'torch.fx.node.Node'> which is not supported for annotation.",
                              n->name, n->kwargs[i].name);
    }
    return TARE_OK;
}

static tare_status observe_inputs(insertion *in, node *n) {
    TARE_TRY(check_keywords(in, n));
    value *args = tare__arena_array(&in->p->scratch, n->arg_count + 1, sizeof *args);
    if (args == NULL) return tare__out_of_memory(in->p->err);
    for (size_t i = 0; i < n->arg_count; i++) {
        TARE_TRY(tare__value_copy(&in->p->scratch, &n->args[i], NULL, NULL, &args[i], in->p->err));
        node *first = i == 0 ? tare__node_arg(n, 0) : NULL;
        TARE_TRY(observe_value(in, n, &args[i], first));
    }
    return tare__node_set_args(n, args, n->arg_count, n->kwargs, n->kwarg_count, in->p->err);
}

// --- outputs ---

static tare_status observe_output(insertion *in, node *n) {
    module *observer = tare__observer_map_get(in->set, NULL, n);
    bool has_many = false;
    if (observer == NULL) return TARE_OK;
    TARE_TRY(tare__has_many_values(n, &has_many, in->p->err));
    if (has_many)
        return TARE_DECIDE(in->p, n, "left float", "annotation",
                           "its output is not one tensor, so that its spec has no effect");
    node *made = NULL;
    TARE_TRY(insert_after(in, n, observer, &made));
    return tare__node_replace_uses(n, made, made, in->p->err);
}

static tare_status observe(insertion *in, size_t first_new) {
    const tare_model *model = in->p->model;
    for (node *n = model->root->graph->first, *next; n != NULL; n = next) {
        next = n->next;
        const tare_annotation *a = tare__annotation_find(&model->annotations, n->name);
        if (n->id >= first_new || a == NULL) continue;
        TARE_TRY(observe_inputs(in, n));
        TARE_TRY(observe_output(in, n));
    }
    return TARE_OK;
}

static tare_status call_back(const tare_quantizer *q, tare_observer_map *set) {
    if (q == NULL || q->class.prepare_obs_or_fq_callback == NULL) return TARE_OK;
    const tare_status status =
        q->class.prepare_obs_or_fq_callback(q->self, set->base->model, set, set->base->err);
    return status == TARE_OK ? status : tare__at(set->base->err, status, "%s", q->class.name);
}

tare_status tare__pt2e_insert_observers(pass *p, const tare_quantizer *quantizer, bool is_qat) {
    tare_observer_map set;
    tare_status status = tare__observer_map_fill(p, is_qat, &set);
    if (status == TARE_OK) status = call_back(quantizer, &set);
    insertion in = {.p = p, .set = &set};
    if (status == TARE_OK) status = observe(&in, p->model->root->graph->next_id);
    if (status == TARE_OK) status = tare__observer_map_link(&set);
    if (status == TARE_OK) status = tare__pt2e_note_facts(p, &set, quantizer);
    tare__observer_map_release(&set);
    return status;
}
