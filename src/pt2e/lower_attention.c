// SPDX-License-Identifier: Apache-2.0
// Lowering of attention whose queries, keys and values are codes: scores and mixtures become sums
// of integers. Its result stays float.
#include <string.h>

#include "ops/op.h"
#include "pt2e/lower.h"

#define OWN "torch.ops.tare.scaled_dot_product_attention"

static bool is_attention(const node *n) {
    const op_info *op = n->op == NODE_CALL_FUNCTION ? tare__op_function(n->target) : NULL;
    return op != NULL && strcmp(op->id, "scaled_dot_product_attention") == 0;
}

// Queries, keys and values are codes, and nothing else is: a mask is a float or a bool.
static bool reads_codes(const lowering *l, const op_call *bound) {
    for (size_t i = 0; i < bound->param_count; i++) {
        const value *v = bound->param[i];
        const bool is_node = v != NULL && v->kind == VALUE_NODE;
        const bool has_codes = is_node && tare__codes_behind(l, v->as.node) != NULL;
        if (has_codes != (i < 3)) return false;
    }
    return true;
}

static bool drops_out(const op_call *bound) {
    const value *v = bound->param[tare__op_param_index(bound->op, "dropout_p")];
    double share = 0;
    return v != NULL && (!tare__value_number(v, &share) || share != 0);
}

static tare_status lower(lowering *l, node *n) {
    op_call bound = {.function = n->target,
                     .node_name = n->name,
                     .args = n->args,
                     .arg_count = n->arg_count,
                     .kwargs = n->kwargs,
                     .kwarg_count = n->kwarg_count,
                     .memory = &l->p->scratch};
    if (tare__call_bind(&bound, tare__op_function(n->target)) != TARE_OK ||
        !reads_codes(l, &bound) || drops_out(&bound))
        return TARE_OK;
    TARE_TRY(TARE_DECIDE(l->p, n, "lowered", OWN, "computed in integers by %s", OWN));
    n->target = OWN; // its arguments are the float one's
    return tare__read_codes(l, n);
}

tare_status tare__pt2e_lower_attention(lowering *l) {
    for (node *n = l->p->model->root->graph->first; n != NULL; n = n->next)
        if (is_attention(n)) TARE_TRY(tare__at(l->p->err, lower(l, n), "node '%s'", n->name));
    return TARE_OK;
}
