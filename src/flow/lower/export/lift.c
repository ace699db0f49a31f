// SPDX-License-Identifier: Apache-2.0
// Quantizing commutes with operators that only move values, and with maxima. A quantize behind such
// operators is moved before them, to the operator that can return quantized values; a dequantize
// before them is moved behind them, to an operator that takes quantized values. Equal quantizes of
// a value are merged.

#include "flow/export/convert.h"
#include "flow/lower/export/lower.h"

enum { LONGEST_CHAIN = 64 }; // operators in a chain that are followed

typedef struct extra_inputs {
    const node *first;
    bool are_sizes;
} extra_inputs;

static void look_for_sizes(void *user, node *input) {
    extra_inputs *x = user;
    const op_info *op = tare__function_row(input);
    if (input != x->first && (op == NULL || (op->traits & OP_NOT_ON_TENSORS) == 0))
        x->are_sizes = false;
}

// If dimensions are open, sizes of a view can be nodes.
static bool has_one_tensor(const node *n) {
    extra_inputs extra = {.first = tare__node_arg(n, 0), .are_sizes = true};
    tare__node_each_input(n, look_for_sizes, &extra);
    return extra.first != NULL && extra.are_sizes;
}

// One input tensor, whose values or maxima it returns. Not an item of a tuple, whose input is
// several tensors.
static bool commutes(const node *n) {
    const op_info *op = tare__function_row(n);
    if (op == NULL || !has_one_tensor(n) || tare__op_id(op) == TARE_OP_GETITEM) return false;
    const unsigned moves = OP_MOVES_DATA | OP_KEEPS_QPARAMS;
    const bool is_plain = (op->traits & (OP_NOT_ON_TENSORS | OP_SHAPED_BY_DATA)) == 0;
    return is_plain && ((op->traits & moves) == moves || tare__op_has(op, OP_GREATEST));
}

static bool gives_slices(const node *n) {
    return OP_IS_ANY(tare__function_op(n), TARE_OP_CHUNK, TARE_OP_SPLIT, TARE_OP_UNBIND);
}

static void look(void *user, node *input) {
    if (tare__is_dequantize_node(input)) *(bool *)user = true;
}

// True if n can return quantized values. Looks through a clamp.
static bool can_give_quantized(const node *n) {
    bool reads_quantized = false;
    if (tare__op_has(tare__function_row(n), OP_BOUNDS) && tare__node_arg(n, 0) != NULL)
        n = tare__node_arg(n, 0);
    if (tare__function_row(n) != NULL) tare__node_each_input(n, look, &reads_quantized);
    return reads_quantized;
}

// The first of the operators between `top` and the quantize; NULL: none.
static node *find_chain(const lowering *l, const node *quantize, node **top) {
    node *first = NULL, *n = tare__node_arg(quantize, 0);
    while (n != NULL && commutes(n) && !gives_slices(n) && tare__only_reader(n) != NULL) {
        first = n;
        n = tare__node_arg(n, 0);
    }
    *top = n;
    if (first == NULL || n == NULL) return NULL;
    // A dequantized value may have more readers.
    const bool fits = tare__quantized_behind(l, n) != NULL ||
                      (tare__only_reader(n) == first && can_give_quantized(n));
    return fits ? first : NULL;
}

// Makes the operators from `first` to `last` work on quantized values with the parameters of `of`.
static tare_status take_quantized(lowering *l, node *first, const node *last, const node *of,
                                  const quantized_params *params) {
    for (node *n = first;; n = tare__only_reader(n)) {
        TARE_TRY(tare__write_nothing(l, n));
        TARE_TRY(tare__note_quantized(l, n, params));
        TARE_TRY(TARE_DECIDE(l->p, n, "lowered", n->target, "computed on the integers of '%s'",
                             of->name));
        if (n == last) return TARE_OK;
    }
}

static tare_status lift(lowering *l, node *quantize, node *top, node *first) {
    tare_error *err = l->p->err;
    node *last = tare__node_arg(quantize, 0);
    const quantized_params params = *tare__quantized_given(l, quantize);
    TARE_TRY(take_quantized(l, first, last, top, &params));
    TARE_TRY(tare__node_replace_uses(quantize, last, NULL, err));
    TARE_TRY(tare__node_replace_input(quantize, last, top, err));
    TARE_TRY(tare__node_replace_input(first, top, quantize, err));
    tare__graph_move_before(quantize, top->next);
    quantize->debug_handle = top->debug_handle;
    return TARE_OK;
}

// Moves a dequantize behind such operators if requantizing there only needs quantized values.
static tare_status sink(lowering *l, node *quantize, node *top, node *first) {
    tare_error *err = l->p->err;
    node *last = tare__node_arg(quantize, 0), *quantized = tare__node_arg(top, 0), *made = NULL;
    const quantized_params params = *tare__quantized_given(l, quantized);
    TARE_TRY(take_quantized(l, first, last, quantized, &params));
    TARE_TRY(tare__node_replace_input(first, top, quantized, err));
    TARE_TRY(tare__insert_dequantize(l->p, last, quantize, &made));
    return tare__node_replace_input(quantize, last, made, err);
}

// --- one quantize ---

// Some tools write a quantize for each reader.
static tare_status merge_equal(lowering *l, const node *quantize) {
    const quantized_params *own = tare__quantized_given(l, quantize);
    const node *x = tare__node_arg(quantize, 0);
    for (size_t i = x != NULL ? x->user_count : 0; i-- > 0;) {
        node *other = x->users[i];
        const quantized_params *params = tare__quantized_given(l, other);
        if (other == quantize || !tare__is_quantize_node(other) || params == NULL ||
            tare__node_arg(other, 0) != x || !tare__quantized_params_equal(params, own))
            continue;
        TARE_TRY(tare__node_replace_uses(other, (node *)quantize, NULL, l->p->err));
    }
    return TARE_OK;
}

