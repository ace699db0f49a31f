// SPDX-License-Identifier: Apache-2.0
// Builds an integer program of layers and the values between them, and solves it.
#include "runtime/tune/layer_costs.h"

#include <math.h>
#include <string.h>

#include "model/coverage.h"
#include "model/pass.h"
#include "ops/interpret.h"
#include "ops/op.h"
#include "runtime/tune/step_costs.h"

// The side of inputs and outputs, which belong to no layer.
#define OUTSIDE SIZE_MAX

enum {
    STEP_NS = 300, // overhead of any step
    // Integers are rejected only for a gain that exceeds noise, 2 % and a little, or the error of
    // predicted times.
    NOISE_SHARE = 50,
    ERROR_SHARE = 10,
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

// It reads and gives floats: its input is quantized on the fly, or its weight alone is.
static bool has_integers_inside(const tare_model *model, const tare_step *step) {
    for (size_t i = 0; i < step->node_count; i++) {
        const node *n = tare__graph_find(model->root->graph, step->nodes[i]);
        if (n == NULL) continue;
        const module *m = tare__called_module(model, n);
        if ((m != NULL && (m->class->role == ROLE_DYNAMIC || m->class->role == ROLE_GROUPED)) ||
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
        if (op != OUTSIDE)
            c->items[find(c, op)].float_ns += (int64_t)tare__racer_step_ns(floats, &step);
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
        if (!has_integers_inside(model, &step)) continue;
        layer->gives_floats = true;
        layer->is_float = false;
    }
    for (size_t i = 0; i < c->count; i++) {
        layer_cost *layer = &c->items[i];
        if (layer->is_float) continue;
        layer->may_be_int = true;
        layer->int_ns = 0;
    }
}

typedef struct conversion_rate {
    double ns, elements;
} conversion_rate;

static void sum_rate(conversion_rate *rate, const tare_step *step, uint64_t ns) {
    rate->elements += (double)tare__step_elements(step);
    rate->ns += ns > STEP_NS ? (double)(ns - STEP_NS) : 0;
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
        const uint64_t ns = tare__racer_step_ns(r, &step);
        if (op != OUTSIDE) {
            layer_cost *layer = &c->items[find(c, op)];
            if (!layer->is_float) layer->int_ns += (int64_t)ns;
        } else if (step.node_count > 0) {
            sum_rate(strcmp(step.op, tare__op_row(TARE_OP_DEQUANTIZE)->id) == 0 ? &dequantize
                                                                                : &quantize,
                     &step, ns);
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

static tare_status note_size(void *user, const node *n, const value *result, tare_error *err) {
    layer_costs *c = user;
    const value *v = result;
    (void)err;
    while (tare__value_has_items(v) && v->count > 0) v = &v->as.items[0];
    if (n->owner == c->floats->root->graph && v->kind == VALUE_TENSOR &&
        v->as.tensor->dtype == TARE_FLOAT32)
        c->elements[n->id] = v->as.tensor->count;
    return TARE_OK;
}

// Runs shape rules only. Values whose shapes depend on data have no size.
static tare_status find_sizes(layer_costs *c, const race_setting *s, tare_error *err) {
    arena memory = {0};
    value result = {0};
    const interpreter it = {.root = c->floats->root,
                            .thread_count = 1,
                            .shapes_only = true,
                            .passes_over = true,
                            .after = note_size,
                            .user = c};
    value *inputs = tare__arena_array(&memory, s->input_count + 1, sizeof *inputs);
    tare_status status = inputs != NULL ? TARE_OK : tare__out_of_memory(err);
    for (size_t i = 0; i < s->input_count && status == TARE_OK; i++) // only read
        inputs[i] = (value){.kind = VALUE_TENSOR, .as.tensor = (tare_tensor *)s->inputs[i]};
    if (status == TARE_OK)
        status = tare__interpret(&it, inputs, s->input_count, &memory, &result, err);
    tare__value_release_tensors(&result);
    tare__arena_release(&memory);
    return status;
}

tare_status tare__layer_costs_begin(layer_costs *c, const tare_model *floats, const race_setting *s,
                                    tare_error *err) {
    *c = (layer_costs){
        .floats = floats, .count = floats->op_count, .is_predicted = s->machine != NULL};
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

typedef struct building {
    layer_costs *c;
    const choice_errors *errors; // NULL: only times count
    layer_program *out;
    tare_error *err;
} building;

static size_t item_of(const building *b, size_t layer) {
    return layer != OUTSIDE ? b->out->items[layer] : PROGRAM_FLOATS;
}

// An integer layer that is slower by less than the noise counts as equally fast.
static int64_t handicapped(const layer_costs *c, int64_t int_ns) {
    const int64_t ns = int_ns - int_ns / (c->is_predicted ? ERROR_SHARE : NOISE_SHARE) - NOISE_NS;
    return ns > 0 ? ns : 0;
}

static void add_integers(const building *b, size_t i, size_t item) {
    const layer_cost *layer = &b->c->items[i];
    const choice_errors *e = b->errors;
    const int64_t ns = e != NULL ? layer->int_ns : handicapped(b->c, layer->int_ns);
    program_costs costs = {.of[COST_NS] = (double)ns};
    if (e != NULL) {
        costs.of[COST_ERROR] = e->layers[i].error;
        costs.of[COST_BYTES] = e->layers[i].int_bytes;
    }
    tare__program_add_choice(&b->out->program, item, false, &costs);
    if (e == NULL || !e->layers[i].has_wide) return;
    costs =
        (program_costs){{e->layers[i].wide_error, e->layers[i].wide_ns, e->layers[i].wide_bytes}};
    tare__program_add_choice(&b->out->program, item, false, &costs);
}

// Layers whose integers nobody sees are items without edges, which are on the side of the floats
// for their neighbours.
static tare_status add_layer(const building *b, size_t i) {
    const layer_cost *layer = &b->c->items[i];
    choice_program *p = &b->out->program;
    size_t item = PROGRAM_FLOATS;
    TARE_TRY(tare__program_add_item(p, &item, b->err));
    b->out->own[i] = item;
    b->out->items[i] = layer->gives_floats ? PROGRAM_FLOATS : item;
    if (layer->may_be_int && !layer->stays_float) add_integers(b, i, item);
    const program_costs costs = {
        .of = {[COST_NS] = (double)layer->float_ns,
               [COST_BYTES] = b->errors != NULL ? b->errors->layers[i].float_bytes : 0}};
    tare__program_add_choice(p, item, true, &costs);
    return TARE_OK;
}

// An item that is with the integers as soon as one of those that compute or read the value is.
static tare_status add_error(const building *b, const node *n, double error) {
    choice_program *p = &b->out->program;
    const program_costs costs = {.of[COST_ERROR] = error};
    size_t touched = 0;
    TARE_TRY(tare__program_add_free_item(p, &touched, b->err));
    TARE_TRY(tare__program_add_edge(p, touched, PROGRAM_FLOATS, &costs, b->err));
    TARE_TRY(tare__program_add_edge(p, item_of(b, layer_of_node(b->c, n)), touched, NULL, b->err));
    for (size_t i = 0; i < n->user_count; i++)
        TARE_TRY(tare__program_add_edge(p, item_of(b, layer_of_node(b->c, n->users[i])), touched,
                                        NULL, b->err));
    return TARE_OK;
}

// Two items between a value and its readers, so that either conversion is paid once.
static tare_status add_value(const building *b, const node *n) {
    choice_program *p = &b->out->program;
    const int64_t elements = b->c->elements[n->id];
    const size_t from = item_of(b, layer_of_node(b->c, n));
    const program_costs dequantize = {.of[COST_NS] =
                                          (double)conversion_ns(b->c->dequantize_ns, elements)};
    const program_costs quantize = {.of[COST_NS] =
                                        (double)conversion_ns(b->c->quantize_ns, elements)};
    size_t dequantized = 0, quantized = 0;
    TARE_TRY(tare__program_add_free_item(p, &dequantized, b->err));
    TARE_TRY(tare__program_add_free_item(p, &quantized, b->err));
    TARE_TRY(tare__program_add_edge(p, from, dequantized, &dequantize, b->err));
    TARE_TRY(tare__program_add_edge(p, quantized, from, &quantize, b->err));
    for (size_t i = 0; i < n->user_count; i++) {
        const size_t to = item_of(b, layer_of_node(b->c, n->users[i]));
        TARE_TRY(tare__program_add_edge(p, dequantized, to, NULL, b->err));
        TARE_TRY(tare__program_add_edge(p, to, quantized, NULL, b->err));
    }
    const double error = b->errors != NULL ? b->errors->values[n->id] : 0;
    return error > 0 ? add_error(b, n, error) : TARE_OK;
}

static tare_status build(const building *b) {
    layer_costs *c = b->c;
    TARE_TRY(tare__program_begin(&b->out->program, b->err));
    for (size_t i = 0; i < c->count; i++) {
        c->items[i].exists = find(c, i) == i;
        if (c->items[i].exists) TARE_TRY(add_layer(b, i));
    }
    for (const node *n = c->floats->root->graph->first; n != NULL; n = n->next)
        if (c->elements[n->id] > 0) TARE_TRY(add_value(b, n));
    const size_t count = b->out->program.item_count;
    b->out->solution.choices = tare__arena_array(&c->memory, count, sizeof(uint8_t));
    b->out->solution.is_float = tare__arena_array(&c->memory, count, sizeof(bool));
    return b->out->solution.choices != NULL && b->out->solution.is_float != NULL
               ? TARE_OK
               : tare__out_of_memory(b->err);
}

tare_status tare__layer_costs_program(layer_costs *c, const choice_errors *errors,
                                      layer_program *out, tare_error *err) {
    const building b = {c, errors, out, err};
    *out = (layer_program){.own = tare__arena_array(&c->memory, c->count + 1, sizeof(size_t)),
                           .items = tare__arena_array(&c->memory, c->count + 1, sizeof(size_t))};
    if (out->own == NULL || out->items == NULL) return tare__out_of_memory(err);
    return build(&b);
}

static const program_choice *choice_of(const layer_program *x, size_t layer) {
    const size_t item = x->own[layer];
    return &x->program.items[item].choices[x->solution.choices[item]];
}

bool tare__layer_program_is_float(const layer_program *x, size_t layer) {
    return choice_of(x, layer)->is_float;
}

bool tare__layer_program_is_wide(const layer_program *x, size_t layer) {
    return !choice_of(x, layer)->is_float && x->solution.choices[x->own[layer]] == 1;
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
    const program_goal goal = {.weights = {[COST_NS] = 1},
                               .limits = {(double)INFINITY, (double)INFINITY, (double)INFINITY}};
    layer_program x;
    tare_status status = tare__layer_costs_program(c, NULL, &x, err);
    if (status == TARE_OK) status = tare__program_solve(&x.program, &goal, &x.solution, err);
    for (size_t i = 0; i < c->count && status == TARE_OK; i++) {
        layer_cost *layer = &c->items[i];
        if (layer->exists && layer->may_be_int)
            layer->stays_float |= tare__layer_program_is_float(&x, i);
    }
    tare__program_release(&x.program);
    return status;
}
