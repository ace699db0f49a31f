// SPDX-License-Identifier: Apache-2.0
// Builds the graph of layers and values, and finds its minimum cut.
#include "runtime/tune/layer_costs.h"

#include <string.h>

#include "core/math/min_cut.h"
#include "model/coverage.h"
#include "model/pass.h"
#include "ops/op.h"

// The side of inputs and outputs, which belong to no layer.
#define OUTSIDE SIZE_MAX

enum {
    STEP_NS = 300, // overhead of any step
    // Integers are rejected only for a gain that exceeds noise: 2 % and a little.
    NOISE_SHARE = 50,
    NOISE_NS = 200,
};
static const double least_rate = 0.02, usual_rate = 0.25; // ns per element

// --- layers as sets ---

static size_t find(layer_costs *c, size_t i) {
    while (c->parent[i] != i) i = c->parent[i] = c->parent[c->parent[i]];
    return i;
}

static void unite(layer_costs *c, size_t i, size_t k) {
    const size_t a = find(c, i), b = find(c, k);
    if (a == b) return;
    layer_cost *to = &c->items[a < b ? a : b], *from = &c->items[a < b ? b : a];
    c->parent[a < b ? b : a] = a < b ? a : b;
    to->may_be_int |= from->may_be_int;
    to->gives_floats |= from->gives_floats;
    to->stays_float |= from->stays_float;
    to->int_ns += from->int_ns;
    *from = (layer_cost){0};
}

static size_t op_index(const tare_model *model, const char *name) {
    const traced_op *op = tare__traced_op(model, name);
    return op != NULL ? (size_t)(op - model->ops) : OUTSIDE;
}

size_t tare__layer_of(const layer_costs *c, const char *name) {
    size_t i = op_index(c->floats, name);
    while (i != OUTSIDE && c->parent[i] != i) i = c->parent[i];
    return i;
}

// The operator of the float model that a node of a model computes.
static size_t op_of(const tare_model *model, const char *node_name) {
    const node *n = tare__graph_find(model->root->graph, node_name);
    return n != NULL && tare__node_is_call(n) ? op_index(model, n->origin) : OUTSIDE;
}

static void unite_fused(layer_costs *c, const tare_model *model) {
    for (size_t i = 0; i < model->op_count; i++) {
        const traced_op *carrier = tare__traced_carrier(model, &model->ops[i]);
        unite(c, i, (size_t)(carrier - model->ops));
    }
}

// The operators that a step computes are one layer. A reorder step belongs to its node.
static size_t unite_step(layer_costs *c, const tare_model *model, const tare_step *step) {
    size_t first = step->node_count == 0 ? op_of(model, step->node) : OUTSIDE;
    for (size_t i = 0; i < step->node_count; i++) {
        const size_t op = op_of(model, step->nodes[i]);
        if (first != OUTSIDE && op != OUTSIDE) unite(c, first, op);
        if (first == OUTSIDE) first = op;
    }
    return first;
}

static void unite_steps(layer_costs *c, const racer *r) {
    tare_step step;
    unite_fused(c, r->model);
    for (size_t i = 0; tare_session_get_step(r->session, i, &step); i++)
        (void)unite_step(c, r->model, &step);
}

// --- times ---

static bool has_conversion(const tare_model *model, const tare_step *step) {
    for (size_t i = 0; i < step->node_count; i++) {
        const node *n = tare__graph_find(model->root->graph, step->nodes[i]);
        if (n != NULL && tare__coverage_is_conversion(n)) return true;
    }
    return false;
}

static bool is_dynamic(const tare_model *model, const tare_step *step) {
    for (size_t i = 0; i < step->node_count; i++) {
        const node *n = tare__graph_find(model->root->graph, step->nodes[i]);
        if (n == NULL) continue;
        const module *m = tare__called_module(model, n);
        if ((m != NULL && m->class->role == ROLE_DYNAMIC) ||
            (n->op == NODE_CALL_FUNCTION && tare__ends_with(n->target, "_dynamic")))
            return true;
    }
    return false;
}

