// SPDX-License-Identifier: Apache-2.0
// Entries of open constants, and arithmetic on sizes in the graph.
#include "io/onnx/read/sizes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/onnx/read/rules_common.h"

// --- open constants ---

bool tare__onnx_is_open(const onnx_import *in, const tare_tensor *t) {
    const onnx_constant *c = tare__onnx_constant_of(in, t);
    return c != NULL && c->entries != NULL;
}

bool tare__onnx_holds_open(const onnx_import *in, const value *v) {
    if (v->kind == VALUE_TENSOR) return tare__onnx_is_open(in, v->as.tensor);
    if (tare__value_has_items(v))
        for (uint32_t i = 0; i < v->count; i++)
            if (tare__onnx_holds_open(in, &v->as.items[i])) return true;
    return false;
}

value tare__onnx_entry(const onnx_import *in, const tare_tensor *t, int64_t i) {
    const onnx_constant *c = tare__onnx_constant_of(in, t);
    if (c != NULL && c->entries != NULL) return c->entries[i];
    if (t->dtype == TARE_BOOL) return tare__bool(tare__tensor_get(t, i) != 0);
    if (tare__dtype(t->dtype)->is_float) return tare__float(tare__tensor_get(t, i));
    return tare__int(t->dtype == TARE_INT64 ? ((const int64_t *)t->data)[i]
                                            : (int64_t)tare__tensor_get(t, i));
}

value tare__onnx_known(const onnx_import *in, const value *v, bool other) {
    if (v->kind != VALUE_NODE) return *v;
    const draft_info *info = &in->info[v->as.node->id];
    return other ? info->other : info->meta;
}

static bool number_of(const onnx_import *in, const value *v, bool other, double *out) {
    const value known = tare__onnx_known(in, v, other);
    return tare__value_number(&known, out);
}

static bool is_close(double a, double b) {
    return a == b || fabs(a - b) <= 1e-5 * fabs(a);
}

static void set_element(tare_tensor *t, int64_t i, const value *v, double number) {
    if (v->kind == VALUE_INT && !tare__dtype(t->dtype)->is_float)
        tare__tensor_set_int(t, i, v->as.integer);
    else
        tare__tensor_set(t, i, number);
}

tare_status tare__onnx_set_entries(onnx_call *c, tare_tensor *t, value *entries) {
    onnx_constant *known = tare__onnx_constant_of(c->in, t);
    tare_tensor *other = NULL;
    bool is_open = false;
    for (int64_t i = 0; i < t->count; i++) is_open |= entries[i].kind == VALUE_NODE;
    known->other = NULL;
    known->entries = NULL;
    if (!is_open) return TARE_OK;
    TARE_TRY(tare__onnx_new_tensor(c, t->dtype, t->ndim, t->shape, &other));
    TARE_TRY(tare__onnx_add_constant(c->in, other, NULL));
    for (int64_t i = 0; i < t->count; i++) {
        double now = 0, otherwise = 0;
        if (!number_of(c->in, &entries[i], false, &now) ||
            !number_of(c->in, &entries[i], true, &otherwise) ||
            !is_close(now, tare__tensor_get(t, i)))
            return tare__onnx_fail(c, "a size is computed in a way that is not supported");
        set_element(other, i, &entries[i], otherwise);
    }
    known->other = other;
    known->entries = entries;
    return TARE_OK;
}

// --- which input's dimension ---

void tare__onnx_blame(onnx_import *in, const value *v) {
    const node *n = v->kind == VALUE_NODE ? v->as.node : NULL;
    for (int depth = 0; n != NULL && depth < 64; depth++) {
        const node *next = NULL;
        for (size_t i = 0; i < n->input_count && next == NULL; i++) next = n->inputs[i];
        if (next != NULL && next->op == NODE_PLACEHOLDER && n->arg_count == 2 &&
            n->args[1].kind == VALUE_INT) {
            in->blamed = next;
            in->blamed_dim = (int)n->args[1].as.integer;
            return;
        }
        n = next;
    }
}

// --- what a number is at least ---

