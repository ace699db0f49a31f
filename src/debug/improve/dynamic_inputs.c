// SPDX-License-Identifier: Apache-2.0
// The step that has the inputs of linear layers quantized in each run, by the values that they have
// then. A scale for each row (token) suits inputs whose rows differ; none is clipped.
#include <string.h>

#include "debug/improve/ladder.h"
#include "debug/improve/weight_observers.h"
#include "flow/insert.h"
#include "model/islands.h"
#include "observe/observer_spec.h"

typedef struct dynamic_change {
    pass base;
    tare_dynamic_form form;
    const char *const *nodes; // [node_count]: of the layers to change; NULL: all
    size_t node_count;
    islands found;
    tare_observer_spec *activation, *weight; // weight NULL: the layer's own
    // What was made for a value that layers read, so that they share it.
    struct {
        const node *source;
        node *observer;
    } * made;
    size_t made_count;
    size_t first_new; // the least id of a node made here
    size_t number;    // of observers
    size_t count;     // of changed layers
} dynamic_change;

// --- specs ---

static tare_status make_specs(dynamic_change *c) {
    const bool by_row = c->form == TARE_DYNAMIC_ROWS;
    c->activation = tare_observer_spec_create("PlaceholderObserver");
    if (c->activation == NULL) return tare__out_of_memory(c->base.err);
    tare_observer_spec_set_dtype(c->activation, "dtype", by_row ? TARE_QINT8 : TARE_QUINT8);
    tare_observer_spec_set_bool(c->activation, "is_dynamic", true);
    if (!by_row) return TARE_OK;
    c->weight = tare_observer_spec_create("tare.PerGroupMinMaxObserver");
    if (c->weight == NULL) return tare__out_of_memory(c->base.err);
    tare_observer_spec_set_qscheme(c->activation, "qscheme", TARE_PER_GROUP_SYMMETRIC);
    tare_observer_spec_set_dtype(c->weight, "dtype", TARE_QINT8);
    tare_observer_spec_set_qscheme(c->weight, "qscheme", TARE_PER_GROUP_SYMMETRIC);
    return TARE_OK;
}

// --- which layers ---

static bool is_named(const dynamic_change *c, const node *n) {
    bool found = c->nodes == NULL;
    for (size_t i = 0; i < c->node_count && !found; i++) found = strcmp(c->nodes[i], n->name) == 0;
    return found;
}

// The observer with static parameters that the layer reads; NULL: none.
static node *static_observer(const tare_model *m, const node *layer) {
    node *read = tare__node_arg(layer, 0);
    if (read == NULL || !tare__is_observer_node(m, read)) return NULL;
    const tare_observer_info *info = tare__observer_info(tare__called_module(m, read));
    return info->has_qparams && !info->is_dynamic ? read : NULL;
}

// What prepare recorded for a linear module with an 8-bit weight and a static input; NULL: another
// node.
static tare_status find_layer(dynamic_change *c, node *n, prepared_node **out) {
    const tare_model *m = c->base.model;
    biased_layer layer;
    tare_observer_info info;
    *out = NULL;
    if (n->op != NODE_CALL_MODULE || m->prepared == NULL || !is_named(c, n)) return TARE_OK;
    tare__layer_find(m, n, &layer);
    if (layer.module == NULL || layer.tensor == NULL || layer.tensor->ndim != 2 ||
        static_observer(m, n) == NULL)
        return TARE_OK;
    prepared_node *known = tare__prepared_node(m->prepared, n->name);
    if (known == NULL || known->qconfig == NULL || known->qconfig->weight == NULL) return TARE_OK;
    TARE_TRY(tare__pass_spec_info(&c->base, known->qconfig->weight, &info));
    if (info.dtype == TARE_QINT8 && !tare__qscheme_is_per_group(info.qscheme)) *out = known;
    return TARE_OK;
}

// --- changing ---

static tare_status set_qconfig(const dynamic_change *c, prepared_node *known) {
    tare_qconfig *q =
        tare_qconfig_create(c->activation, c->weight != NULL ? c->weight : known->qconfig->weight);
    if (q == NULL) return tare__out_of_memory(c->base.err);
    tare_qconfig_release(known->qconfig);
    known->qconfig = q;
    return TARE_OK;
}

static tare_status observe(dynamic_change *c, node *source, node *before, node **out) {
    module *m = NULL;
    for (size_t i = 0; i < c->made_count; i++)
        if (c->made[i].source == source) {
            *out = c->made[i].observer;
            return TARE_OK;
        }
    TARE_TRY(tare__observer_spec_instantiate(&c->base.model->context->observers, c->activation, &m,
                                             c->base.err));
    const tare_status status = tare__call_new_module(&c->base, m, "activation_post_process_",
                                                     &c->number, source, before, out);
    tare__module_release(m);
    TARE_TRY(status);
    c->made[c->made_count].source = source;
    c->made[c->made_count++].observer = *out;
    return TARE_OK;
}

static tare_status erase_unread(const dynamic_change *c, node *observer) {
    return observer->user_count == 0
               ? tare__graph_erase(c->base.model->root->graph, observer, c->base.err)
               : TARE_OK;
}

static tare_status change_layer(dynamic_change *c, node *n) {
    prepared_node *known = NULL;
    node *made = NULL;
    TARE_TRY(find_layer(c, n, &known));
    if (known == NULL) return TARE_OK;
    node *old = tare__node_arg(n, 0);
    TARE_TRY(set_qconfig(c, known));
    TARE_TRY(observe(c, tare__node_arg(old, 0), n, &made));
    TARE_TRY(tare__node_replace_input(n, old, made, c->base.err));
    TARE_TRY(erase_unread(c, old));
    c->count++;
    return TARE_DECIDE(&c->base, n, "observed", "dynamic",
                       c->form == TARE_DYNAMIC_ROWS
                           ? "each row of its input is quantized in each run, by its own range"
                           : "its input is quantized in each run, by the range that it has then");
}

