// SPDX-License-Identifier: Apache-2.0
// Multi-head attention: projections that may be quantized, and a float attention between them.
#include <math.h>
#include <string.h>

#include "ops/classes/quantizable.h"
#include "ops/compose.h"
#include "ops/composed.h"
#include "ops/op.h"

enum { QUERY, KEY, VALUE_INPUT, PADDING_MASK, NEED_WEIGHTS, MASK, AVERAGE, IS_CAUSAL, ARGUMENTS };
static const char *const argument_names[ARGUMENTS] = {"query",
                                                      "key",
                                                      "value",
                                                      "key_padding_mask",
                                                      "need_weights",
                                                      "attn_mask",
                                                      "average_attn_weights",
                                                      "is_causal"};

typedef struct attention {
    const module *m;
    value given[ARGUMENTS]; // None if not given
    int64_t embed, heads, width, batch, targets, sources;
    bool batch_first, need_weights, averages;
} attention;

static value integer(int64_t i) {
    return tare__int(i);
}

// --- arguments ---

static void bind(composer *c, attention *a) {
    const op_call *call = c->call;
    for (size_t i = 0; i < ARGUMENTS; i++) a->given[i] = tare__none();
    if (call->arg_count > ARGUMENTS) (void)tare__compose_fail(c, "takes at most 8 arguments");
    for (size_t i = 0; i < call->arg_count && i < ARGUMENTS; i++) a->given[i] = call->args[i];
    for (size_t k = 0; k < call->kwarg_count; k++) {
        size_t i = 0;
        while (i < ARGUMENTS && strcmp(argument_names[i], call->kwargs[k].name) != 0) i++;
        if (i == ARGUMENTS)
            (void)tare__compose_fail(c, "has an unknown keyword argument");
        else
            a->given[i] = call->kwargs[k].value;
    }
}

static bool flag(value v, bool otherwise) {
    return v.kind == VALUE_BOOL ? v.as.boolean : otherwise;
}

static void read_sizes(composer *c, attention *a) {
    a->embed = tare__module_int(a->m, "embed_dim", 0);
    a->heads = tare__module_int(a->m, "num_heads", 0);
    a->batch_first = tare__module_bool(a->m, "batch_first", false);
    a->need_weights = flag(a->given[NEED_WEIGHTS], true);
    a->averages = flag(a->given[AVERAGE], true);
    const tare_tensor *q = tare__compose_tensor(c, a->given[QUERY]);
    const tare_tensor *k = tare__compose_tensor(c, a->given[KEY]);
    const tare_tensor *v = tare__compose_tensor(c, a->given[VALUE_INPUT]);
    if (c->status != TARE_OK) return;
    if (a->heads < 1 || a->embed < 1 || a->embed % a->heads != 0)
        (void)tare__compose_fail(c, "embed_dim must be divisible by num_heads");
    if (q->ndim != 3 || k->ndim != 3 || v->ndim != 3 || q->shape[2] != a->embed)
        (void)tare__compose_fail(c, "query, key and value must be batches of sequences, the query "
                                    "of embed_dim features");
    // is_causal is only a hint; the mask itself must be given, as in torch.
    if (flag(a->given[IS_CAUSAL], false) && a->given[MASK].kind != VALUE_TENSOR)
        (void)tare__compose_fail(c, "is_causal needs an attn_mask");
    if (c->status != TARE_OK) return;
    a->width = a->embed / a->heads;
    a->batch = q->shape[a->batch_first ? 0 : 1];
    a->targets = q->shape[a->batch_first ? 1 : 0];
}

// --- projections ---

static value own_tensor(const attention *a, const char *name) {
    tare_tensor *t = tare__module_tensor(a->m, name);
    return t != NULL ? (value){.kind = VALUE_TENSOR, .as.tensor = t} : tare__none();
}

static value third(composer *c, value packed, int64_t i, int64_t embed) {
    if (packed.kind != VALUE_TENSOR) return packed;
    return COMPOSE(c, "narrow", packed, integer(0), integer(i * embed), integer(embed));
}

// The float module keeps the three weights in one tensor, or in one each if their widths differ.
static value project_float(composer *c, const attention *a, int64_t i, value x) {
    static const char *const names[] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
    const value packed = own_tensor(a, "in_proj_weight"), own = own_tensor(a, names[i]);
    if (packed.kind != VALUE_TENSOR && own.kind != VALUE_TENSOR)
        (void)tare__compose_fail(c, "the module has no projection weights");
    const value weight = own.kind == VALUE_TENSOR ? own : third(c, packed, i, a->embed);
    const value bias = third(c, own_tensor(a, "in_proj_bias"), i, a->embed);
    return COMPOSE(c, "linear", x, weight, bias);
}

static value project(composer *c, const attention *a, int64_t i) {
    static const char *const names[] = {"linear_Q", "linear_K", "linear_V"};
    value x = a->given[QUERY + i];
    if (a->batch_first) x = COMPOSE(c, "transpose", x, integer(0), integer(1));
    return tare__module_child(a->m, names[i]) != NULL ? tare__compose_child(c, a->m, names[i], x)
                                                      : project_float(c, a, i, x);
}

static value scale(composer *c, value x, double by) {
    const tare_tensor *t = tare__compose_tensor(c, x);
    return COMPOSE(c, t != NULL && t->q != NULL ? "quantized.mul" : "mul", x, tare__float(by));
}

// Appends a row to each sequence: [length][batch][embed] followed by one [1][batch][embed].
static value append(composer *c, value x, value row) {
    value both = tare__compose_list(c, 2);
    if (c->status != TARE_OK) return both;
    both.as.items[0] = x;
    both.as.items[1] = row;
    return COMPOSE(c, "cat", both, integer(0));
}

