// SPDX-License-Identifier: Apache-2.0
// Translates the graphs of nodes in place.
#include "io/onnx/read/nested.h"

#include <stdio.h>
#include <string.h>

#include "io/onnx/pack.h"
#include "io/onnx/read/order.h"
#include "io/onnx/read/sizes.h"
#include "io/onnx/read/state.h"

enum { DEEPEST = 16, MOST_NODES = 1 << 14, MOST_ITEMS = 1 << 21 };

tare_status tare__onnx_attr_graph(onnx_call *c, const char *name, onnx_nested *out) {
    const Onnx__GraphProto *g = NULL;
    for (size_t i = 0; i < c->node->n_attribute; i++) {
        const Onnx__AttributeProto *a = c->node->attribute[i];
        if (a->name == NULL || strcmp(a->name, name) != 0) continue;
        c->attribute_read[i] = true;
        g = a->g;
    }
    if (g == NULL) return tare__onnx_malformed(c, "the graph '%s' is missing", name);
    *out = (onnx_nested){g, name, g->n_input, g->n_output};
    return TARE_OK;
}

// --- names of a nested graph ---

// The names bound inside, which are forgotten in reverse order.
typedef struct inner_names {
    const char **items;
    size_t count;
} inner_names;

static tare_status bind(onnx_call *c, inner_names *names, const char *name, const value *v) {
    if (name == NULL || *name == '\0')
        return tare__onnx_malformed(c, "an input or initializer of a graph inside has no name");
    if (tare__map_has(&c->in->values, name))
        return tare__onnx_malformed(c, "the name '%s' of a graph inside is taken", name);
    names->items[names->count++] = name;
    return tare__onnx_bind(c->in, name, v);
}

static void forget(onnx_import *in, const inner_names *names) {
    for (size_t i = names->count; i > 0; i--) tare__map_remove(&in->values, names->items[i - 1]);
}

// --- running ---

// An initializer of a body is read in the first run only.
static tare_status bind_initializer(onnx_call *c, inner_names *names, const Onnx__TensorProto *t) {
    char key[32];
    onnx_import *in = c->in;
    (void)snprintf(key, sizeof key, "%p", (const void *)t);
    tare_tensor *made = tare__map_get(&in->nested_initializers, key);
    if (made == NULL) {
        TARE_TRY(tare__onnx_read_tensor(in->file, &in->data_files, t, &made, in->err));
        TARE_TRY(tare__onnx_add_constant(in, made, NULL));
        tare__onnx_constant_of(in, made)->is_packed = tare__onnx_is_packed(t->data_type);
        if (!tare__map_set(&in->nested_initializers, key, made))
            return tare__out_of_memory(in->err);
    }
    const value v = {.kind = VALUE_TENSOR, .as.tensor = made};
    return bind(c, names, t->name, &v);
}

static tare_status add_nodes(onnx_call *c, inner_names *names, const Onnx__GraphProto *g) {
    onnx_import *in = c->in;
    const Onnx__NodeProto **sorted = NULL;
    onnx_step *steps = tare__arena_array(&in->memory, g->n_node + 1, sizeof *steps);
    if (steps == NULL) return tare__out_of_memory(in->err);
    TARE_TRY(tare__onnx_order(g, &in->values, &in->memory, &sorted, in->err));
    for (size_t i = 0; i < g->n_node; i++) {
        onnx_step *outer = tare__onnx_step(c->node);
        steps[i] = (onnx_step){.node = *sorted[i], .opset = outer->opset, .caller = outer};
        TARE_TRY(in->add_node(in, &steps[i].node));
        for (size_t k = 0; k < steps[i].node.n_output; k++)
            if (tare__map_has(&in->values, steps[i].node.output[k]))
                names->items[names->count++] = steps[i].node.output[k];
    }
    return TARE_OK;
}

static tare_status find_outputs(onnx_call *c, const Onnx__GraphProto *g, value *outputs) {
    for (size_t i = 0; i < g->n_output; i++) {
        const char *name = g->output[i]->name != NULL ? g->output[i]->name : "";
        const onnx_binding *b = tare__map_get(&c->in->values, name);
        if (b == NULL)
            return tare__onnx_malformed(c, "no node produces the output '%s' of a graph inside",
                                        name);
        outputs[i] = b->v;
    }
    return TARE_OK;
}

