// SPDX-License-Identifier: Apache-2.0
// The quantizer of a recorded case: built in, composed of such, or a test's own.
#include "replay/recorded_quantizer.h"

#include <stdlib.h>
#include <string.h>

#include "core/json/json.h"
#include "core/text/text.h"
#include "model/model.h"
#include "ops/text/print.h"

// --- settings ---

/// torchao's names of the fields of a settings file. XNNPACKQuantizer's
/// operator_type_config is not among them, because it is never used there; ours uses it.
static const struct {
    const char *recorded, *ours;
} fields[] = {
    {"global_config", "global"},
    {"module_name_config", "module_name"},
    {"module_name_qconfig", "module_name"},
    {"module_type_config", "module_type"},
    {"operator_type_qconfig", "operator"},
};

static tare_status settings_text(const json_t *recorded, char **out, tare_error *err) {
    json_t *settings = json_object();
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        json_t *field = json_object_get(recorded, fields[i].recorded);
        if (field != NULL) (void)json_object_set(settings, fields[i].ours, field);
    }
    *out = json_dumps(settings, JSON_ENCODE_ANY);
    json_decref(settings);
    return *out != NULL ? TARE_OK : tare__out_of_memory(err);
}

static tare_status make_builtin(const json_t *recorded, const char *name, tare_quantizer **out,
                                tare_error *err) {
    char *json = NULL;
    tare_quantizer_settings *settings = NULL;
    // It has nothing that could be set.
    if (strcmp(name, "EmbeddingQuantizer") == 0)
        return tare_quantizer_builtin(name, NULL, out, err);
    TARE_TRY(settings_text(recorded, &json, err));
    tare_status status =
        tare_quantizer_settings_from_json(json, strlen(json), name, &settings, err);
    free(json);
    TARE_TRY(status);
    tare_quantizer_settings_set_lenient(settings, true);
    status = tare_quantizer_builtin(name, settings, out, err);
    tare_quantizer_settings_destroy(settings);
    return status;
}

// --- classes ---

static bool is_builtin(const char *name) {
    const char *known = NULL;
    for (size_t i = 0; (known = tare_quantizer_builtin_name_at(i)) != NULL; i++)
        if (strcmp(known, name) == 0) return true;
    return false;
}

/// What the exporter knew of a node stays with the name.
static tare_status keep_meta(graph *g, const graph *before, tare_error *err) {
    for (node *n = g->first; n != NULL; n = n->next) {
        const node *old = tare__graph_find(before, n->name);
        if (old == NULL || old->meta_json == NULL) continue;
        n->meta_json = tare__arena_strdup(&g->memory, old->meta_json);
        if (n->meta_json == NULL) return tare__out_of_memory(err);
    }
    return TARE_OK;
}

static bool is_called(const graph *g, const char *name) {
    for (const node *n = g->first; n != NULL; n = n->next)
        if ((n->op == NODE_CALL_MODULE || n->op == NODE_GET_ATTR) && strcmp(n->target, name) == 0)
            return true;
    return false;
}

static tare_status take_graph(tare_model *model, graph *g, tare_error *err) {
    module *root = model->root;
    TARE_TRY(keep_meta(g, root->graph, err));
    for (size_t i = root->child_count; i-- > 0;) {
        const char *name = root->children[i].name;
        if (is_called(root->graph, name) && !is_called(g, name))
            tare__module_remove_child(root, name);
    }
    tare__graph_destroy(root->graph);
    root->graph = g;
    return TARE_OK;
}

/// A test's own quantizer may rewrite the graph; what it made of it was recorded.
static tare_status rewrite_as_recorded(void *self, tare_model *model, tare_error *err) {
    const char *code = self;
    graph *parsed = NULL;
    text ours = {0}, recorded = {0};
    TARE_TRY(tare__parse_code(code, strlen(code), model->root, &parsed, err));
    tare_status status = tare__print_graph(model->root->graph, &ours, err);
    if (status == TARE_OK) status = tare__print_graph(parsed, &recorded, err);
    const bool differs = strcmp(tare__text_chars(&ours), tare__text_chars(&recorded)) != 0;
    if (status == TARE_OK && differs) status = take_graph(model, parsed, err);
    if (model->root->graph != parsed) tare__graph_destroy(parsed);
    tare__text_release(&ours);
    tare__text_release(&recorded);
    return status;
}

static tare_status annotate_nothing(void *self, tare_model *model, tare_error *err) {
    (void)self;
    (void)model;
    (void)err;
    return TARE_OK;
}

