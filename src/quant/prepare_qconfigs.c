// SPDX-License-Identifier: Apache-2.0
// Prepare: one qconfig per node, by the mapping's precedence.
#include <stdio.h>
#include <string.h>

#include "core/map.h"
#include "ops/op.h"
#include "quant/prepare.h"

// How often an object type was seen in a module: the index of the next occurrence.
static tare_status next_index(map *counts, const char *path, const char *type, int64_t *out,
                              arena *scratch, tare_error *err) {
    const char *key = tare__arena_printf(scratch, "%s\n%s", path, type);
    if (key == NULL) return tare__out_of_memory(err);
    const size_t seen = (size_t)tare__map_get(counts, key);
    *out = (int64_t)seen;
    return tare__map_set(counts, key, tare__map_int(seen + 1)) ? TARE_OK : tare__out_of_memory(err);
}

// Everything before the last dot; "" without one.
static const char *parent_path(arena *scratch, const char *path) {
    const char *dot = strrchr(path, '.');
    return dot == NULL ? "" : tare__arena_strndup(scratch, path, (size_t)(dot - path));
}

typedef struct chooser {
    prepare_pass *pass;
    const tare_qconfig_mapping *mapping;
    map counts;
} chooser;

static tare_status choose_attr(chooser *c, const node *n, qconfig_choice *out) {
    prepare_pass *p = c->pass;
    const char *owner_path = parent_path(&p->base->scratch, n->target);
    if (owner_path == NULL) return tare__out_of_memory(p->base->err);
    const module *owner = tare__module_find(p->base->model->root, owner_path);
    const char *type = owner != NULL ? owner->class->name : NULL;
    return tare__qconfig_adjust(c->mapping, type, owner_path, tare__qconfig_global(c->mapping), out,
                                p->base->err);
}

static tare_status choose_function(chooser *c, const node *n, qconfig_choice *out) {
    prepare_pass *p = c->pass;
    const qconfig_choice by_function =
        tare__qconfig_by_type(c->mapping, n->target, tare__qconfig_global(c->mapping));
    TARE_TRY(tare__qconfig_adjust(c->mapping, n->scope_type, n->scope_path, by_function, out,
                                  p->base->err));
    int64_t index = 0;
    TARE_TRY(
        next_index(&c->counts, n->scope_path, n->target, &index, &p->base->scratch, p->base->err));
    *out = tare__qconfig_by_order(c->mapping, n->scope_path, n->target, index, *out);
    return TARE_OK;
}

static tare_status choose_method(chooser *c, const node *n, qconfig_choice *out) {
    prepare_pass *p = c->pass;
    TARE_TRY(tare__qconfig_adjust(c->mapping, n->target, n->scope_path,
                                  tare__qconfig_global(c->mapping), out, p->base->err));
    return tare__qconfig_adjust(c->mapping, n->scope_type, n->scope_path, *out, out, p->base->err);
}

static tare_status choose_module(chooser *c, const node *n, qconfig_choice *out) {
    prepare_pass *p = c->pass;
    const module *m = tare__called_module(p->base->model, n);
    if (m->class->role == ROLE_OBSERVER) return TARE_OK;
    // A module with a graph of its own still is of the class that it was traced from.
    const char *class_name =
        m->graph != NULL && n->scope_type != NULL ? n->scope_type : m->class->name;
    TARE_TRY(tare__qconfig_adjust(c->mapping, class_name, n->target,
                                  tare__qconfig_global(c->mapping), out, p->base->err));
    // The scope of a leaf's call is the leaf itself, by its type before fusion; occurrences count
    // in its parent.
    const char *parent = parent_path(&p->base->scratch, n->scope_path);
    if (parent == NULL) return tare__out_of_memory(p->base->err);
    const char *type = n->scope_type != NULL ? n->scope_type : m->class->name;
    int64_t index = 0;
    TARE_TRY(next_index(&c->counts, parent, type, &index, &p->base->scratch, p->base->err));
    *out = tare__qconfig_by_order(c->mapping, parent, type, index, *out);
    return TARE_OK;
}