static int64_t least_of(const onnx_import *in, const value *v, int depth);

static int64_t bounded(double x) {
    return x < -0x1p53 ? INT64_MIN : x > 0x1p53 ? INT64_C(1) << 53 : (int64_t)x;
}

// For a sum, product or the like, from the least values of the operands; unknown if they may be
// negative.
static int64_t least_of_call(const onnx_import *in, const node *n, int depth) {
    const op_id op = tare__node_op(n);
    if (op == TARE_OP_SIZE) return 1;
    if (n->arg_count < 2 || depth == 0) return INT64_MIN;
    const int64_t a = least_of(in, &n->args[0], depth - 1);
    const int64_t b = least_of(in, &n->args[1], depth - 1);
    if (op == TARE_OP_SYM_MAX) return a > b ? a : b;
    if (op == TARE_OP_SYM_MIN) return a < b ? a : b;
    if (op == TARE_OP_SUB && n->args[1].kind == VALUE_INT && a != INT64_MIN)
        return bounded((double)a - (double)n->args[1].as.integer);
    if (op == TARE_OP_ADD && a != INT64_MIN && b != INT64_MIN)
        return bounded((double)a + (double)b);
    if (a < 0 || b < 0) return INT64_MIN;
    if (op == TARE_OP_MUL) return bounded((double)a * (double)b);
    return op == TARE_OP_FLOOR_DIVIDE || op == TARE_OP_REMAINDER ? 0 : INT64_MIN;
}

static int64_t least_of(const onnx_import *in, const value *v, int depth) {
    if (v->kind == VALUE_INT) return v->as.integer;
    return v->kind == VALUE_NODE ? least_of_call(in, v->as.node, depth) : INT64_MIN;
}

int64_t tare__onnx_least(const onnx_import *in, const value *v) {
    enum { MOST_DEPTH = 8 };
    return least_of(in, v, MOST_DEPTH);
}

// --- arithmetic ---

static bool is_int(const value *v, int64_t i) {
    return v->kind == VALUE_INT && v->as.integer == i;
}

static bool same(const value *a, const value *b) {
    return a->kind == VALUE_NODE && b->kind == VALUE_NODE && a->as.node == b->as.node;
}

// Sums, differences and products with a known result: x + 0, x - x, x * 1.
static bool known_arithmetic(op_id op, const value *a, const value *b, value *out) {
    if (op == TARE_OP_ADD && is_int(b, 0)) return *out = *a, true;
    if (op == TARE_OP_ADD && is_int(a, 0)) return *out = *b, true;
    if (op == TARE_OP_SUB && is_int(b, 0)) return *out = *a, true;
    if (op == TARE_OP_SUB && same(a, b)) return *out = tare__int(0), true;
    if (op == TARE_OP_MUL && is_int(b, 1)) return *out = *a, true;
    if (op == TARE_OP_MUL && is_int(a, 1)) return *out = *b, true;
    if (op == TARE_OP_MUL && (is_int(a, 0) || is_int(b, 0))) return *out = tare__int(0), true;
    if (op == TARE_OP_FLOOR_DIVIDE && is_int(b, 1)) return *out = *a, true;
    if (op == TARE_OP_REMAINDER && is_int(b, 1)) return *out = tare__int(0), true;
    return false;
}

// Comparisons with a result that does not depend on the open sizes.
static bool known_comparison(const onnx_import *in, op_id op, const value *a, const value *b,
                             value *out) {
    const int64_t least = tare__onnx_least(in, a), other = tare__onnx_least(in, b);
    const bool above = b->kind == VALUE_INT && least > b->as.integer;
    const bool below = a->kind == VALUE_INT && other > a->as.integer;
    const bool differ = above || below;
    if (op == TARE_OP_SYM_MAX && (above || same(a, b))) return *out = *a, true;
    if (op == TARE_OP_SYM_MAX && b->kind == VALUE_INT && least == b->as.integer)
        return *out = *a, true;
    if (op == TARE_OP_SYM_MAX && (below || (a->kind == VALUE_INT && other == a->as.integer)))
        return *out = *b, true;
    if (op == TARE_OP_SYM_MIN && b->kind == VALUE_INT && b->as.integer >= INT32_MAX)
        return *out = *a, true;
    if (op == TARE_OP_EQ && (differ || same(a, b))) return *out = tare__bool(!differ), true;
    if (op == TARE_OP_NE && (differ || same(a, b))) return *out = tare__bool(differ), true;
    if ((op == TARE_OP_GT || op == TARE_OP_GE) && differ) return *out = tare__bool(above), true;
    if ((op == TARE_OP_LT || op == TARE_OP_LE) && differ) return *out = tare__bool(below), true;
    return false;
}

