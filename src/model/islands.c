// SPDX-License-Identifier: Apache-2.0
// Islands: connected nodes of one kind. Observers and conversions between nodes do not separate
// them.
#include "model/islands.h"

#include "core/memory/arena.h"
#include "model/coverage.h"
#include "model/pass.h"
#include "ops/numbers.h"
#include "ops/op.h"
#include "tare/record.h"

// True for what prepare inserts between a convolution and its batch norm for training, and that
// batch norm: convert folds them.
static bool is_of_training(const node *n) {
    const node *from = tare__node_arg(n, 0);
    const bool is_behind = from != NULL && from->op == NODE_CALL_FUNCTION && from->origin == NULL;
    return n->origin == NULL || (is_behind && tare__node_op(n) == TARE_OP_BATCH_NORM);
}

// The kind of a node. left_float: names of nodes that convert left float.
static island_kind kind_of(const tare_model *model, const map *left_float, const node *n) {
    if (!tare__node_is_call(n) || n->user_count == 0) return ISLAND_DATA;
    if (tare__is_observer_node(model, n)) return ISLAND_OBSERVER;
    if (tare__coverage_is_conversion(n) || tare__coverage_is_choice(n)) return ISLAND_CONVERSION;
    if (model->stage < TARE_STAGE_PREPARED) return ISLAND_PLAIN;
    if (model->stage == TARE_STAGE_PREPARED && model->prepared == NULL) {
        if (tare__annotation_takes(&model->annotations, n)) return ISLAND_INTEGER;
        return is_of_training(n) ? ISLAND_OBSERVER : ISLAND_FLOAT;
    }
    if (model->stage == TARE_STAGE_PREPARED) {
        const prepared_node *known = tare__prepared_node(model->prepared, n->name);
        const bool stays_float = tare__map_get(left_float, n->name) != NULL;
        return known != NULL && known->is_observed && !stays_float ? ISLAND_INTEGER : ISLAND_FLOAT;
    }
    const traced_op *op = tare__traced_op(model, n->origin);
    return op != NULL && op->is_quantized ? ISLAND_INTEGER : ISLAND_FLOAT;
}

size_t tare__island_of(const islands *x, size_t position) {
    while (x->parent[position] != position) {
        x->parent[position] = x->parent[x->parent[position]];
        position = x->parent[position];
    }
    return position;
}

static tare_status list_nodes(const tare_model *model, arena *memory, islands *x, tare_error *err) {
    const graph *g = model->root->graph;
    x->nodes = tare__arena_array(memory, g->node_count + 1, sizeof *x->nodes);
    x->kinds = tare__arena_array(memory, g->node_count + 1, sizeof *x->kinds);
    x->parent = tare__arena_array(memory, g->node_count + 1, sizeof *x->parent);
    x->positions = tare__arena_array(memory, g->next_id + 1, sizeof *x->positions);
    bool *numbers = tare__arena_array(memory, g->next_id + 1, sizeof *numbers);
    if (x->nodes == NULL || x->kinds == NULL || x->parent == NULL || x->positions == NULL ||
        numbers == NULL)
        return tare__out_of_memory(err);
    tare__find_number_nodes(g, numbers);
    map left_float = {0};
    const tare_status status =
        tare__record_decided(&model->decisions, "left float", &left_float, err);
    for (const node *n = g->first; n != NULL && status == TARE_OK; n = n->next, x->count++) {
        x->nodes[x->count] = n;
        x->kinds[x->count] = numbers[n->id] ? ISLAND_DATA : kind_of(model, &left_float, n);
        x->parent[x->count] = x->positions[n->id] = x->count;
    }
    tare__map_release(&left_float);
    return status;
}

// An annotated node that reads no quantized value, such as the item of a recurrent layer, stays
// float.
static bool reads_quantized(const islands *x, const node *n) {
    for (size_t i = 0; i < n->input_count; i++) {
        const island_kind kind = x->kinds[x->positions[n->inputs[i]->id]];
        if (kind == ISLAND_OBSERVER || kind == ISLAND_INTEGER) return true;
    }
    return false;
}

static void leave_float(islands *x) {
    for (size_t i = 0; i < x->count; i++)
        if (x->kinds[i] == ISLAND_INTEGER && !reads_quantized(x, x->nodes[i]))
            x->kinds[i] = ISLAND_FLOAT;
}

