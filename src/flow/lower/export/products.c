// SPDX-License-Identifier: Apache-2.0
// Lowering of products of two quantized tensors with a float result: matmul, and attention, whose
// scores and weighted sums are computed with integers.
#include "flow/lower/export/lower.h"

// The row of such a product with a float result; NULL: there is none.
static const op_info *product_of(const node *n) {
    static const op_form forms[] = {FORM_FLOAT_RESULT, FORM_QUANTIZED};
    const op_info *op = tare__function_row(n);
    for (size_t i = 0; op != NULL && i < sizeof forms / sizeof *forms; i++) {
        const op_info *row = tare__op_form(op, forms[i]);
        if (row != NULL && row->quantized_inputs > 0) return row;
    }
    return NULL;
}

// True if the operands are quantized and nothing else is: a mask is a float or a bool.
static bool reads_quantized(const lowering *l, const op_call *bound, int quantized_count) {
    for (size_t i = 0; i < bound->param_count; i++) {
        const value *v = bound->param[i];
        const bool is_node = v != NULL && v->kind == VALUE_NODE;
        const bool has_quantized = is_node && tare__quantized_behind(l, v->as.node) != NULL;
        if (has_quantized != ((int)i < quantized_count)) return false;
    }
    return true;
}

// A product with a quantized result has a function of its own (export/operators.c).
static bool stays_float(lowering *l, const op_call *bound, const node *n, const op_info *row) {
    return tare__op_form(bound->op, FORM_QUANTIZED) == row ||
           tare__ending_of(l, n).quantize == NULL;
}

static bool drops_out(const function_call *call) {
    const value *v = tare__function_argument(call, "dropout_p");
    double share = 0;
    return v != NULL && (!tare__value_number(v, &share) || share != 0);
}

static tare_status lower(lowering *l, node *n, const op_info *row) {
    function_call call;
    if (!tare__function_bind(&l->p->scratch, n, &call) ||
        !reads_quantized(l, &call.bound, row->quantized_inputs) || drops_out(&call) ||
        !stays_float(l, &call.bound, n, row))
        return TARE_OK;
    const char *target = tare__arena_strdup(&n->owner->memory, tare__op_function_name(row).text);
    if (target == NULL) return tare__out_of_memory(l->p->err);
    TARE_TRY(TARE_DECIDE(l->p, n, "lowered", target, "computed in integers by %s", target));
    n->target = target; // its arguments are those of the float function
    return tare__read_quantized(l, n);
}

tare_status tare__pt2e_lower_products(lowering *l) {
    for (node *n = l->p->model->root->graph->first; n != NULL; n = n->next) {
        const op_info *row = product_of(n);
        if (row != NULL) TARE_TRY(tare__at(l->p->err, lower(l, n, row), "node '%s'", n->name));
    }
    return TARE_OK;
}
