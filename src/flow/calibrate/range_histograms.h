// SPDX-License-Identifier: Apache-2.0
// Histograms that are counted beside the observers of activations, so that another choice of their
// ranges needs no calibration of its own.
#ifndef FLOW_CALIBRATE_RANGE_HISTOGRAMS_H
#define FLOW_CALIBRATE_RANGE_HISTOGRAMS_H

#include "model/model.h"

/// Does the node call an observer that chooses one static range for what the model computes?
bool tare__chooses_range(const tare_model *model, const node *n);
/// The class of all such observers; NULL: there are none, or of several classes.
const tare_observer_class *tare__range_class(const tare_model *model);

/// Has each of these observers that holds no data yet count a histogram beside.
tare_status tare__histograms_keep(tare_model *prepared, tare_error *err);
/// Does each of them have a histogram of all that it saw?
bool tare__histograms_are_kept(const tare_model *prepared);
/// Gives `made`, a new observer of an activation, what `old` saw, by its histogram. made: a
/// tare.MergeableHistogramObserver, or one of extremes.
tare_status tare__histogram_hand_over(const module *old, module *made, tare_error *err);

#endif