static void append_key(char *key, size_t size, const value *v) {
    const size_t used = strlen(key);
    if (v->kind == VALUE_NODE)
        snprintf(key + used, size - used, "|n%zu", v->as.node->id);
    else if (v->kind == VALUE_FLOAT)
        snprintf(key + used, size - used, "|%a", v->as.real);
    else
        snprintf(key + used, size - used, "|%" PRId64,
                 v->kind == VALUE_BOOL ? (int64_t)v->as.boolean : v->as.integer);
}

// The key of a size: its values for both stand-ins.
static bool size_key(const onnx_import *in, const value *v, char key[ONNX_SIZE_KEY]) {
    double now, other;
    if (!number_of(in, v, false, &now) || !number_of(in, v, true, &other)) return false;
    if (now == other || fabs(now) > 0x1p53 || fabs(other) > 0x1p53) return false;
    tare__onnx_size_key((int64_t)now, (int64_t)other, key);
    return true;
}

// Size nodes belong to no module: a module that reads a size must not appear to compute more than
// its own operator.
static tare_status emit_number(onnx_call *c, bool is_method, const char *target, const value *args,
                               size_t count, value *out) {
    const onnx_scope *scope = c->scope;
    c->scope = NULL;
    const tare_status status = tare__onnx_call(c, is_method, target, args, count, out);
    c->scope = scope;
    return status;
}

static bool remember(onnx_import *in, map *m, const char *key, const value *v) {
    value *kept = tare__arena_alloc(&in->memory, sizeof *kept);
    if (kept == NULL) return false;
    *kept = *v;
    return tare__map_set(m, key, kept);
}

// True if v is a sum of products of sizes. Quotients and remainders of different sizes are often
// equal by chance.
static bool is_polynomial(const value *v, int depth) {
    if (v->kind == VALUE_INT) return true;
    if (v->kind != VALUE_NODE || depth == 0) return false;
    const node *n = v->as.node;
    const op_id op = tare__node_op(n);
    if (op == TARE_OP_SIZE) return true;
    return (op == TARE_OP_ADD || op == TARE_OP_SUB || op == TARE_OP_MUL) && n->arg_count == 2 &&
           is_polynomial(&n->args[0], depth - 1) && is_polynomial(&n->args[1], depth - 1);
}

// Replaces a result by an earlier node that has the same size: (size + 1) - 1.
static tare_status settle(onnx_call *c, value *v) {
    enum { MOST_DEPTH = 8 };
    char key[ONNX_SIZE_KEY];
    if (tare__onnx_known(c->in, v, false).kind != VALUE_INT || !c->in->open->is_exact ||
        !is_polynomial(v, MOST_DEPTH) || !size_key(c->in, v, key))
        return TARE_OK;
    const value *before = tare__map_get(&c->in->sizes, key);
    if (before != NULL) return *v = *before, TARE_OK;
    return remember(c->in, &c->in->sizes, key, v) ? TARE_OK : tare__out_of_memory(c->in->err);
}

