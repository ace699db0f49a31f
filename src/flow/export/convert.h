// SPDX-License-Identifier: Apache-2.0
// Convert, step by step.
#ifndef FLOW_EXPORT_CONVERT_H
#define FLOW_EXPORT_CONVERT_H

#include "flow/export/steps.h"
#include "flow/observer_site.h"

/// Step: leaves nodes float by name (choices.c).
tare_status tare__pt2e_apply_choices(pass *p, const tare_float_choice *list, size_t count);
/// Was it left float by such a choice? Convert's record says so, in files too.
bool tare__pt2e_stays_float(const pass *p, const node *n);
/// Step: observers become quantize and dequantize operators.
tare_status tare__pt2e_replace_observers(pass *p, bool is_lenient);
/// Step: torch's training pattern of a convolution and its batch norm becomes a convolution.
tare_status tare__pt2e_fold_training(pass *p);
/// Step: every annotated reader gets a dequantize of its own.
tare_status tare__pt2e_duplicate_dequantize(pass *p);
/// Step: quantize operators of constants become constants.
tare_status tare__pt2e_fold_quantize(pass *p);

/// Step: what is quantized becomes arithmetic on integers.
tare_status tare__pt2e_reference_representation(pass *p);

/// Shows an observer that has seen nothing what it watches, if that is weights only; *done: it was.
tare_status tare__pt2e_watch_weights(const pass *p, module *observer, bool *done);

/// quantize_per_tensor.default and .tensor, quantize_per_channel; dequantize likewise.
bool tare__is_quantize_call(const node *n);
bool tare__is_dequantize_call(const node *n);
/// Modules that no node calls or reads tensors of.
tare_status tare__remove_unused_modules(pass *p);

#endif
