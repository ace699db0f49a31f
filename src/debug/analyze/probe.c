// SPDX-License-Identifier: Apache-2.0
// Finds the layers of a graph with quantize and dequantize nodes, and which nodes quantize for
// which layer.
#include "debug/analyze/probe.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "model/pass.h"
#include "ops/classes/reference.h"
#include "ops/op.h"

// --- weights of modules ---

static bool is_weight(const named_tensor *t) {
    return t->tensor != NULL && t->tensor->dtype == TARE_FLOAT32 &&
           (strcmp(t->name, "weight") == 0 || strncmp(t->name, "weight_", 7) == 0);
}

// Removes the weight's quantization, so that the module computes with the weight as it is.
static tare_status forget_scheme(module *m, const char *weight, arena *memory, tare_error *err) {
    const value none = tare__none();
    const char *key = tare__arena_printf(memory, "%s_qscheme", weight);
    if (key == NULL) return tare__out_of_memory(err);
    return tare__module_config(m, key) != NULL ? tare__module_set_config(m, key, &none, err)
                                               : TARE_OK;
}

static bool has_scheme(const module *m, const char *weight, arena *memory) {
    const char *key = tare__arena_printf(memory, "%s_qscheme", weight);
    const value *v = key != NULL ? tare__module_config(m, key) : NULL;
    return v != NULL && v->kind == VALUE_QSCHEME;
}

typedef struct weight_walk {
    bool rounds;
    arena memory;
} weight_walk;

static tare_status fix_weights(void *user, const char *path, module *m, tare_error *err) {
    weight_walk *w = user;
    (void)path;
    if (m->class->role != ROLE_REFERENCE) return TARE_OK;
    for (size_t i = 0; i < m->tensor_count; i++) {
        const char *name = m->tensors[i].name;
        if (!is_weight(&m->tensors[i]) || !has_scheme(m, name, &w->memory)) continue;
        if (w->rounds) {
            tare_tensor *rounded = NULL;
            TARE_TRY(tare__reference_values(m, name, &rounded, err));
            const tare_status status = tare__module_set_tensor(m, name, rounded, true, err);
            tare_tensor_release(rounded);
            TARE_TRY(status);
        }
        TARE_TRY(forget_scheme(m, name, &w->memory, err));
    }
    return TARE_OK;
}

static tare_status make_copy(const module *m, bool rounds, module **out, tare_error *err) {
    weight_walk w = {.rounds = rounds};
    module *made = NULL;
    TARE_TRY(tare__module_clone(m, &made, err));
    const tare_status status = tare__module_walk(made, fix_weights, &w, err);
    tare__arena_release(&w.memory);
    return tare__module_hand_out(made, status, out);
}

static const module *reference_in(const module *m) {
    if (m == NULL || m->class->role == ROLE_REFERENCE) return m;
    for (size_t i = 0; m->class->role == ROLE_FUSED && i < m->child_count; i++)
        if (m->children[i].module->class->role == ROLE_REFERENCE) return m->children[i].module;
    return NULL;
}

static bool has_quantized_weight(const module *m) {
    arena memory = {0};
    bool found = false;
    for (size_t i = 0; m != NULL && !found && i < m->tensor_count; i++)
        found = is_weight(&m->tensors[i]) && has_scheme(m, m->tensors[i].name, &memory);
    tare__arena_release(&memory);
    return found;
}

// --- layers ---

static tare_status add_layer(probe *p, const node *n, size_t *out, tare_error *err) {
    if (!tare__grow((void **)&p->layers, &p->layer_capacity, p->layer_count, sizeof *p->layers))
        return tare__out_of_memory(err);
    const module *called = tare__called_module(p->model, n);
    probe_layer *l = &p->layers[p->layer_count];
    const char *origin = tare_model_float_node(p->model, n->name);
    *l = (probe_layer){.node = n,
                       .float_node = origin != NULL ? origin : n->name,
                       .op = tare__node_subject(p->model, n),
                       .is_last = n->op == NODE_OUTPUT};
    *out = p->facts[n->id].layer = p->layer_count++;
    if (!has_quantized_weight(reference_in(called))) return TARE_OK;
    TARE_TRY(make_copy(called, false, &l->with_floats, err));
    l->weight = tare__module_tensor(reference_in(l->with_floats), "weight");
    return TARE_OK;
}

tare_status tare__probe_round(const probe *p, size_t layer, tare_error *err) {
    probe_layer *l = &p->layers[layer];
    if (l->with_floats == NULL || l->rounded != NULL) return TARE_OK;
    TARE_TRY(make_copy(tare__called_module(p->model, l->node), true, &l->rounded, err));
    l->rounded_weight = tare__module_tensor(reference_in(l->rounded), "weight");
    return TARE_OK;
}

