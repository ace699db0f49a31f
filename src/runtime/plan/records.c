// SPDX-License-Identifier: Apache-2.0
// Questions about float calls, and chains of calls. A value within a chain has exactly one reader,
// the next record; an observer, a second reader or an output of the graph ends the chain.
#include "runtime/plan/records.h"

#include <string.h>

#include "ops/layer_call.h"
#include "ops/quantized/layer.h"
#include "ops/rules.h"

bool tare__record_is(const plan_record *r, op_id id) {
    return r->op == id;
}

bool tare__record_is_one_of(const plan_record *r, const op_id *ids) {
    while (*ids != TARE_OP_NONE && *ids != r->op) ids++;
    return *ids != TARE_OP_NONE;
}

// --- chains ---

size_t tare__plan_sole_reader(const plan_builder *b, size_t record) {
    const plan_record *r = &b->records[record];
    if (r->result == NOTHING) return NOTHING;
    const plan_value *v = &b->values[r->result];
    if (v->uses_left != 1 || v->consumer == NOTHING) return NOTHING;
    const plan_record *next = &b->records[v->consumer];
    const bool is_free = next->head == v->consumer && next->next == NOTHING;
    return is_free ? v->consumer : NOTHING;
}

size_t tare__plan_only_reader(const plan_builder *b, size_t record) {
    const size_t next = tare__plan_sole_reader(b, record);
    return next != NOTHING && tare__plan_is_float(b, &b->records[next]) ? next : NOTHING;
}

void tare__plan_append(plan_builder *b, size_t head, size_t *last, size_t next) {
    b->records[*last].next = next;
    b->records[next].head = head;
    for (size_t i = head; i != NOTHING; i = b->records[i].next) b->records[i].group = next;
    *last = next;
}

bool tare__plan_keeps_shape(const plan_builder *b, size_t record, size_t next) {
    return tare__same_shape(b->values[b->records[record].result].tensor,
                            b->values[b->records[next].result].tensor);
}

// --- floats ---

static bool is_float_tensor(const tare_tensor *t) {
    return t->dtype == TARE_FLOAT32;
}

bool tare__plan_is_float(const plan_builder *b, const plan_record *r) {
    for (size_t i = 0; i < r->input_count; i++)
        if (!is_float_tensor(b->values[r->inputs[i]].tensor)) return false;
    const module *m = r->call.module; // other modules compute with weights that are not their own
    if (m != NULL && m->class->role != ROLE_FLOAT) return false;
    return r->call.op != NULL && r->result != NOTHING && !r->is_observer && !r->is_view &&
           is_float_tensor(b->values[r->result].tensor) && b->values[r->result].tensor->count > 0;
}

bool tare__plan_is_float_op(const plan_builder *b, const plan_record *r, const op_id *ids) {
    return tare__record_is_one_of(r, ids) && tare__plan_is_float(b, r);
}

// True if no argument after the first `used` ones would affect the loop.
static bool has_only(const plan_record *r, size_t used) {
    op_call call = r->call;
    call.err = NULL;
    for (size_t i = used; i < call.param_count; i++) {
        double factor = 0;
        if (!tare__call_given(&call, i) || tare__op_param_is(call.op, i, "inplace")) continue;
        if (tare__op_param_is(call.op, i, "alpha") &&
            tare__call_double(&call, i, 1, &factor) == TARE_OK && factor == 1)
            continue;
        if (tare__op_param_is(call.op, i, "approximate")) continue; // tare__element_of evaluates it
        return false;
    }
    return true;
}

bool tare__plan_is_element(const plan_record *r) {
    const op_info *op = r->call.op;
    return op != NULL && op->element != NULL && has_only(r, 1 + op->element->count) &&
           tare__element_of(&r->call) != NULL;
}

bool tare__plan_is_binary(const plan_record *r) {
    const op_info *op = r->call.op;
    return op != NULL && op->binary != NULL && tare__binary_loop(op->binary) != NULL &&
           has_only(r, 2);
}

bool tare__plan_is_sum(const plan_builder *b, const plan_record *r) {
    return tare__record_is(r, TARE_OP_ADD) && tare__plan_is_binary(r) && r->input_count == 2 &&
           tare__same_shape(b->values[r->inputs[0]].tensor, b->values[r->inputs[1]].tensor);
}

bool tare__plan_element_loop(const plan_builder *b, const plan_record *r, element_loop *loop,
                             float p[ELEMENT_MAX_PARAMETERS]) {
    op_call call = r->call;
    call.err = NULL;
    const op_element *element = tare__element_of(&call);
    const bool has_kernel = element->kind != ELEMENT_OTHER && b->setting->kernels != NULL;
    *loop = has_kernel ? b->setting->kernels->rows->elements[element->kind]
                       : tare__element_loop(element);
    return tare__element_parameters(&call, element, p) == TARE_OK;
}

bool tare__plan_swaps_heads(const plan_builder *b, const plan_record *r) {
    op_call call = r->call;
    call.err = NULL;
    if (r->result == NOTHING || r->input_count != 1 || call.op == NULL || r->is_view) return false;
    const tare_tensor *x = b->values[r->inputs[0]].tensor;
    if (x->ndim != 4 || (x->dtype != TARE_FLOAT32 && !tare__is_byte_quantized(x))) return false;
    if (tare__op_id(call.op) == TARE_OP_TRANSPOSE) {
        int d[2];
        return tare__call_dim(&call, 1, 0, 4, &d[0]) == TARE_OK &&
               tare__call_dim(&call, 2, 1, 4, &d[1]) == TARE_OK && d[0] + d[1] == 3 &&
               d[0] * d[1] == 2;
    }
    int64_t order[4];
    size_t count = 0;
    return tare__op_id(call.op) == TARE_OP_PERMUTE &&
           tare__call_int_list(&call, 1, 4, order, &count) == TARE_OK && count == 4 &&
           order[0] == 0 && order[1] == 2 && order[2] == 1 && order[3] == 3;
}

bool tare__plan_is_pool(const plan_record *r) {
    static const op_id ids[] = {TARE_OP_MAX_POOL1D,
                                TARE_OP_MAX_POOL2D,
                                TARE_OP_MAX_POOL3D,
                                TARE_OP_AVG_POOL1D,
                                TARE_OP_AVG_POOL2D,
                                TARE_OP_AVG_POOL3D,
                                TARE_OP_ADAPTIVE_AVG_POOL1D,
                                TARE_OP_ADAPTIVE_AVG_POOL2D,
                                TARE_OP_ADAPTIVE_AVG_POOL3D,
                                TARE_OP_ADAPTIVE_MAX_POOL2D,
                                TARE_OP_NONE};
    return tare__record_is_one_of(r, ids);
}

// True if it reduces exactly all dimensions after the second.
bool tare__plan_is_over_pixels(const plan_record *r, const tare_tensor *x) {
    op_call call = r->call;
    int64_t dims[TARE_MAX_DIMS];
    size_t count = 0;
    bool named[TARE_MAX_DIMS] = {false};
    call.err = NULL;
    if (call.param_count < 3 || !tare__call_given(&call, 1) ||
        tare__call_int_list(&call, 1, TARE_MAX_DIMS, dims, &count) != TARE_OK ||
        count + 2 != (size_t)x->ndim)
        return false;
    for (size_t i = 3; i < call.param_count; i++)
        if (tare__call_given(&call, i)) return false;
    for (size_t i = 0; i < count; i++) {
        const int64_t d = dims[i] < 0 ? dims[i] + x->ndim : dims[i];
        if (d < 2 || d >= x->ndim || named[d]) return false;
        named[d] = true;
    }
    return true;
}
