// SPDX-License-Identifier: Apache-2.0
// Rotations between linear layers that nothing but data movement and attention separates:
//   y = W2 (P (W1 x + b1)) = (W2 R^T) (P (R W1 x + R b1))
// where P mixes positions but no channels of a block. A Hadamard matrix R spreads the few large
// channels of what the second layer reads over all of a block, and changes no float result. This is
// the rotation of values in attention (R2 in SpinQuant, Liu et al., 2024; QuaRot, Ashkboos et al.,
// 2024), and of any two linear layers in a row. Rotations of a residual stream would have to pass
// norms with weights, and those of queries and keys positions, so they are none of it.
#include <math.h>
#include <string.h>

#include "core/math/divisor.h"
#include "core/memory/alloc.h"
#include "debug/improve/weight_observers.h"
#include "flow/calibrate/observer_list.h"
#include "ops/op.h"
#include "tare/improve.h"

enum { LEAST_BLOCK = 4, MOST_BLOCK = 256, MOST_READERS = 16, MOST_DEPTH = 24 };

// The paths from a layer's result; each ends at a linear layer that reads it.
typedef struct rotation {
    pass *p;
    biased_layer producer;
    biased_layer readers[MOST_READERS];
    size_t reader_count;
    int64_t block; // divides the last dimension of every value on the paths
} rotation;

// The size of the last dimension, and the number of dimensions; 0: not known.
typedef struct layout {
    int64_t last;
    int64_t ndim;
} layout;

// --- paths ---

// For sizes.
static int64_t common_block(int64_t a, int64_t b) {
    return (int64_t)tare__greatest_divisor((uint64_t)a, (uint64_t)b);
}

// The sizes or dimensions after the value: a list, or separate arguments.
static const value *items_of(const node *n, size_t *count) {
    const bool is_list = n->arg_count == 2 && tare__value_has_items(&n->args[1]);
    *count = is_list ? n->args[1].count : n->arg_count > 0 ? n->arg_count - 1 : 0;
    return is_list ? n->args[1].as.items : n->args + 1;
}

static bool read_int(const value *v, int64_t *out) {
    if (v->kind != VALUE_INT) return false;
    *out = v->as.integer;
    return true;
}

// A block consists of adjacent elements, so it stays together if its size divides the last
// dimension.
static bool pass_view(rotation *r, const node *n, layout *l) {
    size_t count = 0;
    const value *sizes = items_of(n, &count);
    int64_t last = 0;
    if (count == 0 || n->kwarg_count > 0 || l->last <= 0) return false;
    if (!read_int(&sizes[count - 1], &last)) return false;
    l->ndim = (int64_t)count;
    l->last = last > 0 ? last : 0; // inferred from the reader's inputs
    if (last > 0) r->block = common_block(r->block, last);
    return true;
}

static bool is_last_dim(const layout *l, int64_t dim) {
    return dim == -1 || l->ndim == 0 || dim == l->ndim - 1;
}

static bool pass_transpose(const node *n, const layout *l) {
    size_t count = 0;
    const value *dims = items_of(n, &count);
    int64_t a = 0, b = 0;
    return count == 2 && read_int(&dims[0], &a) && read_int(&dims[1], &b) && !is_last_dim(l, a) &&
           !is_last_dim(l, b);
}

static bool pass_permute(const node *n, const layout *l) {
    size_t count = 0;
    const value *dims = items_of(n, &count);
    int64_t last = 0;
    return count > 0 && read_int(&dims[count - 1], &last) &&
           (last == -1 || last == (int64_t)count - 1) &&
           (l->ndim == 0 || l->ndim == (int64_t)count);
}

static bool pass_attention(const node *n, const node *from) {
    return tare__node_arg(n, 2) == from && tare__node_arg(n, 0) != from &&
           tare__node_arg(n, 1) != from;
}