static tare_status choose(chooser *c, const node *n, qconfig_choice *out) {
    switch (n->op) {
    case NODE_GET_ATTR:
        return choose_attr(c, n, out);
    case NODE_CALL_FUNCTION:
        return choose_function(c, n, out);
    case NODE_CALL_METHOD:
        return choose_method(c, n, out);
    case NODE_CALL_MODULE:
        return choose_module(c, n, out);
    case NODE_PLACEHOLDER:
    case NODE_OUTPUT:
        break;
    }
    return TARE_OK;
}

// For suggestions: the paths of all modules.
typedef struct path_list {
    const char *paths[256];
    size_t count;
    arena *scratch;
    const tare_qconfig_mapping *mapping; // of the one regex that is tried
    bool matched;
} path_list;

static const char *path_at(const void *user, size_t index) {
    const path_list *list = user;
    return index < list->count ? list->paths[index] : NULL;
}

static tare_status collect_path(void *user, const char *path, module *m, tare_error *err) {
    (void)m;
    path_list *list = user;
    if (list->count == sizeof list->paths / sizeof *list->paths) return TARE_OK;
    const char *copy = tare__arena_strdup(list->scratch, path);
    if (copy == NULL) return tare__out_of_memory(err);
    list->paths[list->count++] = copy;
    return TARE_OK;
}

static tare_status try_regex(void *user, const char *path, module *m, tare_error *err) {
    (void)m;
    path_list *list = user;
    qconfig_choice choice = {0};
    TARE_TRY(tare__qconfig_adjust(list->mapping, NULL, path, (qconfig_choice){0}, &choice, err));
    if (choice.section != NULL) list->matched = true;
    return TARE_OK;
}

static tare_status warn(prepare_pass *p, const char *section, const char *key, const char *what) {
    const tare_decision d = {.pass = "prepare", .decision = "warning", .rule = key};
    return tare__record_add(&p->base->model->decisions, &d, p->base->err, "the %s selector '%s' %s",
                            section, key, what);
}

// A selector that matches nothing is an error, or a warning in the record of a lenient job.
static tare_status unmatched(prepare_pass *p, const module *original, const char *section,
                             const char *key) {
    if (p->options->is_lenient) return warn(p, section, key, "matches no module");
    path_list list = {.scratch = &p->base->scratch};
    TARE_TRY(tare__module_walk((module *)original, collect_path, &list, p->base->err));
    const tare_status status = tare__fail(
        p->base->err, TARE_NOT_FOUND,
        "qconfig mapping: the %s selector '%s' matches no module of the model", section, key);
    return tare__suggest(p->base->err, status, key, path_at, &list);
}

static tare_status check_regexes(prepare_pass *p, const tare_qconfig_mapping *mapping,
                                 const module *original) {
    const qconfig_rules *rules = &mapping->module_name_regex;
    for (size_t i = 0; i < rules->count; i++) {
        // One rule at a time, through the same lookup that the nodes use.
        tare_qconfig_mapping alone = {.module_name_regex = {&rules->items[i], 1, 1}};
        path_list list = {.mapping = &alone};
        TARE_TRY(tare__module_walk((module *)original, try_regex, &list, p->base->err));
        if (!list.matched)
            TARE_TRY(unmatched(p, original, "module_name_regex", rules->items[i].key));
    }
    return TARE_OK;
}

// Types of the modules that calls came from are the user's own classes, too.
static bool is_known_type(const prepare_pass *p, const char *type) {
    if (tare__class_find(&p->base->model->context->classes, type) != NULL ||
        tare__op_function(type) != NULL || tare__op_method(type) != NULL)
        return true;
    for (const node *n = p->base->model->root->graph->first; n != NULL; n = n->next)
        if ((n->scope_type != NULL && strcmp(n->scope_type, type) == 0) ||
            (n->target != NULL && strcmp(n->target, type) == 0))
            return true;
    return false;
}

