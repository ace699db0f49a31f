// SPDX-License-Identifier: Apache-2.0
// Observers of sharing groups: created, replaced by a quantizer, and queried.
#include "flow/export/observers.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "observe/classes/builtin.h"
#include "observe/classes/derived.h"
#include "observe/fake_quantize.h"
#include "observe/observer_spec.h"

// Options of the spec that a custom class was not given must be handled by the class.
static tare_status check_own(const pass *p, const tare_qspec *from, const module *made) {
    const tare_qspec_fields *f = &from->fields;
    const tare_observer_class *own =
        tare__qspec_own_class(&p->model->context->observers, f->observer);
    if (own == NULL) return TARE_OK;
    const tare_observer_info *info = tare__observer_info(made);
    if (info->dtype != f->dtype)
        return tare__fail(p->err, TARE_INVALID_ARGUMENT,
                          "the spec says %s, but its observer %s quantizes to %s",
                          tare_dtype_name(f->dtype), own->name, tare_dtype_name(info->dtype));
    if (f->qscheme != TARE_QSCHEME_UNSET && info->qscheme != f->qscheme)
        return tare__fail(p->err, TARE_INVALID_ARGUMENT,
                          "the spec says %s, but its observer %s is %s",
                          tare_qscheme_name(f->qscheme), own->name,
                          info->qscheme != TARE_QSCHEME_UNSET ? tare_qscheme_name(info->qscheme)
                                                              : "without a scheme");
    if ((f->has_quant_min && info->quant_min != f->quant_min) ||
        (f->has_quant_max && info->quant_max != f->quant_max))
        return tare__fail(p->err, TARE_INVALID_ARGUMENT,
                          "the spec's range is not %lld..%lld, that of its observer %s",
                          (long long)info->quant_min, (long long)info->quant_max, own->name);
    if (info->is_dynamic != f->is_dynamic)
        return tare__fail(p->err, TARE_INVALID_ARGUMENT,
                          "the spec is %s, but its observer %s is not",
                          f->is_dynamic ? "dynamic" : "static", own->name);
    return TARE_OK;
}

static tare_status make_observer(pass *p, const tare_qspec *from, bool is_qat, module **out) {
    const observer_classes *classes = &p->model->context->observers;
    tare_observer_spec *spec = NULL;
    TARE_TRY(tare__qspec_observer(classes, from, is_qat, &spec, p->err));
    const tare_status status = tare__observer_spec_instantiate(classes, spec, out, p->err);
    tare_observer_spec_release(spec);
    if (status != TARE_OK || from->kind != TARE_QSPEC_PLAIN) return status;
    return check_own(p, from, *out);
}

// --- the map ---

static tare_status at_key(const qspec_key *key, tare_status status, tare_error *err) {
    text name = {0};
    if (status == TARE_OK) return status;
    tare__qspec_key_text(key, &name);
    status = tare__at(err, status, "the spec of %s", tare__text_chars(&name));
    tare__text_release(&name);
    return status;
}

// Uses the first spec of the group that is not a shared one. torch uses the first one, and fails if
// it is shared.
static tare_status make_all(tare_observer_map *set, bool is_qat) {
    for (size_t i = 0; i < set->keys.count; i++) {
        const qspec_key *key = &set->keys.items[i];
        if (key->spec == NULL || key->spec->kind == TARE_QSPEC_SHARED) continue;
        if (set->by_group[key->group] != NULL) continue;
        const tare_status status =
            make_observer(set->base, key->spec, is_qat, &set->by_group[key->group]);
        TARE_TRY(at_key(key, status, set->base->err));
        set->group_specs[key->group] = key->spec;
    }
    return TARE_OK;
}

tare_status tare__observer_map_fill(pass *p, bool is_qat, tare_observer_map *out) {
    *out = (tare_observer_map){.base = p};
    TARE_TRY(tare__qspec_keys_collect(p->model, &p->scratch, &out->keys, p->err));
    TARE_TRY(tare__qspec_keys_share(&out->keys, p->model, p->err));
    const size_t count = out->keys.group_count + 1;
    out->by_group = tare__arena_array(&p->scratch, count, sizeof *out->by_group);
    out->group_specs = tare__arena_array(&p->scratch, count, sizeof *out->group_specs);
    if (out->by_group == NULL || out->group_specs == NULL) return tare__out_of_memory(p->err);
    return make_all(out, is_qat);
}

void tare__observer_map_release(tare_observer_map *set) {
    for (size_t i = 0; set->by_group != NULL && i < set->keys.group_count; i++)
        tare__module_release(set->by_group[i]);
    tare__qspec_keys_release(&set->keys);
}

