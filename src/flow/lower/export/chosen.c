// SPDX-License-Identifier: Apache-2.0
// Dynamic quantization as ONNX defines it:
//
//   scale, zero = choose_qparams(x); q = to(clamp(round(x
// scale) + zero, least, most))
//
// becomes a quantize operator with these parameters, which is the form that convert writes. Values
// halfway between two integers may round differently.
#include "flow/export/convert.h"
#include "flow/lower/export/lower.h"

typedef struct chosen {
    node *choose, *quantized; // quantized: the final integers
    node *scale, *zero_point; // items of choose
} chosen;

static bool calls(const node *n, op_id id) {
    return n != NULL && tare__op_id(tare__node_row(n)) == id;
}

// The item that n returns, possibly converted to a dtype or reshaped to a scalar; NULL: it is none.
static node *item_behind(node *n, int64_t index) {
    while (calls(n, TARE_OP_TO) || calls(n, TARE_OP_RESHAPE)) n = tare__node_arg(n, 0);
    const bool is_item = tare__function_op(n) == TARE_OP_GETITEM && n->arg_count == 2 &&
                         n->args[1].kind == VALUE_INT && n->args[1].as.integer == index;
    return is_item ? n : NULL;
}

static bool agrees(const value *a, const value *b) {
    double x, y;
    return tare__value_number(a, &x) && tare__value_number(b, &y) && x == y;
}

// True for round(x / scale) + zero, clamped to the range of choose.
static bool read_arithmetic(node *clamp, chosen *c) {
    node *add = calls(clamp, TARE_OP_CLAMP) ? tare__node_arg(clamp, 0) : NULL;
    node *round = calls(add, TARE_OP_ADD) && add->arg_count == 2 ? tare__node_arg(add, 0) : NULL;
    node *div =
        calls(round, TARE_OP_ROUND) && round->arg_count == 1 ? tare__node_arg(round, 0) : NULL;
    if (!calls(div, TARE_OP_DIV) || div->arg_count != 2 || clamp->arg_count != 3) return false;
    c->scale = item_behind(tare__node_arg(div, 1), 0);
    c->zero_point = item_behind(tare__node_arg(add, 1), 1);
    if (c->scale == NULL || c->zero_point == NULL) return false;
    c->choose = tare__node_arg(c->scale, 0);
    return tare__function_op(c->choose) == TARE_OP_DECOMPOSED_CHOOSE_QPARAMS &&
           c->choose->arg_count == 5 && tare__node_arg(c->zero_point, 0) == c->choose &&
           tare__value_equal(&c->choose->args[0], &div->args[0]) &&
           agrees(&clamp->args[1], &c->choose->args[1]) &&
           agrees(&clamp->args[2], &c->choose->args[2]);
}

static bool read_quantize(node *n, chosen *c) {
    if (!calls(n, TARE_OP_TO) || n->arg_count != 2) return false;
    *c = (chosen){.quantized = n};
    return read_arithmetic(tare__node_arg(n, 0), c) &&
           tare__value_equal(&n->args[1], &c->choose->args[4]);
}

static tare_status become_quantize(lowering *l, const chosen *c) {
    node *n = c->quantized;
    const value *of = c->choose->args;
    const value args[] = {
        of[0], tare__node_value(c->scale), tare__node_value(c->zero_point), of[1], of[2], of[4]};
    const op_name name =
        tare__overload_name((op_overload)OVERLOAD(DECOMPOSED_QUANTIZE_PER_TENSOR, "tensor"));
    const char *target = tare__arena_strdup(&n->owner->memory, name.text);
    if (target == NULL) return tare__out_of_memory(l->p->err);
    n->op = NODE_CALL_FUNCTION;
    n->target = target;
    return tare__node_set_args(n, args, 6, NULL, 0, l->p->err);
}

// Lets a dequantize with the same parameters read them directly.
static tare_status read_items(lowering *l, node *dequantize, const chosen *c) {
    if (!tare__calls_overload(dequantize, TARE_OP_DECOMPOSED_DEQUANTIZE_PER_TENSOR, "tensor") ||
        dequantize->arg_count != 6 || item_behind(tare__node_arg(dequantize, 1), 0) != c->scale ||
        item_behind(tare__node_arg(dequantize, 2), 1) != c->zero_point)
        return TARE_OK;
    value args[6];
    for (size_t i = 0; i < 6; i++) args[i] = dequantize->args[i];
    args[1] = tare__node_value(c->scale);
    args[2] = tare__node_value(c->zero_point);
    return tare__node_set_args(dequantize, args, 6, NULL, 0, l->p->err);
}

tare_status tare__pt2e_join_chosen(lowering *l) {
    bool found = false;
    for (node *n = l->p->model->root->graph->first; n != NULL; n = n->next) {
        chosen c;
        if (!read_quantize(n, &c)) continue;
        TARE_TRY(become_quantize(l, &c));
        // A node whose arguments change moves to the end of the list.
        for (size_t i = n->user_count; i-- > 0;) TARE_TRY(read_items(l, n->users[i], &c));
        found = true;
    }
    return found ? tare__pt2e_eliminate_dead(l->p) : TARE_OK;
}
