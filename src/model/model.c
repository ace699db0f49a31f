// SPDX-License-Identifier: Apache-2.0
// Models: creation, copying and inspection. model_io.c handles files.
#include "model/model.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "dnnl/float_kernels.h"
#include "io/native/model_file.h"
#include "ir/call_names.h"
#include "model/coverage.h"
#include "model/dot.h"
#include "ops/text/print.h"

tare_status tare__prepared_state_create(size_t capacity, prepared_state **out, tare_error *err) {
    prepared_state *s = tare__alloc_zeroed(1, sizeof *s);
    if (s == NULL) return tare__out_of_memory(err);
    s->nodes = tare__alloc_zeroed(capacity + 1, sizeof *s->nodes);
    if (s->nodes == NULL) {
        tare__free(s);
        return tare__out_of_memory(err);
    }
    atomic_init(&s->refcount, 1);
    s->capacity = capacity;
    *out = s;
    return TARE_OK;
}

prepared_state *tare__prepared_state_retain(prepared_state *s) {
    if (s != NULL) atomic_fetch_add_explicit(&s->refcount, 1, memory_order_relaxed);
    return s;
}

void tare__prepared_state_release(prepared_state *s) {
    if (s == NULL || atomic_fetch_sub_explicit(&s->refcount, 1, memory_order_acq_rel) != 1) return;
    for (size_t i = 0; i < s->node_count; i++) {
        tare__free(s->nodes[i].name);
        tare_qconfig_release(s->nodes[i].qconfig);
        tare_qconfig_release(s->nodes[i].equalization);
    }
    for (size_t i = 0; i < s->child_count; i++) {
        tare__free(s->children[i].path);
        tare__prepared_state_release(s->children[i].state);
    }
    tare__free(s->children);
    tare_qconfig_mapping_destroy(s->mapping);
    tare__index_list_release(&s->input_quantized);
    tare__index_list_release(&s->output_quantized);
    tare__free(s->nodes);
    tare__map_release(&s->by_name);
    tare__free(s);
}

tare_status tare__prepared_state_add_child(prepared_state *s, const char *path,
                                           prepared_state *child, tare_error *err) {
    char *copy = tare__strdup(path);
    if (copy != NULL && tare__grow((void **)&s->children, &s->child_capacity, s->child_count,
                                   sizeof *s->children)) {
        s->children[s->child_count++] = (prepared_child){copy, child};
        return TARE_OK;
    }
    tare__free(copy);
    tare__prepared_state_release(child);
    return tare__out_of_memory(err);
}

const prepared_state *tare__prepared_child(const prepared_state *s, const char *path) {
    for (size_t i = 0; s != NULL && i < s->child_count; i++)
        if (strcmp(s->children[i].path, path) == 0) return s->children[i].state;
    return NULL;
}

tare_status tare__prepared_state_add(prepared_state *s, const char *name, tare_qconfig *qconfig,
                                     bool is_observed, tare_error *err) {
    if (s->node_count == s->capacity)
        return tare__fail(err, TARE_INTERNAL, "more nodes than the prepared state has room for");
    prepared_node *n = &s->nodes[s->node_count];
    n->name = tare__strdup(name);
    if (n->name == NULL || !tare__map_set(&s->by_name, name, n)) {
        tare__free(n->name);
        n->name = NULL;
        return tare__out_of_memory(err);
    }
    n->qconfig = tare_qconfig_retain(qconfig);
    n->is_observed = is_observed;
    s->node_count++;
    return TARE_OK;
}

prepared_node *tare__prepared_node(const prepared_state *s, const char *name) {
    return s != NULL ? tare__map_get(&s->by_name, name) : NULL;
}

