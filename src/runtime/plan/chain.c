// SPDX-License-Identifier: Apache-2.0
// Which records one step can compute together: a layer with its batch norm, activation and residual
// addition; elementwise operators in a row. A value within a chain is read by the next record
// alone: an observer, a second reader or the graph's output ends it.
#include <string.h>

#include "ops/layer_call.h"
#include "ops/quantized/layer.h"
#include "ops/quantized/table.h"
#include "ops/rules.h"
#include "runtime/plan/steps.h"

enum { MOST_ELEMENTS = 16 };

// The record that alone reads what r makes; NOTHING if there are others, or it is in a chain.
static size_t sole_reader(const plan_builder *b, const plan_record *r) {
    if (r->result == NOTHING) return NOTHING;
    const plan_value *v = &b->values[r->result];
    if (v->uses_left != 1 || v->consumer == NOTHING) return NOTHING;
    const plan_record *next = &b->records[v->consumer];
    const bool is_free = next->head == v->consumer && next->next == NOTHING;
    return is_free ? v->consumer : NOTHING;
}

// The same, if it computes on floats alone.
static size_t only_reader(const plan_builder *b, const plan_record *r) {
    const size_t next = sole_reader(b, r);
    return next != NOTHING && tare__plan_is_float(b, &b->records[next]) ? next : NOTHING;
}

size_t tare__plan_only_reader(const plan_builder *b, size_t record) {
    return only_reader(b, &b->records[record]);
}

static bool keeps_shape(const plan_builder *b, const plan_record *r, const plan_record *next) {
    return tare__same_shape(b->values[r->result].tensor, b->values[next->result].tensor);
}

