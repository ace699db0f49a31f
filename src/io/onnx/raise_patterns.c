// SPDX-License-Identifier: Apache-2.0
// Functions that exporters spell out, recognized by how they are spelled.
//
// A pattern is an expression over operators by their ids: a small letter stands for any tensor, a
// capital one for any number, and each means the same wherever it occurs. Sums and products match
// in both orders. mean and softmax are those along the last dimension.
#include <math.h>
#include <string.h>

#include "core/text.h"
#include "io/onnx/raise.h"

enum { LETTERS = 26, MOST_NODES = 24 };

typedef struct match {
    onnx_import *in;
    value letters[LETTERS];  // of 'a'..: a node; VALUE_NONE: free
    double numbers[LETTERS]; // of 'A'..
    bool has_number[LETTERS];
    node *nodes[MOST_NODES]; // that the pattern covers, its root first
    size_t node_count;
} match;

typedef struct spelling {
    const char *pattern;
    bool of_one_call; // only what the file says was one call, where it says so: people write it too
    tare_status (*build)(onnx_import *in, const match *m);
} spelling;

// --- arguments ---

static const op_info *row_of(const node *n) {
    if (n->op == NODE_CALL_FUNCTION) return tare__op_function(n->target);
    return n->op == NODE_CALL_METHOD ? tare__op_method(n->target) : NULL;
}

static const value *param_of(const node *n, const char *name) {
    const op_info *op = row_of(n);
    const size_t index = tare__op_param_index(op, name);
    if (index < n->arg_count) return &n->args[index];
    return tare__node_kwarg(n, name);
}

// A number as an argument, or as a constant of one element.
static bool number_of(onnx_import *in, const value *v, double *out) {
    const tare_tensor *t = tare__raise_constant(in, v);
    if (t == NULL) return tare__value_number(v, out);
    if (t->count != 1 || t->q != NULL) return false;
    *out = tare__tensor_get(t, 0);
    return true;
}

static bool is_last_dim(onnx_import *in, const node *n, const value *dim) {
    const draft_info *x = tare__onnx_info(in, n->args[0].as.node);
    if (dim != NULL && tare__value_has_items(dim) && dim->count == 1) dim = &dim->as.items[0];
    if (dim == NULL || dim->kind != VALUE_INT || x->meta.kind != VALUE_TENSOR) return false;
    return dim->as.integer == -1 || dim->as.integer == x->meta.as.tensor->ndim - 1;
}

static bool is_along_last(onnx_import *in, const node *n, const char *id) {
    if (n->arg_count == 0 || n->args[0].kind != VALUE_NODE) return false;
    if (!is_last_dim(in, n, param_of(n, "dim"))) return false;
    const value *keeps = param_of(n, "keepdim");
    return strcmp(id, "mean") != 0 ||
           (keeps != NULL && keeps->kind == VALUE_BOOL && keeps->as.boolean);
}

// --- matching ---

static bool match_value(match *m, const char **at, const value *v);

// Past one argument of the pattern.
static const char *skip(const char *at) {
    int depth = 0;
    for (; *at != '\0' && (depth > 0 || (*at != ',' && *at != ')')); at++) {
        depth += *at == '(';
        depth -= *at == ')';
    }
    return at;
}

static bool match_args(match *m, const char *at, const value *args, size_t count, bool swapped) {
    const size_t taken = 2;
    for (size_t i = 0; i < count; i++) {
        const size_t index = swapped && i < taken ? 1 - i : i;
        if (!match_value(m, &at, &args[index])) return false;
        if (*at != (i + 1 < count ? ',' : ')')) return false;
        at++;
    }
    return true;
}

static size_t count_args(const char *at) {
    size_t count = 1;
    for (at = skip(at); *at == ','; at = skip(at + 1)) count++;
    return count;
}

// at: behind "name(".
static bool match_call(match *m, const char *name, size_t length, const char *at, node *n) {
    const op_info *op = row_of(n);
    if (op == NULL || strlen(op->id) != length || strncmp(op->id, name, length) != 0) return false;
    const bool is_along = strcmp(op->id, "mean") == 0 || strcmp(op->id, "softmax") == 0;
    const bool commutes = strcmp(op->id, "add") == 0 || strcmp(op->id, "mul") == 0;
    const size_t count = count_args(at);
    if (is_along ? !is_along_last(m->in, n, op->id) : n->kwarg_count > 0 || n->arg_count != count)
        return false;
    if (m->node_count == MOST_NODES) return false;
    m->nodes[m->node_count++] = n;
    const match saved = *m;
    if (match_args(m, at, n->args, count, false)) return true;
    if (!commutes || count != 2) return false;
    *m = saved;
    return match_args(m, at, n->args, count, true);
}

