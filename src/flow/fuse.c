// SPDX-License-Identifier: Apache-2.0
// Fusion: each match of a backend's pattern becomes one module, called by the root node (spec:
// torch's fuse_fx).
#include <string.h>

#include "flow/fusers.h"
#include "flow/match.h"
#include "model/coverage.h"
#include "model/pass.h"
#include "ops/classes/classes.h"
#include "ops/op.h"

// A match of a pattern config, seen from the last of its nodes.
typedef struct fuse_match {
    const tare_pattern_config *config;
    node *last;
    tare_match structure;
    match_nodes nodes; // of the structure
} fuse_match;

// Facts about a node of the float graph.
typedef struct fuse_node {
    fuse_match *match; // NULL: not matched, or only by a wildcard
    node *copy;        // in the new graph; the last node of a match represents the match
} fuse_node;

typedef struct fuse_pass {
    pass *base;
    bool is_qat;
    const tare_pattern_config **configs; // those with a fuser, longest pattern first
    size_t config_count;
    fuse_node *nodes; // by id
    graph *fused;     // the new graph
    module *original; // the unfused tree: a module that is fused twice is fused from its float form
} fuse_pass;

static tare_status choose_configs(fuse_pass *f) {
    const tare_pattern_config **sorted = NULL;
    TARE_TRY(
        tare__backend_config_sorted(f->base->backend, &f->base->scratch, &sorted, f->base->err));
    f->configs = sorted;
    for (size_t i = 0; i < f->base->backend->count; i++)
        if (tare__pattern_config_has_fuser(sorted[i])) f->configs[f->config_count++] = sorted[i];
    return TARE_OK;
}

static void record_leaf(fuse_pass *f, const pattern *p, const value *v, fuse_match *match,
                        match_list *into) {
    if (v->kind != VALUE_NODE) {
        into->items[into->count++] = (match_item){0};
        return;
    }
    fuse_node *known = &f->nodes[v->as.node->id];
    if (known->match != NULL) return; // the first match takes precedence
    into->items[into->count++] = (match_item){.node = tare__match_node_from(v->as.node)};
    if (p->kind != PATTERN_ANY) known->match = match;
}

// Walks the pattern over the node and its arguments; *into grows by one item.
static tare_status record_match(fuse_pass *f, const pattern *p, const value *v, fuse_match *match,
                                match_list *into) {
    if (p->kind != PATTERN_TUPLE) {
        record_leaf(f, p, v, match, into);
        return TARE_OK;
    }
    match_list inner = {0};
    TARE_TRY(tare__match_list_create(&f->base->scratch, p->item_count, &inner, f->base->err));
    TARE_TRY(record_match(f, &p->items[0], v, match, &inner));
    for (size_t i = 1; i < p->item_count; i++)
        TARE_TRY(record_match(f, &p->items[i], &v->as.node->args[i - 1], match, &inner));
    return tare__match_nest(&f->base->scratch, &inner, &into->items[into->count++], f->base->err);
}

static tare_status match_node(fuse_pass *f, node *n) {
    const value v = tare__node_value(n);
    for (size_t i = 0; i < f->config_count; i++) {
        const pattern *p = f->configs[i]->complex;
        if (!tare__pattern_matches(p, &v, f->original)) continue;
        fuse_match *match = tare__arena_alloc(&f->base->scratch, sizeof *match);
        if (match == NULL) return tare__out_of_memory(f->base->err);
        *match = (fuse_match){.config = f->configs[i], .last = n};
        match_list outer = {0};
        TARE_TRY(tare__match_list_create(&f->base->scratch, 1, &outer, f->base->err));
        TARE_TRY(record_match(f, p, &v, match, &outer));
        if (outer.items[0].nested != NULL)
            match->structure = *outer.items[0].nested;
        else
            match->structure = (tare_match){.count = 1, .items = outer.items};
        return tare__match_flatten(&f->base->scratch, &match->structure, &match->nodes,
                                   f->base->err);
    }
    return TARE_OK;
}

static tare_status find_matches(fuse_pass *f) {
    for (node *n = f->base->model->root->graph->last; n != NULL; n = n->prev)
        if (f->nodes[n->id].match == NULL) TARE_TRY(match_node(f, n));
    return TARE_OK;
}

// The leaves of a match, flattened, which fusers take.
typedef struct leaf_list {
    const module *modules[8];
    const char *functions[8];
    size_t count;
} leaf_list;

// True for a node of the match itself, but not for one that a wildcard matched, which stays in the
// graph.
static bool is_matched_by(const fuse_pass *f, const node *n, const fuse_match *match) {
    return f->nodes[n->id].match == match;
}

