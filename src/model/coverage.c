// SPDX-License-Identifier: Apache-2.0
// Coverage: tracks the operators of the float model through the passes. Every node stores its
// origin.
#include "model/coverage.h"
#include "model/islands.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "model/pass.h"
#include "ops/flow_op.h"
#include "ops/numbers.h"
#include "ops/op.h"

traced_op *tare__traced_op(const tare_model *model, const char *name) {
    if (name == NULL) return NULL;
    const size_t number = (size_t)tare__map_get(&model->op_names, name);
    return number > 0 ? &model->ops[number - 1] : NULL;
}

static tare_status add(tare_model *model, const char *name, const char *subject, traced_op **out,
                       tare_error *err) {
    if (!tare__grow((void **)&model->ops, &model->op_capacity, model->op_count, sizeof *model->ops))
        return tare__out_of_memory(err);
    const traced_op op = {.name = tare__strdup(name), .subject = tare__strdup(subject)};
    if (op.name == NULL || op.subject == NULL ||
        !tare__map_set(&model->op_names, name, tare__map_int(model->op_count + 1))) {
        tare__free(op.name);
        tare__free(op.subject);
        return tare__out_of_memory(err);
    }
    model->ops[model->op_count] = op;
    model->ops[model->op_count].last = model->op_count;
    *out = &model->ops[model->op_count++];
    return TARE_OK;
}

// Moves the last operator of `op` to the operator that computes it now.
static void hand_last_on(tare_model *model, traced_op *op) {
    traced_op *carrier = &model->ops[tare__traced_carrier(model, op) - model->ops];
    if (carrier == op) return;
    if (op->last > carrier->last) carrier->last = op->last;
    op->last = (size_t)(op - model->ops);
}

// Recomputes all `last` indices, for operators that are not fused in the order of execution.
static void find_last(tare_model *model) {
    for (size_t i = 0; i < model->op_count; i++) model->ops[i].last = i;
    for (size_t i = 0; i < model->op_count; i++) hand_last_on(model, &model->ops[i]);
}

// True for a node that computes scale and zero point at run time.
static bool is_choice(const node *n) {
    return n != NULL && n->op == NODE_CALL_FUNCTION && strstr(n->target, ".choose_qparams") != NULL;
}

static bool is_item_of_choice(const node *n) {
    return tare__function_op(n) == TARE_OP_GETITEM && is_choice(tare__node_arg(n, 0));
}

// numbers: by node id, nodes that compute sizes and other numbers.
static tare_status list_ops(tare_model *model, const bool *numbers, tare_error *err) {
    for (node *n = model->root->graph->first; n != NULL; n = n->next) {
        // Skips nodes without users, which do not contribute to the result: guards, batch counters.
        if (!tare__node_is_call(n) || n->user_count == 0 || numbers[n->id]) continue;
        // Skips the conversions in a model that is quantized already.
        if (tare__coverage_is_conversion(n) || tare__coverage_is_choice(n)) continue;
        if (tare__is_observer_node(model, n)) continue;
        n->origin = n->name;
        traced_op *op = NULL;
        TARE_TRY(add(model, n->name, tare__node_subject(model, n), &op, err));
    }
    return TARE_OK;
}

tare_status tare__coverage_begin(tare_model *model, tare_error *err) {
    if (model->op_count > 0) return TARE_OK;
    const graph *g = model->root->graph;
    bool *numbers = tare__alloc_zeroed(g->next_id + 1, sizeof *numbers);
    if (numbers == NULL) return tare__out_of_memory(err);
    tare__find_number_nodes(g, numbers);
    const tare_status status = list_ops(model, numbers, err);
    tare__free(numbers);
    return status;
}

tare_status tare__coverage_fused(tare_model *model, const char *origin, const char *into,
                                 tare_error *err) {
    traced_op *op = tare__traced_op(model, origin);
    if (op == NULL || into == NULL || strcmp(origin, into) == 0) return TARE_OK;
    const bool is_first = op->fused_into == NULL;
    if (!is_first && strcmp(op->fused_into, into) == 0) return TARE_OK;
    char *copy = tare__strdup(into);
    if (copy == NULL) return tare__out_of_memory(err);
    tare__free(op->fused_into);
    op->fused_into = copy;
    // If the operator was fused before, the previous carrier's `last` may be wrong.
    if (is_first)
        hand_last_on(model, op);
    else
        find_last(model);
    return TARE_OK;
}