tare_status tare__onnx_scalar(onnx_call *c, const char *target, const value *args, size_t count,
                              value *out) {
    char key[300];
    const op_id op = tare__op_id(tare__op_function(target));
    if (count == 2 && (known_arithmetic(op, &args[0], &args[1], out) ||
                       known_comparison(c->in, op, &args[0], &args[1], out)))
        return TARE_OK;
    snprintf(key, sizeof key, "%s", target);
    for (size_t i = 0; i < count; i++) append_key(key, sizeof key, &args[i]);
    const value *before = tare__map_get(&c->in->numbers, key);
    if (before != NULL) return *out = *before, TARE_OK;
    TARE_TRY(emit_number(c, false, target, args, count, out));
    if (out->kind == VALUE_NODE) TARE_TRY(settle(c, out));
    return remember(c->in, &c->in->numbers, key, out) ? TARE_OK : tare__out_of_memory(c->in->err);
}

// --- sizes of tensors ---

// The input and dimension whose size has both values; NULL if there is none.
static node *input_of_sizes(onnx_import *in, int64_t now, int64_t other, int *dim) {
    for (node *n = in->draft->first; n != NULL && n->op == NODE_PLACEHOLDER; n = n->next) {
        const draft_info *info = tare__onnx_info(in, n);
        const tare_tensor *t = info->meta.as.tensor, *o = info->other.as.tensor;
        for (int d = 0; d < t->ndim; d++)
            if (t->shape[d] == now && o->shape[d] == other) return *dim = d, n;
    }
    return NULL;
}

tare_status tare__onnx_size(onnx_call *c, const value *x, int d, value *out) {
    const tare_tensor *t = tare__onnx_meta(c, x);
    const value *otherwise =
        x->kind == VALUE_NODE ? &tare__onnx_info(c->in, x->as.node)->other : NULL;
    *out = tare__int(t->shape[d]);
    if (c->in->open == NULL || otherwise == NULL || otherwise->kind != VALUE_TENSOR) return TARE_OK;
    const tare_tensor *o = otherwise->as.tensor;
    char key[ONNX_SIZE_KEY];
    if (o->ndim != t->ndim || o->shape[d] == t->shape[d]) return TARE_OK;
    int dim = d;
    node *from = NULL;
    if (c->in->open->is_exact) {
        tare__onnx_size_key(t->shape[d], o->shape[d], key);
        from = input_of_sizes(c->in, t->shape[d], o->shape[d], &dim);
    } else {
        snprintf(key, sizeof key, "n%zu|%d", x->as.node->id, d);
    }
    const value *before = tare__map_get(&c->in->sizes, key);
    if (before != NULL) return *out = *before, TARE_OK;
    const value args[] = {from != NULL ? tare__node_value(from) : *x, tare__int(dim)};
    TARE_TRY(emit_number(c, true, "size", args, 2, out));
    return remember(c->in, &c->in->sizes, key, out) ? TARE_OK : tare__out_of_memory(c->in->err);
}

bool tare__onnx_size_is_open(const onnx_call *c, const value *x, int d) {
    if (c->in->open == NULL || x->kind != VALUE_NODE) return false;
    const draft_info *info = tare__onnx_info(c->in, x->as.node);
    if (info->meta.kind != VALUE_TENSOR || info->other.kind != VALUE_TENSOR) return false;
    const tare_tensor *t = info->meta.as.tensor, *o = info->other.as.tensor;
    return d < o->ndim && o->shape[d] != t->shape[d];
}

bool tare__onnx_may_be_same_size(const onnx_call *c, const value *a, const value *b) {
    double x, y, p, q;
    return number_of(c->in, a, false, &x) && number_of(c->in, b, false, &y) && x == y &&
           number_of(c->in, a, true, &p) && number_of(c->in, b, true, &q) && p == q;
}

bool tare__onnx_same_size(const onnx_call *c, const value *a, const value *b) {
    if (a->kind == VALUE_NODE && b->kind == VALUE_NODE && !c->in->open->is_exact) return same(a, b);
    return tare__onnx_may_be_same_size(c, a, b);
}

// --- inputs of nodes ---

