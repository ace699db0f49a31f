// SPDX-License-Identifier: Apache-2.0
// Records for each operator that stays float why it does.
#include <stdio.h>
#include <string.h>

#include "flow/export/convert.h"
#include "flow/lower/export/lower.h"
#include "model/coverage.h"
#include "ops/flow_op.h"

static bool was_lowered(const lowering *l, const node *n) {
    const record *r = &l->p->model->decisions;
    for (size_t i = r->count; i-- > 0;)
        if (strcmp(r->items[i].pass, l->p->name) == 0 && strcmp(r->items[i].node, n->name) == 0 &&
            strcmp(r->items[i].decision, "lowered") == 0)
            return true;
    return false;
}

// True for a dequantize of values that lowering does not support: 16 bits, float8, computed
// parameters.
static bool is_other_quantize(const node *n) {
    const node *quantized = n != NULL && tare__is_dequantize_call(n) ? tare__node_arg(n, 0) : NULL;
    return quantized != NULL && quantized->op != NODE_GET_ATTR;
}

// True for a quantize with a scale and zero point per channel.
static bool is_per_channel(const node *n) {
    return tare__is_dequantize_node(n) &&
           tare__function_op(tare__node_arg(n, 0)) == TARE_OP_QUANTIZE_PER_CHANNEL;
}

typedef struct inputs {
    const lowering *l;
    const node *real; // the first float input
    size_t quantized_count;
    tare_dtype dtype;
    bool mixes_dtypes;
} inputs;

static void look(void *user, node *input) {
    inputs *in = user;
    const quantized_params *quantized = tare__quantized_behind(in->l, input);
    const bool is_constant = input->op == NODE_GET_ATTR ||
                             (tare__is_dequantize_call(input) && !is_other_quantize(input));
    if (quantized == NULL && !is_constant && in->real == NULL) in->real = input;
    if (quantized == NULL) return;
    in->mixes_dtypes =
        in->mixes_dtypes || (in->quantized_count > 0 && in->dtype != quantized->dtype);
    in->dtype = quantized->dtype;
    in->quantized_count++;
}

static tare_status say(const lowering *l, const node *n, const char *rule, const char *format,
                       const char *name) {
    char reason[256];
    (void)snprintf(reason, sizeof reason, format, name);
    return TARE_DECIDE(l->p, n, "left float", rule, "%s", reason);
}

static tare_status explain_layer(const lowering *l, const function_call *w) {
    const node *n = w->function, *x = tare__function_argument_node(w, "input");
    const node *weight = tare__function_argument_node(w, "weight");
    const bool has_quantized =
        weight != NULL && (tare__is_dequantize_call(weight) || tare__is_dequantize_node(weight));
    if (!has_quantized)
        return say(l, n, "weight", "its weight '%s' is float", weight ? weight->name : "");
    if (is_other_quantize(x))
        return say(l, n, "dtypes", "its input '%s' has no 8-bit values of its own", x->name);
    if (is_per_channel(x))
        return say(l, n, "dtypes",
                   "its input '%s' has a scale and a zero point for each channel, which only a "
                   "depthwise convolution supports, with equal zero points",
                   x->name);
    if (tare__quantized_behind(l, x) == NULL)
        return say(l, n, "inputs", "its input '%s' is float: only its weight is quantized",
                   x != NULL ? x->name : "");
    return say(l, n, "weight",
               "its weight '%s' is not an 8-bit constant with a single scale or one per output "
               "channel, or its bias or sizes are computed",
               weight->name);
}

// Explains embeddings, and modules without a function.
static tare_status explain_table(const lowering *l, const node *n) {
    const module *m = n->op == NODE_CALL_MODULE ? tare__called_module(l->p->model, n) : NULL;
    const node *x = tare__node_arg(n, 0);
    if (m == NULL || tare__op_id(tare__class_row(m->class)) == TARE_OP_EMBEDDING)
        return say(l, n, "weight", "the rows of its table are looked up as floats%s", "");
    if (m->class->role == ROLE_FLOAT && tare__module_tensor(m, "weight") != NULL)
        return say(l, n, "weight", "the weight of module '%s' is float", n->target);
    if (tare__quantized_behind(l, x) == NULL && x != NULL)
        return say(l, n, "inputs", "its input '%s' is float", x->name);
    return say(l, n, "operator", "there is no integer function for the class of module '%s'",
               n->target);
}

static tare_status explain(lowering *l, node *n) {
    function_call w;
    inputs in = {.l = l};
    if (tare__flow_op(n) != NULL) return say(l, n, "control flow", FLOW_REASON "%s", "");
    if (tare__weighted_bind(&l->p->scratch, n, &w)) return explain_layer(l, &w);
    if (OP_IS_ANY(tare__function_op(n), TARE_OP_EMBEDDING, TARE_OP_EMBEDDING_BAG) ||
        n->op == NODE_CALL_MODULE)
        return explain_table(l, n);
    tare__node_each_input(n, look, &in);
    if (is_other_quantize(in.real))
        return say(l, n, "dtypes", "its input '%s' has no 8-bit values of its own", in.real->name);
    if (in.quantized_count == 0 && in.real != NULL)
        return say(l, n, "inputs", "its input '%s' is float", in.real->name);
    if (in.quantized_count == 0)
        return say(l, n, "inputs", "none of its inputs is quantized%s", "");
    const ending e = tare__ending_of(l, n);
    if (e.quantize == NULL)
        return say(l, n, "readers", "'%s' reads its value as float",
                   n->user_count > 0 ? n->users[0]->name : "nothing");
    if (in.real != NULL) return say(l, n, "inputs", "its input '%s' is float", in.real->name);
    if (in.mixes_dtypes || in.dtype != tare__quantized_given(l, e.quantize)->dtype)
        return say(l, n, "dtypes", "its inputs and its output '%s' have different dtypes",
                   e.quantize->name);
    if (tare__writes_first_argument(n) && tare__node_arg(n, 0) != NULL &&
        tare__node_arg(n, 0)->user_count > 1)
        return say(l, n, "in place", "it writes in place to '%s', which other nodes read",
                   tare__node_arg(n, 0)->name);
    return say(l, n, "operator", "there is no integer function for %s with these arguments",
               n->target);
}

tare_status tare__pt2e_explain_floats(lowering *l) {
    for (node *n = l->p->model->root->graph->first; n != NULL; n = n->next) {
        const bool is_operator =
            tare__traced_op(l->p->model, n->origin) != NULL ||
            (n->op == NODE_CALL_FUNCTION && tare__aten_name(n->target) != NULL);
        if (is_operator && !was_lowered(l, n) && !tare__pt2e_stays_float(l->p, n))
            TARE_TRY(explain(l, n));
    }
    return TARE_OK;
}
