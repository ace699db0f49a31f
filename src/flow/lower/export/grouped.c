// SPDX-License-Identifier: Apache-2.0
// Linear layers as torchao's quantize_ leaves them in programs. Weights alone are
//
//   linear(x, dequantize_affine(quantized, [1, group], scale, zero_point, ..), bias)
//   mm(x, to(t(quantized), float32)) * scale
//
// where x may be behind quantize_affine and dequantize_affine of rows, which stay.
// Source: torchao 0.18, quantization/quant_primitives.py and
// quantize_/workflows/int8/int8_tensor.py.
#include <inttypes.h>
#include <string.h>

#include "flow/lower/export/lower.h"
#include "model/coverage.h"
#include "ops/classes/classes.h"
#include "ops/quantized/grouped.h"
#include "ops/quantized/quantize.h"

typedef struct grouped_site {
    lowering *l;
    node *n, *input;                             // n: the layer's result; input: rows of floats
    node *bias;                                  // NULL: none
    tare_tensor *quantized, *scale, *zero_point; // owned; zero_point NULL: all 0
    bool is_transposed;                          // quantized is [ins][outs]
    int64_t group;                               // 0: all inputs in one group
    int64_t least, most;                         // range of the quantized values
    size_t *number;                              // of the last generated name
} grouped_site;

static op_id function_of(const node *n) {
    return n != NULL ? tare__function_op(n) : TARE_OP_NONE;
}

static node *argument(const function_call *w, const char *name) {
    return tare__function_argument_node(w, name);
}

// Computes a value that does not depend on inputs; *out stays NULL if it does.
static tare_status fold(const grouped_site *s, node *n, tare_tensor **out) {
    const value v = n != NULL ? tare__node_value(n) : tare__none();
    return n != NULL ? tare__pass_fold_tensors(s->l->p, &v, 1, s->n, out) : TARE_OK;
}

// --- arguments ---

static bool is_int(const value *v, int64_t wanted) {
    return v != NULL && v->kind == VALUE_INT && v->as.integer == wanted;
}

// Matches [1, .., 1, last].
static bool is_block_of_rows(const value *v, int64_t *last) {
    if (v == NULL || (v->kind != VALUE_LIST && v->kind != VALUE_TUPLE) || v->count < 1)
        return false;
    for (uint32_t i = 0; i + 1 < v->count; i++)
        if (!is_int(&v->as.items[i], 1)) return false;
    const value *end = &v->as.items[v->count - 1];
    if (end->kind != VALUE_INT || end->as.integer < 1) return false;
    *last = end->as.integer;
    return true;
}

// --- linear(x, dequantize_affine(..)) ---

static tare_status read_linear(grouped_site *s) {
    function_call w, d;
    arena *memory = &s->l->p->scratch;
    if (function_of(s->n) != TARE_OP_LINEAR || !tare__function_bind(memory, s->n, &w))
        return TARE_OK;
    node *weight = argument(&w, "weight");
    if (function_of(weight) != TARE_OP_TORCHAO_DEQUANTIZE_AFFINE ||
        !tare__function_bind(memory, weight, &d) ||
        !is_block_of_rows(tare__function_argument(&d, "block_size"), &s->group))
        return TARE_OK;
    const value *least = tare__function_argument(&d, "quant_min");
    const value *most = tare__function_argument(&d, "quant_max");
    if (least != NULL && least->kind == VALUE_INT) s->least = least->as.integer;
    if (most != NULL && most->kind == VALUE_INT) s->most = most->as.integer;
    s->bias = argument(&w, "bias");
    s->input = argument(&w, "input");
    TARE_TRY(fold(s, argument(&d, "input"), &s->quantized));
    TARE_TRY(fold(s, argument(&d, "zero_point"), &s->zero_point));
    return fold(s, argument(&d, "scale"), &s->scale);
}

// --- mm(x, to(t(quantized))) * scale ---

