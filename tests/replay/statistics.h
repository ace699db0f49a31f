// SPDX-License-Identifier: Apache-2.0
// A case's recorded statistics: what observers saw, what they proposed, what convert stored.
#ifndef REPLAY_STATISTICS_H
#define REPLAY_STATISTICS_H

#include "model/model.h"
#include "replay/agreement.h"
#include "replay/case.h"
#include "replay/findings.h"

/// Every recorded observer against the calibrated ones. Differences that the format allows are
/// added to `numbers`, so that texts and constants may show them too.
void compare_observers(const recorded_case *c, const tare_model *prepared, agreement *numbers,
                       findings *out);
/// `constants`: what the converted graph reads by name.
void compare_constants(const recorded_case *c, const tare_model *converted,
                       const agreement *numbers, findings *out);
/// `weights.*`: integers, scales and zero points of lowered modules.
void compare_weights(const recorded_case *c, const tare_model *converted, findings *out);

/// `frozen.*`: the quantized values of an exported program's weights. A folded batch norm leaves
/// weights that float arithmetic rounded, so that a few quantized values may be one off; the model
/// gets the recorded ones, as it gets the recorded parameters.
tare_status use_recorded_quantized(const recorded_case *c, tare_model *converted, findings *out,
                                   tare_error *err);

/// From now on the model's observers propose what was recorded for them.
tare_status use_recorded_parameters(const recorded_case *c, tare_model *prepared, tare_error *err);

#endif
