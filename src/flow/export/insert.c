// SPDX-License-Identifier: Apache-2.0
// Inserts observers according to the annotations.
#include "flow/insert.h"
#include "flow/export/observers.h"
#include "flow/export/steps.h"

// --- inputs ---

// The producers of a value.
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
    const named_tensor *t = n->op == NODE_GET_ATTR
                                ? tare__module_find_named_tensor(c->p->model->root, n->target)
                                : NULL;
    if (t != NULL && !t->is_parameter) c->has_buffer = true;
    tare__node_each_input(n, follow, c);
}

// arg: the first argument. An observer in front of an in-place write would hide the state.
static tare_status writes_buffer(const insertion *in, const node *n, node *arg, bool *out) {
    *out = false;
    if (!tare__writes_first_argument(n)) return TARE_OK;
    chain c = {.p = in->p};
    c.seen =
        tare__arena_array(&in->p->scratch, in->p->model->root->graph->next_id + 1, sizeof *c.seen);
    if (c.seen == NULL) return tare__out_of_memory(in->p->err);
    follow(&c, arg);
    *out = c.has_buffer && !c.has_placeholder;
    return TARE_OK;
}

static tare_status refuse_integers(const insertion *in, const node *input, const node *n) {
    tare_node_meta *meta = NULL;
    TARE_TRY(tare_node_meta_read((const tare_node *)input, &meta, in->p->err));
    const tare_dtype dtype = meta->value_count == 1 ? meta->values[0].dtype : TARE_FLOAT32;
    tare_node_meta_destroy(meta);
    if (tare__dtype(dtype)->is_float) return TARE_OK;
    return tare__hint(
        in->p->err,
        tare__fail(in->p->err, TARE_INVALID_ARGUMENT,
                   "node '%s' is annotated with a spec for its input '%s', which holds %s", n->name,
                   input->name, tare_dtype_name(dtype)),
        "observers take floats: leave the node out");
}

// torch inserts the observer, which then fails when it sees a tuple or integers.
static tare_status check_input(const insertion *in, const node *input, const node *n) {
    bool has_many = false;
    TARE_TRY(tare__has_many_values(input, &has_many, in->p->err));
    if (!has_many) return refuse_integers(in, input, n);
    return tare__hint(in->p->err,
                      tare__fail(in->p->err, TARE_INVALID_ARGUMENT,
                                 "node '%s' is annotated with a spec for its input '%s', which "
                                 "gives several tensors",
                                 n->name, input->name),
                      "annotate a node that reads one of them");
}

static tare_status choose_input(insertion *in, const node *n, node *arg, bool is_first,
                                observer_wish *out) {
    const tare_observer_map *set = in->user;
    node *original = tare__behind_observers(in->p->model, arg);
    module *observer = original != NULL ? tare__observer_map_get(set, original, n) : NULL;
    if (observer == NULL) return TARE_OK;
    TARE_TRY(check_input(in, original, n));
    bool is_state = false;
    // The walk starts at the argument before observers were inserted.
    if (is_first) TARE_TRY(writes_buffer(in, n, arg, &is_state));
    const bool stays = is_state || tare__observer_map_get(set, NULL, original) == observer;
    if (!stays) out->observer = observer;
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

// --- outputs ---

static tare_status observe_output(insertion *in, node *n) {
    const observer_wish wish = {.observer = tare__observer_map_get(in->user, NULL, n)};
    bool has_many = false;
    if (wish.observer == NULL) return TARE_OK;
    TARE_TRY(tare__has_many_values(n, &has_many, in->p->err));
    if (has_many)
        return TARE_DECIDE(in->p, n, "left float", "annotation",
                           "its output is not a single tensor, so its spec has no effect");
    return tare__observe_output(in, n, &wish);
}

static tare_status observe_node(insertion *in, node *n) {
    if (tare__annotation_find(&in->p->model->annotations, n->name) == NULL) return TARE_OK;
    TARE_TRY(check_keywords(in, n));
    TARE_TRY(tare__observe_inputs(in, n));
    return observe_output(in, n);
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
    insertion in = {.p = p, .user = &set, .visit = observe_node, .choose = choose_input};
    if (status == TARE_OK) status = tare__insert_observers(&in);
    if (status == TARE_OK) status = tare__observer_map_link(&set);
    if (status == TARE_OK) status = tare__pt2e_note_facts(p, &set, quantizer);
    tare__observer_map_release(&set);
    return status;
}