static void sum_floats(layer_costs *c, const racer *floats) {
    tare_step step;
    for (size_t i = 0; i < c->count; i++) c->items[i].float_ns = 0;
    for (size_t i = 0; tare_session_get_step(floats->session, i, &step); i++) {
        const size_t op = unite_step(c, floats->model, &step);
        if (op != OUTSIDE) c->items[find(c, op)].float_ns += (int64_t)step.median_ns;
    }
}

// Marks layers that this model computes with integers; their time is then taken from it.
static void mark_integers(layer_costs *c, const racer *r) {
    const tare_model *model = r->model;
    tare_step step;
    for (size_t i = 0; i < c->count; i++) c->items[i].is_float = true;
    for (size_t i = 0; i < model->op_count; i++)
        if (model->ops[i].is_quantized) c->items[find(c, i)].is_float = false;
    // A function between quantized values is a table lookup.
    for (size_t i = 0; tare_session_get_step(r->session, i, &step); i++) {
        const size_t op = unite_step(c, model, &step);
        if (op == OUTSIDE) continue;
        layer_cost *layer = &c->items[find(c, op)];
        if (has_conversion(model, &step)) layer->is_float = false;
        if (is_dynamic(model, &step)) layer->gives_floats = true;
    }
    for (size_t i = 0; i < c->count; i++) {
        layer_cost *layer = &c->items[i];
        if (layer->is_float) continue;
        layer->may_be_int = true;
        layer->int_ns = 0;
    }
}

static int64_t count_of(const tare_step *step) {
    int64_t count = 1;
    for (int d = 0; d < step->output_ndim; d++) count *= step->output_shape[d];
    return count;
}

typedef struct conversion_rate {
    double ns, elements;
} conversion_rate;

static void sum_rate(conversion_rate *rate, const tare_step *step) {
    rate->elements += (double)count_of(step);
    rate->ns += step->median_ns > STEP_NS ? (double)(step->median_ns - STEP_NS) : 0;
}

static double rate_of(const conversion_rate *own, const conversion_rate *other) {
    const conversion_rate *known = own->elements > 0 ? own : other;
    if (known->elements == 0) return usual_rate;
    const double rate = known->ns / known->elements;
    return rate > least_rate ? rate : least_rate;
}

static void sum_integers(layer_costs *c, const racer *r) {
    conversion_rate quantize = {0}, dequantize = {0};
    tare_step step;
    for (size_t i = 0; tare_session_get_step(r->session, i, &step); i++) {
        const size_t op = unite_step(c, r->model, &step);
        if (op != OUTSIDE) {
            layer_cost *layer = &c->items[find(c, op)];
            if (!layer->is_float) layer->int_ns += (int64_t)step.median_ns;
        } else if (step.node_count > 0) {
            sum_rate(strcmp(step.op, tare__op_row(TARE_OP_DEQUANTIZE)->id) == 0 ? &dequantize
                                                                                : &quantize,
                     &step);
        }
    }
    c->quantize_ns = rate_of(&quantize, &dequantize);
    c->dequantize_ns = rate_of(&dequantize, &quantize);
}

tare_status tare__layer_costs_add(layer_costs *c, const racer *floats, const racer *quantized,
                                  tare_error *err) {
    if (quantized->model->op_count != c->count)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "the quantized model is not one of this float model");
    unite_steps(c, floats);
    unite_steps(c, quantized);
    sum_floats(c, floats);
    mark_integers(c, quantized);
    sum_integers(c, quantized);
    return TARE_OK;
}

// --- sizes of values ---

static tare_status note_size(void *user, const char *node_name, const tare_tensor *result,
                             tare_error *err) {
    layer_costs *c = user;
    const node *n = tare__graph_find(c->floats->root->graph, node_name);
    (void)err;
    if (n != NULL && result != NULL && result->dtype == TARE_FLOAT32)
        c->elements[n->id] = result->count;
    return TARE_OK;
}

