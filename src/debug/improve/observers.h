// SPDX-License-Identifier: Apache-2.0
// The observers of activations, replaced without another calibration.
// Private to debug/improve.
#ifndef DEBUG_IMPROVE_OBSERVERS_H
#define DEBUG_IMPROVE_OBSERVERS_H

#include "model/model.h"

/// Do the model's histograms tell what observers of this class would have seen?
bool tare__observers_can_hand_over(const tare_model *prepared, const char *class_name);
/// As tare_replace_observers, for a model and a class of which that is so: the new observers have
/// seen what the old ones saw.
tare_status tare__hand_over_observers(const tare_model *prepared, const char *class_name,
                                      double percentile, size_t *count, tare_model **out,
                                      tare_error *err);

#endif