// Arguments after the first `used` ones say nothing that a loop would have to know.
static bool has_only(const plan_record *r, size_t used) {
    op_call call = r->call;
    call.err = NULL;
    for (size_t i = used; i < call.param_count; i++) {
        double factor = 0;
        if (!tare__call_given(&call, i) || tare__op_param_is(call.op, i, "inplace")) continue;
        if (tare__op_param_is(call.op, i, "alpha") &&
            tare__call_double(&call, i, 1, &factor) == TARE_OK && factor == 1)
            continue;
        if (tare__op_param_is(call.op, i, "approximate")) continue; // tare__element_of reads it
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
    return strcmp(tare__record_op(r), "add") == 0 && tare__plan_is_binary(r) &&
           r->input_count == 2 &&
           tare__same_shape(b->values[r->inputs[0]].tensor, b->values[r->inputs[1]].tensor);
}

static void append(plan_builder *b, size_t head, size_t *last, size_t next) {
    b->records[*last].next = next;
    b->records[next].head = head;
    for (size_t i = head; i != NOTHING; i = b->records[i].next) b->records[i].group = next;
    *last = next;
}

// --- layers ---

static bool is_layer(const plan_builder *b, const plan_record *r) {
    return tare__plan_is_float(b, r) && tare__plan_layer_kind(r) != NULL;
}

// A batch norm by statistics that are known, over the channels of the layer.
static bool is_foldable(const plan_builder *b, const plan_record *layer, const plan_record *next) {
    static const char *const params[] = {"running_mean", "running_var", "weight", "bias"};
    const op_call *call = &next->call;
    const tare_tensor *y = b->values[layer->result].tensor, *w = layer->call.param[1]->as.tensor;
    if (strcmp(tare__record_op(next), "batch_norm") != 0 || y->ndim != w->ndim)
        return false; // without a batch, and linear layers of sequences: other channels
    if (tare__plan_layer_is_transposed(layer) && w->shape[1] != y->shape[1])
        return false; // its groups share a dimension of the weights
    for (size_t i = 0; i < sizeof params / sizeof *params; i++) {
        const value *v = call->param[tare__op_param_index(call->op, params[i])];
        const bool is_none = v == NULL || v->kind == VALUE_NONE;
        if (is_none && i < 2) return false;
        if (!is_none && (v->kind != VALUE_TENSOR || v->as.tensor->data == NULL)) return false;
    }
    const value *training = call->param[tare__op_param_index(call->op, "training")];
    return training == NULL || training->kind != VALUE_BOOL || !training->as.boolean;
}

// What follows a layer of a chain; the record that reads its end. *adds: it has a residual.
static size_t join_tail(plan_builder *b, size_t head, size_t *last, bool *adds) {
    const plan_record *layer = &b->records[*last];
    size_t next = only_reader(b, layer), count = 0;
    const bool may_add = !tare__plan_layer_is_transposed(layer);
    *adds = false;
    if (next != NOTHING && is_foldable(b, layer, &b->records[next])) {
        append(b, head, last, next);
        next = only_reader(b, &b->records[*last]);
    }
    for (; next != NOTHING && count < MOST_EPILOGUES; count++) {
        const plan_record *r = &b->records[next];
        const bool is_sum = tare__plan_is_sum(b, r);
        if (!keeps_shape(b, &b->records[*last], r) || (is_sum && (*adds || !may_add)) ||
            (!is_sum && !tare__plan_has_epilogue(r)))
            break;
        *adds = *adds || is_sum;
        append(b, head, last, next);
        next = only_reader(b, &b->records[*last]);
    }
    return next;
}

// A layer with what follows it, and layers that are computed in bands with it.
static void join_layer(plan_builder *b, size_t head) {
    size_t last = head, layer = head;
    bool adds = false;
    size_t next = join_tail(b, head, &last, &adds);
    for (size_t count = 1; count < MOST_LINKS && next != NOTHING && !adds; count++) {
        if (!tare__plan_is_link(b, layer, last, next)) break;
        append(b, head, &last, next);
        layer = next;
        next = join_tail(b, head, &last, &adds);
    }
}

// --- integer layers ---

bool tare__plan_is_sum_of_codes(const plan_builder *b, const plan_record *r) {
    const tare_tensor *x = tare__fast_input(&r->call, 0), *other = tare__fast_input(&r->call, 1);
    if (!tare__is_code_sum(&r->call) || x == NULL || other == NULL || x == other) return false;
    const tare_tensor *y = b->values[r->result].tensor;
    return tare__same_shape(x, y) && tare__same_shape(other, y);
}

static bool is_function_of_codes(const plan_builder *b, const plan_record *r) {
    const tare_tensor *x = tare__plan_code_input(r);
    return x != NULL && !r->is_observer && !r->is_view &&
           tare__is_function_of_a_code(&r->call, x) &&
           tare__same_shape(x, b->values[r->result].tensor);
}

// A function of the layer's codes, and a sum of codes and others of the same shape.
static void join_code_layer(plan_builder *b, size_t head) {
    size_t last = head, next = sole_reader(b, &b->records[head]);
    if (next != NOTHING && b->records[next].result != NOTHING &&
        is_function_of_codes(b, &b->records[next])) {
        append(b, head, &last, next);
        next = sole_reader(b, &b->records[last]);
    }
    if (next != NOTHING && b->records[next].result != NOTHING &&
        tare__plan_is_sum_of_codes(b, &b->records[next]))
        append(b, head, &last, next);
}

static bool gives_bytes(const plan_builder *b, const plan_record *r) {
    return strcmp(tare__record_op(r), "quantize_per_tensor") == 0 && r->result != NOTHING &&
           !r->is_observer && tare__is_byte_quantized(b->values[r->result].tensor);
}

// The record that makes codes of r's floats before anybody else reads these; NOTHING: none.
static size_t first_quantize(const plan_builder *b, size_t record) {
    const size_t made = b->records[record].result;
    for (size_t i = record + 1; i < b->record_count; i++) {
        const plan_record *r = &b->records[i];
        bool reads = false;
        for (size_t k = 0; k < r->input_count; k++) reads = reads || r->inputs[k] == made;
        if (reads) return gives_bytes(b, r) && r->head == i && r->next == NOTHING ? i : NOTHING;
    }
    return NOTHING;
}

// A linear layer's floats, what bands of rows can do to them, and the codes they become; others
// may read the last floats, too.
static void join_bands(plan_builder *b, size_t head) {
    size_t last = head, next = only_reader(b, &b->records[head]);
    for (size_t count = 0; next != NOTHING && count < MOST_BAND_OPS; count++) {
        if (!tare__plan_goes_on_in_bands(b, last, next)) break;
        append(b, head, &last, next);
        next = only_reader(b, &b->records[last]);
    }
    if (last == head) return;
    const size_t quantize = first_quantize(b, last);
    if (quantize != NOTHING) append(b, head, &last, quantize);
}

// Codes that become floats, pass functions of one number, and are codes again.
static void join_code_function(plan_builder *b, size_t head) {
    size_t chain[MOST_ELEMENTS], count = 0, next = sole_reader(b, &b->records[head]);
    const plan_record *before = &b->records[head];
    for (; next != NOTHING && count < MOST_ELEMENTS; count++) {
        const plan_record *r = &b->records[next];
        const bool is_end = strcmp(tare__record_op(r), "quantize_per_tensor") == 0;
        if (r->result == NOTHING || r->is_observer || !keeps_shape(b, before, r) ||
            (!is_end && !(tare__plan_is_float(b, r) && tare__plan_is_element(r))))
            return;
        chain[count] = next;
        if (is_end && count > 0) break;
        before = r;
        next = sole_reader(b, r);
    }
    if (next == NOTHING || count == MOST_ELEMENTS) return;
    for (size_t i = 0, last = head; i <= count; i++) append(b, head, &last, chain[i]);
}

// --- elementwise operators ---

static bool is_elementwise(const plan_builder *b, const plan_record *r) {
    return tare__plan_is_choice(b, r) ||
           (tare__plan_is_float(b, r) && (tare__plan_is_element(r) || tare__plan_is_binary(r)));
}

static void join_elements(plan_builder *b, size_t head) {
    size_t last = head;
    for (size_t count = 1; count < MOST_ELEMENTS; count++) {
        const size_t next = sole_reader(b, &b->records[last]);
        if (next == NOTHING || !is_elementwise(b, &b->records[next]) ||
            !keeps_shape(b, &b->records[last], &b->records[next]))
            break;
        append(b, head, &last, next);
    }
}

// Attention writes its result as the transposition behind it wants it; that of codes gives codes,
// too.
static void join_attention(plan_builder *b, size_t head) {
    size_t last = head, next = sole_reader(b, &b->records[head]);
    if (next != NOTHING && tare__attention_is_of_codes(&b->records[head].call) &&
        gives_bytes(b, &b->records[next])) {
        append(b, head, &last, next);
        next = sole_reader(b, &b->records[last]);
    }
    if (next != NOTHING && tare__plan_swaps_heads(b, &b->records[next]))
        append(b, head, &last, next);
}

// Attention that is written out, as a whole; false: it is none.
static bool join_written_attention(plan_builder *b, size_t head) {
    size_t chain[5], last = head;
    const size_t count = tare__plan_written_attention(b, head, chain);
    for (size_t i = 0; i < count; i++) append(b, head, &last, chain[i]);
    return count > 0;
}

static bool is_attention(const plan_record *r) {
    return strcmp(tare__record_op(r), "scaled_dot_product_attention") == 0 ||
           tare__attention_is_of_codes(&r->call);
}

void tare__plan_join(plan_builder *b) {
    for (size_t i = 0; i < b->record_count; i++) {
        const plan_record *r = &b->records[i];
        if (r->head != i) continue;
        if (join_written_attention(b, i)) continue;
        if (is_layer(b, r))
            join_layer(b, i);
        else if (tare__plan_begins_bands(b, r))
            join_bands(b, i);
        else if (tare__plan_is_code_layer(r))
            join_code_layer(b, i);
        else if (strcmp(tare__record_op(r), "dequantize") == 0)
            join_code_function(b, i);
        else if (is_elementwise(b, r))
            join_elements(b, i);
        else if (is_attention(r))
            join_attention(b, i);
    }
}