// Convert computes what it quantizes of constants: the nodes of a prepared program that compute
// such a constant, and which nothing else reads, are data.
static tare_status fold_constants(const tare_model *model, arena *memory, islands *x,
                                  tare_error *err) {
    bool *is_constant = tare__arena_array(memory, x->count + 1, sizeof *is_constant);
    if (is_constant == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < x->count; i++) {
        const node *n = x->nodes[i];
        is_constant[i] = x->kinds[i] == ISLAND_FLOAT && n->input_count > 0;
        for (size_t k = 0; k < n->input_count && is_constant[i]; k++)
            is_constant[i] =
                n->inputs[k]->op == NODE_GET_ATTR || is_constant[x->positions[n->inputs[k]->id]];
    }
    for (size_t i = x->count; i-- > 0;) {
        const node *n = x->nodes[i];
        for (size_t k = 0; k < n->user_count && is_constant[i]; k++)
            is_constant[i] = tare__is_observer_node(model, n->users[k]) ||
                             x->kinds[x->positions[n->users[k]->id]] == ISLAND_DATA;
        if (is_constant[i]) x->kinds[i] = ISLAND_DATA;
    }
    return TARE_OK;
}

// The node that computed the value: n itself, or the source of the observer or conversion chain
// that ends at n.
static const node *source_of(const islands *x, const node *n) {
    for (;;) {
        const island_kind kind = x->kinds[x->positions[n->id]];
        if (kind != ISLAND_OBSERVER && kind != ISLAND_CONVERSION) return n;
        const node *input = tare__node_arg(n, 0);
        if (input == NULL) return n;
        n = input;
    }
}

// State of visiting the inputs of one node.
typedef struct reading {
    islands *islands;
    size_t to;
    bool *is_quantized, *is_dequantized; // by position: counted before
} reading;

static void count_once(bool *seen, size_t position, size_t *count) {
    *count += !seen[position];
    seen[position] = true;
}

static void read_input(void *user, node *input) {
    const reading *r = user;
    islands *x = r->islands;
    const node *from = source_of(x, input);
    const size_t position = x->positions[from->id];
    const island_kind source = x->kinds[position], reader = x->kinds[r->to];
    if (source == reader && tare__island_has_members(source)) {
        const size_t a = tare__island_of(x, position), b = tare__island_of(x, r->to);
        x->parent[a > b ? a : b] = a < b ? a : b;
    }
    const bool is_folded = source == ISLAND_DATA && tare__node_is_call(from);
    const bool is_weight = from->op == NODE_GET_ATTR || is_folded;
    if (source == ISLAND_INTEGER && (reader == ISLAND_FLOAT || reader == ISLAND_DATA))
        count_once(r->is_dequantized, position, &x->dequantize_count);
    if (reader == ISLAND_INTEGER && !is_weight && (source == ISLAND_FLOAT || source == ISLAND_DATA))
        count_once(r->is_quantized, position, &x->quantize_count);
}

tare_status tare__islands_find(const tare_model *model, arena *memory, islands *out,
                               tare_error *err) {
    *out = (islands){0};
    TARE_TRY(list_nodes(model, memory, out, err));
    if (model->stage == TARE_STAGE_PREPARED && model->prepared == NULL) {
        leave_float(out);
        TARE_TRY(fold_constants(model, memory, out, err));
    }
    reading r = {.islands = out,
                 .is_quantized = tare__arena_array(memory, out->count + 1, sizeof(bool)),
                 .is_dequantized = tare__arena_array(memory, out->count + 1, sizeof(bool))};
    if (r.is_quantized == NULL || r.is_dequantized == NULL) return tare__out_of_memory(err);
    for (r.to = 0; r.to < out->count; r.to++) {
        const island_kind kind = out->kinds[r.to];
        if (kind != ISLAND_OBSERVER && kind != ISLAND_CONVERSION)
            tare__node_each_input(out->nodes[r.to], read_input, &r);
    }
    for (size_t i = 0; i < out->count; i++) {
        if (tare__island_of(out, i) != i) continue;
        out->float_count += out->kinds[i] == ISLAND_FLOAT;
        out->integer_count += out->kinds[i] == ISLAND_INTEGER;
    }
    return TARE_OK;
}