static bool pass_product(const node *n, const node *from) {
    return n->arg_count == 2 && tare__node_arg(n, 1) == from && tare__node_arg(n, 0) != from &&
           n->kwarg_count == 0;
}

static bool passes(rotation *r, const node *n, const node *from, layout *l) {
    const op_id id = tare__op_id(tare__called_row(r->p->model, n));
    if (tare__is_observer_node(r->p->model, n))
        return !tare__observer_info(tare__called_module(r->p->model, n))->has_fixed_qparams;
    if (id == TARE_OP_SCALED_DOT_PRODUCT_ATTENTION) return pass_attention(n, from);
    if (id == TARE_OP_MATMUL) return pass_product(n, from);
    if (tare__node_arg(n, 0) != from) return false;
    if (OP_IS_ANY(id, TARE_OP_DROPOUT, TARE_OP_CONTIGUOUS, TARE_OP_CLONE, TARE_OP_IDENTITY))
        return true;
    if (OP_IS_ANY(id, TARE_OP_VIEW, TARE_OP_RESHAPE)) return pass_view(r, n, l);
    if (id == TARE_OP_TRANSPOSE) return pass_transpose(n, l);
    return id == TARE_OP_PERMUTE && pass_permute(n, l);
}

static bool is_usable(const rotation *r, const biased_layer *l) {
    const tare_model *m = r->p->model;
    const tare_tensor *bias = tare__layer_bias(m, l);
    return l->node != NULL && l->tensor != NULL && l->tensor->ndim == 2 &&
           l->tensor->dtype == TARE_FLOAT32 &&
           !tare__op_has(tare__called_row(m, l->node), OP_TRANSPOSED) &&
           tare__layer_weight_fault(m, l) == NULL && tare__layer_bias_fault(m, l) == NULL &&
           (bias == NULL ? l->bias == NULL : bias->dtype == TARE_FLOAT32);
}

static bool add_reader(rotation *r, const biased_layer *reader, const node *from, const layout *l) {
    const int64_t inputs =
        reader->tensor != NULL && reader->tensor->ndim == 2 ? reader->tensor->shape[1] : 0;
    if (r->reader_count == MOST_READERS || tare__node_arg(reader->node, 0) != from ||
        !is_usable(r, reader) || (l->last > 0 && l->last != inputs))
        return false;
    r->block = common_block(r->block, inputs);
    r->readers[r->reader_count++] = *reader;
    return true;
}

static bool follow(rotation *r, const node *from, const layout *l, int depth) { // NOLINT: bounded
    bool is_fine = from->user_count > 0 && depth < MOST_DEPTH;
    for (size_t i = 0; i < from->user_count && is_fine; i++) {
        node *user = from->users[i];
        layout next = *l;
        biased_layer reader;
        tare__layer_find(r->p->model, user, &reader);
        if (reader.node != NULL)
            is_fine = add_reader(r, &reader, from, l);
        else
            is_fine = tare__node_is_call(user) && passes(r, user, from, &next) &&
                      follow(r, user, &next, depth + 1);
    }
    return is_fine;
}

static bool find(rotation *r, node *n) {
    const module *called = tare__called_module(r->p->model, n);
    tare__layer_find(r->p->model, n, &r->producer);
    if (r->producer.node == NULL || !is_usable(r, &r->producer) ||
        (called != NULL && called->class->fused != FUSED_NONE))
        return false;
    r->block = r->producer.tensor->shape[0];
    const layout l = {.last = r->block};
    if (!follow(r, n, &l, 0)) return false;
    r->block &= -r->block; // Hadamard matrices of powers of two only need sums and differences
    if (r->block > MOST_BLOCK) r->block = MOST_BLOCK;
    return r->block >= LEAST_BLOCK;
}

// --- rotating ---