module *tare__observer_map_get(const tare_observer_map *set, const node *from, const node *n) {
    const size_t i = tare__qspec_keys_find(&set->keys, from != NULL ? from->name : NULL, n->name);
    return i < set->keys.count ? set->by_group[set->keys.items[i].group] : NULL;
}

size_t tare_observer_map_count(const tare_observer_map *set) {
    return set->keys.count;
}

bool tare_observer_map_at(const tare_observer_map *set, size_t index, tare_edge_name *edge,
                          const tare_module **observer) {
    if (index >= set->keys.count) return false;
    const qspec_key *key = &set->keys.items[index];
    *edge = (tare_edge_name){.from = key->from != NULL ? key->from->name : NULL,
                             .node = key->node->name};
    *observer = (const tare_module *)set->by_group[key->group];
    return true;
}

tare_status tare_observer_map_replace(tare_observer_map *set, size_t index,
                                      const tare_observer_spec *spec, tare_error *err) {
    module *made = NULL;
    if (index >= set->keys.count)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "edge %zu of %zu", index, set->keys.count);
    TARE_TRY(
        tare__observer_spec_instantiate(&set->base->model->context->observers, spec, &made, err));
    module **slot = &set->by_group[set->keys.items[index].group];
    tare__module_release(*slot);
    *slot = made;
    return TARE_OK;
}

// --- derived observers ---

static const char *name_of(const module *root, const module *observer) {
    for (size_t i = 0; i < root->child_count; i++)
        if (root->children[i].module == observer) return root->children[i].name;
    return NULL;
}

static tare_status refuse_source(const tare_edge_name *source, tare_error *err) {
    text name = {0};
    tare__edge_name_text(source, &name);
    const tare_status status =
        tare__fail(err, TARE_INVALID_ARGUMENT, "it is derived from %s, which is not observed",
                   tare__text_chars(&name));
    tare__text_release(&name);
    return status;
}

static tare_status link_group(const tare_observer_map *set, size_t group) {
    const tare_qspec *spec = set->group_specs[group];
    const module *root = set->base->model->root;
    const char **names =
        tare__arena_array(&set->base->scratch, spec->target_count + 1, sizeof *names);
    if (names == NULL) return tare__out_of_memory(set->base->err);
    for (size_t i = 0; i < spec->target_count; i++) {
        const tare_edge_name *t = &spec->targets[i];
        const size_t key = tare__qspec_keys_find(&set->keys, t->from, t->node);
        const module *source =
            key < set->keys.count ? set->by_group[set->keys.items[key].group] : NULL;
        names[i] = source != NULL ? name_of(root, source) : NULL;
        if (names[i] == NULL) return refuse_source(t, set->base->err);
    }
    return tare__derived_set(tare__observer_state(set->by_group[group]), &spec->rule, names,
                             spec->target_count, set->base->err);
}

tare_status tare__observer_map_link(const tare_observer_map *set) {
    for (size_t i = 0; i < set->keys.count; i++) {
        const qspec_key *key = &set->keys.items[i];
        const module *observer = set->by_group[key->group];
        if (observer == NULL || tare__observer_class_of(observer) != &tare__derived_observer ||
            set->group_specs[key->group] != key->spec ||
            name_of(set->base->model->root, observer) == NULL)
            continue;
        TARE_TRY(at_key(key, link_group(set, key->group), set->base->err));
    }
    return TARE_OK;
}

// --- what they propose ---

// A cycle of derived observers is at most as long as there are observers.
static tare_status qparams_within(const module *root, const module *observer, size_t depth,
                                  const qparams **out, bool *is_calibrated, tare_error *err);

static tare_status ask_sources(const module *root, const derived_state *s, size_t depth,
                               const qparams **sources, bool *is_calibrated, tare_error *err) {
    *is_calibrated = true;
    for (size_t i = 0; i < s->source_count; i++) {
        const module *source = tare__module_child(root, s->sources[i]);
        if (source == NULL || source->class->role != ROLE_OBSERVER)
            return tare__fail(err, TARE_NOT_FOUND, "the observer '%s' to derive from is gone",
                              s->sources[i]);
        bool knows = false;
        TARE_TRY(qparams_within(root, source, depth, &sources[i], &knows, err));
        *is_calibrated = *is_calibrated && knows;
    }
    return TARE_OK;
}