static tare_status add_leaf(fuse_pass *f, const node *n, bool is_own, const module *relu,
                            leaf_list *out) {
    if (out->count == sizeof out->modules / sizeof *out->modules)
        return tare__fail(f->base->err, TARE_UNSUPPORTED,
                          "node '%s': a fusion pattern has more than 8 operators", n->name);
    const module *m = NULL;
    const char *function = NULL;
    if (is_own && n->op == NODE_CALL_MODULE) {
        m = tare__module_find(f->original, n->target);
    } else if (is_own) {
        // torch converts a functional relu to a module, so that the fused module can contain it.
        if (tare__node_op(n) == TARE_OP_RELU && tare__uses_first_name(n))
            m = relu;
        else
            function = n->target;
    }
    out->modules[out->count] = m;
    out->functions[out->count++] = function;
    return TARE_OK;
}

static tare_status add_leaves(fuse_pass *f, const fuse_match *match, const module *relu,
                              leaf_list *out) {
    for (size_t i = 0; i < match->nodes.count; i++) {
        const node *n = match->nodes.items[i];
        TARE_TRY(add_leaf(f, n, is_matched_by(f, n, match), relu, out));
    }
    return TARE_OK;
}

static void reverse(leaf_list *leaves) {
    for (size_t i = 0, j = leaves->count; i + 1 < j; i++) {
        j--;
        const module *m = leaves->modules[i];
        const char *name = leaves->functions[i];
        leaves->modules[i] = leaves->modules[j];
        leaves->functions[i] = leaves->functions[j];
        leaves->modules[j] = m;
        leaves->functions[j] = name;
    }
}

static tare_status run_fuser(fuse_pass *f, const fuse_match *match, leaf_list *leaves,
                             module **out) {
    const tare_pattern_config *config = match->config;
    const registry *classes = &f->base->model->context->classes;
    if (config->fuser == NULL) {
        const fuse_leaves given = {leaves->modules, leaves->functions, leaves->count};
        return tare__fuser_run(classes, config->fuser_method, f->is_qat, &given, out, f->base->err);
    }
    if (!config->is_complex_given) reverse(leaves); // custom fusers take data-flow order
    tare_module *made = NULL;
    TARE_TRY(config->fuser(config->fuser_user, f->is_qat,
                           (const tare_module *const *)leaves->modules, leaves->functions,
                           leaves->count, &made, f->base->err));
    if (made == NULL)
        return tare__fail(f->base->err, TARE_INVALID_ARGUMENT,
                          "the fuser of a pattern at node '%s' returned no module",
                          match->last->name);
    *out = (module *)made;
    return TARE_OK;
}

// Creates the fused module and installs it at the root's path.
static tare_status install_fused(fuse_pass *f, const fuse_match *match, const node *root) {
    const module *root_module = tare__module_find(f->original, root->target);
    module *relu = NULL, *fused = NULL;
    const module_class *relu_class =
        tare__class_find(&f->base->model->context->classes, "torch.nn.ReLU");
    TARE_TRY(tare__module_create(relu_class, &relu, f->base->err));
    relu->training = root_module->training;
    leaf_list leaves = {0};
    tare_status status = add_leaves(f, match, relu, &leaves);
    if (status == TARE_OK) status = run_fuser(f, match, &leaves, &fused);
    tare__module_release(relu);
    return tare__pass_put_module(f->base, root->target, fused, status);
}

static node *copy_of(void *user, node *n) {
    const fuse_pass *f = user;
    return f->nodes[n->id].copy;
}

static tare_status append_extra_inputs(fuse_pass *f, const fuse_match *match, node *fused) {
    const tare_pattern_config *config = match->config;
    if (config->extra_inputs_getter == NULL) return TARE_OK;
    const tare_match_node *extra[8];
    const size_t count =
        config->extra_inputs_getter(config->extra_inputs_getter_user, &match->structure, extra, 8);
    value args[16];
    if (count > 8 || fused->arg_count + count > sizeof args / sizeof *args)
        return tare__fail(f->base->err, TARE_INVALID_ARGUMENT,
                          "node '%s': the extra inputs getter returned %zu inputs, at most 8 fit",
                          fused->name, count);
    if (fused->arg_count > 0) memcpy(args, fused->args, fused->arg_count * sizeof *args);
    for (size_t i = 0; i < count; i++) {
        if (extra[i] == NULL)
            return tare__fail(f->base->err, TARE_INVALID_ARGUMENT,
                              "node '%s': the extra inputs getter returned no node", fused->name);
        node *n = f->nodes[tare__match_node_get(extra[i])->id].copy;
        if (n == NULL)
            return tare__fail(f->base->err, TARE_INVALID_ARGUMENT,
                              "node '%s': an extra input is part of the fused pattern itself",
                              fused->name);
        args[fused->arg_count + i] = tare__node_value(n);
    }
    return tare__node_set_args(fused, args, fused->arg_count + count, fused->kwargs,
                               fused->kwarg_count, f->base->err);
}

