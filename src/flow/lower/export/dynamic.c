// SPDX-License-Identifier: Apache-2.0
// Lowering without static activations: linear functions with a dynamically quantized input, and
// embeddings.
#include <string.h>

#include "flow/export/convert.h"
#include "flow/lower/export/lower.h"
#include "ops/quantized/quantize.h"

// --- choose_qparams - quantize - dequantize - linear ---

// The float tensor behind a dynamic dequantize, and the choose_qparams node.
typedef struct dynamic_input {
    const node *choose;
    const value *tensor;
    bool is_symmetric;
} dynamic_input;

static bool is_item(const node *n, const node *of, int64_t index) {
    return n != NULL && tare__function_op(n) == TARE_OP_GETITEM && tare__node_arg(n, 0) == of &&
           n->arg_count == 2 && n->args[1].kind == VALUE_INT && n->args[1].as.integer == index;
}

// True if x, scale, zero point, least, most and dtype are all those of the choose_qparams node.
static bool agrees(const node *n, const node *choose) {
    static const size_t range[] = {1, 2, 4}; // of choose: least, most, dtype
    if (n->arg_count != 6 || n->kwarg_count > 0 || !is_item(tare__node_arg(n, 1), choose, 0) ||
        !is_item(tare__node_arg(n, 2), choose, 1))
        return false;
    for (size_t i = 0; i < 3; i++)
        if (!tare__value_equal(&n->args[3 + i], &choose->args[range[i]])) return false;
    return true;
}

static bool read_chain(const node *dequantize, dynamic_input *out) {
    const node *quantize = dequantize != NULL ? tare__node_arg(dequantize, 0) : NULL;
    if (quantize == NULL ||
        !tare__calls_overload(dequantize, TARE_OP_DECOMPOSED_DEQUANTIZE_PER_TENSOR, "tensor") ||
        !tare__calls_overload(quantize, TARE_OP_DECOMPOSED_QUANTIZE_PER_TENSOR, "tensor"))
        return false;
    const node *scale = tare__node_arg(quantize, 1);
    const node *choose = scale != NULL ? tare__node_arg(scale, 0) : NULL;
    const op_id chooser = tare__function_op(choose);
    const bool is_symmetric = chooser == TARE_OP_DECOMPOSED_CHOOSE_QPARAMS_SYMMETRIC;
    if (!is_symmetric && chooser != TARE_OP_DECOMPOSED_CHOOSE_QPARAMS) return false;
    if (choose == NULL || choose->arg_count != 5 || !agrees(quantize, choose) ||
        !agrees(dequantize, choose))
        return false;
    *out = (dynamic_input){choose, &choose->args[0], is_symmetric};
    return tare__value_equal(&quantize->args[0], &choose->args[0]);
}

static tare_status lower_linear(lowering *l, const function_call *w, const dynamic_input *in) {
    node *n = w->function, *relu = tare__only_reader(n);
    const value *args = in->choose->args;
    module *packed = NULL;
    TARE_TRY(tare__lower_pack(l, w, NULL, &packed));
    if (packed == NULL) return TARE_OK;
    const bool has_relu = tare__function_op(relu) == TARE_OP_RELU;
    const op_form form = has_relu ? FORM_DECOMPOSED_DYNAMIC_RELU : FORM_DECOMPOSED_DYNAMIC;
    packed_call call = {.n = n,
                        .before = n,
                        .form = tare__weighted_form(w, form),
                        .args = {*in->tensor, tare__none(), args[1], args[2], args[3], args[4],
                                 tare__bool(in->is_symmetric)},
                        .arg_count = 7,
                        .weights = 1};
    TARE_TRY(tare__call_packed(l->p, w, packed, &call));
    return has_relu ? tare__absorb_relu(l->p, relu, n) : TARE_OK;
}

// --- tables ---