tare_status tare__model_create(const tare_context *context, module *root, tare_model_stage stage,
                               const tare_model *from, tare_model **out, tare_error *err) {
    tare_model *made = tare__alloc_zeroed(1, sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    made->context = tare__context_or_builtin(context);
    made->stage = stage;
    made->engine = TARE_ENGINE_X86;
    tare_status status = TARE_OK;
    if (from != NULL) {
        made->engine = from->engine;
        made->float_island_count = from->float_island_count;
        made->conversion_count = from->conversion_count;
        made->norms_are_folded = from->norms_are_folded;
        made->memory_limit = from->memory_limit;
        made->is_inner = from->is_inner;
        status = tare__record_copy(&made->decisions, &from->decisions, err);
        if (status == TARE_OK) status = tare__facts_copy(&made->facts, &from->facts, err);
        if (status == TARE_OK) status = tare__coverage_copy(made, from, err);
        if (status == TARE_OK)
            status = tare__annotations_copy(&made->annotations, &from->annotations, err);
        if (status == TARE_OK) status = tare_model_set_preprocess(made, from->preprocess, err);
        if (status == TARE_OK) status = tare__seen_copy(&made->seen, &from->seen, err);
    }
    if (status != TARE_OK) {
        tare_model_destroy(made);
        return status;
    }
    made->root = root;
    *out = made;
    return TARE_OK;
}

void tare_model_destroy(tare_model *model) {
    if (model == NULL) return;
    tare__module_release(model->root);
    tare__record_release(&model->decisions);
    tare__facts_release(&model->facts);
    tare__prepared_state_release(model->prepared);
    tare__coverage_release(model);
    tare__annotations_release(&model->annotations);
    tare__float_kernels_destroy(model->floats);
    tare_preprocess_destroy(model->preprocess);
    tare__seen_release(&model->seen);
    tare__free(model);
}

bool tare_model_is_training(const tare_model *model) {
    return model->root->training;
}

bool tare_model_norms_are_folded(const tare_model *model) {
    return model->norms_are_folded;
}

tare_model_stage tare_model_get_stage(const tare_model *model) {
    return model->stage;
}

static tare_status print_form(const tare_model *model, tare_print_form form, text *out,
                              tare_error *err) {
    switch (form) {
    case TARE_PRINT_MODEL:
        return tare__print_model(model->root, out, err);
    case TARE_PRINT_NODES:
        return tare__print_graph(model->root->graph, out, err);
    case TARE_PRINT_JSON:
        return tare__model_to_json(model->root, &tare__observer_state_io, NULL, out, err);
    case TARE_PRINT_DOT:
        return tare__print_dot(model, out, err);
    case TARE_PRINT_STATE:
        return tare__print_state(model->root, out, err);
    }
    return tare__fail(err, TARE_INVALID_ARGUMENT, "no print form %d", (int)form);
}

tare_status tare_model_print(const tare_model *model, tare_print_form form, tare_writer write,
                             void *user, tare_error *err) {
    text out = {0};
    const tare_status status = print_form(model, form, &out, err);
    return tare__text_write(&out, status, write, user, err);
}

size_t tare_model_input_count(const tare_model *model) {
    size_t count = 0;
    for (const node *n = model->root->graph->first; n != NULL; n = n->next)
        if (tare__node_is_input(n)) count++;
    return count;
}

const char *tare_model_input_name(const tare_model *model, size_t index) {
    for (const node *n = model->root->graph->first; n != NULL; n = n->next)
        if (tare__node_is_input(n) && index-- == 0) return tare__input_name(n);
    return NULL;
}

// State of counting. A shared module is counted once: a second visit, under another name, is
// skipped.
typedef struct fact_walk {
    tare_model_facts *facts;
    module **seen;
    size_t count, capacity;
} fact_walk;

// True for quantized tensors, and for quantized values that exported programs store as plain
// integers.
static bool is_quantized(const tare_tensor *t, bool is_parameter) {
    const bool is_byte = t->dtype == TARE_INT8 || t->dtype == TARE_UINT8;
    return tare__tensor_is_quantized(t) || (is_byte && !is_parameter);
}

static tare_status count_module(void *user, const char *path, module *m, tare_error *err) {
    (void)path;
    fact_walk *w = user;
    for (size_t i = 0; i < w->count; i++)
        if (w->seen[i] == m) return TARE_OK;
    if (!tare__grow((void **)&w->seen, &w->capacity, w->count, sizeof(module *)))
        return tare__out_of_memory(err);
    w->seen[w->count++] = m;
    for (size_t i = 0; i < m->tensor_count; i++) {
        const tare_tensor *t = m->tensors[i].tensor;
        if (t == NULL) continue;
        w->facts->weight_bytes += tare__tensor_bytes(t);
        const bool is_pair = m->class->role == ROLE_GROUPED && t->dtype == TARE_UINT8 &&
                             tare__module_int(m, "bits", 8) == 4; // two parameters per byte
        if (m->tensors[i].is_parameter)
            w->facts->parameter_count += (uint64_t)t->count * (is_pair ? 2 : 1);
        // Group-wise weights consist of the quantized values and their parameters.
        const bool is_grouped =
            m->class->role == ROLE_GROUPED && strncmp(m->tensors[i].name, "weight", 6) == 0;
        if (is_grouped || is_quantized(t, m->tensors[i].is_parameter))
            w->facts->quantized_weight_bytes += tare__tensor_bytes(t);
    }
    return TARE_OK;
}

tare_status tare_model_get_facts(const tare_model *model, tare_model_facts *out, tare_error *err) {
    *out = (tare_model_facts){.struct_size = sizeof *out};
    fact_walk w = {.facts = out};
    const tare_status status = tare__module_walk(model->root, count_module, &w, err);
    tare__free(w.seen);
    return status;
}

size_t tare_model_decision_count(const tare_model *model) {
    return model->decisions.count;
}

tare_status tare_model_decision_at(const tare_model *model, size_t index, tare_decision *out,
                                   tare_error *err) {
    if (index >= model->decisions.count)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "decision %zu of %zu", index,
                          model->decisions.count);
    *out = model->decisions.items[index];
    return TARE_OK;
}