static bool match_letter(match *m, char letter, const value *v) {
    value *bound = &m->letters[letter - 'a'];
    if (v->kind != VALUE_NODE) return false;
    if (bound->kind == VALUE_NODE) return bound->as.node == v->as.node;
    *bound = *v;
    return true;
}

static bool match_number(match *m, char letter, const value *v) {
    const size_t index = (size_t)(letter - 'A');
    double number;
    if (!number_of(m->in, v, &number)) return false;
    if (m->has_number[index]) return fabs(m->numbers[index] - number) <= 1e-6 * fabs(number);
    m->has_number[index] = true;
    m->numbers[index] = number;
    return true;
}

// *at moves behind what was matched.
static bool match_value(match *m, const char **at, const value *v) {
    const char *begin = *at;
    *at = skip(begin);
    const size_t length = (size_t)(*at - begin), name = strcspn(begin, "(,)");
    if (name < length)
        return v->kind == VALUE_NODE && match_call(m, begin, name, begin + name + 1, v->as.node);
    if (length == 1 && begin[0] >= 'a' && begin[0] <= 'z') return match_letter(m, begin[0], v);
    if (length == 1 && begin[0] >= 'A' && begin[0] <= 'Z') return match_number(m, begin[0], v);
    double wanted, number;
    return tare__parse_double(begin, length, &wanted) && number_of(m->in, v, &number) &&
           fabs(number - wanted) <= 2e-6 * fabs(wanted);
}

// What the pattern covers must be wanted by nothing else, and be of one call where that is asked.
static bool is_whole(const match *m, bool of_one_call) {
    const onnx_scope *first = tare__onnx_info(m->in, m->nodes[0])->scope;
    for (size_t i = 0; i < m->node_count; i++) {
        const node *n = m->nodes[i];
        for (size_t u = 0; i > 0 && u < n->user_count; u++) {
            bool inside = false;
            for (size_t k = 0; k < m->node_count; k++) inside |= m->nodes[k] == n->users[u];
            if (!inside) return false;
        }
        const onnx_scope *scope = tare__onnx_info(m->in, n)->scope;
        const bool both =
            first != NULL && scope != NULL && first->call != NULL && scope->call != NULL;
        if (of_one_call && both && strcmp(first->call, scope->call) != 0) return false;
    }
    return true;
}

// --- what it becomes ---

static tare_status call(onnx_import *in, const match *m, const char *target, const value *args,
                        size_t count, const keyword *kwargs, size_t kwarg_count) {
    const node_spec spec = {.op = NODE_CALL_FUNCTION,
                            .target = tare__function_canonical(target),
                            .args = args,
                            .arg_count = count,
                            .kwargs = kwargs,
                            .kwarg_count = kwarg_count};
    return tare__raise_replace(in, m->nodes[0], &spec, NULL);
}

#define LETTER(m, c) ((m)->letters[(c) - 'a'])

static tare_status unary(onnx_import *in, const match *m, const char *target) {
    return call(in, m, target, &LETTER(m, 'x'), 1, NULL, 0);
}
static tare_status gelu(onnx_import *in, const match *m) {
    return unary(in, m, "torch._C._nn.gelu");
}
static tare_status silu(onnx_import *in, const match *m) {
    return unary(in, m, "torch.nn.functional.silu");
}
static tare_status hardswish(onnx_import *in, const match *m) {
    return unary(in, m, "torch.nn.functional.hardswish");
}
static tare_status mish(onnx_import *in, const match *m) {
    return unary(in, m, "torch.nn.functional.mish");
}

static tare_status gelu_tanh(onnx_import *in, const match *m) {
    const keyword approximate = {"approximate", tare__string("tanh")};
    return call(in, m, "torch._C._nn.gelu", &LETTER(m, 'x'), 1, &approximate, 1);
}

// Weight and bias must be constants of the last dimension's size, or it was something else.
static tare_status layer_norm(onnx_import *in, const match *m) {
    const tare_tensor *w = tare__raise_constant(in, &LETTER(m, 'w'));
    const tare_tensor *b = tare__raise_constant(in, &LETTER(m, 'b'));
    const value *x = &tare__onnx_info(in, LETTER(m, 'x').as.node)->meta;
    if (w == NULL || b == NULL || x->kind != VALUE_TENSOR || w->ndim != 1 || b->ndim != 1)
        return TARE_OK;
    const tare_tensor *t = x->as.tensor;
    if (t->ndim == 0 || w->shape[0] != t->shape[t->ndim - 1] || b->shape[0] != w->shape[0])
        return TARE_OK;
    value size = tare__int(w->shape[0]);
    const value shape = {.kind = VALUE_TUPLE, .count = 1, .as.items = &size};
    const value args[] = {LETTER(m, 'x'), shape, LETTER(m, 'w'), LETTER(m, 'b'),
                          tare__float(tare__double_of_float((float)m->numbers['E' - 'A']))};
    return call(in, m, "torch.nn.functional.layer_norm", args, 5, NULL, 0);
}