static value extend(composer *c, const attention *a, const char *bias, value x) {
    const value row = own_tensor(a, bias);
    const int64_t shape[] = {1, a->batch, a->embed};
    if (row.kind == VALUE_TENSOR)
        x = append(c, x,
                   COMPOSE(c, "expand", row, integer(1), integer(a->batch), integer(a->embed)));
    if (!tare__module_bool(a->m, "add_zero_attn", false) || c->status != TARE_OK) return x;
    const tare_tensor *t = tare__compose_tensor(c, x);
    if (t == NULL) return x;
    // Zeros get the quantization parameters of x, which represent 0 exactly.
    return append(c, x, tare__compose_zeros(c, t, 3, shape));
}

// [length][batch][embed] -> [batch * heads][length][width]
static value by_head(composer *c, const attention *a, value x) {
    const value split =
        COMPOSE(c, "reshape", x, integer(-1), integer(a->batch * a->heads), integer(a->width));
    return COMPOSE(c, "transpose", split, integer(0), integer(1));
}

// --- float attention ---

static value mask(composer *c, value scores, value m) {
    const tare_tensor *t = tare__compose_tensor(c, m);
    if (t == NULL) return scores;
    if (t->dtype == TARE_BOOL)
        return COMPOSE(c, "masked_fill", scores, m, tare__float((double)-INFINITY));
    return COMPOSE(c, "add", scores, m);
}

// Pads a mask for the rows that the module appended to key and value, which are never masked.
static value widen(composer *c, const attention *a, value m) {
    const tare_tensor *t = c->status == TARE_OK ? tare__compose_tensor(c, m) : NULL;
    if (t == NULL || t->ndim < 1) return m;
    const int64_t missing = a->sources - t->shape[t->ndim - 1];
    if (missing <= 0) return m;
    value pads = tare__compose_list(c, 2);
    if (c->status != TARE_OK) return m;
    pads.as.items[0] = integer(0);
    pads.as.items[1] = integer(missing);
    return COMPOSE(c, "pad", m, pads);
}

static value masked(composer *c, const attention *a, value scores) {
    const int64_t rows = a->batch * a->heads;
    if (a->given[MASK].kind == VALUE_TENSOR) scores = mask(c, scores, widen(c, a, a->given[MASK]));
    if (a->given[PADDING_MASK].kind != VALUE_TENSOR) return scores;
    const value m = widen(c, a, a->given[PADDING_MASK]);
    const value of_heads = COMPOSE(c, "reshape", scores, integer(a->batch), integer(a->heads),
                                   integer(a->targets), integer(a->sources));
    const value spread =
        COMPOSE(c, "reshape", m, integer(a->batch), integer(1), integer(1), integer(a->sources));
    return COMPOSE(c, "reshape", mask(c, of_heads, spread), integer(rows), integer(a->targets),
                   integer(a->sources));
}

static value to_float(composer *c, const attention *a, const char *child, value x) {
    const value v = tare__compose_child(c, a->m, child, x);
    const tare_tensor *t = c->status == TARE_OK ? tare__compose_tensor(c, v) : NULL;
    return t != NULL && t->q != NULL ? COMPOSE(c, "dequantize", v) : v;
}

static value weights_of(composer *c, attention *a, value q, value k) {
    const value transposed = COMPOSE(c, "transpose", k, integer(1), integer(2));
    const tare_tensor *t = c->status == TARE_OK ? tare__compose_tensor(c, transposed) : NULL;
    a->sources = t != NULL ? t->shape[2] : 0;
    const value scores = masked(c, a, COMPOSE(c, "matmul", q, transposed));
    return COMPOSE(c, "softmax", scores, integer(-1));
}

static value shown_weights(composer *c, const attention *a, value weights) {
    if (!a->need_weights) return tare__none();
    const value quantized = tare__compose_child(c, a->m, "quant_attn_output_weights", weights);
    const value of_heads = COMPOSE(c, "reshape", quantized, integer(a->batch), integer(a->heads),
                                   integer(a->targets), integer(a->sources));
    return a->averages ? COMPOSE(c, "mean", of_heads, integer(1)) : of_heads;
}

static value forward(composer *c) {
    attention a = {.m = c->call->module};
    bind(c, &a);
    read_sizes(c, &a);
    if (c->status != TARE_OK) return tare__none();
    value q = scale(c, project(c, &a, 0), 1.0 / sqrt((double)a.width));
    value k = extend(c, &a, "bias_k", project(c, &a, 1));
    value v = extend(c, &a, "bias_v", project(c, &a, 2));
    q = to_float(c, &a, "dequant_q", by_head(c, &a, q));
    k = to_float(c, &a, "dequant_k", by_head(c, &a, k));
    v = to_float(c, &a, "dequant_v", by_head(c, &a, v));
    const value weights = weights_of(c, &a, q, k);
    const value heads =
        COMPOSE(c, "transpose", COMPOSE(c, "matmul", weights, v), integer(0), integer(1));
    value y = COMPOSE(c, "reshape", heads, integer(a.targets), integer(a.batch), integer(a.embed));
    y = tare__compose_child(c, a.m, "quant_attn_output", y);
    y = tare__compose_child(c, a.m, "out_proj", y);
    if (a.batch_first) y = COMPOSE(c, "transpose", y, integer(0), integer(1));
    value result = tare__compose_list(c, 2);
    if (c->status != TARE_OK) return result;
    result.kind = VALUE_TUPLE;
    result.as.items[0] = y;
    result.as.items[1] = shown_weights(c, &a, weights);
    return result;
}

tare_status tare__multihead_shape(op_call *call) {
    return tare__composed_shape(call, forward);
}

tare_status tare__multihead_forward(op_call *call) {
    return tare__composed_forward(call, forward);
}
