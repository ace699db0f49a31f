// SPDX-License-Identifier: Apache-2.0
// Quantizing commutes with what only moves values and with the greatest of them: a quantize behind
// such operators moves in front of them, to the operator that can give quantized values.

#include "flow/lower/export/lower.h"

// A dropout outside of training.
static bool is_idle(const node *n) {
    return n->arg_count == 3 && n->args[2].kind == VALUE_BOOL && !n->args[2].as.boolean;
}

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

// Sizes of a view may be nodes, where dimensions are open.
static bool has_one_tensor(const node *n) {
    extra_inputs extra = {.first = tare__node_arg(n, 0), .are_sizes = true};
    tare__node_each_input(n, look_for_sizes, &extra);
    return extra.first != NULL && extra.are_sizes;
}

// One tensor in, the same values out, or the greatest of some. Not an item, whose input are many.
static bool commutes(const node *n) {
    const op_info *op = tare__function_row(n);
    if (op == NULL || !has_one_tensor(n) || tare__op_id(op) == TARE_OP_GETITEM) return false;
    const unsigned moves = OP_MOVES_DATA | OP_KEEPS_QPARAMS;
    const bool is_plain = (op->traits & (OP_NOT_ON_TENSORS | OP_SHAPED_BY_DATA)) == 0;
    return is_plain && (tare__op_id(op) != TARE_OP_DROPOUT || is_idle(n)) &&
           ((op->traits & moves) == moves || tare__op_has(op, OP_GREATEST));
}

static void look(void *user, node *input) {
    if (tare__is_dequantize_node(input)) *(bool *)user = true;
}

// Will it give quantized values where it is asked for them? A bound is looked through.
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
    while (n != NULL && commutes(n) && tare__only_reader(n) != NULL) {
        first = n;
        n = tare__node_arg(n, 0);
    }
    *top = n;
    if (first == NULL || n == NULL) return NULL;
    // What is dequantized may have more readers.
    const bool fits = tare__quantized_behind(l, n) != NULL ||
                      (tare__only_reader(n) == first && can_give_quantized(n));
    return fits ? first : NULL;
}

// The operators from `first` to `last` work on quantized values of `of`.
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

// What is dequantized in front of such operators is dequantized behind them, where quantizing it
// again is a matter of quantized values alone.
static tare_status sink(lowering *l, node *quantize, node *top, node *first) {
    tare_error *err = l->p->err;
    node *last = tare__node_arg(quantize, 0), *quantized = tare__node_arg(top, 0), *made = NULL;
    const quantized_params params = *tare__quantized_given(l, quantized);
    TARE_TRY(take_quantized(l, first, last, quantized, &params));
    TARE_TRY(tare__node_replace_input(first, top, quantized, err));
    TARE_TRY(tare__insert_dequantize(l->p, last, quantize, &made));
    return tare__node_replace_input(quantize, last, made, err);
}

tare_status tare__pt2e_lift_quantize(lowering *l) {
    for (node *n = l->p->model->root->graph->first, *next; n != NULL; n = next) {
        next = n->next;
        node *top = NULL;
        if (!tare__is_quantize_node(n) || tare__quantized_given(l, n) == NULL) continue;
        node *first = find_chain(l, n, &top);
        if (first == NULL) continue;
        const bool is_quantized = tare__quantized_behind(l, top) != NULL;
        // A single operator between quantized values is lowered as such.
        if (is_quantized && first == tare__node_arg(n, 0)) continue;
        TARE_TRY(is_quantized ? sink(l, n, top, first) : lift(l, n, top, first));
    }
    return TARE_OK;
}
