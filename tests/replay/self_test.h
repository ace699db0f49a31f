// SPDX-License-Identifier: Apache-2.0
// Does a replay notice? A case is changed in one place at a time, and every change must be seen.
#ifndef REPLAY_SELF_TEST_H
#define REPLAY_SELF_TEST_H

#include "replay/case.h"
#include "replay/findings.h"

/// Changes that no replay saw go to `out`, and so does a case that differs unchanged. In a case
/// with known wrong values only structure is looked at. The case is as before afterwards.
void self_test(recorded_case *c, bool is_known, findings *out);

#endif
