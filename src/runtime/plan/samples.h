// SPDX-License-Identifier: Apache-2.0
// Tests whether the samples of a batch are independent.
#ifndef RUNTIME_PLAN_SAMPLES_H
#define RUNTIME_PLAN_SAMPLES_H

#include "model/model.h"
#include "tare/data.h"

/// By shapes, for any data: every input has the samples as dimension 0; two samples give outputs
/// with two, one sample gives one, and nothing else changes. False for models that change when they
/// run. The results of these inferences are kept in the model (tare__calibrate_shapes). Only lack
/// of memory is an error: a model that does not run for other batch sizes has no independent
/// samples.
tare_status tare__samples_by_shape(tare_model *prepared, const tare_batch *batch, bool *out,
                                   tare_error *err);
/// By proof: every operator keeps items of dimension 0 independent (OP_BY_SAMPLE). Requires
/// independence by shape. false: not known.
tare_status tare__samples_by_rule(const tare_model *prepared, const tare_batch *batch, bool *out,
                                  tare_error *err);
/// By values, for a batch of at least two samples: apart from rounding, the second sample has the
/// same result alone and after the first. Detects sequences along dimension 0, and offsets into
/// other inputs. copy: a model whose observers may see both runs.
tare_status tare__samples_by_value(tare_model *copy, const tare_batch *batch, bool *out,
                                   tare_error *err);
/// True if `all` has the shape of `one` except for the number of samples.
bool tare__is_sample(const tare_tensor *one, const tare_tensor *all, int64_t samples);

#endif
