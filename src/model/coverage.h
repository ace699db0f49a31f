// SPDX-License-Identifier: Apache-2.0
// Coverage: tracks the operators of the float model through the passes.
#ifndef MODEL_COVERAGE_H
#define MODEL_COVERAGE_H

#include "model/model.h"

/// Lists the operators of a float model, unless that was done before: calls, but not those that
/// compute sizes and other numbers. From here on every node stores its origin.
tare_status tare__coverage_begin(tare_model *model, tare_error *err);
/// Records that the operator `origin` is now computed by the node that computes `into`.
tare_status tare__coverage_fused(tare_model *model, const char *origin, const char *into,
                                 tare_error *err);
/// Marks the operators that the converted graph computes in integers. `prepared`: which of them
/// were observed for that purpose.
tare_status tare__coverage_finish(tare_model *model, const prepared_state *prepared,
                                  tare_error *err);
/// Sets the multiply-accumulates of the node with this origin, as counted in calibration.
void tare__coverage_set_macs(tare_model *model, const char *origin, int64_t macs);
/// True if the node is a quantize; or a quantize or dequantize.
bool tare__coverage_is_quantize(const node *n);
bool tare__coverage_is_conversion(const node *n);
/// True if the node chooses the parameters of a quantize at run time, or takes one of them.
bool tare__coverage_is_choice(const node *n);
/// True for an int8 constant matrix that is converted to float for a product, as in torchao's
/// weight-only quantization.
bool tare__coverage_is_byte_weight(const tare_model *model, const node *n);
/// True for a quantize written as arithmetic, as in the reference representation of exported
/// programs: to(clamp(to(.., int32) + zero_point), int8).
bool tare__coverage_is_arithmetic(const node *n);
traced_op *tare__traced_op(const tare_model *model, const char *name); // NULL if unknown
/// As tare_model_float_node, of a node that may lie in a graph inside; its own name in a model that
/// no pass has made.
const char *tare__float_node_of(const tare_model *model, const node *n);
/// The operator into which this one is fused finally.
const traced_op *tare__traced_carrier(const tare_model *model, const traced_op *op);
tare_status tare__coverage_copy(tare_model *to, const tare_model *from, tare_error *err);
/// Adds a copy of an operator under another name, fused into the operator `into` (NULL: none). When
/// all have been added, tare__coverage_complete.
tare_status tare__coverage_put(tare_model *to, const traced_op *op, const char *name,
                               const char *into, tare_error *err);
void tare__coverage_complete(tare_model *model);
/// Moves the operators of `from` to `to`, in place of those there.
void tare__coverage_move(tare_model *to, tare_model *from);
void tare__coverage_release(tare_model *model);
tare_status tare__coverage_to_json(const tare_model *model, text *out, tare_error *err);
tare_status tare__coverage_from_json(tare_model *model, const json_at *at, tare_error *err);

#endif