static tare_status read_product(grouped_site *s) {
    node *product = tare__node_arg(s->n, 0), *scales = tare__node_arg(s->n, 1);
    if (function_of(s->n) != TARE_OP_MUL || function_of(product) != TARE_OP_MATMUL) return TARE_OK;
    node *weight = tare__node_arg(product, 1);
    if (function_of(weight) != TARE_OP_TO || scales == NULL) return TARE_OK;
    s->input = tare__node_arg(product, 0);
    s->is_transposed = true;
    TARE_TRY(fold(s, tare__node_arg(weight, 0), &s->quantized));
    return fold(s, scales, &s->scale);
}

// --- the module ---

static int64_t outs_of(const grouped_site *s) {
    return s->quantized->shape[s->is_transposed ? 1 : 0];
}

static int64_t ins_of(const grouped_site *s) {
    return s->quantized->shape[s->is_transposed ? 0 : 1];
}

static bool is_complete(grouped_site *s) {
    const tare_tensor *c = s->quantized, *zeros = s->zero_point;
    if (c == NULL || s->scale == NULL || s->input == NULL || c->ndim != 2 || c->count == 0 ||
        c->dtype != TARE_INT8 || s->scale->dtype != TARE_FLOAT32)
        return false;
    if (s->group == 0) s->group = ins_of(s);
    return ins_of(s) % s->group == 0 && s->scale->count == c->count / s->group &&
           (zeros == NULL || zeros->count == s->scale->count) &&
           (s->bias == NULL || s->bias->op == NODE_GET_ATTR);
}

// Uses int8's full range if a quantized value or zero point is outside of the stated range.
static void widen(grouped_site *s) {
    bool fits = s->least >= -128 && s->most <= 127 && s->least < s->most;
    for (int64_t i = 0; fits && i < s->quantized->count; i++) {
        const int64_t q = tare__tensor_get_int(s->quantized, i);
        fits = q >= s->least && q <= s->most;
    }
    for (int64_t i = 0; fits && s->zero_point != NULL && i < s->zero_point->count; i++) {
        const double zero = tare__tensor_get(s->zero_point, i);
        fits = zero >= (double)s->least && zero <= (double)s->most;
    }
    if (fits) return;
    s->least = -128;
    s->most = 127;
}

static tare_status make_parameters(const grouped_site *s, qparams **out) {
    const int64_t count = s->scale->count;
    double *numbers = tare__arena_array(&s->l->p->scratch, 2 * (size_t)count, sizeof *numbers);
    if (numbers == NULL) return tare__out_of_memory(s->l->p->err);
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = tare__tensor_get(s->scale, i);
        numbers[count + i] = s->zero_point != NULL ? tare__tensor_get(s->zero_point, i) : 0;
    }
    qparams *q =
        tare__qparams_create(TARE_PER_GROUP_AFFINE, TARE_QINT8, 0, count, numbers, numbers + count);
    if (q == NULL) return tare__out_of_memory(s->l->p->err);
    q->quant_min = s->least;
    q->quant_max = s->most;
    *out = q;
    return TARE_OK;
}

static tare_status make_weight(const grouped_site *s, tare_tensor **out) {
    const int64_t outs = outs_of(s), ins = ins_of(s), shape[] = {outs, ins};
    qparams *q = NULL;
    TARE_TRY(make_parameters(s, &q));
    tare_status status = tare__qparams_check(q, s->l->p->err);
    if (status == TARE_OK) status = tare__tensor_quantized(2, shape, q, out, s->l->p->err);
    tare__qparams_release(q);
    TARE_TRY(status);
    for (int64_t i = 0; i < s->quantized->count; i++) {
        const int64_t from = s->is_transposed ? i % ins * outs + i / ins : i;
        tare__tensor_set_int(*out, i, tare__tensor_get_int(s->quantized, from));
    }
    return TARE_OK;
}

static tare_status fill(const grouped_site *s, module *m) {
    tare_error *err = s->l->p->err;
    const value ins = tare__int(ins_of(s)), outs = tare__int(outs_of(s));
    tare_tensor *weight = NULL;
    TARE_TRY(tare__module_set_config(m, "in_features", &ins, err));
    TARE_TRY(tare__module_set_config(m, "out_features", &outs, err));
    TARE_TRY(make_weight(s, &weight));
    const tare_status status = tare__grouped_set_weight(m, weight, err);
    tare_tensor_release(weight);
    TARE_TRY(status);
    tare_tensor *bias =
        s->bias != NULL ? tare__module_find_tensor(s->l->p->model->root, s->bias->target) : NULL;
    return bias != NULL ? tare__module_set_tensor(m, "bias", bias, true, err) : TARE_OK;
}