static size_t most_names(const Onnx__GraphProto *g) {
    size_t count = g->n_input + g->n_initializer;
    for (size_t i = 0; i < g->n_node; i++) count += g->node[i]->n_output;
    return count;
}

tare_status tare__onnx_count_unrolled(onnx_call *c, size_t count) {
    onnx_import *in = c->in;
    in->nested_nodes = count <= MOST_NODES ? in->nested_nodes + count : MOST_NODES + 1;
    if (in->nested_nodes <= MOST_NODES) return TARE_OK;
    in->nested_nodes = MOST_NODES + 1; // so that no sum of them overflows
    return tare__onnx_fail(c, "branches and loops come to more than %d nodes and names",
                           MOST_NODES);
}

// What a run takes work or memory for: nodes, names, and the nodes of graphs inside, whose needs
// are looked at in each run even if they are never run.
static size_t cost(const Onnx__GraphProto *g) {
    size_t sum = 1 + g->n_node + g->n_input + g->n_initializer + g->n_output;
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_attribute; k++)
            if (g->node[i]->attribute[k]->g != NULL) sum += cost(g->node[i]->attribute[k]->g);
    return sum;
}

static tare_status check_limits(onnx_call *c, const Onnx__GraphProto *g) {
    onnx_import *in = c->in;
    if (g->n_sparse_initializer > 0)
        return tare__onnx_fail(c, "sparse initializers cannot be read");
    if (in->nested_depth == DEEPEST)
        return tare__onnx_fail(c, "graphs are nested more than %d deep", DEEPEST);
    return tare__onnx_count_unrolled(c, cost(g));
}

static tare_status run(onnx_call *c, inner_names *names, const Onnx__GraphProto *g,
                       const value *inputs, value *outputs) {
    for (size_t i = 0; i < g->n_input; i++) TARE_TRY(bind(c, names, g->input[i]->name, &inputs[i]));
    for (size_t i = 0; i < g->n_initializer; i++)
        TARE_TRY(bind_initializer(c, names, g->initializer[i]));
    TARE_TRY(add_nodes(c, names, g));
    return find_outputs(c, g, outputs);
}

tare_status tare__onnx_run_nested(onnx_call *c, const onnx_nested *nested, const value *inputs,
                                  value *outputs) {
    const Onnx__GraphProto *g = nested->graph;
    TARE_TRY(check_limits(c, g));
    inner_names names = {
        .items = tare__arena_array(&c->scratch, most_names(g) + 1, sizeof *names.items)};
    if (names.items == NULL) return tare__out_of_memory(c->in->err);
    c->in->nested_depth++;
    const tare_status status = run(c, &names, g, inputs, outputs);
    c->in->nested_depth--;
    forget(c->in, &names);
    return status;
}

// --- values ---

void tare__onnx_decided(const onnx_call *c, const value *v, double *out, bool *is_known) {
    *is_known = false;
    if (v->kind != VALUE_TENSOR || v->as.tensor->count != 1 ||
        tare__onnx_is_open(c->in, v->as.tensor))
        return;
    const tare_tensor *other = tare__onnx_constant_of(c->in, v->as.tensor)->other;
    *out = tare__tensor_get(v->as.tensor, 0);
    *is_known = other == NULL || (other->count == 1 && tare__tensor_get(other, 0) == *out);
}

tare_status tare__onnx_sequence(onnx_call *c, const value *items, size_t count, value *out) {
    // Each operator on a sequence makes a new one, so that a loop copies its items in every round.
    if (count > MOST_ITEMS - c->in->sequence_items)
        return tare__onnx_fail(c, "sequences come to more than %d items", MOST_ITEMS);
    c->in->sequence_items += count;
    *out = tare__value_sequence(&c->in->memory, VALUE_LIST, (uint32_t)count);
    if (out->as.items == NULL && count > 0) return tare__out_of_memory(c->in->err);
    if (count > 0) memcpy(out->as.items, items, count * sizeof *items);
    return TARE_OK;
}
