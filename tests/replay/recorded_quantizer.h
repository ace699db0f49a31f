// SPDX-License-Identifier: Apache-2.0
// The quantizer of a recorded case.
#ifndef REPLAY_RECORDED_QUANTIZER_H
#define REPLAY_RECORDED_QUANTIZER_H

#include "replay/case.h"
#include "replay/findings.h"
#include "tare/quantizer.h"

/// Our quantizer of the recorded class with the recorded settings. Of a test's own class there is
/// none: then one that says nothing. *is_ours: its annotations are to equal the recorded ones; not
/// so of a test's own class, and where a filter function was given, which is not recorded.
tare_status recorded_quantizer(const recorded_case *c, tare_quantizer **out, bool *is_ours,
                               tare_error *err);

/// Annotations as JSON, ours against the recorded ones.
void compare_annotations(const char *ours, const recorded_case *c, findings *out);

#endif