void tare__coverage_set_macs(tare_model *model, const char *origin, int64_t macs) {
    traced_op *op = tare__traced_op(model, origin);
    if (op != NULL) op->macs = macs;
}

static bool is_dequantize(const node *n) {
    return (n->op == NODE_CALL_METHOD && strcmp(n->target, "dequantize") == 0) ||
           (n->op == NODE_CALL_FUNCTION && (strstr(n->target, ".dequantize_per_") != NULL ||
                                            strstr(n->target, ".dequantize_affine.") != NULL));
}

bool tare__coverage_is_quantize(const node *n) {
    return n->op == NODE_CALL_FUNCTION && (tare__starts_with(n->target, "torch.quantize_per_") ||
                                           strstr(n->target, ".quantize_per_") != NULL ||
                                           strstr(n->target, ".quantize_affine.") != NULL);
}

bool tare__coverage_is_choice(const node *n) {
    return is_choice(n) || is_item_of_choice(n);
}

bool tare__coverage_is_conversion(const node *n) {
    return tare__coverage_is_quantize(n) || is_dequantize(n);
}

static bool converts_to(const node *n, tare_dtype dtype) {
    return tare__node_op(n) == TARE_OP_TO && n->arg_count >= 2 && n->args[1].kind == VALUE_DTYPE &&
           n->args[1].as.dtype == dtype;
}

bool tare__coverage_is_arithmetic(const node *n) {
    if (!converts_to(n, TARE_INT8) && !converts_to(n, TARE_UINT8)) return false;
    const node *clamp = tare__node_arg(n, 0);
    const node *sum = tare__node_op(clamp) == TARE_OP_CLAMP ? tare__node_arg(clamp, 0) : NULL;
    return tare__node_op(sum) == TARE_OP_ADD && converts_to(tare__node_arg(sum, 0), TARE_INT32);
}

// True for an int8 constant of two dimensions, or its transpose.
static bool is_stored_in_bytes(const tare_model *model, const node *n) {
    if (OP_IS_ANY(tare__node_op(n), TARE_OP_T, TARE_OP_TRANSPOSE)) n = tare__node_arg(n, 0);
    const tare_tensor *t = n != NULL && n->op == NODE_GET_ATTR
                               ? tare__module_find_tensor(model->root, n->target)
                               : NULL;
    return t != NULL && t->ndim == 2 && t->dtype == TARE_INT8;
}

bool tare__coverage_is_byte_weight(const tare_model *model, const node *n) {
    const node *converted = tare__node_op(n) == TARE_OP_TO ? tare__node_arg(n, 0) : NULL;
    const node *reader = n->user_count == 1 ? n->users[0] : NULL;
    return converted != NULL && tare__node_op(reader) == TARE_OP_MATMUL &&
           tare__node_arg(reader, 1) == n && is_stored_in_bytes(model, converted);
}

// True for packed weights, and for a table of integers.
static bool is_packed(const tare_model *model, const node *n) {
    if (n->op != NODE_GET_ATTR) return false;
    const module *m = tare__module_find(model->root, n->target);
    const tare_tensor *t = m == NULL ? tare__module_find_tensor(model->root, n->target) : NULL;
    return m != NULL ? m->class->role == ROLE_PACKED : t != NULL && tare__tensor_is_quantized(t);
}

// True for nodes with float results. Dynamic layers compute in integers, but output floats, as does
// looking up rows of a table of integers.
static bool gives_floats(const node *n, const module *called) {
    const bool is_dynamic_function =
        n->op == NODE_CALL_FUNCTION &&
        (tare__ends_with(n->target, "_dynamic") || tare__ends_with(n->target, "_float"));
    const bool is_dynamic = called != NULL && (called->class->role == ROLE_DYNAMIC ||
                                               called->class->role == ROLE_GROUPED);
    const op_id op = called != NULL ? tare__class_op(called->class) : tare__node_op(n);
    const bool is_lookup = OP_IS_ANY(op, TARE_OP_EMBEDDING, TARE_OP_EMBEDDING_BAG);
    return is_dequantize(n) || is_dynamic || is_dynamic_function || is_lookup;
}

