// SPDX-License-Identifier: Apache-2.0
// Prepare: the modules that a custom config names. Standalone modules are prepared separately,
// custom modules are replaced by observed ones; both take precedence over the backend's patterns.
#include <string.h>

#include "flow/fx/prepare.h"
#include "flow/fx/quantizable.h"
#include "model/custom_module.h"

// A traced module is still an instance of its original class.
static bool is_of_class(const node *n, const module *m, const char *class_name) {
    const value *traced = m->graph != NULL ? tare__module_config(m, "class_name") : NULL;
    return strcmp(m->class->name, class_name) == 0 ||
           (n->scope_type != NULL && strcmp(n->scope_type, class_name) == 0) ||
           (traced != NULL && traced->kind == VALUE_STRING &&
            strcmp(traced->as.text, class_name) == 0);
}

static const standalone_entry *find_standalone(const prepare_pass *p, const node *n,
                                               const module *m) {
    const standalone_entry *named = tare__standalone_find(&p->custom->standalone_names, n->target);
    const standalone_list *classes = &p->custom->standalone_classes;
    for (size_t i = 0; named == NULL && i < classes->count; i++)
        if (is_of_class(n, m, classes->items[i].key)) named = &classes->items[i];
    return named;
}

static tare_status match_one(prepare_pass *p, node *n, const prepare_match *like) {
    prepare_match *match = tare__arena_alloc(&p->base->scratch, sizeof *match);
    match_list items = {0};
    if (match == NULL) return tare__out_of_memory(p->base->err);
    TARE_TRY(tare__match_list_create(&p->base->scratch, 1, &items, p->base->err));
    items.items[items.count++] = (match_item){.node = tare__match_node_from(n)};
    *match = *like;
    match->last = n;
    match->root = n;
    return tare__prepare_take(p, match, &items);
}

static tare_status match_node(prepare_pass *p, node *n) {
    const module *m = tare__called_module(p->base->model, n);
    if (m == NULL) return TARE_OK;
    const standalone_entry *standalone = find_standalone(p, n, m);
    const char *observed = tare__class_pairs_get(&p->custom->float_to_observed, m->class->name);
    if (standalone != NULL && m->graph == NULL)
        return tare__hint(
            p->base->err,
            tare__fail(p->base->err, TARE_UNSUPPORTED,
                       "the standalone module '%s' of class %s has no graph of its own", n->target,
                       m->class->name),
            "export it as a leaf of a class of your own");
    if (standalone != NULL) return match_one(p, n, &(prepare_match){.standalone = standalone});
    if (observed != NULL) return match_one(p, n, &(prepare_match){.observed_class = observed});
    return TARE_OK;
}

// --- selectors that match nothing ---

typedef bool (*selects)(const prepare_pass *p, const node *n, const module *m, const char *key);

static bool selects_path(const prepare_pass *p, const node *n, const module *m, const char *key) {
    (void)p;
    (void)m;
    return strcmp(n->target, key) == 0;
}

static bool selects_class(const prepare_pass *p, const node *n, const module *m, const char *key) {
    (void)p;
    return is_of_class(n, m, key);
}

static bool selects_any(const prepare_pass *p, selects does, const char *key) {
    for (const node *n = p->base->model->root->graph->first; n != NULL; n = n->next) {
        const module *m = tare__called_module(p->base->model, n);
        if (m != NULL && does(p, n, m, key)) return true;
    }
    return false;
}

static tare_status check_selector(prepare_pass *p, selects does, const char *section,
                                  const char *key) {
    if (selects_any(p, does, key)) return TARE_OK;
    if (p->options->is_lenient) {
        const tare_decision d = {.pass = "prepare", .decision = "warning", .rule = key};
        return tare__record_add(&p->base->model->decisions, &d, p->base->err,
                                "the %s selector '%s' matches no module that a node calls", section,
                                key);
    }
    const tare_status status = tare__fail(
        p->base->err, TARE_NOT_FOUND,
        "prepare custom config: the %s selector '%s' matches no module that a node calls", section,
        key);
    return tare__hint(p->base->err, status,
                      "the trace went through the module, so no node calls it: export the model "
                      "with it as a leaf");
}

static tare_status check_names(prepare_pass *p, selects does, const char *section,
                               const name_list *list) {
    for (size_t i = 0; i < list->count; i++)
        TARE_TRY(check_selector(p, does, section, list->items[i]));
    return TARE_OK;
}

static tare_status check_standalone(prepare_pass *p, selects does, const char *section,
                                    const standalone_list *list) {
    for (size_t i = 0; i < list->count; i++)
        TARE_TRY(check_selector(p, does, section, list->items[i].key));
    return TARE_OK;
}

