// SPDX-License-Identifier: Apache-2.0
// Annotations of nodes: set by quantizers and stored with the model.
#include "model/annotation.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "model/model.h"

// --- annotations by name ---

static void destroy(tare_annotation *a) {
    if (a == NULL) return;
    for (size_t i = 0; i < a->input_count; i++) {
        tare__free(a->inputs[i].input);
        tare_qspec_release(a->inputs[i].spec);
    }
    tare__free(a->inputs);
    tare_qspec_release(a->output);
    tare__free((char *)a->origin.quantizer);
    tare__free((char *)a->origin.rule);
    tare__free((char *)a->origin.section);
    tare__free((char *)a->origin.key);
    tare__free(a);
}

void tare__annotations_release(annotation_book *book) {
    for (size_t i = 0; i < book->by_node.count; i++) destroy(book->by_node.entries[i].value);
    tare__map_release(&book->by_node);
}

void tare__annotations_keep(annotation_book *book,
                            bool (*keeps)(void *user, const map_entry *entry), void *user) {
    for (size_t i = 0; i < book->by_node.count; i++)
        if (!keeps(user, &book->by_node.entries[i])) destroy(book->by_node.entries[i].value);
    tare__map_keep(&book->by_node, keeps, user);
}

tare_annotation *tare__annotation_find(const annotation_book *book, const char *name) {
    return tare__map_get(&book->by_node, name);
}

tare_status tare__annotation_get(annotation_book *book, const char *name, tare_annotation **out,
                                 tare_error *err) {
    *out = tare__annotation_find(book, name);
    if (*out != NULL) return TARE_OK;
    tare_annotation *made = tare__alloc_zeroed(1, sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    made->allows_sharing = true;
    made->serial = ++book->made_count;
    if (!tare__map_set(&book->by_node, name, made)) {
        tare__free(made);
        return tare__out_of_memory(err);
    }
    *out = made;
    return TARE_OK;
}

void tare__annotation_remove(annotation_book *book, const char *name) {
    destroy(tare__annotation_find(book, name));
    tare__map_remove(&book->by_node, name);
}

size_t tare__annotation_index(const tare_annotation *a, const char *input) {
    size_t i = 0;
    while (i < a->input_count && strcmp(a->inputs[i].input, input) != 0) i++;
    return i;
}

tare_status tare__annotation_set_input(tare_annotation *a, const char *input, tare_qspec *spec,
                                       tare_error *err) {
    const size_t index = tare__annotation_index(a, input);
    if (index == a->input_count) {
        if (!tare__grow((void **)&a->inputs, &a->input_capacity, a->input_count, sizeof *a->inputs))
            return tare__out_of_memory(err);
        char *name = tare__strdup(input);
        if (name == NULL) return tare__out_of_memory(err);
        a->inputs[a->input_count++] = (input_qspec){.input = name};
    }
    tare_qspec_retain(spec);
    tare_qspec_release(a->inputs[index].spec);
    a->inputs[index].spec = spec;
    return TARE_OK;
}

void tare__annotation_set_output(tare_annotation *a, tare_qspec *spec) {
    tare_qspec_retain(spec);
    tare_qspec_release(a->output);
    a->output = spec;
}

static tare_status note(const char **out, const char *chars, tare_error *err) {
    char *copy = NULL;
    if (chars == NULL) return TARE_OK;
    if ((copy = tare__strdup(chars)) == NULL) return tare__out_of_memory(err);
    tare__free((char *)*out);
    *out = copy;
    return TARE_OK;
}

tare_status tare__annotation_note(tare_annotation *a, const annotation_origin *from,
                                  tare_error *err) {
    TARE_TRY(note(&a->origin.quantizer, from->quantizer, err));
    TARE_TRY(note(&a->origin.rule, from->rule, err));
    TARE_TRY(note(&a->origin.section, from->section, err));
    return note(&a->origin.key, from->key, err);
}

tare_status tare__annotations_note_quantizer(annotation_book *book, const char *quantizer,
                                             tare_error *err) {
    for (size_t i = 0; i < book->by_node.count; i++) {
        tare_annotation *a = book->by_node.entries[i].value;
        if (a->origin.quantizer == NULL) TARE_TRY(note(&a->origin.quantizer, quantizer, err));
    }
    return TARE_OK;
}

bool tare__annotation_has_specs(const tare_annotation *a) {
    if (a == NULL) return false;
    for (size_t i = 0; i < a->input_count; i++)
        if (a->inputs[i].spec != NULL) return true;
    return a->output != NULL;
}

// The node's first input that is a call.
static const node *computed_input(const node *n) {
    for (size_t i = 0; i < n->input_count; i++)
        if (tare__node_is_call(n->inputs[i])) return n->inputs[i];
    return NULL;
}

bool tare__annotation_takes(const annotation_book *book, const node *n) {
    const tare_annotation *a = tare__annotation_find(book, n->name);
    while (a != NULL && !tare__annotation_has_specs(a)) {
        n = a->is_marked ? computed_input(n) : NULL;
        a = n != NULL ? tare__annotation_find(book, n->name) : NULL;
        if (a != NULL && a->output != NULL) return false; // the pattern of that node ends there
    }
    return a != NULL;
}

tare_status tare__annotation_put(annotation_book *book, const char *name,
                                 const tare_annotation *from, tare_error *err) {
    tare_annotation *made = NULL;
    TARE_TRY(tare__annotation_get(book, name, &made, err));
    for (size_t i = 0; i < from->input_count; i++)
        TARE_TRY(
            tare__annotation_set_input(made, from->inputs[i].input, from->inputs[i].spec, err));
    tare__annotation_set_output(made, from->output);
    made->allows_sharing = from->allows_sharing;
    made->is_marked = from->is_marked;
    return tare__annotation_note(made, &from->origin, err);
}

tare_status tare__annotations_copy(annotation_book *to, const annotation_book *from,
                                   tare_error *err) {
    for (size_t i = 0; i < from->by_node.count; i++)
        TARE_TRY(tare__annotation_put(to, from->by_node.entries[i].key,
                                      from->by_node.entries[i].value, err));
    return TARE_OK;
}

tare_status tare__annotations_append_inner(annotation_book *to, const annotation_book *from,
                                           const char *path, tare_error *err) {
    text name = {0};
    tare_status status = TARE_OK;
    for (size_t i = 0; i < from->by_node.count && status == TARE_OK; i++) {
        tare__text_clear(&name);
        tare__text_printf(&name, "%s/%s", path, from->by_node.entries[i].key);
        status = tare__text_status(&name, err);
        if (status == TARE_OK)
            status = tare__annotation_put(to, tare__text_chars(&name),
                                          from->by_node.entries[i].value, err);
    }
    tare__text_release(&name);
    return status;
}

tare_status tare__annotation_clone(annotation_book *book, const char *from, const char *to,
                                   tare_error *err) {
    const tare_annotation *found = tare__annotation_find(book, from);
    if (found == NULL || strcmp(from, to) == 0) return TARE_OK;
    tare__annotation_remove(book, to);
    return tare__annotation_put(book, to, found, err);
}

// --- public functions ---

static tare_status check_node(const tare_model *model, const tare_node *n, tare_error *err) {
    if (n != NULL && ((const node *)n)->owner == model->root->graph) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT, "%s%s%s is no node of this model's graph",
                      n != NULL ? "'" : "", n != NULL ? tare_node_name(n) : "NULL",
                      n != NULL ? "'" : "");
}

