// SPDX-License-Identifier: Apache-2.0
// Determines the qconfig of each node by a mapping's precedence, in prepare and again in convert.
#include "flow/node_qconfigs.h"

#include <string.h>

#include "core/memory/map.h"

// Counts the occurrences of an object type in a module; *out: index of the next one.
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
    pass *base;
    const tare_qconfig_mapping *mapping;
    map counts;
} chooser;

static tare_status choose_attr(chooser *c, const node *n, qconfig_choice *out) {
    const char *owner_path = parent_path(&c->base->scratch, n->target);
    if (owner_path == NULL) return tare__out_of_memory(c->base->err);
    const module *owner = tare__module_find(c->base->model->root, owner_path);
    const char *type = owner != NULL ? owner->class->name : NULL;
    return tare__qconfig_adjust(c->mapping, type, owner_path, tare__qconfig_global(c->mapping), out,
                                c->base->err);
}

static tare_status choose_function(chooser *c, const node *n, qconfig_choice *out) {
    const qconfig_choice by_function =
        tare__qconfig_by_type(c->mapping, n->target, tare__qconfig_global(c->mapping));
    TARE_TRY(tare__qconfig_adjust(c->mapping, n->scope_type, n->scope_path, by_function, out,
                                  c->base->err));
    int64_t index = 0;
    TARE_TRY(
        next_index(&c->counts, n->scope_path, n->target, &index, &c->base->scratch, c->base->err));
    *out = tare__qconfig_by_order(c->mapping, n->scope_path, n->target, index, *out);
    return TARE_OK;
}

static tare_status choose_method(chooser *c, const node *n, qconfig_choice *out) {
    TARE_TRY(tare__qconfig_adjust(c->mapping, n->target, n->scope_path,
                                  tare__qconfig_global(c->mapping), out, c->base->err));
    return tare__qconfig_adjust(c->mapping, n->scope_type, n->scope_path, *out, out, c->base->err);
}

static tare_status choose_module(chooser *c, const node *n, qconfig_choice *out) {
    const module *m = tare__called_module(c->base->model, n);
    if (m->class->role == ROLE_OBSERVER) return TARE_OK;
    // A traced module is still an instance of its original class.
    const char *class_name =
        m->graph != NULL && n->scope_type != NULL ? n->scope_type : m->class->name;
    TARE_TRY(tare__qconfig_adjust(c->mapping, class_name, n->target,
                                  tare__qconfig_global(c->mapping), out, c->base->err));
    // The scope of a module's call is the module itself, with its type before fusion; occurrences
    // are counted in its parent.
    const char *parent = parent_path(&c->base->scratch, n->scope_path);
    if (parent == NULL) return tare__out_of_memory(c->base->err);
    const char *type = n->scope_type != NULL ? n->scope_type : m->class->name;
    int64_t index = 0;
    TARE_TRY(next_index(&c->counts, parent, type, &index, &c->base->scratch, c->base->err));
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

tare_status tare__choose_qconfigs(pass *base, const tare_qconfig_mapping *mapping,
                                  qconfig_taker take, void *user) {
    chooser c = {.base = base, .mapping = mapping};
    tare_status status = TARE_OK;
    for (const node *n = base->model->root->graph->first; n != NULL && status == TARE_OK;
         n = n->next) {
        qconfig_choice choice = {0};
        status = choose(&c, n, &choice);
        if (status == TARE_OK) status = take(user, n, &choice);
    }
    tare__map_release(&c.counts);
    return status;
}

// torch requires equal qconfigs for all classes in a fused module, and gives the fused class the
// same.
static tare_status extend_by(pass *p, tare_qconfig_mapping *mapping, const node *n,
                             const module *fused) {
    const qconfig_choice none = {0};
    const module *first = fused->children[0].module;
    const qconfig_choice wanted = tare__qconfig_by_type(mapping, first->class->name, none);
    for (size_t i = 1; i < fused->child_count; i++) {
        const char *type = fused->children[i].module->class->name;
        const qconfig_choice other = tare__qconfig_by_type(mapping, type, none);
        if (!tare_qconfig_equal(wanted.qconfig, other.qconfig))
            return tare__at(
                p->err,
                tare__fail(p->err, TARE_INVALID_ARGUMENT,
                           "During fusion, we need to specify the same qconfigs for all "
                           "module types in %s offending type: %s",
                           fused->class->name, type),
                "node '%s'", n->name);
    }
    if (wanted.qconfig != NULL)
        tare_qconfig_mapping_set_object_type(mapping, fused->class->name, wanted.qconfig);
    return tare__qconfig_mapping_status(mapping, p->err);
}

tare_status tare__mapping_extend_by_fusion(pass *p, tare_qconfig_mapping *mapping) {
    if (mapping == NULL || mapping->object_type.count == 0) return TARE_OK;
    for (const node *n = p->model->root->graph->first; n != NULL; n = n->next) {
        const module *m = tare__called_module(p->model, n);
        if (m != NULL && m->class->role == ROLE_FUSED && m->child_count > 0)
            TARE_TRY(extend_by(p, mapping, n, m));
    }
    return TARE_OK;
}

tare_status tare__mapping_extend_by_qat(const tare_backend_config *backend,
                                        tare_qconfig_mapping *mapping, tare_error *err) {
    const size_t count = mapping->object_type.count;
    for (size_t i = 0; i < count; i++) {
        const qconfig_rule *rule = &mapping->object_type.items[i];
        const tare_pattern_config *config = tare__backend_config_for_operator(backend, rule->key);
        if (config != NULL && config->qat_module != NULL)
            tare_qconfig_mapping_set_object_type(mapping, config->qat_module, rule->qconfig);
    }
    return tare__qconfig_mapping_status(mapping, err);
}