static tare_status check_selectors(prepare_pass *p) {
    const tare_prepare_custom_config *c = p->custom;
    TARE_TRY(check_standalone(p, selects_path, "standalone_module_name", &c->standalone_names));
    TARE_TRY(check_standalone(p, selects_class, "standalone_module_class", &c->standalone_classes));
    TARE_TRY(check_names(p, selects_path, "non_traceable_module_name", &c->non_traceable_names));
    TARE_TRY(
        check_names(p, selects_class, "non_traceable_module_class", &c->non_traceable_classes));
    for (size_t i = 0; i < c->float_to_observed.count; i++)
        TARE_TRY(check_selector(p, selects_class, "float_to_observed_custom_module_class",
                                c->float_to_observed.items[i].from));
    return TARE_OK;
}

tare_status tare__prepare_custom_matches(prepare_pass *p) {
    TARE_TRY(check_selectors(p));
    for (node *n = p->base->model->root->graph->first; n != NULL; n = n->next)
        TARE_TRY(match_node(p, n));
    return TARE_OK;
}

// --- standalone modules ---

bool tare__standalone_wants_quantized(const prepare_match *match, const node *n, const node *arg) {
    const tare_prepare_custom_config *custom = match->standalone->custom;
    for (size_t i = 0; i < n->arg_count; i++)
        if (tare__node_arg(n, i) == arg)
            return custom != NULL && tare__index_list_has(&custom->input_quantized, (int64_t)i);
    return false;
}

static tare_status check_result(const prepare_pass *p, const node *n, const module *m) {
    const node *output = tare__graph_output(m->graph);
    if (output != NULL && tare__node_arg(output, 0) != NULL) return TARE_OK;
    return tare__fail(p->base->err, TARE_UNSUPPORTED,
                      "node '%s': standalone module only supports returning simple value currently "
                      "(not tuple, dict etc.)",
                      n->name);
}

static tare_status prepare_with(prepare_pass *p, const node *n, const module *m,
                                const tare_prepare_options *options) {
    module *made = NULL;
    prepared_state *state = NULL;
    TARE_TRY(tare__at(p->base->err,
                      tare__prepare_standalone(p, m, n->target, options, &made, &state),
                      "standalone module '%s'", n->target));
    return tare__pass_put_module(
        p->base, n->target, made,
        tare__prepared_state_add_child(p->state, n->target, state, p->base->err));
}

static tare_status prepare_standalone(prepare_pass *p, const node *n, const prepare_node *entry) {
    const module *m = tare__called_module(p->base->model, n);
    if (tare__prepared_child(p->state, n->target) != NULL)
        return TARE_OK; // prepared by an earlier call
    const standalone_entry *asked = entry->match->standalone;
    tare_qconfig_mapping *own = NULL;
    TARE_TRY(check_result(p, n, m));
    if (asked->mapping == NULL) {
        own = tare_qconfig_mapping_create();
        if (own == NULL) return tare__out_of_memory(p->base->err);
        tare_qconfig_mapping_set_global(own, entry->qconfig.qconfig);
    }
    const tare_prepare_options options = {.struct_size = sizeof options,
                                          .backend = asked->backend != NULL ? asked->backend
                                                                            : p->base->backend,
                                          .qconfig_mapping = own != NULL ? own : asked->mapping,
                                          .custom_config = asked->custom,
                                          .is_lenient = p->options->is_lenient};
    const tare_status status = prepare_with(p, n, m, &options);
    tare_qconfig_mapping_destroy(own);
    return status;
}

// --- custom modules ---

static tare_status observe_custom(prepare_pass *p, const node *n, const prepare_node *entry) {
    const char *class_name = entry->match->observed_class;
    const module *m = tare__called_module(p->base->model, n);
    if (strcmp(m->class->name, class_name) == 0) return TARE_OK; // replaced by an earlier call
    tare_observer_info activation;
    TARE_TRY(tare__pass_spec_info(p->base, entry->qconfig.qconfig->activation, &activation));
    if (activation.is_dynamic)
        return tare__fail(
            p->base->err, TARE_INVALID_ARGUMENT,
            "node '%s': did not find corresponding observed module class for %s in "
            "mapping: custom modules are quantized statically, the qconfig is dynamic",
            n->name, m->class->name);
    module *made = NULL;
    const tare_context *context = p->base->model->context;
    const module_class *class = tare__class_find(&context->classes, class_name);
    tare_status status =
        class != NULL && tare__is_quantizable(class)
            ? tare__quantizable_observe(context, class, m, entry->qconfig.qconfig, &made,
                                        p->base->err)
            : tare__custom_module_observe(context, class_name, m, &made, p->base->err);
    status = tare__pass_put_module(p->base, n->target, made, status);
    return tare__at(p->base->err, status, "node '%s'", n->name);
}

tare_status tare__prepare_custom_modules(prepare_pass *p) {
    for (size_t i = 0; i < p->match_count; i++) {
        const prepare_node *entry = &p->nodes[p->match_order[i]];
        const node *n = entry->match->last;
        if (entry->match->standalone != NULL) TARE_TRY(prepare_standalone(p, n, entry));
        if (entry->match->observed_class != NULL && entry->qconfig.qconfig != NULL)
            TARE_TRY(observe_custom(p, n, entry));
    }
    return TARE_OK;
}
