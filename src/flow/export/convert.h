// SPDX-License-Identifier: Apache-2.0
// The steps of convert for exported programs.
#ifndef FLOW_EXPORT_CONVERT_H
#define FLOW_EXPORT_CONVERT_H

#include "flow/export/steps.h"
#include "flow/observer_site.h"

/// Step: leaves nodes float by name (choices.c).
tare_status tare__pt2e_apply_choices(pass *p, const tare_float_choice *list, size_t count);
/// True if it was left float by such a choice, according to convert's record (also in files).
bool tare__pt2e_stays_float(const pass *p, const node *n);
/// Step: replaces observers by quantize and dequantize operators.
tare_status tare__pt2e_replace_observers(pass *p, bool is_lenient);
/// True if an observer of the model, or of a graph inside, has seen data.
tare_status tare__pt2e_was_calibrated(const tare_model *model, bool *out, tare_error *err);
/// Step of a graph inside of a calibrated model: leaves it float if its observers have seen
/// nothing, as calibration did not run it.
tare_status tare__pt2e_leave_unseen(pass *p);
/// Step: folds torch's training pattern of a convolution and its batch norm into a convolution.
tare_status tare__pt2e_fold_training(pass *p);
/// Step: gives every annotated reader a dequantize of its own.
tare_status tare__pt2e_duplicate_dequantize(pass *p);
/// Step: folds quantize operators of constants.
tare_status tare__pt2e_fold_quantize(pass *p);

/// Step: writes quantized operators as arithmetic on integers.
tare_status tare__pt2e_reference_representation(pass *p);

/// Runs an observer without statistics on what it observes, if these are weights only; *done: it
/// did.
tare_status tare__pt2e_watch_weights(const pass *p, module *observer, bool *done);

/// True for quantize_per_tensor.default and .tensor, quantize_per_channel, and likewise dequantize.
bool tare__is_quantize_call(const node *n);
bool tare__is_dequantize_call(const node *n);
/// Removes modules that no node calls or reads tensors of.
tare_status tare__remove_unused_modules(pass *p);

#endif
