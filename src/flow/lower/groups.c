// SPDX-License-Identifier: Apache-2.0
// Linear layers with group-wise weights, created from the quantized weights.
#include "flow/lower/groups.h"

#include <inttypes.h>

#include "core/text/text.h"
#include "ops/classes/reference.h"
#include "ops/op.h"
#include "ops/quantized/grouped.h"

const module *tare__reference_of(const module *called) {
    if (called == NULL) return NULL;
    const bool is_fused = called->class->role == ROLE_FUSED && called->child_count > 0;
    const module *m = is_fused ? called->children[0].module : called;
    return m->class->role == ROLE_REFERENCE ? m : NULL;
}

static bool has_groups(const module *reference) {
    const value *scheme = tare__module_config(reference, "weight_qscheme");
    const value *dtype = tare__module_config(reference, "weight_dtype");
    return scheme != NULL && scheme->kind == VALUE_QSCHEME &&
           tare__qscheme_is_per_group(scheme->as.qscheme) && dtype != NULL &&
           dtype->kind == VALUE_DTYPE &&
           (dtype->as.dtype == TARE_QINT8 || dtype->as.dtype == TARE_QUINT8);
}

// The tensor that n reads through choose_qparams_per_token, quantize_per_token and
// dequantize_per_token.
static node *row_quantized_input(const node *n) {
    const node *dequantize = tare__node_arg(n, 0);
    if (tare__function_op(dequantize) != TARE_OP_DECOMPOSED_DEQUANTIZE_PER_TOKEN) return NULL;
    const node *quantize = tare__node_arg(dequantize, 0);
    if (tare__function_op(quantize) != TARE_OP_DECOMPOSED_QUANTIZE_PER_TOKEN) return NULL;
    return tare__node_arg(quantize, 0);
}

static tare_status fill(module *to, const module *from, bool quantizes_input, tare_error *err) {
    const value dtype = tare__dtype_value(quantizes_input ? TARE_INT8 : TARE_FLOAT32);
    tare_tensor *weight = NULL;
    to->training =
        false; // modules of exported programs may be in training mode; an integer layer never is
    for (size_t i = 0; i < from->config_count; i++)
        if (!tare__starts_with(from->config[i].name, "weight"))
            TARE_TRY(
                tare__module_set_config(to, from->config[i].name, &from->config[i].value, err));
    TARE_TRY(tare__module_set_tensor(to, "bias", tare__module_tensor(from, "bias"), true, err));
    TARE_TRY(tare__module_set_config(to, "activation_dtype", &dtype, err));
    TARE_TRY(tare__reference_quantized(from, "weight", &weight, err));
    const tare_status status = tare__grouped_set_weight(to, weight, err);
    tare_tensor_release(weight);
    return status;
}

tare_status tare__lower_groups(pass *p, node *n) {
    const module *called = tare__called_module(p->model, n);
    const module *reference = tare__reference_of(called);
    if (reference == NULL || !has_groups(reference)) return TARE_OK;
    const module_class *class = tare__class_triple(
        &p->model->context->classes, reference->class->op, reference->class->dims, ROLE_GROUPED,
        called == reference ? FUSED_NONE : called->class->fused);
    if (class == NULL) return TARE_OK;
    node *input = row_quantized_input(n);
    module *made = NULL;
    TARE_TRY(tare__module_create(class, &made, p->err));
    TARE_TRY(
        tare__pass_put_module(p, n->target, made, fill(made, reference, input != NULL, p->err)));
    made = tare__called_module(p->model, n);
    TARE_TRY(TARE_DECIDE(
        p, n, "lowered", class->name, "%" PRId64 "-bit weights in groups of %" PRId64 ", %s",
        tare__module_int(made, "bits", 0), tare__module_int(made, "group_size", 0),
        input != NULL ? "rows of its input are quantized at run time" : "its input stays float"));
    return input != NULL ? tare__node_replace_input(n, tare__node_arg(n, 0), input, p->err)
                         : TARE_OK;
}