// A table per row in the form that embedding operators take.
static bool is_table(const tare_tensor *quantized, const tare_tensor *scales,
                     const tare_tensor *zero_points, const value *axis) {
    double a;
    return (quantized->dtype == TARE_UINT8 || quantized->dtype == TARE_INT8) &&
           quantized->ndim == 2 && tare__value_number(axis, &a) && a == 0 &&
           scales->count == quantized->shape[0] && zero_points->count == quantized->shape[0];
}

static tare_status make_table(lowering *l, tare_tensor *const tensors[3], const value *axis,
                              tare_tensor **out) {
    const tare_tensor *quantized = tensors[0], *scales = tensors[1], *zero_points = tensors[2];
    if (quantized == NULL || scales == NULL || zero_points == NULL ||
        !is_table(quantized, scales, zero_points, axis))
        return TARE_OK;
    qparams *q = NULL;
    tare_tensor *floats = NULL;
    TARE_TRY(tare_tensor_to_float(zero_points, &floats, l->p->err));
    tare_status status = tare__qparams_from_tensors(
        scales, floats, quantized->dtype == TARE_INT8 ? TARE_QINT8 : TARE_QUINT8, 0, &q, NULL);
    // A table with scales that quantized tensors cannot have stays float.
    const bool is_refused = status == TARE_INVALID_ARGUMENT;
    if (is_refused) status = TARE_OK;
    if (status != TARE_OK) status = tare__out_of_memory(l->p->err);
    if (status == TARE_OK && !is_refused)
        status = tare__tensor_requalify(quantized, q, out, l->p->err);
    tare_tensor_release(floats);
    tare__qparams_release(q);
    return status;
}

// Reads a new buffer in place of the dequantize.
static tare_status read_table(lowering *l, node *dequantize, tare_tensor *table) {
    const char *name = NULL;
    TARE_TRY(tare__own_buffer(l, "_quantized_table_", table, &name));
    TARE_TRY(tare__node_set_args(dequantize, NULL, 0, NULL, 0, l->p->err));
    dequantize->op = NODE_GET_ATTR;
    dequantize->target = name;
    return TARE_OK;
}

static bool is_embedding(const node *n) {
    return OP_IS_ANY(tare__function_op(n), TARE_OP_EMBEDDING, TARE_OP_EMBEDDING_BAG);
}

static tare_status lower_embedding(lowering *l, const node *n) {
    node *dequantize = tare__node_arg(n, 0);
    if (!tare__calls_overload(dequantize, TARE_OP_DECOMPOSED_DEQUANTIZE_PER_CHANNEL, "default") ||
        dequantize->arg_count < 4)
        return TARE_OK;
    for (size_t i = 0; i < dequantize->user_count; i++)
        if (!is_embedding(dequantize->users[i])) return TARE_OK;
    tare_tensor *tensors[3] = {NULL}, *table = NULL;
    TARE_TRY(tare__pass_fold_tensors(l->p, dequantize->args, 3, dequantize, tensors));
    tare_status status = make_table(l, tensors, &dequantize->args[3], &table);
    if (table != NULL && status == TARE_OK)
        status = TARE_DECIDE(l->p, n, "lowered", n->target, "its rows are looked up as integers");
    if (table != NULL && status == TARE_OK) status = read_table(l, dequantize, table);
    for (size_t i = 0; i < 3; i++) tare_tensor_release(tensors[i]);
    tare_tensor_release(table);
    return status;
}

tare_status tare__pt2e_lower_dynamic(lowering *l) {
    for (node *n = l->p->model->root->graph->first; n != NULL; n = n->next) {
        function_call w;
        dynamic_input in;
        if (is_embedding(n))
            TARE_TRY(tare__at(l->p->err, lower_embedding(l, n), "node '%s'", n->name));
        else if (tare__weighted_bind(&l->p->scratch, n, &w) &&
                 tare__weighted_form(&w, FORM_DECOMPOSED_DYNAMIC) != NULL &&
                 read_chain(tare__function_argument_node(&w, "input"), &in))
            TARE_TRY(tare__at(l->p->err, lower_linear(l, &w, &in), "node '%s'", n->name));
    }
    return TARE_OK;
}
