// SPDX-License-Identifier: Apache-2.0
// One case, replayed from the float model to the converted outputs.
#ifndef REPLAY_REPLAY_H
#define REPLAY_REPLAY_H

#include "replay/case.h"
#include "replay/findings.h"

/// Everything that differs goes to `out`. *output_step: the scale that the first output was rounded
/// with, 0 if it is float or was not reached.
void replay(const recorded_case *c, findings *out, double *output_step);

#endif