// The product of the scale's roots with query and key is a spelling that only exporters write.
// The key comes transposed.
static tare_status attention(onnx_import *in, const match *m) {
    const double scale = m->numbers['S' - 'A'] * m->numbers['S' - 'A'];
    const value turn[] = {LETTER(m, 'k'), tare__int(-2), tare__int(-1)};
    const node_spec transpose = {
        .op = NODE_CALL_METHOD, .target = "transpose", .args = turn, .arg_count = 3};
    node *key = NULL;
    TARE_TRY(tare__graph_insert(in->draft, &transpose, m->nodes[0]->next, &key, in->err));
    const draft_info kept = *tare__onnx_info(in, m->nodes[0]);
    TARE_TRY(tare__onnx_add_info(in, key, kept.scope, kept.file_name));
    TARE_TRY(tare__onnx_infer(in, key));
    tare__graph_move_before(key, m->nodes[0]);
    const value args[] = {LETTER(m, 'q'), tare__node_value(key), LETTER(m, 'v')};
    const keyword kwargs[] = {{"scale", tare__float(tare__double_of_float((float)scale))},
                              {"attn_mask", LETTER(m, 'm')}};
    return call(in, m, "torch.nn.functional.scaled_dot_product_attention", args, 3, kwargs,
                LETTER(m, 'm').kind == VALUE_NODE ? 2 : 1);
}

// clang-format off
static const spelling spellings[] = {
    {"mul(mul(x,add(erf(div(x,1.4142135)),1)),0.5)", false, gelu},
    {"mul(x,mul(0.5,add(erf(div(x,1.4142135)),1)))", false, gelu},
    {"mul(mul(x,0.5),add(erf(div(x,1.4142135)),1))", false, gelu},
    {"mul(mul(x,add(erf(mul(x,0.70710678)),1)),0.5)", false, gelu},
    {"mul(x,mul(0.5,add(erf(mul(x,0.70710678)),1)))", false, gelu},
    {"mul(mul(x,0.5),add(erf(mul(x,0.70710678)),1))", false, gelu},
    {"mul(mul(x,0.5),add(tanh(mul(add(x,mul(pow(x,3),0.044715)),0.79788456)),1))", false, gelu_tanh},
    {"mul(x,mul(0.5,add(tanh(mul(add(x,mul(pow(x,3),0.044715)),0.79788456)),1)))", false, gelu_tanh},
    {"mul(mul(x,0.5),add(tanh(mul(add(x,mul(mul(mul(x,x),x),0.044715)),0.79788456)),1))", false, gelu_tanh},
    {"mul(x,mul(0.5,add(tanh(mul(add(x,mul(mul(mul(x,x),x),0.044715)),0.79788456)),1)))", false, gelu_tanh},
    {"mul(x,sigmoid(x))", true, silu},
    {"mul(x,hardsigmoid(x))", true, hardswish},
    {"mul(x,div(clamp(add(x,3),0,6),6))", true, hardswish},
    {"div(mul(x,clamp(add(x,3),0,6)),6)", true, hardswish},
    {"mul(x,div(relu6(add(x,3)),6))", true, hardswish},
    {"div(mul(x,relu6(add(x,3))),6)", true, hardswish},
    {"mul(x,tanh(softplus(x)))", true, mish},
    {"add(mul(div(sub(x,mean(x)),sqrt(add(mean(pow(sub(x,mean(x)),2)),E))),w),b)", false, layer_norm},
    {"add(mul(div(sub(x,mean(x)),sqrt(add(mean(mul(sub(x,mean(x)),sub(x,mean(x)))),E))),w),b)", false, layer_norm},
    {"matmul(softmax(add(matmul(mul(q,S),mul(k,S)),m)),v)", false, attention},
    {"matmul(softmax(matmul(mul(q,S),mul(k,S))),v)", false, attention},
};
// clang-format on

tare_status tare__raise_patterns(onnx_import *in, node *n) {
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        match m = {.in = in};
        const char *at = spellings[i].pattern;
        const value root = tare__node_value(n);
        if (!match_value(&m, &at, &root) || !is_whole(&m, spellings[i].of_one_call)) continue;
        return spellings[i].build(in, &m);
    }
    return TARE_OK;
}