// Multiplies x[stride * i], `count` elements, by Sylvester's matrix, normalized, which is its own
// inverse.
static void rotate(float *x, int64_t count, int64_t stride, double *scratch) {
    for (int64_t i = 0; i < count; i++) scratch[i] = (double)x[i * stride];
    for (int64_t half = 1; half < count; half *= 2)
        for (int64_t i = 0; i < count; i++) {
            if ((i & half) != 0) continue;
            const double a = scratch[i], b = scratch[i + half];
            scratch[i] = a + b;
            scratch[i + half] = a - b;
        }
    const double length = sqrt((double)count);
    for (int64_t i = 0; i < count; i++) x[i * stride] = (float)(scratch[i] / length);
}

static tare_status rotate_rows(const rotation *r) {
    biased_layer l = r->producer;
    double scratch[MOST_BLOCK];
    tare_tensor *w = NULL, *b = NULL;
    const tare_tensor *bias = tare__layer_bias(r->p->model, &l);
    TARE_TRY(tare__tensor_copy(l.tensor, &w, r->p->err));
    const int64_t inner = w->shape[1];
    for (int64_t row = 0; row < w->shape[0]; row += r->block)
        for (int64_t k = 0; k < inner; k++)
            rotate(tare__f32(w) + row * inner + k, r->block, inner, scratch);
    tare_status status = tare__layer_set_weight(r->p, &l, w);
    tare_tensor_release(w);
    if (status != TARE_OK || bias == NULL) return status;
    TARE_TRY(tare__tensor_copy(bias, &b, r->p->err));
    for (int64_t row = 0; row < b->count; row += r->block)
        rotate(tare__f32(b) + row, r->block, 1, scratch);
    status = tare__layer_set_bias(r->p, &l, b, false);
    tare_tensor_release(b);
    return status;
}

static tare_status rotate_columns(const rotation *r, const biased_layer *reader) {
    biased_layer l = *reader;
    double scratch[MOST_BLOCK];
    tare_tensor *w = NULL;
    TARE_TRY(tare__tensor_copy(l.tensor, &w, r->p->err));
    for (int64_t at = 0; at < w->count; at += r->block)
        rotate(tare__f32(w) + at, r->block, 1, scratch);
    const tare_status status = tare__layer_set_weight(r->p, &l, w);
    tare_tensor_release(w);
    return status;
}

static tare_status tell(const rotation *r) {
    TARE_TRY(TARE_DECIDE(r->p, r->producer.node, "scaled", "rotation",
                         "its output channels are rotated by a Hadamard matrix of size %lld; the "
                         "layers that read them, first '%s', rotate back",
                         (long long)r->block, r->readers[0].node->name));
    for (size_t i = 0; i < r->reader_count; i++)
        TARE_TRY(TARE_DECIDE(r->p, r->readers[i].node, "scaled", "rotation",
                             "its weight undoes a rotation, by a Hadamard matrix of size %lld, of "
                             "the output of '%s'",
                             (long long)r->block, r->producer.node->name));
    return TARE_OK;
}

static tare_status run(pass *p, size_t *count) {
    const weight_change own = {.p = p};
    TARE_TRY(tare__weight_change_begin(&own)); // refuses unsupported models
    for (node *n = p->model->root->graph->first; n != NULL; n = n->next) {
        rotation r = {.p = p};
        if (!find(&r, n)) continue;
        TARE_TRY(rotate_rows(&r));
        for (size_t i = 0; i < r.reader_count; i++) TARE_TRY(rotate_columns(&r, &r.readers[i]));
        TARE_TRY(tell(&r));
        (*count)++;
    }
    return tare__observers_forget(p->model, p->err);
}

tare_status tare_rotate_layers(const tare_model *prepared, size_t *count, tare_model **out,
                               tare_error *err) {
    pass p = {0};
    size_t rotated = 0;
    TARE_TRY(tare__improve_begin(&p, prepared, out, err));
    const tare_status status = run(&p, &rotated);
    if (status == TARE_OK && count != NULL) *count = rotated;
    return tare__pass_end(&p, status, out);
}