static tare_status decide(const grouped_site *s, const node *n, const module *m) {
    const char *rows = function_of(s->input) == TARE_OP_TORCHAO_DEQUANTIZE_AFFINE
                           ? "its input is quantized and dequantized in float: these layers "
                             "support no zero points of rows"
                           : "its input stays float";
    return TARE_DECIDE(s->l->p, n, "lowered", m->class->name,
                       "%" PRId64 "-bit weights in groups of %" PRId64 ", %s",
                       tare__module_int(m, "bits", 0), tare__module_int(m, "group_size", 0), rows);
}

// Records that all nodes between the layer's input and n were fused into it.
static tare_status fuse_operands(const grouped_site *s, const node *n, int depth) {
    enum { LONGEST = 16 };
    for (size_t i = 0; i < n->input_count && depth < LONGEST; i++) {
        const node *operand = n->inputs[i];
        if (operand == s->input || operand->op != NODE_CALL_FUNCTION) continue;
        TARE_TRY(tare__coverage_fused(s->l->p->model, operand->origin, s->n->origin, s->l->p->err));
        TARE_TRY(fuse_operands(s, operand, depth + 1));
    }
    return TARE_OK;
}

static tare_status call_module(const grouped_site *s, const char *path) {
    pass *p = s->l->p;
    const value x = tare__node_value(s->input);
    const node_spec spec = {
        .op = NODE_CALL_MODULE, .target = path, .args = &x, .arg_count = 1, .like = s->n};
    node *made = NULL;
    TARE_TRY(tare__graph_insert(s->n->owner, &spec, s->n, &made, p->err));
    TARE_TRY(tare__node_replace_uses(s->n, made, NULL, p->err));
    made->debug_handle = s->n->debug_handle;
    TARE_TRY(fuse_operands(s, s->n, 0));
    return decide(s, made, tare__module_find(p->model->root, path));
}

static tare_status lower(grouped_site *s) {
    pass *p = s->l->p;
    module *m = NULL;
    widen(s);
    const char *path =
        tare__module_free_name(p->model->root, &s->n->owner->memory, "grouped_linear_", s->number);
    if (path == NULL) return tare__out_of_memory(p->err);
    const module_class *class = tare__class_of_op(
        &p->model->context->classes, tare__op_row(TARE_OP_LINEAR), ROLE_GROUPED, FUSED_NONE);
    TARE_TRY(tare__module_create(class, &m, p->err));
    TARE_TRY(tare__pass_put_module(p, path, m, fill(s, m)));
    return call_module(s, path);
}

static tare_status visit(lowering *l, node *n, size_t *number) {
    grouped_site s = {.l = l, .n = n, .least = -128, .most = 127, .number = number};
    tare_status status = read_linear(&s);
    if (status == TARE_OK) status = read_product(&s);
    if (status == TARE_OK && is_complete(&s)) status = lower(&s);
    tare_tensor_release(s.quantized);
    tare_tensor_release(s.scale);
    tare_tensor_release(s.zero_point);
    return status;
}

// Removes dtype checks, some of which refer to removed quantized values.
static tare_status drop_checks(lowering *l) {
    graph *g = l->p->model->root->graph;
    for (node *n = g->first, *next; n != NULL; n = next) {
        next = n->next;
        if (function_of(n) == TARE_OP_ASSERT_TENSOR_METADATA && n->user_count == 0)
            TARE_TRY(tare__graph_erase(g, n, l->p->err));
    }
    return TARE_OK;
}

tare_status tare__pt2e_lower_grouped(lowering *l) {
    size_t number = 0;
    for (node *n = l->p->model->root->graph->first, *next; n != NULL; n = next) {
        next = n->next;
        if (n->op == NODE_CALL_FUNCTION)
            TARE_TRY(tare__at(l->p->err, visit(l, n, &number), "node '%s'", n->name));
    }
    if (number > 0) TARE_TRY(drop_checks(l));
    return tare__pt2e_eliminate_dead(l->p);
}
