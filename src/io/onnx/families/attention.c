// SPDX-License-Identifier: Apache-2.0
// Attention in ONNX. torch's exporters multiply both query and key by the square root of the scale.
#include <math.h>

#include "io/onnx/families/families.h"
#include "io/onnx/raise/match.h"
#include "ops/layer_call.h"

// A lower triangular mask: each query attends to the keys up to its own position.
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

// The operands of the float operator, whether the inputs are quantized or not.
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

static void write_attention(onnx_out *o) {
    attention_call a = {0};
    if (!reads(o, &a)) return;
    if (a.group != 1) tare__out_refuse(o, "attention with enable_gqa is not written");
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

static const onnx_write_rule write_rows[] = {
    {"scaled_dot_product_attention", "MatMul, Softmax", .write = write_attention},
};

// --- idioms of exporters ---

static double number_named(const idiom_match *m, const char *name) {
    double number = NAN;
    const value v = tare__match_value(m, name);
    const tare_tensor *t = tare__match_constant(m, name);
    if (t != NULL) return t->count == 1 ? tare__tensor_get(t, 0) : NAN;
    tare__value_number(&v, &number);
    return number;
}

// torch's exporters multiply query and key of scaled_dot_product_attention by the square root of
// the scale. A graph that scales once was written by the user and is left alone.
static tare_status is_attention(idiom_match *m, bool *holds) {
    const tare_tensor *q = tare__match_meta(m, "q"), *v = tare__match_meta(m, "v");
    const tare_tensor *k = tare__match_meta(m, "kt"), *mask = tare__match_meta(m, "mask");
    const double a = number_named(m, "ca"), b = number_named(m, "cb");
    *holds = q != NULL && k != NULL && v != NULL && q->ndim >= 3 && k->ndim == q->ndim &&
             v->ndim == q->ndim && q->dtype == TARE_FLOAT32 && fabs(a - b) <= 1e-4 * fabs(b) &&
             a > 0 && (mask == NULL || mask->dtype == TARE_FLOAT32);
    for (int d = 0; *holds && d < q->ndim - 2; d++)
        *holds = q->shape[d] == k->shape[d] && q->shape[d] == v->shape[d];
    if (!*holds) return TARE_OK;
    const double usual = 1 / sqrt((double)q->shape[q->ndim - 1]);
    const bool is_usual = fabs(a * b - usual) <= 1e-4 * usual;
    return tare__match_bind(
        m, "scale", is_usual ? tare__none() : tare__float(tare__double_of_float((float)(a * b))));
}

#define SCALED "a = q * ca; b = kt * cb; p = torch.matmul(a, b); "
#define ATTENTION                                                                                  \
    "key = torch.transpose(kt, -2, -1); torch.nn.functional.scaled_dot_product_attention(q, key, " \
    "v, "

// clang-format off
static const idiom idioms[] = {
    {"softmax", "q, kt, v, ca, cb", SCALED "s = torch.nn.functional.softmax(p, dim = -1); torch.matmul(s, v)",
     ATTENTION "None, 0.0, False, scale = scale)", false, is_attention},
    {"softmax", "q, kt, v, mask, ca, cb", SCALED "o = p + mask; s = torch.nn.functional.softmax(o, dim = -1); torch.matmul(s, v)",
     ATTENTION "mask, 0.0, False, scale = scale)", false, is_attention},
    {"softmax", "q, kt, v, wm, ca, cb", SCALED "o = p + wm; s = torch.nn.functional.softmax(o, dim = -1); torch.matmul(s, v)",
     ATTENTION "wm, 0.0, False, scale = scale)", false, is_attention},
};
// clang-format on

const onnx_family tare__onnx_attention_family = {.write = ONNX_WRITE_RULES(write_rows),
                                                 .idioms = idioms,
                                                 .idiom_count = sizeof idioms / sizeof *idioms};
