// SPDX-License-Identifier: Apache-2.0
// Writes annotations to model files and reads them; restores the sources and rules of derived
// observers.
#include <string.h>

#include "core/memory/alloc.h"
#include "model/model.h"
#include "observe/classes/builtin.h"
#include "observe/classes/derived.h"

// True if annotations are to be saved. Those of a converted model are obsolete, and refer to
// removed nodes.
static bool has_annotations(const tare_model *model) {
    if (model->stage == TARE_STAGE_PREPARED) return model->prepared == NULL;
    return model->stage < TARE_STAGE_PREPARED && model->annotations.by_node.count > 0;
}

static bool is_derived(const module *m) {
    return m->class->role == ROLE_OBSERVER && tare__observer_class_of(m) == &tare__derived_observer;
}

// --- writing ---

static void write_annotations(const tare_model *model, text *out) {
    const map *book = &model->annotations.by_node;
    const char *separator = "";
    tare__text_append(out, ",\"annotations\":{");
    for (size_t i = 0; i < book->count; i++) {
        const char *key = book->entries[i].key;
        if (strchr(key, '/') == NULL && tare__graph_find(model->root->graph, key) == NULL) continue;
        tare__text_append(out, separator);
        tare__text_json_string(out, book->entries[i].key);
        tare__text_char(out, ':');
        tare__annotation_to_json(book->entries[i].value, out);
        separator = ",";
    }
    tare__text_char(out, '}');
}

static void write_sources(const char *name, const derived_state *s, text *out) {
    tare__text_json_string(out, name);
    tare__text_append(out, ":{\"derive_qparams_fn\":");
    tare__text_json_string(out, s->rule.name);
    tare__text_append(out, ",\"sources\":[");
    for (size_t i = 0; i < s->source_count; i++) {
        if (i > 0) tare__text_char(out, ',');
        tare__text_json_string(out, s->sources[i]);
    }
    tare__text_append(out, "]}");
}

static void write_derived(const module *root, text *out) {
    const char *separator = ",\"derived\":{";
    for (size_t i = 0; i < root->child_count; i++) {
        if (!is_derived(root->children[i].module)) continue;
        const derived_state *s = tare__observer_state(root->children[i].module);
        if (s->rule.derive == NULL) continue;
        tare__text_append(out, separator);
        write_sources(root->children[i].name, s, out);
        separator = ",";
    }
    if (separator[1] == '\0') tare__text_char(out, '}');
}

tare_status tare__annotations_to_record(const tare_model *model, text *out, tare_error *err) {
    if (!has_annotations(model)) return TARE_OK;
    write_annotations(model, out);
    write_derived(model->root, out);
    return tare__text_status(out, err);
}

// --- reading ---

static tare_status find_sources(const module *root, const json_at *list, const char **names,
                                tare_error *err) {
    for (size_t i = 0; i < json_array_size(list->value); i++) {
        const json_at item = tare__json_item(list, i);
        TARE_TRY(tare__json_string(&item, &names[i], err));
        const module *source = tare__module_child(root, names[i]);
        if (source == NULL || source->class->role != ROLE_OBSERVER)
            return tare__json_fail(&item, err, "the model has no observer '%s'", names[i]);
    }
    return TARE_OK;
}

static tare_status read_derived(tare_model *model, const json_at *at, tare_error *err) {
    static const char *const keys[] = {"derive_qparams_fn", "sources", NULL};
    const tare_derive_rule *rule = NULL;
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, err));
    TARE_TRY(tare__json_only_keys(at, keys, err));
    const json_at rule_at = tare__json_get(at, "derive_qparams_fn");
    const json_at sources = tare__json_get(at, "sources");
    TARE_TRY(tare__json_expect(&sources, JSON_ARRAY, err));
    TARE_TRY(tare__derive_rule_from_json(&rule_at, model->context->rules,
                                         model->context->rule_count, &rule, err));
    module *observer = tare__module_child(model->root, at->key);
    if (observer == NULL || !is_derived(observer))
        return tare__json_fail(at, err, "the model has no derived observer '%s'", at->key);
    derived_state *state = tare__observer_state(observer);
    if (state->rule.derive != NULL) return TARE_OK; // the observer has a second name
    const size_t count = json_array_size(sources.value);
    const char **names = tare__alloc_zeroed(count + 1, sizeof *names);
    if (names == NULL) return tare__out_of_memory(err);
    tare_status status = find_sources(model->root, &sources, names, err);
    if (status == TARE_OK) status = tare__derived_set(state, rule, names, count, err);
    tare__free(names);
    return status;
}

tare_status tare__annotations_from_record(tare_model *model, const json_at *object,
                                          tare_error *err) {
    const char *key = NULL;
    json_t *ignored = NULL;
    if (tare__json_has(object, "annotations")) {
        const json_at at = tare__json_get(object, "annotations");
        TARE_TRY(tare__annotations_from_json(model, &at, model->context->rules,
                                             model->context->rule_count, err));
    }
    if (!tare__json_has(object, "derived")) return TARE_OK;
    const json_at derived = tare__json_get(object, "derived");
    TARE_TRY(tare__json_expect(&derived, JSON_OBJECT, err));
    json_object_foreach((json_t *)derived.value, key, ignored) {
        const json_at at = tare__json_get(&derived, key);
        TARE_TRY(read_derived(model, &at, err));
    }
    return TARE_OK;
}
