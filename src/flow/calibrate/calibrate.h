// SPDX-License-Identifier: Apache-2.0
// Calibration inside the library: shared by all executors of a prepared model.
#ifndef FLOW_CALIBRATE_CALIBRATE_H
#define FLOW_CALIBRATE_CALIBRATE_H

#include "model/model.h"
#include "ops/interpret.h"

tare_status tare__calibrate_check_model(const tare_model *prepared, tare_error *err);
/// Fails for inputs that tare_calibrate refuses, before an observer has recorded anything.
tare_status tare__calibrate_check_inputs(const tare_model *prepared,
                                         const tare_tensor *const *inputs, size_t input_count,
                                         tare_error *err);
/// tare_calibrate for a caller that notes what the samples are like.
tare_status tare__calibrate_batch(tare_model *prepared, const tare_tensor *const *inputs,
                                  size_t input_count, tare_error *err);
/// Stores the shapes of the inputs in the model.
tare_status tare__calibrate_keep_shapes(tare_model *prepared, const tare_tensor *const *inputs,
                                        size_t input_count, tare_error *err);
/// Infers the results of a run on such inputs (meta tensors suffice): shapes only. Stores the
/// multiply-accumulates of each operator per sample in the model. *is_stateful: a run would change
/// the model apart from its observers. *out: tensors, which the caller releases; items are
/// allocated in `memory`.
tare_status tare__calibrate_shapes(tare_model *prepared, const tare_tensor *const *inputs,
                                   size_t input_count, arena *memory, value *out, bool *is_stateful,
                                   tare_error *err);

#endif