// State of finding the nodes with integer results. The arrays are by node id.
typedef struct integer_walk {
    const tare_model *model;
    const prepared_state *prepared;
    bool *gives_integers;
    bool reads_integers;
    bool *carries; // for exported programs: values derived from integers
    bool reads_carried;
    map left_float; // names of nodes: convert left some observed modules float
} integer_walk;

static void look_at_input(void *user, node *input) {
    integer_walk *w = user;
    if (w->gives_integers[input->id]) w->reads_integers = true;
    if (w->carries[input->id]) w->reads_carried = true;
}

// True if a node of a reference model, which computes in floats, counts as computed in integers:
// prepare observed it for that purpose, or it reads such values and is annotated.
static bool stands_for_integers(const integer_walk *w, const node *n) {
    if (w->prepared == NULL)
        return w->reads_carried && tare__annotation_takes(&w->model->annotations, n);
    const prepared_node *known = tare__prepared_node(w->prepared, n->name);
    return known != NULL && known->is_observed && tare__map_get(&w->left_float, n->name) == NULL;
}

// True for a grouped layer with int8 activations. With float inputs, weights of few bits are not an
// integer operator.
static bool multiplies_integers(const module *m) {
    const value *dtype = tare__module_config(m, "activation_dtype");
    return m->class->role == ROLE_GROUPED && dtype != NULL && dtype->kind == VALUE_DTYPE &&
           dtype->as.dtype == TARE_INT8;
}

static bool has_float_input(const node *n, const module *m) {
    const module *weighted =
        m != NULL && m->class->role == ROLE_FUSED && m->child_count > 0 ? m->children[0].module : m;
    const value *scheme = weighted != NULL ? tare__module_config(weighted, "weight_qscheme") : NULL;
    return scheme != NULL && scheme->kind == VALUE_QSCHEME &&
           tare__qscheme_is_per_group(scheme->as.qscheme) && tare__node_arg(n, 0) != NULL &&
           !is_dequantize(tare__node_arg(n, 0));
}

static void walk_node(integer_walk *w, const node *n) {
    w->reads_integers = w->reads_carried = false;
    tare__node_each_input(n, look_at_input, w);
    const module *m = tare__called_module(w->model, n);
    const bool is_integer_module =
        m != NULL && (m->class->role == ROLE_QUANTIZED || m->class->role == ROLE_DYNAMIC ||
                      multiplies_integers(m));
    // Reading the shape of an integer tensor does not count.
    const bool is_shape = tare__op_has(tare__node_row(n), OP_NOT_ON_TENSORS);
    const bool in_integers = (w->reads_integers && !is_shape) || is_integer_module;
    w->gives_integers[n->id] = tare__coverage_is_quantize(n) || is_packed(w->model, n) ||
                               (in_integers && !gives_floats(n, m));
    const bool counts = w->model->stage == TARE_STAGE_LOWERED
                            ? in_integers
                            : stands_for_integers(w, n) && !has_float_input(n, m);
    w->carries[n->id] = is_dequantize(n) || (counts && !tare__coverage_is_quantize(n));
    traced_op *op = tare__traced_op(w->model, n->origin);
    if (op != NULL && tare__node_is_call(n)) op->is_quantized = counts;
}

const traced_op *tare__traced_carrier(const tare_model *model, const traced_op *op) {
    for (size_t i = 0; op->fused_into != NULL && i < model->op_count; i++) {
        const traced_op *next = tare__traced_op(model, op->fused_into);
        if (next == NULL) break;
        op = next;
    }
    return op;
}

const char *tare_model_float_node(const tare_model *model, const char *node_name) {
    const node *n = tare__graph_find(model->root->graph, node_name);
    return n != NULL ? tare__float_node_of(model, n) : NULL;
}

const char *tare__float_node_of(const tare_model *model, const node *n) {
    if (!tare__node_is_call(n)) return NULL;
    if (model->op_count == 0) return n->name; // no pass has run: this is the float model
    const traced_op *carrier = tare__traced_op(model, n->origin);
    return carrier != NULL ? model->ops[carrier->last].name : NULL;
}

static tare_status add_inner_islands(void *user, const module *root, const node *reader,
                                     tare_error *err);

