// SPDX-License-Identifier: Apache-2.0
// Predicts the time of a plan's step from the machine's peaks, without running it.
//
// A row of step_costs.def has a kind of step: the nanoseconds that each call takes, and how many
// times as long as the peaks allow its work takes: bytes read and written at the speed of the L2
// cache, the same for those beyond half a megabyte, which may be in no near cache; a float
// operation for each element of the result and each node, and multiply-accumulates at the peak of
// the type and the instructions that multiply (vectors, or tiles), as counted, and with output
// channels rounded up to 16 and the products of a channel to 4, as kernels compute them that take a
// pixel at a time. Depthwise layers of few channels may take several (gemm/pixel_groups.h), and
// then less than predicted.
#ifndef RUNTIME_TUNE_STEP_COSTS_H
#define RUNTIME_TUNE_STEP_COSTS_H

#include "tare/machine.h"
#include "tare/session.h"

/// machine: its int8_gops, float_gflops and l2_gbs are sensible (tare__is_peak), and so is
/// int8_vector_gops, or 0. At most 1,000 s.
uint64_t tare__step_predict_ns(const tare_machine_peak *machine, const tare_step *step);

/// The constants of a row, in its order, and what they are multiplied with for a step: 1, and the
/// nanoseconds that its work takes at the peaks. The predicted time is the sum of the products.
enum { STEP_FEATURES = 6 };
void tare__step_features(const tare_machine_peak *machine, const tare_step *step,
                         double out[STEP_FEATURES]);
/// The row of step_costs.def that fits a step, counted from 0.
size_t tare__step_cost_row(const tare_step *step);

/// The elements of a step's result.
int64_t tare__step_elements(const tare_step *step);

#endif
