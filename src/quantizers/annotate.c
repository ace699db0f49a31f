// SPDX-License-Identifier: Apache-2.0
// Helpers for annotators.
#include "quantizers/annotate.h"

#include <math.h>
#include <string.h>

#include "flow/layer_calls.h"
#include "model/nested/nested.h"

tare_status tare__annotating_begin(annotating *a, tare_model *model, tare_error *err) {
    *a = (annotating){.model = model, .g = model->root->graph, .err = err};
    a->gives_quantized =
        tare__arena_array(&a->memory, a->g->next_id + 1, sizeof *a->gives_quantized);
    if (a->gives_quantized == NULL) return tare__out_of_memory(err);
    return tare__node_sources_read(a->g, &a->sources, err);
}

void tare__annotating_end(annotating *a) {
    tare__node_sources_release(&a->sources);
    tare__arena_release(&a->memory);
}

tare_status tare__config_specs(const setting *s, config_specs *out, tare_error *err) {
    *out = (config_specs){0};
    if (s == NULL || s->is_none) return TARE_OK;
    out->is_qat = s->config.is_qat;
    TARE_TRY(tare_input_act_qspec(&s->config, &out->input, err));
    TARE_TRY(tare_output_act_qspec(&s->config, &out->output, err));
    TARE_TRY(tare_weight_qspec(&s->config, &out->weight, err));
    return tare_bias_qspec(&s->config, &out->bias, err);
}

bool tare__level_accepts(const node_sources *sources, const tare_quantizer_settings *settings,
                         level_kind kind, const setting *s, const node *n) {
    if (kind == LEVEL_NAME) return tare__node_is_in_module(sources, n, s->key);
    if (kind == LEVEL_TYPE) return tare__node_is_in_class(sources, n, s->key);
    const setting_list *names = &settings->module_names, *types = &settings->module_types;
    for (size_t i = 0; i < names->count; i++)
        if (tare__node_is_in_module(sources, n, names->items[i].key)) return false;
    for (size_t i = 0; i < types->count; i++)
        if (tare__node_is_in_class(sources, n, types->items[i].key)) return false;
    return true;
}

bool tare__is_large_scalar(const annotating *a, const node *n) {
    static const double largest = 3.4028235e15; // largest value that torch's histogram accepts
    const tare_tensor *t =
        n->op == NODE_GET_ATTR ? tare__module_find_tensor(a->model->root, n->target) : NULL;
    if (t == NULL || t->count != 1 || t->dtype != TARE_FLOAT32 || t->data == NULL) return false;
    return fabs((double)*(const float *)t->data) > largest;
}

bool tare__can_be_observed(const annotating *a, const node *n) {
    const tare_value_info *info = tare__node_tensor_info(&a->sources, n);
    if (info != NULL && !tare__dtype(info->dtype)->is_float) return false;
    return !tare__is_large_scalar(a, n);
}

static bool stays(const void *unused, const node *n) {
    (void)unused;
    return n->op == NODE_CALL_MODULE || tare__has_effect(n);
}

tare_status tare__graph_drop_unread(graph *g, tare_error *err) {
    return tare__graph_eliminate_dead(g, stays, NULL, err);
}

bool tare__calls(const node *n, const char *const *targets) {
    if (n == NULL || n->op != NODE_CALL_FUNCTION) return false;
    for (; *targets != NULL; targets++)
        if (strcmp(*targets, n->target) == 0) return true;
    return false;
}

bool tare__is_marked(const annotating *a, const node *n) {
    return tare_annotation_is_marked(tare__annotation_find(&a->model->annotations, n->name));
}

bool tare__is_any_marked(const annotating *a, node *const *nodes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (nodes[i] != NULL && tare__is_marked(a, nodes[i])) return true;
    return false;
}

static bool is_in(const setting_list *list, const setting *s) {
    return s >= list->items && s < list->items + list->count;
}

void tare__annotating_by(annotating *a, const tare_quantizer_settings *s, const setting *of) {
    a->section = of == &s->global              ? "global"
                 : is_in(&s->module_names, of) ? "module_name"
                 : is_in(&s->module_types, of) ? "module_type"
                                               : "operator";
    a->key = of == &s->global ? "" : of->key;
}