// --- public functions ---

// State of visiting the nodes. Operators of the float model are sorted by the operator that
// computes them now, their carrier.
typedef struct visiting {
    const tare_model *model;
    islands islands;
    const char **operators;
    size_t *first; // [op_count + 1]: by the carrier's index, the first position in `operators`
    size_t *inputs;
    size_t input_count; // of the current node
} visiting;

static void list_input(void *user, node *input) {
    visiting *v = user;
    v->inputs[v->input_count++] = v->islands.positions[input->id];
}

static size_t carrier_of(const tare_model *model, size_t op) {
    return (size_t)(tare__traced_carrier(model, &model->ops[op]) - model->ops);
}

// A stable counting sort.
static void sort_operators(visiting *v, size_t *next) {
    const tare_model *m = v->model;
    for (size_t i = 0; i < m->op_count; i++) v->first[carrier_of(m, i) + 1]++;
    for (size_t i = 0; i < m->op_count; i++) v->first[i + 1] += v->first[i];
    for (size_t i = 0; i < m->op_count; i++) {
        const size_t carrier = carrier_of(m, i);
        v->operators[v->first[carrier] + next[carrier]++] = m->ops[i].name;
    }
}

static tare_status begin_visit(visiting *v, arena *memory, tare_error *err) {
    const size_t count = v->model->op_count;
    TARE_TRY(tare__islands_find(v->model, memory, &v->islands, err));
    v->inputs = tare__arena_array(memory, v->islands.count + 1, sizeof *v->inputs);
    v->operators = tare__arena_array(memory, count + 1, sizeof *v->operators);
    v->first = tare__arena_array(memory, count + 1, sizeof *v->first);
    size_t *next = tare__arena_array(memory, count + 1, sizeof *next);
    if (v->inputs == NULL || v->operators == NULL || v->first == NULL || next == NULL)
        return tare__out_of_memory(err);
    sort_operators(v, next);
    return TARE_OK;
}

static void show_operators(const visiting *v, const node *n, tare_island_node *out) {
    const tare_model *m = v->model;
    const bool is_call = tare__node_is_call(n);
    if (is_call && m->op_count == 0) { // no pass has run: this is the float model
        out->operators = (const char *const *)&n->name;
        out->operator_count = 1;
    }
    const traced_op *carrier = is_call ? tare__traced_op(m, n->origin) : NULL;
    if (carrier == NULL) return;
    const size_t index = (size_t)(carrier - m->ops);
    out->operators = v->operators + v->first[index];
    out->operator_count = v->first[index + 1] - v->first[index];
}

static tare_status visit_node(visiting *v, size_t position, tare_island_visitor visit, void *user,
                              tare_error *err) {
    static const char *const names[] = {
        [ISLAND_DATA] = "data",         [ISLAND_FLOAT] = "float",
        [ISLAND_INTEGER] = "integers",  [ISLAND_CONVERSION] = "conversion",
        [ISLAND_OBSERVER] = "observer", [ISLAND_PLAIN] = "plain"};
    const node *n = v->islands.nodes[position];
    const island_kind kind = v->islands.kinds[position];
    const bool is_member = tare__island_has_members(kind);
    v->input_count = 0;
    tare__node_each_input(n, list_input, v);
    tare_island_node shown = {.struct_size = sizeof shown,
                              .name = n->name,
                              .subject = tare__node_subject(v->model, n),
                              .kind = names[kind],
                              .island =
                                  is_member ? tare__island_of(&v->islands, position) : SIZE_MAX,
                              .inputs = v->inputs,
                              .input_count = v->input_count};
    show_operators(v, n, &shown);
    return visit(user, position, &shown, err);
}

tare_status tare_model_visit_islands(const tare_model *model, tare_island_visitor visit, void *user,
                                     tare_error *err) {
    arena memory = {0};
    visiting v = {.model = model};
    tare_status status = begin_visit(&v, &memory, err);
    for (size_t i = 0; i < v.islands.count && status == TARE_OK; i++)
        status = visit_node(&v, i, visit, user, err);
    tare__arena_release(&memory);
    return status;
}
