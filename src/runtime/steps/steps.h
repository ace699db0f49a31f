// SPDX-License-Identifier: Apache-2.0
// All kinds of steps.
#ifndef RUNTIME_STEPS_STEPS_H
#define RUNTIME_STEPS_STEPS_H

#include "runtime/plan/step.h"

#define STEP(name)         extern const step_class tare__##name##_step;
#define STEP_OF_CALL(name) STEP(name)
#include "runtime/steps/steps.def"
#undef STEP_OF_CALL
#undef STEP

/// The kinds of steps.def in their order, ends with NULL.
extern const step_class *const tare__step_classes[];
/// Those that run single calls of a graph without a plan.
extern const step_class *const tare__call_step_classes[];
/// Computes any call by its operator's reference (steps/call.c).
extern const step_class tare__call_step;

#endif
