// SPDX-License-Identifier: Apache-2.0
// Questions about the calls of a graph that several kinds of steps ask, and about chains of calls
// that one step computes.
#ifndef RUNTIME_PLAN_RECORDS_H
#define RUNTIME_PLAN_RECORDS_H

#include "ops/families/element.h"
#include "runtime/plan/values.h"

static inline const char *tare__record_op(const plan_record *r) {
    return r->call.op != NULL ? r->call.op->id : "";
}
/// True if it is a call of this operator, or of one of these; ids ends with TARE_OP_NONE.
bool tare__record_is(const plan_record *r, op_id id);
bool tare__record_is_one_of(const plan_record *r, const op_id *ids);

// --- chains ---

/// The record that is the only reader of this record's result and in no chain yet; else NOTHING.
size_t tare__plan_sole_reader(const plan_builder *b, size_t record);
/// The same, if that record computes only with floats.
size_t tare__plan_only_reader(const plan_builder *b, size_t record);
/// Appends a record to a chain.
void tare__plan_append(plan_builder *b, size_t head, size_t *last, size_t next);
/// True if the results of two records have the same shape.
bool tare__plan_keeps_shape(const plan_builder *b, size_t record, size_t next);

// --- floats ---

/// True for a call of an operator on float32 tensors only, with one float32 result.
bool tare__plan_is_float(const plan_builder *b, const plan_record *r);
/// The same, for one of these operators.
bool tare__plan_is_float_op(const plan_builder *b, const plan_record *r, const op_id *ids);
/// True if it is one elementwise loop over one or two operands and has no further arguments.
bool tare__plan_is_element(const plan_record *r);
bool tare__plan_is_binary(const plan_record *r);
/// True for the sum of two different values of the same shape.
bool tare__plan_is_sum(const plan_builder *b, const plan_record *r);
/// The loop, with its parameters, of an operator that tare__plan_is_element accepts; false if there
/// is none.
bool tare__plan_element_loop(const plan_builder *b, const plan_record *r, element_loop *loop,
                             float p[ELEMENT_MAX_PARAMETERS]);
/// True if it swaps dimensions 1 and 2 of 4, heads and length.
bool tare__plan_swaps_heads(const plan_builder *b, const plan_record *r);
/// True for a pooling operator with windows.
bool tare__plan_is_pool(const plan_record *r);
/// True for a mean over all dimensions of x after the second, in the dtype of x.
bool tare__plan_is_over_pixels(const plan_record *r, const tare_tensor *x);

// --- quantized values ---

/// True if it may compute with quantized values and has exactly one new result.
bool tare__plan_may_be_quantized(const plan_builder *b, const plan_record *r);
/// Such a call that uses the module's own weights; and one of these operators.
bool tare__plan_is_own_quantized(const plan_builder *b, const plan_record *r);
bool tare__plan_is_quantized_op(const plan_builder *b, const plan_record *r, const op_id *ids);
/// The tensor that a record reads first; NULL: none.
const tare_tensor *tare__plan_quantized_input(const plan_record *r);
/// True for a quantized linear layer or convolution.
bool tare__plan_is_quantized_layer(const plan_record *r);
/// True if that layer is linear.
bool tare__plan_layer_is_linear(const plan_record *r);
/// True for the sum of two quantized tensors of its own shape. A sum with a repeated constant is a
/// function of the other operand instead.
bool tare__plan_is_quantized_sum(const plan_builder *b, const plan_record *r);
/// A function of each quantized value, with its table. *known is false if it is none.
bool tare__plan_is_quantized_function(const plan_builder *b, const plan_record *r);
tare_status tare__plan_quantized_table(plan_builder *b, const plan_record *r, uint8_t table[],
                                       bool *known);
/// True if it quantizes floats to 8-bit integers.
bool tare__plan_gives_bytes(const plan_builder *b, const plan_record *r);

#endif
