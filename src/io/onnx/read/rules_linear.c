// SPDX-License-Identifier: Apache-2.0
// ONNX matrix products.
#include <string.h>

#include "io/onnx/read/rules_common.h"

// x @ W with a matrix of constants is what torch calls a linear layer.
static tare_status linear(onnx_call *c, value x, value weight, bool transposed, value bias,
                          value *out) {
    value w = weight;
    if (!transposed) TARE_TRY(ONNX_CALL(c, &w, "torch.t", weight));
    const value args[] = {x, w, bias};
    return tare__onnx_call(c, false, "torch.nn.functional.linear", args,
                           bias.kind == VALUE_NONE ? 2 : 3, out);
}

// With a constant it may be a linear layer: that depends on what is added to it (raise.c).
static tare_status mat_mul(onnx_call *c) {
    value args[2];
    TARE_TRY(tare__onnx_need_input(c, 0, "A", &args[0]));
    TARE_TRY(tare__onnx_need_input(c, 1, "B", &args[1]));
    return tare__onnx_one(c, "torch.matmul", 2, args);
}

// --- Gemm: alpha * A' * B' + beta * C ---

typedef struct gemm_call {
    value a, b, added;
    const tare_tensor *added_meta;
    bool transposes_a, transposes_b;
    double alpha, beta;
    int64_t columns;
} gemm_call;

static tare_status read_gemm(onnx_call *c, gemm_call *g) {
    const tare_tensor *a = NULL, *b = NULL;
    TARE_TRY(tare__onnx_need_input(c, 0, "A", &g->a));
    TARE_TRY(tare__onnx_need_input(c, 1, "B", &g->b));
    TARE_TRY(tare__onnx_need_meta(c, 0, "A", &a));
    TARE_TRY(tare__onnx_need_meta(c, 1, "B", &b));
    g->added = tare__onnx_input(c, 2);
    TARE_TRY(tare__onnx_attr_bool(c, "transA", false, &g->transposes_a));
    TARE_TRY(tare__onnx_attr_bool(c, "transB", false, &g->transposes_b));
    TARE_TRY(tare__onnx_attr_float(c, "alpha", 1, &g->alpha));
    TARE_TRY(tare__onnx_attr_float(c, "beta", 1, &g->beta));
    if (a->ndim != 2 || b->ndim != 2)
        return tare__onnx_malformed(c, "expected matrices, found %d and %d dimensions", a->ndim,
                                    b->ndim);
    g->columns = b->shape[g->transposes_b ? 0 : 1];
    g->added_meta = tare__onnx_meta(c, &g->added);
    return TARE_OK;
}

static tare_status scaled(onnx_call *c, double factor, value *x) {
    return factor == 1 ? TARE_OK : ONNX_CALL(c, x, "operator.mul", *x, tare__float(factor));
}

// Is C one number for each column?
static bool is_bias(const gemm_call *g) {
    const tare_tensor *t = g->added_meta;
    return t != NULL && t->ndim >= 1 && t->count == g->columns &&
           t->shape[t->ndim - 1] == g->columns;
}

static tare_status gemm(onnx_call *c) {
    gemm_call g;
    value y, bias = tare__none();
    TARE_TRY(read_gemm(c, &g));
    if (g.transposes_a) TARE_TRY(ONNX_CALL(c, &g.a, "torch.t", g.a));
    // Constants are scaled here, and the bias is flat.
    const bool adds = g.added.kind != VALUE_NONE && g.beta != 0;
    if (adds) TARE_TRY(scaled(c, g.beta, &g.added));
    const bool is_weight = tare__onnx_constant(c, 1) != NULL;
    if (is_weight) TARE_TRY(scaled(c, g.alpha, &g.b));
    if (is_weight || g.transposes_b) {
        const bool joins = adds && is_bias(&g) && (is_weight || g.alpha == 1);
        bias = joins ? g.added : bias;
        if (joins && g.added_meta->ndim > 1)
            TARE_TRY(tare__onnx_reshape(c, &bias, &g.columns, 1, &bias));
        TARE_TRY(linear(c, g.a, g.b, g.transposes_b, bias, &y));
    } else {
        TARE_TRY(ONNX_CALL(c, &y, "torch.matmul", g.a, g.b));
    }
    if (!is_weight) TARE_TRY(scaled(c, g.alpha, &y));
    if (adds && bias.kind == VALUE_NONE) TARE_TRY(ONNX_CALL(c, &y, "operator.add", y, g.added));
    tare__onnx_set_output(c, 0, &y);
    return TARE_OK;
}

static tare_status einsum(onnx_call *c) {
    const char *equation = NULL;
    const size_t count = tare__onnx_input_count(c);
    value *args = tare__arena_array(tare__onnx_arena(c), count + 1, sizeof *args);
    if (args == NULL) return tare__out_of_memory(tare__onnx_error(c));
    TARE_TRY(tare__onnx_attr_string(c, "equation", "", &equation));
    args[0] = tare__string(equation);
    for (size_t i = 0; i < count; i++)
        TARE_TRY(tare__onnx_need_input(c, i, "Inputs", &args[i + 1]));
    return tare__onnx_one(c, "torch.einsum", count + 1, args);
}

static const onnx_rule rows[] = {
    {"Einsum", 12, .translate = einsum},
    {"Gemm", .translate = gemm},
    {"MatMul", .translate = mat_mul},
};

const onnx_rule_table tare__onnx_linear_rules = ONNX_RULES(rows);