/// In training the text shows what became of the graph after the quantizer, so that it tells
/// nothing of the quantizer.
static tare_status make_silent(const recorded_case *c, tare_quantizer **out, tare_error *err) {
    const bool is_qat = json_is_true(json_object_get(c->json, "is_qat"));
    const char *code = is_qat ? NULL : case_text(c, "annotated_text");
    const tare_quantizer_class class = {.struct_size = sizeof class,
                                        .name = "recorded",
                                        .transform_for_annotation =
                                            code != NULL ? rewrite_as_recorded : NULL,
                                        .annotate = annotate_nothing};
    return tare_quantizer_create(&class, (void *)code, out, err);
}

static tare_status make(const recorded_case *c, const json_t *recorded, tare_quantizer **out,
                        bool *is_ours, tare_error *err);

static tare_status make_composed(const recorded_case *c, const json_t *list, tare_quantizer **out,
                                 bool *is_ours, tare_error *err) {
    enum { MOST = 16 };
    tare_quantizer *made[MOST] = {NULL};
    const size_t count = json_array_size(list);
    tare_status status = count <= MOST
                             ? TARE_OK
                             : tare__fail(err, TARE_UNSUPPORTED, "%zu composed quantizers", count);
    for (size_t i = 0; i < count && status == TARE_OK; i++) {
        bool is_known = true;
        status = make(c, json_array_get(list, i), &made[i], &is_known, err);
        *is_ours = *is_ours && is_known;
    }
    if (status == TARE_OK) status = tare_quantizer_compose(made, count, out, err);
    for (size_t i = 0; i < count && i < MOST && status != TARE_OK; i++)
        tare_quantizer_destroy(made[i]);
    return status;
}

static tare_status make(const recorded_case *c, const json_t *recorded, tare_quantizer **out,
                        bool *is_ours, tare_error *err) {
    const char *name = json_string_value(json_object_get(recorded, "class"));
    const json_t *list = json_object_get(recorded, "quantizers");
    *is_ours = true;
    if (name != NULL && is_builtin(name)) return make_builtin(recorded, name, out, err);
    if (json_is_array(list)) return make_composed(c, list, out, is_ours, err);
    *is_ours = false;
    return make_silent(c, out, err);
}

tare_status recorded_quantizer(const recorded_case *c, tare_quantizer **out, bool *is_ours,
                               tare_error *err) {
    TARE_TRY(make(c, json_object_get(c->json, "quantizer"), out, is_ours, err));
    // The tests that pass a filter function are called after it; what it said is not recorded.
    if (tare__starts_with(c->name, "test_filter_")) *is_ours = false;
    return TARE_OK;
}

// --- annotations ---

static void tell(const char *name, const json_t *recorded, const json_t *ours, findings *out) {
    char *a = recorded != NULL ? json_dumps(recorded, JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;
    char *b = ours != NULL ? json_dumps(ours, JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;
    findings_add(out, FINDING_STRUCTURE, "annotation of '%s': expected %s, found %s", name,
                 a != NULL ? a : "none", b != NULL ? b : "none");
    free(a);
    free(b);
}

/// A member that is null says what a missing one says.
static json_t *without_nulls(const json_t *v) {
    json_t *made = json_is_object(v) ? json_object() : json_is_array(v) ? json_array() : NULL;
    if (json_is_object(v)) {
        const char *key = NULL;
        json_t *member = NULL;
        json_object_foreach((json_t *)v, key, member) {
            if (!json_is_null(member)) (void)json_object_set_new(made, key, without_nulls(member));
        }
    }
    for (size_t i = 0; json_is_array(v) && i < json_array_size(v); i++)
        (void)json_array_append_new(made, without_nulls(json_array_get(v, i)));
    return made != NULL ? made : json_incref((json_t *)v);
}

static void compare_books(const json_t *recorded, const json_t *ours, findings *out) {
    const char *name = NULL;
    const json_t *one = NULL;
    json_object_foreach((json_t *)recorded, name, one) {
        const json_t *other = json_object_get(ours, name);
        if (other == NULL || !json_equal(one, other)) tell(name, one, other, out);
    }
    json_object_foreach((json_t *)ours, name, one) {
        if (json_object_get(recorded, name) == NULL) tell(name, NULL, one, out);
    }
}

void compare_annotations(const char *ours, const recorded_case *c, findings *out) {
    json_t *parsed = NULL;
    if (tare__json_parse(ours, strlen(ours), &parsed, NULL) != TARE_OK) {
        findings_add(out, FINDING_STRUCTURE, "our annotations are no JSON");
        return;
    }
    json_t *a = without_nulls(json_object_get(c->json, "annotations")), *b = without_nulls(parsed);
    compare_books(a, b, out);
    json_decref(a);
    json_decref(b);
    json_decref(parsed);
}