// Of a graph of the model and those inside it. In converted models the operators tell the islands.
static tare_status add_islands(tare_model *model, const module *root, tare_error *err) {
    const tare_model of = {.context = model->context,
                           .root = (module *)root, // NOLINT: only read
                           .stage = model->stage,
                           .op_names = model->op_names,
                           .ops = model->ops,
                           .op_count = model->op_count};
    arena memory = {0};
    islands found;
    const tare_status status = tare__islands_find(&of, &memory, &found, err);
    if (status == TARE_OK) {
        model->float_island_count += found.float_count;
        model->conversion_count += found.quantize_count + found.dequantize_count;
    }
    tare__arena_release(&memory);
    return status == TARE_OK ? tare__flow_each_graph(root, add_inner_islands, model, err) : status;
}

static tare_status add_inner_islands(void *user, const module *root, const node *reader,
                                     tare_error *err) {
    return add_islands(user, tare__read_graph(root, reader), err);
}

static tare_status count_islands(tare_model *model, tare_error *err) {
    model->float_island_count = model->conversion_count = 0;
    return add_islands(model, model->root, err);
}

tare_status tare__coverage_finish(tare_model *model, const prepared_state *prepared,
                                  tare_error *err) {
    integer_walk w = {.model = model, .prepared = prepared};
    w.gives_integers =
        tare__alloc_zeroed(model->root->graph->next_id + 1, sizeof *w.gives_integers);
    w.carries = tare__alloc_zeroed(model->root->graph->next_id + 1, sizeof *w.carries);
    const bool has_memory =
        w.gives_integers != NULL && w.carries != NULL &&
        tare__record_decided(&model->decisions, "left float", &w.left_float, err) == TARE_OK;
    for (const node *n = model->root->graph->first; n != NULL && has_memory; n = n->next)
        walk_node(&w, n);
    tare__free(w.gives_integers);
    tare__free(w.carries);
    tare__map_release(&w.left_float);
    if (!has_memory) return tare__out_of_memory(err);
    for (size_t i = 0; i < model->op_count; i++)
        model->ops[i].is_quantized = tare__traced_carrier(model, &model->ops[i])->is_quantized;
    return count_islands(model, err);
}

tare_status tare__coverage_copy(tare_model *to, const tare_model *from, tare_error *err) {
    for (size_t i = 0; i < from->op_count; i++) {
        traced_op *op = NULL;
        TARE_TRY(add(to, from->ops[i].name, from->ops[i].subject, &op, err));
        op->is_quantized = from->ops[i].is_quantized;
        op->macs = from->ops[i].macs;
        if (from->ops[i].fused_into != NULL &&
            (op->fused_into = tare__strdup(from->ops[i].fused_into)) == NULL)
            return tare__out_of_memory(err);
        op->last = from->ops[i].last;
    }
    return TARE_OK;
}

tare_status tare__coverage_put(tare_model *to, const traced_op *op, const char *name,
                               const char *into, tare_error *err) {
    traced_op *made = NULL;
    TARE_TRY(add(to, name, op->subject, &made, err));
    made->is_quantized = op->is_quantized;
    made->macs = op->macs;
    if (into != NULL && (made->fused_into = tare__strdup(into)) == NULL)
        return tare__out_of_memory(err);
    return TARE_OK;
}

void tare__coverage_complete(tare_model *model) {
    find_last(model);
}

void tare__coverage_move(tare_model *to, tare_model *from) {
    tare__coverage_release(to);
    to->ops = from->ops;
    to->op_names = from->op_names;
    to->op_count = from->op_count;
    to->op_capacity = from->op_capacity;
    from->ops = NULL;
    from->op_names = (map){0};
    from->op_count = from->op_capacity = 0;
}

void tare__coverage_release(tare_model *model) {
    for (size_t i = 0; i < model->op_count; i++) {
        tare__free(model->ops[i].name);
        tare__free(model->ops[i].subject);
        tare__free(model->ops[i].fused_into);
    }
    tare__free(model->ops);
    tare__map_release(&model->op_names);
}

