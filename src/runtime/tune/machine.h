// SPDX-License-Identifier: Apache-2.0
// The machine's peaks, for predictions.
#ifndef RUNTIME_TUNE_MACHINE_H
#define RUNTIME_TUNE_MACHINE_H

#include <stdbool.h>

#include "tare/machine.h"

/// As tare_machine_measure with one thread, in a tenth of the time: integers, floats and the L2
/// cache alone. The other figures are 0.
tare_status tare__machine_measure_briefly(tare_machine_peak *out, tare_error *err);

/// Peaks that a machine may have; times that follow from others may not be numbers.
static inline bool tare__is_peak(double figure) {
    return figure >= 1e-3 && figure <= 1e9;
}

#endif