tare_status tare__pt2e_merge_quantize(lowering *l) {
    for (node *n = l->p->model->root->graph->first; n != NULL; n = n->next)
        if (n->user_count > 0 && tare__is_quantize_node(n) && tare__quantized_given(l, n) != NULL)
            TARE_TRY(merge_equal(l, n));
    return tare__pt2e_eliminate_dead(l->p);
}

// --- dequantizes ---

typedef struct uniform {
    const lowering *l;
    const quantized_params *params; // of the first operand
    bool differs;                   // or an operand is no dequantize
} uniform;

static void look_for_params(void *user, node *input) {
    uniform *u = user;
    const quantized_params *params = tare__quantized_behind(u->l, input);
    if (u->params == NULL) u->params = params;
    u->differs = u->differs || params == NULL || !tare__quantized_params_equal(params, u->params);
}

static bool joins_equals(const lowering *l, const node *n) {
    uniform u = {.l = l};
    if (!OP_IS_ANY(tare__function_op(n), TARE_OP_CAT, TARE_OP_STACK)) return false;
    tare__node_each_input(n, look_for_params, &u);
    return u.params != NULL && !u.differs;
}

static bool is_read_by_items(const node *n) {
    for (size_t i = 0; i < n->user_count; i++)
        if (tare__function_op(n->users[i]) != TARE_OP_GETITEM) return false;
    return true;
}

// True if the result consists of input values, or maxima of them and 0. An item of a tensor is a
// slice of it.
static bool may_pass(const node *n) {
    const op_id id = tare__function_op(n);
    if (id == TARE_OP_GETITEM || id == TARE_OP_RELU) return n->input_count == 1;
    return OP_IS_ANY(id, TARE_OP_CAT, TARE_OP_STACK) ||
           (commutes(n) && (!gives_slices(n) || is_read_by_items(n)));
}

static bool passes_quantized(const lowering *l, const node *n) {
    const node *x = tare__node_arg(n, 0);
    if (!may_pass(n)) return false;
    if (joins_equals(l, n)) return true;
    return tare__quantized_behind(l, x) != NULL &&
           (!tare__writes_first_argument(n) || x->user_count == 1);
}

static bool takes_quantized(lowering *l, node *reader, const node *n) {
    function_call w;
    if (tare__is_quantize_node(reader) || tare__ending_of(l, reader).quantize != NULL) return true;
    if (!tare__weighted_bind(&l->p->scratch, reader, &w)) return false;
    const node *weight = tare__function_argument_node(&w, "weight");
    return tare__function_argument_node(&w, "input") == n &&
           (tare__is_dequantize_call(weight) || tare__is_dequantize_node(weight));
}

// True if some reader of this float value, possibly behind other such operators, computes with
// integers if its input is quantized.
static bool wants_quantized(lowering *l, node *n, int depth) {
    for (size_t i = 0; i < n->user_count; i++) {
        node *reader = n->users[i];
        if (takes_quantized(l, reader, n)) return true;
        if (depth < LONGEST_CHAIN && may_pass(reader) && wants_quantized(l, reader, depth + 1))
            return true;
    }
    return false;
}

// Adds a dequantize for the readers of a value that is quantized now.
static tare_status dequantize_behind(lowering *l, node *n, const quantized_params *params) {
    node *made = NULL;
    TARE_TRY(tare__note_quantized(l, n, params));
    TARE_TRY(tare__insert_dequantize(l->p, n, n->next, &made));
    return tare__node_replace_uses(n, made, made, l->p->err);
}

static tare_status pass_quantized(lowering *l, node *n) {
    uniform u = {.l = l};
    tare__node_each_input(n, look_for_params, &u);
    const quantized_params params = *u.params;
    TARE_TRY(tare__write_nothing(l, n));
    TARE_TRY(TARE_DECIDE(l->p, n, "lowered", n->target, "computed on integers"));
    TARE_TRY(tare__read_quantized(l, n));
    if (!gives_slices(n)) return dequantize_behind(l, n, &params);
    for (size_t i = 0; i < n->user_count; i++) {
        node *item = n->users[i];
        TARE_TRY(TARE_DECIDE(l->p, item, "lowered", item->target, "a part of integers"));
        TARE_TRY(dequantize_behind(l, item, &params));
    }
    return TARE_OK;
}

tare_status tare__pt2e_sink_dequantize(lowering *l) {
    for (node *n = l->p->model->root->graph->first; n != NULL; n = n->next) {
        // A single operator between quantized values is lowered by another step.
        if (n->op != NODE_CALL_FUNCTION || tare__ending_of(l, n).quantize != NULL) continue;
        if (passes_quantized(l, n) && wants_quantized(l, n, 0)) TARE_TRY(pass_quantized(l, n));
    }
    return TARE_OK;
}

// --- quantizes ---

tare_status tare__pt2e_lift_quantize(lowering *l) {
    for (node *n = l->p->model->root->graph->first, *next; n != NULL; n = next) {
        next = n->next;
        node *top = NULL;
        if (!tare__is_quantize_node(n) || tare__quantized_given(l, n) == NULL) continue;
        node *first = find_chain(l, n, &top);
        if (first == NULL) continue;
        const bool is_quantized = tare__quantized_behind(l, top) != NULL;
        // A single operator between quantized values is lowered by another step.
        if (is_quantized && first == tare__node_arg(n, 0)) continue;
        TARE_TRY(is_quantized ? sink(l, n, top, first) : lift(l, n, top, first));
    }
    return TARE_OK;
}
