// SPDX-License-Identifier: Apache-2.0
// Lowering of products of two tensors of codes whose result is read as floats: matmul, and
// attention, whose scores and mixtures become sums of integers.
#include <string.h>

#include "flow/lower/export/lower.h"
#include "ops/op.h"

typedef struct product_row {
    const char *op, *target;
    size_t code_count; // parameters that are codes: the first ones
} product_row;

static const product_row rows[] = {
    {"scaled_dot_product_attention", "torch.ops.tare.scaled_dot_product_attention", 3},
    {"matmul", "torch.ops.tare.matmul_float", 2},
};

static const product_row *row_of(const node *n) {
    const op_info *op = n->op == NODE_CALL_FUNCTION ? tare__op_function(n->target) : NULL;
    for (size_t i = 0; op != NULL && i < sizeof rows / sizeof *rows; i++)
        if (strcmp(op->id, rows[i].op) == 0) return &rows[i];
    return NULL;
}

// The operands are codes, and nothing else is: a mask is a float or a bool.
static bool reads_codes(const lowering *l, const op_call *bound, size_t code_count) {
    for (size_t i = 0; i < bound->param_count; i++) {
        const value *v = bound->param[i];
        const bool is_node = v != NULL && v->kind == VALUE_NODE;
        const bool has_codes = is_node && tare__codes_behind(l, v->as.node) != NULL;
        if (has_codes != (i < code_count)) return false;
    }
    return true;
}

// A product that becomes codes has a function of its own (export/operators.c).
static bool stays_float(lowering *l, const node *n, const product_row *row) {
    return row->code_count > 2 || tare__ending_of(l, n).quantize == NULL;
}

static bool drops_out(const op_call *bound) {
    const size_t i = tare__op_param_index(bound->op, "dropout_p");
    const value *v = i < bound->param_count ? bound->param[i] : NULL;
    double share = 0;
    return v != NULL && (!tare__value_number(v, &share) || share != 0);
}

static tare_status lower(lowering *l, node *n, const product_row *row) {
    op_call bound = {.function = n->target,
                     .node_name = n->name,
                     .args = n->args,
                     .arg_count = n->arg_count,
                     .kwargs = n->kwargs,
                     .kwarg_count = n->kwarg_count,
                     .memory = &l->p->scratch};
    if (tare__call_bind(&bound, tare__op_function(n->target)) != TARE_OK ||
        !reads_codes(l, &bound, row->code_count) || drops_out(&bound) || !stays_float(l, n, row))
        return TARE_OK;
    TARE_TRY(
        TARE_DECIDE(l->p, n, "lowered", row->target, "computed in integers by %s", row->target));
    n->target = row->target; // its arguments are the float one's
    return tare__read_codes(l, n);
}

tare_status tare__pt2e_lower_products(lowering *l) {
    for (node *n = l->p->model->root->graph->first; n != NULL; n = n->next) {
        const product_row *row = row_of(n);
        if (row != NULL) TARE_TRY(tare__at(l->p->err, lower(l, n, row), "node '%s'", n->name));
    }
    return TARE_OK;
}
