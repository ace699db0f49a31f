// SPDX-License-Identifier: Apache-2.0
// Prepare: assigns a qconfig to each node, by the mapping's precedence.
#include <stdio.h>
#include <string.h>

#include "core/memory/map.h"
#include "flow/fx/prepare.h"
#include "flow/node_qconfigs.h"
#include "ops/op.h"

// The paths of all modules, for suggestions.
typedef struct path_list {
    const char *paths[256];
    size_t count;
    arena *scratch;
    const tare_qconfig_mapping *mapping; // with a single regex
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

// A selector that matches nothing is an error, or with is_lenient a warning in the record.
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
        // Tests one rule at a time with the lookup that is used for nodes.
        tare_qconfig_mapping alone = {.module_name_regex = {&rules->items[i], 1, 1}};
        path_list list = {.mapping = &alone};
        TARE_TRY(tare__module_walk((module *)original, try_regex, &list, p->base->err));
        if (!list.matched)
            TARE_TRY(unmatched(p, original, "module_name_regex", rules->items[i].key));
    }
    return TARE_OK;
}

// The types of modules from which calls were traced can be custom classes.
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

// Mappings may contain types that the model does not have, and types unknown to tare. A type that
// is unknown and similar to the name of a class is reported as a misspelling.
static tare_status check_types(prepare_pass *p, const tare_qconfig_mapping *mapping) {
    const qconfig_rules *rules = &mapping->object_type;
    const registry *classes = &p->base->model->context->classes;
    for (size_t i = 0; i < rules->count; i++) {
        const char *type = rules->items[i].key;
        if (is_known_type(p, type) || tare_nearest_name(type, tare__class_name_at, classes) == NULL)
            continue;
        if (p->options->is_lenient) {
            TARE_TRY(warn(p, "object_type", type, "is not a known module class"));
            continue;
        }
        return tare__suggest(
            p->base->err,
            tare__fail(p->base->err, TARE_NOT_FOUND,
                       "qconfig mapping: the object_type selector '%s' is not a known module class",
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

static tare_status keep_choice(void *user, const node *n, const qconfig_choice *choice) {
    prepare_pass *p = user;
    p->nodes[n->id].qconfig = *choice;
    return TARE_OK;
}

static tare_status keep_equalization(void *user, const node *n, const qconfig_choice *choice) {
    prepare_pass *p = user;
    p->nodes[n->id].equalization = *choice;
    return TARE_OK;
}

tare_status tare__prepare_qconfigs(prepare_pass *p, const module *original) {
    TARE_TRY(check_selectors(p, p->mapping, original));
    TARE_TRY(tare__choose_qconfigs(p->base, p->mapping, keep_choice, p));
    if (p->equalization == NULL) return TARE_OK;
    TARE_TRY(check_selectors(p, p->equalization, original));
    return tare__choose_qconfigs(p->base, p->equalization, keep_equalization, p);
}