static tare_status find_sizes(layer_costs *c, const race_setting *s, tare_error *err) {
    tare_tensor *outputs[RACE_OUTPUTS] = {NULL};
    tare_session *session = NULL;
    size_t count = 0;
    TARE_TRY(tare_session_create(c->floats, NULL, &session, err));
    tare_session_watch(session, note_size, c);
    const tare_status status =
        tare_session_run(session, s->inputs, s->input_count, outputs, RACE_OUTPUTS, &count, err);
    for (size_t i = 0; i < count && status == TARE_OK; i++) tare_tensor_release(outputs[i]);
    tare_session_destroy(session);
    return status;
}

tare_status tare__layer_costs_begin(layer_costs *c, const tare_model *floats, const race_setting *s,
                                    tare_error *err) {
    *c = (layer_costs){.floats = floats, .count = floats->op_count};
    c->parent = tare__arena_array(&c->memory, c->count + 1, sizeof *c->parent);
    c->items = tare__arena_array(&c->memory, c->count + 1, sizeof *c->items);
    c->elements =
        tare__arena_array(&c->memory, floats->root->graph->next_id + 1, sizeof *c->elements);
    if (c->parent == NULL || c->items == NULL || c->elements == NULL)
        return tare__out_of_memory(err);
    for (size_t i = 0; i < c->count; i++) c->parent[i] = i;
    return find_sizes(c, s, err);
}

void tare__layer_costs_release(layer_costs *c) {
    tare__arena_release(&c->memory);
}

// --- values between layers ---

static size_t layer_of_node(layer_costs *c, const node *n) {
    const size_t op = tare__node_is_call(n) ? op_index(c->floats, n->origin) : OUTSIDE;
    return op != OUTSIDE ? find(c, op) : OUTSIDE;
}

static int64_t conversion_ns(double rate, int64_t elements) {
    return STEP_NS + (int64_t)(rate * (double)elements);
}

static bool takes_quantized(const layer_costs *c, size_t layer) {
    return layer != OUTSIDE && c->items[layer].may_be_int && !c->items[layer].gives_floats &&
           !c->items[layer].stays_float;
}

// The cost of a value if not all its readers are on the side of its layer.
static int64_t value_cost(layer_costs *c, const node *n) {
    const bool gives_quantized = takes_quantized(c, layer_of_node(c, n));
    for (size_t i = 0; i < n->user_count; i++)
        if (takes_quantized(c, layer_of_node(c, n->users[i])) != gives_quantized)
            return conversion_ns(gives_quantized ? c->dequantize_ns : c->quantize_ns,
                                 c->elements[n->id]);
    return 0;
}

static bool touches(layer_costs *c, const node *n, size_t layer) {
    bool found = layer_of_node(c, n) == layer;
    for (size_t i = 0; i < n->user_count && !found; i++)
        found = layer_of_node(c, n->users[i]) == layer;
    return found;
}

static int64_t boundary_cost(layer_costs *c, size_t layer) {
    int64_t cost = 0;
    for (const node *n = c->floats->root->graph->first; n != NULL; n = n->next)
        if (c->elements[n->id] > 0 && touches(c, n, layer)) cost += value_cost(c, n);
    return cost;
}

// --- choosing ---

typedef struct choice {
    layer_costs *c;
    cut_graph g;
    size_t integers, floats; // the two sides
    size_t *vertex;          // by layer
    tare_error *err;
} choice;

static size_t vertex_of(const choice *x, size_t layer) {
    return layer != OUTSIDE ? x->vertex[layer] : x->floats;
}

// An integer layer that is slower by less than the noise counts as equally fast.
static int64_t handicapped(int64_t int_ns) {
    const int64_t ns = int_ns - int_ns / NOISE_SHARE - NOISE_NS;
    return ns > 0 ? ns : 0;
}

