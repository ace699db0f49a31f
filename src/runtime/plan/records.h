// SPDX-License-Identifier: Apache-2.0
// What calls of a graph are, as far as several kinds of steps ask, and chains of them that one step
// computes.
#ifndef RUNTIME_PLAN_RECORDS_H
#define RUNTIME_PLAN_RECORDS_H

#include "ops/families/element.h"
#include "runtime/plan/values.h"

static inline const char *tare__record_op(const plan_record *r) {
    return r->call.op != NULL ? r->call.op->id : "";
}
/// Is it a call of this operator, or of one of these? ids: TARE_OP_NONE behind the last one.
bool tare__record_is(const plan_record *r, op_id id);
bool tare__record_is_one_of(const plan_record *r, const op_id *ids);

// --- chains ---

/// The record that alone reads what this one makes, if it is in no chain; else NOTHING.
size_t tare__plan_sole_reader(const plan_builder *b, size_t record);
/// The same, if it computes on floats alone.
size_t tare__plan_only_reader(const plan_builder *b, size_t record);
/// Joins a record to the end of a chain.
void tare__plan_append(plan_builder *b, size_t head, size_t *last, size_t next);
/// Have the results of two records one shape?
bool tare__plan_keeps_shape(const plan_builder *b, size_t record, size_t next);

// --- floats ---

/// Is it the call of an operator on float32 tensors alone, with one float32 result?
bool tare__plan_is_float(const plan_builder *b, const plan_record *r);
/// Such a call of one of these operators.
bool tare__plan_is_float_op(const plan_builder *b, const plan_record *r, const op_id *ids);
/// One loop of one operand, or of two, with nothing else to be told.
bool tare__plan_is_element(const plan_record *r);
bool tare__plan_is_binary(const plan_record *r);
/// The sum of two different values of one shape.
bool tare__plan_is_sum(const plan_builder *b, const plan_record *r);
/// The loop of an operator that tare__plan_is_element accepts, and its parameters; false: none.
bool tare__plan_element_loop(const plan_builder *b, const plan_record *r, element_loop *loop,
                             float p[ELEMENT_MAX_PARAMETERS]);
/// Is it a transposition that swaps heads and length: dimensions 1 and 2 of 4?
bool tare__plan_swaps_heads(const plan_builder *b, const plan_record *r);
/// Does it pool windows?
bool tare__plan_is_pool(const plan_record *r);
/// Is it a mean over all dimensions but the first two of x, in the dtype of x?
bool tare__plan_is_over_pixels(const plan_record *r, const tare_tensor *x);

// --- quantized values ---

/// Is it no call of floats alone, and has one result of its own?
bool tare__plan_may_be_quantized(const plan_builder *b, const plan_record *r);
/// Such a call, by weights of its own; and of one of these operators.
bool tare__plan_is_own_quantized(const plan_builder *b, const plan_record *r);
bool tare__plan_is_quantized_op(const plan_builder *b, const plan_record *r, const op_id *ids);
/// The tensor that a record reads first; NULL: none.
const tare_tensor *tare__plan_quantized_input(const plan_record *r);
/// Is it a quantized linear layer or convolution?
bool tare__plan_is_quantized_layer(const plan_record *r);
/// Is such a layer linear?
bool tare__plan_layer_is_linear(const plan_record *r);
/// A sum of two tensors of quantized values and of its own shape; where one is a constant that is
/// repeated, it is a function of the other's.
bool tare__plan_is_quantized_sum(const plan_builder *b, const plan_record *r);
/// A function of each quantized value, and its table; *known false: it is none.
bool tare__plan_is_quantized_function(const plan_builder *b, const plan_record *r);
tare_status tare__plan_quantized_table(plan_builder *b, const plan_record *r, uint8_t table[],
                                       bool *known);
/// Does it quantize floats to bytes?
bool tare__plan_gives_bytes(const plan_builder *b, const plan_record *r);

#endif