// Mappings may speak of types that this model has none of, and of some that tare does not know. One
// that nobody knows and that is nearly the name of a class is a misspelling.
static tare_status check_types(prepare_pass *p, const tare_qconfig_mapping *mapping) {
    const qconfig_rules *rules = &mapping->object_type;
    const registry *classes = &p->base->model->context->classes;
    for (size_t i = 0; i < rules->count; i++) {
        const char *type = rules->items[i].key;
        if (is_known_type(p, type) || tare_nearest_name(type, tare__class_name_at, classes) == NULL)
            continue;
        if (p->options->is_lenient) {
            TARE_TRY(warn(p, "object_type", type, "is no known module class"));
            continue;
        }
        return tare__suggest(
            p->base->err,
            tare__fail(p->base->err, TARE_NOT_FOUND,
                       "qconfig mapping: the object_type selector '%s' is no known module class",
                       type),
            type, tare__class_name_at, classes);
    }
    return TARE_OK;
}

static tare_status check_selectors(prepare_pass *p, const tare_qconfig_mapping *mapping,
                                   const module *original) {
    TARE_TRY(check_types(p, mapping));
    const struct {
        const char *section;
        const qconfig_rules *rules;
    } sections[] = {{"module_name", &mapping->module_name},
                    {"module_name_object_type_order", &mapping->module_name_object_type_order}};
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < sections[s].rules->count; i++) {
            const char *key = sections[s].rules->items[i].key;
            if (tare__module_find(original, key) == NULL)
                TARE_TRY(unmatched(p, original, sections[s].section, key));
        }
    return check_regexes(p, mapping, original);
}

static tare_status choose_all(prepare_pass *p, const tare_qconfig_mapping *mapping,
                              bool for_equalization) {
    chooser c = {.pass = p, .mapping = mapping};
    tare_status status = TARE_OK;
    for (const node *n = p->base->model->root->graph->first; n != NULL && status == TARE_OK;
         n = n->next) {
        prepare_node *entry = &p->nodes[n->id];
        status = choose(&c, n, for_equalization ? &entry->equalization : &entry->qconfig);
    }
    tare__map_release(&c.counts);
    return status;
}

tare_status tare__prepare_qconfigs(prepare_pass *p, const module *original) {
    TARE_TRY(check_selectors(p, p->mapping, original));
    TARE_TRY(choose_all(p, p->mapping, false));
    if (p->equalization == NULL) return TARE_OK;
    TARE_TRY(check_selectors(p, p->equalization, original));
    return choose_all(p, p->equalization, true);
}

// torch requires equal qconfigs for all classes inside a fused module, and gives the fused class
// the same.
static tare_status extend_by(prepare_pass *p, tare_qconfig_mapping *mapping, const node *n,
                             const module *fused) {
    const qconfig_choice none = {0};
    const module *first = fused->children[0].module;
    const qconfig_choice wanted = tare__qconfig_by_type(mapping, first->class->name, none);
    for (size_t i = 1; i < fused->child_count; i++) {
        const char *type = fused->children[i].module->class->name;
        const qconfig_choice other = tare__qconfig_by_type(mapping, type, none);
        if (!tare_qconfig_equal(wanted.qconfig, other.qconfig))
            return tare__at(
                p->base->err,
                tare__fail(p->base->err, TARE_INVALID_ARGUMENT,
                           "During fusion, we need to specify the same qconfigs for all "
                           "module types in %s offending type: %s",
                           fused->class->name, type),
                "node '%s'", n->name);
    }
    if (wanted.qconfig != NULL)
        tare_qconfig_mapping_set_object_type(mapping, fused->class->name, wanted.qconfig);
    return tare__qconfig_mapping_status(mapping, p->base->err);
}

static tare_status extend(prepare_pass *p, tare_qconfig_mapping *mapping) {
    if (mapping == NULL || mapping->object_type.count == 0) return TARE_OK;
    for (const node *n = p->base->model->root->graph->first; n != NULL; n = n->next) {
        const module *m = tare__called_module(p->base->model, n);
        if (m != NULL && m->class->role == ROLE_FUSED && m->child_count > 0)
            TARE_TRY(extend_by(p, mapping, n, m));
    }
    return TARE_OK;
}

tare_status tare__prepare_extend_mapping(prepare_pass *p) {
    TARE_TRY(extend(p, p->mapping));
    return extend(p, p->equalization);
}
