// SPDX-License-Identifier: Apache-2.0
// Layer norm of codes: a line becomes floats, is normalized, and becomes codes again while it is in
// the first-level cache.
#include "ops/layer_call.h"
#include "ops/quantized/layer.h"
#include "ops/quantized/rule.h"
#include "runtime/fast/fast.h"

enum { ELEMENTS_PER_PART = 1 << 12, LEAST_SHARED_ELEMENTS = 1 << 15 };

static bool is_code_norm(const op_call *call) {
    if (call->module == NULL) return tare__fast_is_op(call, TARE_OP_QUANTIZED_LAYER_NORM);
    return tare__class_op(call->module->class) == TARE_OP_LAYER_NORM && call->arg_count > 0 &&
           call->args[0].kind == VALUE_TENSOR && tare__is_byte_quantized(call->args[0].as.tensor);
}

typedef struct code_norm {
    const fast_context *context;
    layer_norm_call norm;
    code_scheme in, out;
    const uint8_t *x;
    uint8_t *y;
    int64_t lines, step; // of all parts, of a part
    float *values;       // a line for each worker
} code_norm;

static void run_part(void *user, size_t part, size_t worker) {
    const code_norm *n = user;
    const size_t count = (size_t)n->norm.inner;
    const int64_t first = (int64_t)part * n->step;
    const int64_t last = first + n->step < n->lines ? first + n->step : n->lines;
    float *line = n->values + worker * count;
    for (size_t at = (size_t)first * count; at < (size_t)last * count; at += count) {
        n->context->elementwise->dequantize(&n->in, n->x + at, count, line);
        n->context->lines->normalize(line, count, n->norm.weight, n->norm.bias, (float)n->norm.eps,
                                     line);
        n->context->elementwise->quantize(&n->out, line, count, n->y + at);
    }
}

// `read` is of floats; x: the codes in the place of its input.
static tare_status normalize(fast_context *context, op_call *call, op_call *read,
                             const tare_tensor *x, bool *handled) {
    code_norm n = {.context = context};
    thread_pool *pool = x->count >= LEAST_SHARED_ELEMENTS ? context->space.pool : NULL;
    TARE_TRY(tare__layer_norm_read(read, &n.norm));
    if (tare__call_given(read, 2) != (n.norm.weight != NULL) ||
        tare__call_given(read, 3) != (n.norm.bias != NULL) || x->count == 0)
        return TARE_OK;
    n.in = tare__code_scheme_of(x);
    n.out = tare__code_scheme_of(tare__call_out(call));
    n.x = x->data;
    n.y = tare__call_out(call)->data;
    n.lines = x->count / n.norm.inner;
    n.step = ELEMENTS_PER_PART / n.norm.inner > 0 ? ELEMENTS_PER_PART / n.norm.inner : 1;
    n.values = tare__arena_array(call->memory, tare__thread_count(pool),
                                 (size_t)n.norm.inner * sizeof *n.values);
    if (n.values == NULL) return tare__out_of_memory(call->err);
    tare__thread_pool_run(pool, tare__ceil_div((size_t)n.lines, (size_t)n.step), run_part, &n);
    *handled = true;
    return TARE_OK;
}

static bool has_float_weights(op_call *call) {
    for (size_t i = 1; i < call->param_count; i++) {
        const tare_tensor *t = tare__call_tensor(call, i);
        if (t != NULL && t->dtype != TARE_FLOAT32) return false;
    }
    return true;
}

static tare_status run(fast_context *context, void **state, op_call *call, bool *handled) {
    module_rule rule;
    op_call bound;
    bool known;
    (void)state;
    TARE_TRY(tare__rule_bind(call, &rule, &bound, &known));
    if (!known) return TARE_OK;
    const tare_tensor *x = tare__fast_input(&bound, 0), *y = tare__call_out(call);
    if (x == NULL || !tare__is_byte_quantized(x) || !tare__is_byte_quantized(y) ||
        !has_float_weights(&bound))
        return TARE_OK;
    // What reads the call wants floats, of which it looks at the shape.
    tare_tensor like = *x;
    like.dtype = TARE_FLOAT32;
    like.q = NULL;
    like.data = NULL;
    const value in = {.kind = VALUE_TENSOR, .as.tensor = &like};
    bound.param[0] = &in;
    return normalize(context, call, &bound, x, handled);
}

const fast_path tare__fast_norm = {"layer_norm", is_code_norm, run, NULL};