static bool is_integer(const dynamic_change *c, const node *n) {
    return n->id < c->first_new && c->found.kinds[c->found.positions[n->id]] == ISLAND_INTEGER;
}

// A changed layer gives floats: what reads it in float does so without rounding them.
static tare_status free_result(const dynamic_change *c, node *observer) {
    node *layer = tare__node_arg(observer, 0);
    for (size_t i = 0; i < observer->user_count;) {
        node *user = observer->users[i];
        const size_t before = observer->user_count;
        if (!is_integer(c, user) && !tare__is_observer_node(c->base.model, user))
            TARE_TRY(tare__node_replace_input(user, observer, layer, c->base.err));
        if (observer->user_count == before) i++;
    }
    return erase_unread(c, observer);
}

// True for an observer of a changed layer's result.
static bool watches_changed(const dynamic_change *c, const node *n) {
    if (n->id >= c->first_new || !tare__is_observer_node(c->base.model, n)) return false;
    const node *layer = tare__node_arg(n, 0);
    const node *read = layer != NULL ? tare__node_arg(layer, 0) : NULL;
    for (size_t i = 0; i < c->made_count && read != NULL; i++)
        if (c->made[i].observer == read) return true;
    return false;
}

static tare_status change_all(dynamic_change *c) {
    const weight_change state = {.p = &c->base};
    graph *g = c->base.model->root->graph;
    TARE_TRY(make_specs(c));
    TARE_TRY(tare__weight_change_begin(&state));
    TARE_TRY(tare__islands_find(c->base.model, &c->base.scratch, &c->found, c->base.err));
    c->first_new = g->next_id;
    c->made = tare__arena_array(&c->base.scratch, c->found.count + 1, sizeof *c->made);
    if (c->made == NULL) return tare__out_of_memory(c->base.err);
    for (node *n = g->first; n != NULL; n = n->next) TARE_TRY(change_layer(c, n));
    for (node *n = g->first, *next = NULL; n != NULL; n = next) {
        next = n->next;
        if (watches_changed(c, n)) TARE_TRY(free_result(c, n));
    }
    return TARE_OK;
}

tare_status tare_quantize_dynamically(const tare_model *prepared, tare_dynamic_form form,
                                      const char *const *nodes, size_t node_count, size_t *count,
                                      tare_model **out, tare_error *err) {
    dynamic_change c = {.form = form, .nodes = nodes, .node_count = node_count};
    if (form != TARE_DYNAMIC_ROWS && form != TARE_DYNAMIC_TENSORS)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "there is no such form of dynamic inputs");
    TARE_TRY(tare__improve_begin(&c.base, prepared, out, err));
    const tare_status status = change_all(&c);
    if (status == TARE_OK && count != NULL) *count = c.count;
    tare_observer_spec_release(c.activation);
    tare_observer_spec_release(c.weight);
    return tare__pass_end(&c.base, status, out);
}

// --- the step ---

// The layers that converting does not leave float.
static tare_status list_taken(ladder *l, tare_model *changed, const char **names, size_t *count) {
    recipe r = l->best;
    tare_model *reference = NULL;
    r.prepared = changed;
    TARE_TRY(tare__ladder_make(l, &r, true, &reference));
    *count = 0;
    for (const node *n = changed->root->graph->first; n != NULL; n = n->next) {
        node *made = tare__graph_find(reference->root->graph, n->name);
        const node *was = tare__graph_find(l->best.prepared->root->graph, n->name);
        biased_layer layer = {.node = NULL};
        if (was == NULL || made == NULL || static_observer(l->best.prepared, was) == NULL ||
            static_observer(changed, n) != NULL)
            continue;
        tare__layer_find(reference, made, &layer);
        if (layer.node != NULL && tare__layer_is_quantized(&layer)) names[(*count)++] = n->name;
    }
    tare_model_destroy(reference);
    return TARE_OK;
}

// *count 0: the backend takes no layer in this form.
static tare_status make_form(ladder *l, int form, size_t *count, tare_model **out) {
    tare_model *all = NULL;
    size_t taken = 0;
    TARE_TRY(tare_quantize_dynamically(l->best.prepared, (tare_dynamic_form)form, NULL, 0, count,
                                       &all, l->err));
    const char **names =
        tare__arena_array(&l->memory, all->root->graph->next_id + 1, sizeof *names);
    tare_status status = names == NULL ? tare__out_of_memory(l->err) : TARE_OK;
    if (status == TARE_OK && *count > 0) status = list_taken(l, all, names, &taken);
    if (status == TARE_OK && taken == *count && taken > 0) {
        *out = all;
        return TARE_OK;
    }
    *count = 0;
    if (status == TARE_OK && taken > 0)
        status = tare_quantize_dynamically(l->best.prepared, (tare_dynamic_form)form, names, taken,
                                           count, out, l->err);
    tare_model_destroy(all); // which has the names
    return status;
}

tare_status tare__step_dynamic(ladder *l, const ladder_step *self) {
    TARE_TRY(tare__ladder_try_made(l, self, "rows of linear layers' inputs", make_form,
                                   TARE_DYNAMIC_ROWS, false));
    return tare__ladder_try_made(l, self, "linear layers' inputs", make_form, TARE_DYNAMIC_TENSORS,
                                 false);
}
