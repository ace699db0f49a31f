// SPDX-License-Identifier: Apache-2.0
// Calibration inside the library: what all executors of a prepared model share.
#ifndef FLOW_CALIBRATE_CALIBRATE_H
#define FLOW_CALIBRATE_CALIBRATE_H

#include "model/model.h"
#include "ops/interpret.h"

tare_status tare__calibrate_check_model(const tare_model *prepared, tare_error *err);
/// Refuses what tare_calibrate does, before an observer has seen any of it.
tare_status tare__calibrate_check_inputs(const tare_model *prepared,
                                         const tare_tensor *const *inputs, size_t input_count,
                                         tare_error *err);
/// Keeps in the model which shapes its inputs have.
tare_status tare__calibrate_keep_shapes(tare_model *prepared, const tare_tensor *const *inputs,
                                        size_t input_count, tare_error *err);
/// What a run on such inputs (meta tensors will do) would give: shapes only. The multiply-
/// accumulates of each operator, per sample, are kept in the model. *is_stateful: a run would
/// change the model beside its observers. *out: tensors for the caller to release, items in
/// `memory`.
tare_status tare__calibrate_shapes(tare_model *prepared, const tare_tensor *const *inputs,
                                   size_t input_count, arena *memory, value *out, bool *is_stateful,
                                   tare_error *err);

#endif