// Copies a tensor of `count` numbers; NULL if the observer has another number of them, or no
// statistics.
static tare_status copy_numbers(arena *a, const tare_tensor *from, int64_t count,
                                const double **out, tare_error *err) {
    if (from == NULL || from->count != count) return TARE_OK;
    double *made = tare__arena_array(a, (size_t)count + 1, sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    for (int64_t i = 0; i < count; i++) made[i] = tare__tensor_get(from, i);
    *out = made;
    return TARE_OK;
}

// The range of the source; for a fake quantizer, that of its observer.
static tare_status view_range(arena *a, const module *source, tare_qparams_view *view,
                              tare_error *err) {
    const tare_observer_class *class = tare__observer_class_of(source);
    map state = {0};
    if (class == &tare__derived_observer) return TARE_OK;
    if (tare__observer_class_is_fake_quantize(class)) source = tare__fake_quantize_observer(source);
    tare_status status = tare__observer_state_io.save(source, &state, err);
    if (status == TARE_OK)
        status =
            copy_numbers(a, tare__map_get(&state, "min_val"), view->count, &view->min_val, err);
    if (status == TARE_OK)
        status =
            copy_numbers(a, tare__map_get(&state, "max_val"), view->count, &view->max_val, err);
    tare__tensor_map_release(&state);
    const bool is_empty = view->min_val == NULL || view->max_val == NULL ||
                          (view->count > 0 && view->min_val[0] > view->max_val[0]);
    if (is_empty) view->min_val = view->max_val = NULL;
    return status;
}

static tare_status view_sources(arena *a, const module *root, const derived_state *s,
                                const qparams *const *sources, tare_qparams_view *views,
                                tare_error *err) {
    for (size_t i = 0; i < s->source_count; i++) {
        views[i] = (tare_qparams_view){.struct_size = sizeof *views,
                                       .count = sources[i]->count,
                                       .scale = sources[i]->scale,
                                       .zero_point = sources[i]->zero_point};
        TARE_TRY(view_range(a, tare__module_child(root, s->sources[i]), &views[i], err));
    }
    return TARE_OK;
}

static tare_status apply_rule(const module *root, const derived_state *s,
                              const qparams *const *sources, qparams_wish *wish, tare_error *err) {
    arena scratch = {0};
    tare_qparams_view *views = tare__arena_array(&scratch, s->source_count + 1, sizeof *views);
    tare_status status = views == NULL ? tare__out_of_memory(err)
                                       : view_sources(&scratch, root, s, sources, views, err);
    if (status == TARE_OK)
        status = tare__at(
            err,
            s->rule.derive(s->rule.user, views, s->source_count, tare__take_qparams, wish, err),
            "rule %s", s->rule.name);
    tare__arena_release(&scratch);
    TARE_TRY(status);
    return wish->made != NULL
               ? TARE_OK
               : tare__fail(err, TARE_INVALID_ARGUMENT, "rule %s gave no parameters", s->rule.name);
}

static tare_status derive(const module *root, const module *observer, size_t depth,
                          const qparams **out, bool *is_calibrated, tare_error *err) {
    const derived_state *s = tare__observer_state(observer);
    qparams_wish wish = {.info = tare__observer_info(observer)};
    if (s->rule.derive == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "a derived observer has lost its rule");
    if (depth > root->child_count)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "observers are derived from each other");
    const qparams **sources = tare__alloc_zeroed(s->source_count + 1, sizeof *sources);
    if (sources == NULL) return tare__out_of_memory(err);
    tare_status status = ask_sources(root, s, depth + 1, sources, is_calibrated, err);
    if (status == TARE_OK) status = apply_rule(root, s, sources, &wish, err);
    for (size_t i = 0; i < s->source_count; i++) tare__qparams_release(sources[i]);
    tare__free(sources);
    if (status == TARE_OK)
        *out = wish.made;
    else
        tare__qparams_release(wish.made);
    return status;
}

static tare_status qparams_within(const module *root, const module *observer, size_t depth,
                                  const qparams **out, bool *is_calibrated, tare_error *err) {
    if (tare__observer_class_of(observer) == &tare__derived_observer)
        return derive(root, observer, depth, out, is_calibrated, err);
    return tare__observer_qparams(observer, out, is_calibrated, err);
}

tare_status tare__pt2e_qparams(const module *root, const module *observer, const qparams **out,
                               bool *is_calibrated, tare_error *err) {
    return qparams_within(root, observer, 0, out, is_calibrated, err);
}

const tare_derive_rule *tare__pt2e_rule(const module *observer) {
    if (tare__observer_class_of(observer) != &tare__derived_observer) return NULL;
    return &((const derived_state *)tare__observer_state(observer))->rule;
}