tare_status tare__onnx_input_sizes(onnx_call *c, size_t i, const char *name, size_t capacity,
                                   value *out, size_t *count, bool *given) {
    int64_t numbers[ONNX_MOST_SIZES];
    const value v = tare__onnx_input(c, i);
    const bool is_open = v.kind == VALUE_TENSOR && tare__onnx_is_open(c->in, v.as.tensor);
    if (capacity > ONNX_MOST_SIZES) capacity = ONNX_MOST_SIZES;
    if (!is_open) {
        TARE_TRY(tare__onnx_input_ints(c, i, name, capacity, numbers, count, given));
        for (size_t k = 0; k < *count; k++) out[k] = tare__int(numbers[k]);
        return TARE_OK;
    }
    const tare_tensor *t = v.as.tensor;
    if (given != NULL) *given = true;
    if (t->count > (int64_t)capacity)
        return tare__onnx_fail(c, "input %zu ('%s') has %lld values, at most %zu fit", i, name,
                               (long long)t->count, capacity);
    for (int64_t k = 0; k < t->count; k++) {
        out[k] = tare__onnx_entry(c->in, t, k);
        if (tare__onnx_known(c->in, &out[k], false).kind != VALUE_INT)
            return tare__onnx_malformed(c, "input %zu ('%s') must hold integers", i, name);
    }
    *count = (size_t)t->count;
    return TARE_OK;
}

tare_status tare__onnx_input_scalar(onnx_call *c, size_t i, const char *name, value *out) {
    const value v = tare__onnx_input(c, i);
    double number;
    if (v.kind == VALUE_TENSOR && v.as.tensor->count == 1) {
        *out = tare__onnx_entry(c->in, v.as.tensor, 0);
        return TARE_OK;
    }
    TARE_TRY(tare__onnx_input_number(c, i, name, 0, &number)); // fails with the reason
    return tare__onnx_malformed(c, "input %zu ('%s') is missing", i, name);
}

int64_t tare__onnx_stand_in(const onnx_call *c, const value *v) {
    double number = 0;
    if (v->kind == VALUE_INT) return v->as.integer;
    return number_of(c->in, v, false, &number) ? (int64_t)number : 0;
}

// --- as tensors ---

tare_status tare__onnx_full(onnx_call *c, const value *sizes, size_t count, tare_dtype dtype,
                            const value *number, value *out) {
    const keyword type = {"dtype", tare__dtype_value(dtype)};
    value args[] = {tare__none(), *number};
    TARE_TRY(tare__onnx_list(c, sizes, count, &args[0]));
    const onnx_emit full = {
        .target = "torch.full", .args = args, .arg_count = 2, .kwargs = &type, .kwarg_count = 1};
    return tare__onnx_function(c, &full, out);
}

tare_status tare__onnx_open_tensor(onnx_call *c, const tare_tensor *t, value *out) {
    enum { MOST_SIZES = 256 };
    value list, dims[TARE_MAX_DIMS];
    const value one = tare__int(1);
    if (t->ndim == 0) return *out = tare__onnx_entry(c->in, t, 0), TARE_OK;
    if (t->count < 1 || t->count > MOST_SIZES) {
        for (int64_t i = 0; i < t->count; i++) {
            const value v = tare__onnx_entry(c->in, t, i);
            tare__onnx_blame(c->in, &v);
        }
        return tare__onnx_fail(c, "a tensor of %lld sizes is too large", (long long)t->count);
    }
    value *sizes = tare__arena_array(&c->scratch, (size_t)t->count, sizeof *sizes);
    if (sizes == NULL) return tare__out_of_memory(c->in->err);
    for (int64_t i = 0; i < t->count; i++) {
        const value number = tare__onnx_entry(c->in, t, i);
        TARE_TRY(tare__onnx_full(c, &one, 1, t->dtype, &number, &sizes[i]));
    }
    TARE_TRY(tare__onnx_list(c, sizes, (size_t)t->count, &list));
    TARE_TRY(ONNX_CALL(c, out, "torch.cat", list, tare__int(0)));
    if (t->ndim == 1) return TARE_OK;
    for (int d = 0; d < t->ndim; d++) dims[d] = tare__int(t->shape[d]);
    return tare__onnx_reshape_to(c, out, dims, (size_t)t->ndim, out);
}
