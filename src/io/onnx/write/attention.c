// SPDX-License-Identifier: Apache-2.0
// Attention as ONNX: query and key are scaled by the root of the scale each, as torch's exporters
// write it.
#include <math.h>

#include "io/onnx/write/rules.h"
#include "ops/layer_call.h"

// Lower triangle: what a query may look at.
static const char *causal_mask(onnx_out *o, const attention_call *a) {
    const int64_t shape[] = {a->queries, a->keys};
    tare_tensor *t = NULL;
    if (tare__out_failed(o)) return "";
    tare__out_try(o, tare_tensor_create(TARE_FLOAT32, 2, shape, &t, tare__out_call(o)->err));
    for (int64_t i = 0; t != NULL && i < t->count; i++)
        tare__f32(t)[i] = i % a->keys > i / a->keys ? -INFINITY : 0.0F;
    const char *name = t != NULL ? tare__out_constant(o, t, "causal_mask") : "";
    tare_tensor_release(t);
    return name;
}

static const char *mask_of(onnx_out *o, const attention_call *a) {
    if (a->is_causal) return causal_mask(o, a);
    if (a->mask == NULL) return "";
    const char *mask = tare__out_input(o, 3);
    if (a->mask->dtype == TARE_FLOAT32) return mask;
    mask = tare__out_cast(o, mask, a->mask->dtype, TARE_BOOL);
    return OUT(o, "Where", mask, tare__out_number(o, TARE_FLOAT32, 0),
               tare__out_number(o, TARE_FLOAT32, -INFINITY));
}

// As it is on floats, whatever its inputs are.
static bool reads(onnx_out *o, attention_call *a) {
    float_call f;
    if (tare__out_failed(o)) return false;
    tare_status status = tare__float_call_begin(tare__out_call(o), true, &f);
    if (status == TARE_OK) status = tare__attention_read(&f.call, a);
    tare__float_call_end(&f);
    tare__out_try(o, status);
    if (a->mask != NULL) a->mask = tare__out_meta(o, 3);
    a->k = tare__out_meta(o, 1);
    return !tare__out_failed(o);
}

static void attention(onnx_out *o) {
    attention_call a = {0};
    if (!reads(o, &a)) return;
    if (a.group != 1) tare__out_refuse(o, "heads that share keys (enable_gqa) are not written");
    const char *root = tare__out_number(o, TARE_FLOAT32, sqrt((double)a.scale));
    const char *q = OUT(o, "Mul", tare__out_input(o, 0), root);
    const char *k =
        tare__out_swap(o, tare__out_input(o, 1), a.k->ndim, a.k->ndim - 2, a.k->ndim - 1);
    const char *scores = OUT(o, "MatMul", q, OUT(o, "Mul", k, root));
    const char *mask = mask_of(o, &a);
    if (*mask != '\0') scores = OUT(o, "Add", scores, mask);
    const char *shares = OUT(o, "Softmax", scores);
    tare__out_attr_int(o, "axis", -1);
    tare__out_result(o, OUT(o, "MatMul", shares, tare__out_input(o, 2)));
}

static const onnx_write_rule rows[] = {
    {"scaled_dot_product_attention", "MatMul, Softmax", .write = attention},
};

const onnx_write_table tare__onnx_write_attention_rules = ONNX_WRITE_RULES(rows);