static tare_status annotation_of(tare_model *model, const tare_node *n, tare_annotation **out,
                                 tare_error *err) {
    TARE_TRY(check_node(model, n, err));
    return tare__annotation_get(&model->annotations, tare_node_name(n), out, err);
}

const tare_annotation *tare_model_annotation(const tare_model *model, const tare_node *n) {
    return tare__annotation_find(&model->annotations, tare_node_name(n));
}

tare_status tare_model_annotate_input(tare_model *model, const tare_node *n, const tare_node *input,
                                      tare_qspec *spec, tare_error *err) {
    TARE_TRY(check_node(model, n, err));
    TARE_TRY(check_node(model, input, err));
    const node *reader = (const node *)n;
    size_t i = 0;
    while (i < reader->input_count && reader->inputs[i] != (const node *)input) i++;
    if (i == reader->input_count)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "node '%s' does not read '%s'",
                          tare_node_name(n), tare_node_name(input));
    tare_annotation *a = NULL;
    TARE_TRY(annotation_of(model, n, &a, err));
    return tare__annotation_set_input(a, tare_node_name(input), spec, err);
}

tare_status tare_model_annotate_output(tare_model *model, const tare_node *n, tare_qspec *spec,
                                       tare_error *err) {
    tare_annotation *a = NULL;
    TARE_TRY(annotation_of(model, n, &a, err));
    tare__annotation_set_output(a, spec);
    return TARE_OK;
}

