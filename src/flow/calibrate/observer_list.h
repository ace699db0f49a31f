// SPDX-License-Identifier: Apache-2.0
// Lists all observers of a model, and resets them.
#ifndef FLOW_CALIBRATE_OBSERVER_LIST_H
#define FLOW_CALIBRATE_OBSERVER_LIST_H

#include "model/model.h"

/// Each observer once, regardless of its number of paths, in the order of the tree. Lent by the
/// model.
typedef struct observer_list {
    module **items; // tare__free
    size_t count, capacity;
} observer_list;
tare_status tare__observers_list(const tare_model *model, observer_list *out, tare_error *err);

/// Clears the statistics of all observers that observe something, and what is noted of the data.
tare_status tare__observers_forget(tare_model *model, tare_error *err);
/// Clears what is noted of the data of calibration, with the decisions about it.
void tare__observers_forget_data(tare_model *model);

#endif