static tare_status note(const annotating *a, tare_annotation *annotation) {
    const annotation_origin origin = {.rule = a->rule, .section = a->section, .key = a->key};
    return tare__annotation_note(annotation, &origin, a->err);
}

tare_status tare__mark(annotating *a, const node *n) {
    tare_annotation *annotation = NULL;
    TARE_TRY(tare__annotation_get(&a->model->annotations, n->name, &annotation, a->err));
    annotation->is_marked = true;
    return note(a, annotation);
}

tare_status tare__annotate_anew(annotating *a, const node *n, tare_annotation **out) {
    if (n->id < a->sources.count) a->gives_quantized[n->id] = false;
    tare__annotation_remove(&a->model->annotations, n->name);
    TARE_TRY(tare__annotation_get(&a->model->annotations, n->name, out, a->err));
    (*out)->is_marked = true;
    return note(a, *out);
}

tare_status tare__annotate_edge(annotating *a, tare_annotation *of, const node *input,
                                tare_qspec *spec) {
    return tare__annotation_set_input(of, input->name, spec, a->err);
}

tare_status tare__annotate_layer(annotating *a, const node *n, const config_specs *specs,
                                 tare_annotation **out) {
    tare_qspec *const of_argument[] = {specs->input, specs->weight, specs->bias};
    TARE_TRY(tare__annotate_anew(a, n, out));
    for (size_t i = 0; i < 3; i++) {
        const node *input = tare__node_arg(n, i);
        if (input != NULL) TARE_TRY(tare__annotate_edge(a, *out, input, of_argument[i]));
    }
    return TARE_OK;
}

tare_status tare__share_with(annotating *a, const node *from, const node *n, tare_qspec **out) {
    const tare_edge target = {.from = (const tare_node *)from, .node = (const tare_node *)n};
    return tare_qspec_create_shared(target, out, a->err);
}

// --- settings that apply to nothing ---

static tare_status refuse_key(annotating *a, const char *what, const char *key) {
    return tare__fail(a->err, TARE_NOT_FOUND, "the model has no %s '%s'", what, key);
}

// A key of a setting, sought in a graph and those inside it.
typedef struct key_search {
    const char *key;
    bool (*holds)(const node_sources *sources, const node *n, const char *key);
    bool found;
} key_search;

static bool calls_operator(const node_sources *sources, const node *n, const char *key) {
    const char *const targets[] = {key, NULL};
    (void)sources;
    return tare__calls(n, targets);
}

static void look_in(key_search *s, const graph *g, const node_sources *sources) {
    for (const node *n = g->first; n != NULL && !s->found; n = n->next)
        s->found = s->holds(sources, n, s->key);
}

static tare_status look_inside(void *user, const tare_model *inner, const char *prefix,
                               tare_error *err) {
    node_sources sources;
    (void)prefix;
    const tare_status status = tare__node_sources_read(inner->root->graph, &sources, err);
    if (status == TARE_OK) look_in(user, inner->root->graph, &sources);
    tare__node_sources_release(&sources);
    return status;
}

// Settings hold for the whole model, of which a graph inside is a part.
static tare_status check_key(annotating *a, key_search s, const char *what) {
    if (a->model->is_inner) return TARE_OK;
    look_in(&s, a->g, &a->sources);
    if (!s.found) TARE_TRY(tare__nested_visit(a->model, look_inside, &s, a->err));
    return s.found ? TARE_OK : refuse_key(a, what, s.key);
}

tare_status tare__check_modules(annotating *a, const tare_quantizer_settings *s) {
    const setting_list *names = &s->module_names, *types = &s->module_types;
    for (size_t i = 0; !s->is_lenient && i < names->count; i++) {
        const key_search name = {.key = names->items[i].key, .holds = tare__node_is_in_module};
        TARE_TRY(check_key(a, name, "module"));
    }
    for (size_t i = 0; !s->is_lenient && i < types->count; i++) {
        const key_search type = {.key = types->items[i].key, .holds = tare__node_is_in_class};
        TARE_TRY(check_key(a, type, "module of type"));
    }
    return TARE_OK;
}

tare_status tare__check_operator(annotating *a, const tare_quantizer_settings *s,
                                 const char *target) {
    const key_search call = {.key = target, .holds = calls_operator};
    return s->is_lenient ? TARE_OK : check_key(a, call, "operator");
}