tare_status tare_model_annotate_sharing(tare_model *model, const tare_node *n,
                                        bool allows_implicit_sharing, tare_error *err) {
    tare_annotation *a = NULL;
    TARE_TRY(annotation_of(model, n, &a, err));
    a->allows_sharing = allows_implicit_sharing;
    return TARE_OK;
}

tare_status tare_model_mark_annotated(tare_model *model, const tare_node *n, bool is_annotated,
                                      tare_error *err) {
    tare_annotation *a = NULL;
    TARE_TRY(annotation_of(model, n, &a, err));
    a->is_marked = is_annotated;
    return TARE_OK;
}

tare_status tare_model_annotate_rule(tare_model *model, const tare_node *n, const char *rule,
                                     tare_error *err) {
    tare_annotation *a = NULL;
    TARE_TRY(annotation_of(model, n, &a, err));
    return note(&a->origin.rule, rule, err);
}

void tare_model_clear_annotation(tare_model *model, const tare_node *n) {
    tare__annotation_remove(&model->annotations, tare_node_name(n));
}

void tare_model_clear_annotations(tare_model *model) {
    tare__annotations_release(&model->annotations);
    model->annotations = (annotation_book){0};
}

size_t tare_annotation_input_count(const tare_annotation *a) {
    return a->input_count;
}

const char *tare_annotation_input_at(const tare_annotation *a, size_t index, tare_qspec **spec) {
    *spec = index < a->input_count ? a->inputs[index].spec : NULL;
    return index < a->input_count ? a->inputs[index].input : NULL;
}

bool tare_annotation_input(const tare_annotation *a, const tare_node *input, tare_qspec **spec) {
    return tare_annotation_input_at(a, tare__annotation_index(a, tare_node_name(input)), spec) !=
           NULL;
}

tare_qspec *tare_annotation_output(const tare_annotation *a) {
    return a->output;
}

bool tare_annotation_allows_sharing(const tare_annotation *a) {
    return a->allows_sharing;
}

bool tare_annotation_is_marked(const tare_annotation *a) {
    return a != NULL && a->is_marked;
}

bool tare_annotation_is_valid(const tare_annotation *a) {
    return a != NULL && (a->input_count > 0 || a->output != NULL);
}

// --- JSON ---

void tare__annotation_to_json(const tare_annotation *a, text *out) {
    tare__text_append(out, "{\"input_qspec_map\": [");
    for (size_t i = 0; i < a->input_count; i++) {
        tare__text_append(out, i > 0 ? ", [" : "[");
        tare__text_json_string(out, a->inputs[i].input);
        tare__text_append(out, ", ");
        tare__qspec_to_json(a->inputs[i].spec, out);
        tare__text_char(out, ']');
    }
    tare__text_append(out, "], \"output_qspec\": ");
    tare__qspec_to_json(a->output, out);
    tare__text_printf(out, ", \"allow_implicit_sharing\": %s, \"_annotated\": %s}",
                      a->allows_sharing ? "true" : "false", a->is_marked ? "true" : "false");
}

tare_status tare_model_annotations_to_json(const tare_model *model, char **out, tare_error *err) {
    text json = {0};
    const map *book = &model->annotations.by_node;
    tare__text_char(&json, '{');
    for (size_t i = 0; i < book->count; i++) {
        tare__text_append(&json, i > 0 ? ",\n " : "\n ");
        tare__text_json_string(&json, book->entries[i].key);
        tare__text_append(&json, ": ");
        tare__annotation_to_json(book->entries[i].value, &json);
    }
    tare__text_append(&json, "\n}\n");
    const tare_status status = tare__text_status(&json, err);
    if (status == TARE_OK) *out = tare__text_take(&json);
    tare__text_release(&json);
    return status;
}

// State of reading annotations.
typedef struct reading {
    const graph *g; // the graph of the node
    const tare_derive_rule *rules;
    size_t rule_count;
    annotation_book book;
    tare_error *err;
} reading;

static tare_status check_name(reading *r, const json_at *at, const char *name) {
    if (r->g != NULL && tare__graph_find(r->g, name) != NULL) return TARE_OK;
    return tare__json_place(
        at, tare__fail(r->err, TARE_NOT_FOUND, "the model has no node '%s'", name), r->err);
}

// Checks that a spec's targets exist: a target that is not in the graph would never be observed.
static tare_status check_targets(reading *r, const json_at *at, const tare_qspec *spec) {
    for (size_t i = 0; spec != NULL && i < spec->target_count; i++) {
        if (spec->targets[i].from != NULL) TARE_TRY(check_name(r, at, spec->targets[i].from));
        TARE_TRY(check_name(r, at, spec->targets[i].node));
    }
    return TARE_OK;
}