tare_status tare__coverage_to_json(const tare_model *model, text *out, tare_error *err) {
    tare__text_char(out, '[');
    for (size_t i = 0; i < model->op_count; i++) {
        const traced_op *op = &model->ops[i];
        tare__text_append(out, i > 0 ? ",{\"name\":" : "{\"name\":");
        tare__text_json_string(out, op->name);
        tare__text_append(out, ",\"subject\":");
        tare__text_json_string(out, op->subject);
        tare__text_printf(out, ",\"quantized\":%s,\"macs\":%lld",
                          op->is_quantized ? "true" : "false", (long long)op->macs);
        if (op->fused_into != NULL) {
            tare__text_append(out, ",\"fused_into\":");
            tare__text_json_string(out, op->fused_into);
        }
        tare__text_char(out, '}');
    }
    tare__text_char(out, ']');
    return tare__text_status(out, err);
}

static tare_status read_op(tare_model *model, const json_at *at, tare_error *err) {
    static const char *const keys[] = {"name", "subject", "quantized", "macs", "fused_into", NULL};
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, err));
    TARE_TRY(tare__json_only_keys(at, keys, err));
    const json_at name = tare__json_get(at, "name"), subject = tare__json_get(at, "subject");
    const json_at quantized = tare__json_get(at, "quantized"), macs = tare__json_get(at, "macs");
    const char *name_text = NULL, *subject_text = NULL, *into_text = NULL;
    TARE_TRY(tare__json_string(&name, &name_text, err));
    TARE_TRY(tare__json_string(&subject, &subject_text, err));
    if (tare__traced_op(model, name_text) != NULL)
        return tare__json_fail(&name, err, "'%s' is listed twice", name_text);
    traced_op *op = NULL;
    TARE_TRY(add(model, name_text, subject_text, &op, err));
    TARE_TRY(tare__json_bool(&quantized, &op->is_quantized, err));
    TARE_TRY(tare__json_int(&macs, &op->macs, err));
    if (op->macs < 0) return tare__json_fail(&macs, err, "expected a number of operations");
    if (!tare__json_has(at, "fused_into")) return TARE_OK;
    const json_at into = tare__json_get(at, "fused_into");
    TARE_TRY(tare__json_string(&into, &into_text, err));
    op->fused_into = tare__strdup(into_text);
    return op->fused_into != NULL ? TARE_OK : tare__out_of_memory(err);
}

tare_status tare__coverage_from_json(tare_model *model, const json_at *at, tare_error *err) {
    TARE_TRY(tare__json_expect(at, JSON_ARRAY, err));
    for (size_t i = 0; i < json_array_size(at->value); i++) {
        const json_at item = tare__json_item(at, i);
        TARE_TRY(read_op(model, &item, err));
    }
    find_last(model);
    return TARE_OK;
}

// Counts the loops whose number of rounds depends on data, in a graph and those inside it.
static tare_status count_open_loops(const module *root, uint64_t *count, tare_error *err);

static tare_status count_inner_loops(void *user, const module *root, const node *reader,
                                     tare_error *err) {
    return count_open_loops(tare__read_graph(root, reader), user, err);
}

static tare_status count_open_loops(const module *root, uint64_t *count, tare_error *err) {
    for (const node *n = root->graph->first; n != NULL; n = n->next) {
        const flow_op *f = tare__flow_op(n);
        *count += f != NULL && f->op == TARE_OP_HIGHER_ORDER_WHILE_LOOP;
    }
    return tare__flow_each_graph(root, count_inner_loops, count, err);
}

tare_status tare_model_coverage(const tare_model *model, tare_coverage *out, tare_error *err) {
    tare_coverage c = {.struct_size = sizeof c};
    for (size_t i = 0; i < model->op_count; i++) {
        const traced_op *op = &model->ops[i];
        c.op_count++;
        c.macs += (uint64_t)op->macs;
        if (!op->is_quantized) continue;
        c.quantized_op_count++;
        c.quantized_macs += (uint64_t)op->macs;
    }
    tare_model_facts facts = {.struct_size = sizeof facts};
    TARE_TRY(tare_model_get_facts(model, &facts, err));
    c.weight_bytes = facts.weight_bytes;
    c.quantized_weight_bytes = facts.quantized_weight_bytes;
    c.float_island_count = model->float_island_count;
    c.conversion_count = model->conversion_count;
    TARE_TRY(count_open_loops(model->root, &c.open_loop_count, err));
    *out = c;
    return TARE_OK;
}
