// SPDX-License-Identifier: Apache-2.0
// Whether the samples of a batch are independent.
#ifndef RUNTIME_PLAN_SAMPLES_H
#define RUNTIME_PLAN_SAMPLES_H

#include "model/model.h"
#include "tare/data.h"

/// By shapes, whatever the data: every input has the samples as dimension 0, two of them give two
/// in every output, one gives one, and nothing else changes. False for models that change when they
/// run. What such runs would compute is kept in the model (tare__calibrate_shapes). err is for want
/// of memory: a model that does not run on other batches has no samples apart.
tare_status tare__samples_by_shape(tare_model *prepared, const tare_batch *batch, bool *out,
                                   tare_error *err);
/// Proved: every operator in between keeps items of dimension 0 apart (OP_BY_SAMPLE). Of a batch
/// whose samples are independent by shape. false: not known.
tare_status tare__samples_by_rule(const tare_model *prepared, const tare_batch *batch, bool *out,
                                  tare_error *err);
/// By numbers, of a batch of two samples or more: the second gives by itself what it gives after
/// the first, but for rounding. Sequences that run along dimension 0 are found out so, and offsets
/// into other inputs. copy: a model whose observers may see both.
tare_status tare__samples_by_value(tare_model *copy, const tare_batch *batch, bool *out,
                                   tare_error *err);
/// Is a tensor of all samples that of one, but for their number?
bool tare__is_sample(const tare_tensor *one, const tare_tensor *all, int64_t samples);

#endif
