// SPDX-License-Identifier: Apache-2.0
// What others need to know of bias correction when time is short. tare/bias_correction.h is the
// interface.
#ifndef RUNTIME_TUNE_BIAS_CORRECTION_H
#define RUNTIME_TUNE_BIAS_CORRECTION_H

#include "model/model.h"

// The time that a sample is expected to take, in runs of the float model: one such run, and one of
// the quantized model, which rounds and computes in float, at twice the time.
#define BIAS_CORRECTION_RUNS 3.0

/// Whether tare_correct_biases, which made `corrected` from `prepared`, left layers as they are
/// because its time was over.
bool tare__bias_correction_is_late(const tare_model *prepared, const tare_model *corrected);

#endif