static tare_status decide_fused(fuse_pass *f, const fuse_match *match, const node *root) {
    const module *fused = tare__module_find(f->base->model->root, root->target);
    for (size_t i = 0; i < match->nodes.count; i++) {
        const node *n = match->nodes.items[i];
        if (!is_matched_by(f, n, match)) continue;
        TARE_TRY(tare__coverage_fused(f->base->model, n->origin, root->origin, f->base->err));
        TARE_TRY(TARE_DECIDE(f->base, n, "fused", fused->class->name, "fused into %s at '%s'",
                             fused->class->print_name, root->name));
    }
    return TARE_OK;
}

static tare_status fuse_match_at_last(fuse_pass *f, const fuse_match *match) {
    const node *root = tare__match_root(match->config, &match->structure);
    if (root == NULL || root->op != NODE_CALL_MODULE)
        return tare__at(f->base->err,
                        tare__fail(f->base->err, TARE_INVALID_ARGUMENT,
                                   "Expecting module node to be a call_module Node"),
                        "node '%s'", match->last->name);
    TARE_TRY(tare__at(f->base->err, install_fused(f, match, root), "node '%s'", root->name));
    TARE_TRY(decide_fused(f, match, root));
    node *copy = NULL;
    TARE_TRY(tare__graph_copy_node(f->fused, root, copy_of, f, &copy, f->base->err));
    copy->debug_handle = match->last->debug_handle;
    f->nodes[match->last->id].copy = copy;
    return append_extra_inputs(f, match, copy);
}

static tare_status rebuild(fuse_pass *f) {
    for (node *n = f->base->model->root->graph->first; n != NULL; n = n->next) {
        fuse_node *known = &f->nodes[n->id];
        if (known->match == NULL)
            TARE_TRY(tare__graph_copy_node(f->fused, n, copy_of, f, &known->copy, f->base->err));
        else if (known->match->last == n)
            TARE_TRY(fuse_match_at_last(f, known->match));
    }
    return TARE_OK;
}

tare_status tare__fuse_steps(pass *p, bool is_qat) {
    fuse_pass f = {.base = p, .is_qat = is_qat};
    const graph *g = p->model->root->graph;
    TARE_TRY(tare__coverage_begin(p->model, p->err));
    f.nodes = tare__arena_array(&p->scratch, g->next_id, sizeof *f.nodes);
    if (f.nodes == NULL) return tare__out_of_memory(p->err);
    TARE_TRY(tare__module_clone(p->model->root, &f.original, p->err));
    tare_status status = tare__graph_create(&f.fused, p->err);
    if (status == TARE_OK) {
        status = choose_configs(&f);
    }
    if (status == TARE_OK) status = find_matches(&f);
    if (status == TARE_OK) status = rebuild(&f);
    if (status == TARE_OK)
        status = tare__pass_rebuild(p, f.fused);
    else
        tare__graph_destroy(f.fused);
    tare__module_release(f.original);
    return status;
}

tare_status tare_fuse_fx_custom(const tare_model *model, const tare_backend_config *backend,
                                const tare_fuse_custom_config *custom, tare_model **out,
                                tare_error *err) {
    if (model != NULL && model->stage > TARE_STAGE_FUSED)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "fuse: expected a float model, found one that was prepared already");
    if (custom != NULL) TARE_TRY(tare__setter_status(&custom->failure, err));
    pass p;
    tare_status status = tare__pass_begin(&p, "fuse", model, backend, err);
    if (status == TARE_OK) status = tare__fuse_steps(&p, false);
    if (status == TARE_OK) p.model->stage = TARE_STAGE_FUSED;
    if (status == TARE_OK && custom != NULL)
        status = tare__pass_preserve(&p, &custom->preserved_attributes, model->root, false);
    return tare__pass_end(&p, status, out);
}

tare_status tare_fuse_fx(const tare_model *model, const tare_backend_config *backend,
                         tare_model **out, tare_error *err) {
    return tare_fuse_fx_custom(model, backend, NULL, out, err);
}