static tare_status add_layer(choice *x, size_t i) {
    const layer_cost *layer = &x->c->items[i];
    TARE_TRY(tare__cut_add_vertex(&x->g, &x->vertex[i], x->err));
    const size_t v = x->vertex[i];
    if (!takes_quantized(x->c, i))
        return tare__cut_add_edge(&x->g, v, x->floats, CUT_NEVER, x->err);
    TARE_TRY(tare__cut_add_edge(&x->g, v, x->floats, handicapped(layer->int_ns), x->err));
    return tare__cut_add_edge(&x->g, x->integers, v, layer->float_ns, x->err);
}

// Adds two vertices between a value and its readers, so that each conversion is paid at most once.
static tare_status add_value(choice *x, const node *n) {
    const int64_t elements = x->c->elements[n->id];
    const size_t from = vertex_of(x, layer_of_node(x->c, n));
    size_t dequantized, quantized;
    TARE_TRY(tare__cut_add_vertex(&x->g, &dequantized, x->err));
    TARE_TRY(tare__cut_add_vertex(&x->g, &quantized, x->err));
    TARE_TRY(tare__cut_add_edge(&x->g, from, dequantized,
                                conversion_ns(x->c->dequantize_ns, elements), x->err));
    TARE_TRY(tare__cut_add_edge(&x->g, quantized, from, conversion_ns(x->c->quantize_ns, elements),
                                x->err));
    for (size_t i = 0; i < n->user_count; i++) {
        const size_t to = vertex_of(x, layer_of_node(x->c, n->users[i]));
        TARE_TRY(tare__cut_add_edge(&x->g, dequantized, to, CUT_NEVER, x->err));
        TARE_TRY(tare__cut_add_edge(&x->g, to, quantized, CUT_NEVER, x->err));
    }
    return TARE_OK;
}

static tare_status build(choice *x) {
    layer_costs *c = x->c;
    TARE_TRY(tare__cut_add_vertex(&x->g, &x->integers, x->err));
    TARE_TRY(tare__cut_add_vertex(&x->g, &x->floats, x->err));
    for (size_t i = 0; i < c->count; i++)
        if (find(c, i) == i) TARE_TRY(add_layer(x, i));
    for (const node *n = c->floats->root->graph->first; n != NULL; n = n->next)
        if (c->elements[n->id] > 0) TARE_TRY(add_value(x, n));
    return TARE_OK;
}

// Layers without integer neighbours are chosen separately.
static bool loses_alone(const layer_cost *layer) {
    return layer->gives_floats && layer->float_ns < handicapped(layer->int_ns);
}

static tare_status solve(choice *x) {
    layer_costs *c = x->c;
    TARE_TRY(build(x));
    bool *is_int = tare__arena_array(&c->memory, x->g.vertex_count, sizeof *is_int);
    if (is_int == NULL) return tare__out_of_memory(x->err);
    TARE_TRY(tare__cut_solve(&x->g, x->integers, x->floats, is_int, x->err));
    for (size_t i = 0; i < c->count; i++) {
        layer_cost *layer = &c->items[i];
        layer->exists = find(c, i) == i;
        if (!layer->exists || !layer->may_be_int) continue;
        layer->stays_float |= layer->gives_floats ? loses_alone(layer) : !is_int[x->vertex[i]];
    }
    return TARE_OK;
}

void tare__layer_costs_note_boundaries(layer_costs *c) {
    for (size_t i = 0; i < c->count; i++) {
        layer_cost *layer = &c->items[i];
        if (!layer->exists || !layer->may_be_int) continue;
        layer->boundary_ns = boundary_cost(c, i);
        layer->stays_float = !layer->stays_float;
        layer->other_ns = boundary_cost(c, i);
        layer->stays_float = !layer->stays_float;
    }
}

tare_status tare__layer_costs_choose(layer_costs *c, tare_error *err) {
    choice x = {.c = c, .err = err};
    x.vertex = tare__arena_array(&c->memory, c->count + 1, sizeof *x.vertex);
    const tare_status status = x.vertex != NULL ? solve(&x) : tare__out_of_memory(err);
    tare__cut_release(&x.g);
    return status;
}