static tare_status read_spec(reading *r, const json_at *at, tare_qspec **out) {
    TARE_TRY(tare__qspec_from_json(at, r->rules, r->rule_count, out, r->err));
    const tare_status status = check_targets(r, at, *out);
    if (status == TARE_OK) return status;
    tare_qspec_release(*out);
    *out = NULL;
    return status;
}

static tare_status read_input(reading *r, const json_at *pair, tare_annotation *a) {
    const char *input = NULL;
    tare_qspec *spec = NULL;
    TARE_TRY(tare__json_expect(pair, JSON_ARRAY, r->err));
    if (json_array_size(pair->value) != 2)
        return tare__json_fail(pair, r->err, "expected a node and a spec");
    const json_at name_at = tare__json_item(pair, 0), spec_at = tare__json_item(pair, 1);
    TARE_TRY(tare__json_string(&name_at, &input, r->err));
    TARE_TRY(check_name(r, &name_at, input));
    if (tare__annotation_index(a, input) < a->input_count)
        return tare__json_fail(&name_at, r->err, "a second entry of '%s'", input);
    TARE_TRY(read_spec(r, &spec_at, &spec));
    const tare_status status = tare__annotation_set_input(a, input, spec, r->err);
    tare_qspec_release(spec);
    return status;
}

static tare_status read_annotation(reading *r, const json_at *at) {
    static const char *const keys[] = {"input_qspec_map", "output_qspec", "allow_implicit_sharing",
                                       "_annotated", NULL};
    tare_annotation *a = NULL;
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_only_keys(at, keys, r->err));
    const char *slash = strrchr(at->key, '/');
    TARE_TRY(check_name(r, at, slash != NULL ? slash + 1 : at->key));
    TARE_TRY(tare__annotation_get(&r->book, at->key, &a, r->err));
    TARE_TRY(tare__json_flag(at, "allow_implicit_sharing", &a->allows_sharing, r->err));
    TARE_TRY(tare__json_flag(at, "_annotated", &a->is_marked, r->err));
    if (tare__json_has(at, "output_qspec")) {
        const json_at output = tare__json_get(at, "output_qspec");
        TARE_TRY(read_spec(r, &output, &a->output));
    }
    if (!tare__json_has(at, "input_qspec_map")) return TARE_OK;
    const json_at inputs = tare__json_get(at, "input_qspec_map");
    TARE_TRY(tare__json_expect(&inputs, JSON_ARRAY, r->err));
    for (size_t i = 0; i < json_array_size(inputs.value); i++) {
        const json_at pair = tare__json_item(&inputs, i);
        TARE_TRY(read_input(r, &pair, a));
    }
    return TARE_OK;
}

// The graph for a key "GRAPH/NODE", where GRAPH is the module of a subgraph; NULL if there is none.
static const graph *graph_of(const module *root, const char *key) {
    for (const char *slash = strchr(key, '/'); slash != NULL && root != NULL;
         slash = strchr(key, '/')) {
        root = tare__module_child_n(root, key, (size_t)(slash - key));
        key = slash + 1;
    }
    return root != NULL ? root->graph : NULL;
}

static tare_status read_all(reading *r, const module *model, const json_at *root) {
    const char *key = NULL;
    json_t *ignored = NULL;
    TARE_TRY(tare__json_expect(root, JSON_OBJECT, r->err));
    json_object_foreach((json_t *)root->value, key, ignored) {
        const json_at at = tare__json_get(root, key);
        r->g = graph_of(model, key);
        TARE_TRY(read_annotation(r, &at));
    }
    return TARE_OK;
}

tare_status tare__annotations_from_json(tare_model *model, const json_at *at,
                                        const tare_derive_rule *rules, size_t rule_count,
                                        tare_error *err) {
    reading r = {.rules = rules, .rule_count = rule_count, .err = err};
    const tare_status status = read_all(&r, model->root, at);
    if (status != TARE_OK) {
        tare__annotations_release(&r.book);
        return status;
    }
    tare__annotations_release(&model->annotations);
    model->annotations = r.book;
    return TARE_OK;
}

tare_status tare_model_annotations_from_json(tare_model *model, const char *json, size_t size,
                                             const tare_derive_rule *rules, size_t rule_count,
                                             tare_error *err) {
    json_t *parsed = NULL;
    TARE_TRY(tare__json_parse(json, size, &parsed, err));
    const json_at root = tare__json_root(parsed);
    const tare_status status = tare__annotations_from_json(model, &root, rules, rule_count, err);
    json_decref(parsed);
    return status;
}