static bool dequantizes(const node *n) {
    return tare__node_is_call(n) && tare__op_has(tare__node_row(n), OP_DEQUANTIZES);
}

// True if the value depends on an input of the graph, or on random numbers.
static bool varies(const probe *p, const node *n) {
    if (n->op == NODE_PLACEHOLDER) return true;
    for (size_t i = 0; i < n->input_count; i++)
        if (p->facts[n->inputs[i]->id].varies) return true;
    return false;
}

static void note_dequantize(probe *p, const node *n) {
    const node *quantize = tare__node_arg(n, 0);
    probe_fact *about = &p->facts[n->id];
    const node *source = quantize != NULL && tare__node_is_call(quantize) && !dequantizes(quantize)
                             ? tare__node_arg(quantize, 0)
                             : NULL;
    about->kind = source != NULL ? PROBE_DEQUANTIZE : PROBE_FIXED;
    about->is_weight = quantize != NULL && !p->facts[quantize->id].varies;
    if (source == NULL) return;
    about->source = source->id;
    p->facts[quantize->id].kind = PROBE_QUANTIZE;
    p->facts[quantize->id].is_weight = about->is_weight;
}

// A dequantize belongs to its first reader: convert makes one for each reader, except for readers
// that stay float, which lose nothing that the others do not.
static tare_status give_to_reader(probe *p, const node *n, tare_error *err) {
    probe_fact *about = &p->facts[n->id];
    if (n->user_count == 0) return TARE_OK;
    const node *reader = n->users[0];
    if (p->facts[reader->id].kind != PROBE_PLAIN) return TARE_OK; // it converts to another dtype
    size_t layer = p->facts[reader->id].layer;
    if (layer == PROBE_NONE) TARE_TRY(add_layer(p, reader, &layer, err));
    about->layer = layer;
    return TARE_OK;
}

// Sorts by the graph's order; readers were found in the order of their first inputs.
static tare_status sort_layers(probe *p, tare_error *err) {
    probe_layer *sorted = tare__alloc_zeroed(p->layer_count + 1, sizeof *sorted);
    size_t count = 0;
    if (sorted == NULL) return tare__out_of_memory(err);
    for (const node *n = p->g->first; n != NULL; n = n->next) {
        probe_fact *about = &p->facts[n->id];
        if (about->kind != PROBE_PLAIN || about->layer == PROBE_NONE) continue;
        sorted[count] = p->layers[about->layer];
        about->layer = count++;
    }
    for (const node *n = p->g->first; n != NULL; n = n->next)
        if (p->facts[n->id].kind == PROBE_DEQUANTIZE && n->user_count > 0)
            p->facts[n->id].layer = p->facts[n->users[0]->id].layer;
    tare__free(p->layers);
    p->layers = sorted;
    p->layer_capacity = p->layer_count;
    return TARE_OK;
}

static tare_status find_layers(probe *p, tare_error *err) {
    for (const node *n = p->g->first; n != NULL; n = n->next) {
        p->facts[n->id].varies = varies(p, n);
        if (dequantizes(n)) note_dequantize(p, n);
    }
    for (const node *n = p->g->first; n != NULL; n = n->next) {
        size_t layer = p->facts[n->id].layer;
        if (p->facts[n->id].kind == PROBE_DEQUANTIZE)
            TARE_TRY(give_to_reader(p, n, err));
        else if (layer == PROBE_NONE &&
                 has_quantized_weight(reference_in(tare__called_module(p->model, n))))
            TARE_TRY(add_layer(p, n, &layer, err));
    }
    return sort_layers(p, err);
}

tare_status tare__probe_begin(probe *p, const tare_model *reference, float_kernels *kernels,
                              int thread_count, tare_error *err) {
    *p = (probe){.model = reference,
                 .g = reference->root->graph,
                 .id_count = reference->root->graph->next_id,
                 .kernels = kernels,
                 .lends_kernels = kernels != NULL,
                 .thread_count = thread_count > 0 ? thread_count : 1};
    p->facts = tare__alloc_zeroed(p->id_count + 1, sizeof *p->facts);
    if (p->facts == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < p->id_count; i++)
        p->facts[i] = (probe_fact){.layer = PROBE_NONE, .source = PROBE_NONE};
    TARE_TRY(find_layers(p, err));
    return kernels == NULL ? tare__float_kernels_create(NULL, &p->kernels, err) : TARE_OK;
}

void tare__probe_end(probe *p) {
    for (size_t i = 0; i < p->layer_count; i++) {
        tare__module_release(p->layers[i].with_floats);
        tare__module_release(p->layers[i].rounded);
    }
    if (!p->lends_kernels) tare__float_kernels_destroy(p->kernels);
    tare__free(p->layers);
    tare__free(p->facts);
    *p = (probe){0};
}
