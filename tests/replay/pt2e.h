// SPDX-License-Identifier: Apache-2.0
// Cases of exported programs: prepared by our quantizer, or by the recorded annotations.
#ifndef REPLAY_PT2E_H
#define REPLAY_PT2E_H

#include "replay/agreement.h"
#include "replay/case.h"
#include "replay/findings.h"
#include "tare/pt2e.h"

/// What specs of torchao's own tests derive by.
extern const tare_derive_rule pt2e_test_rule;

bool pt2e_is_case(const recorded_case *c);
/// Prepares with our quantizer where the recorded one is built in, by the recorded annotations
/// where it is a test's own. `numbers` (may be NULL): compares the annotations and what the graph
/// looked like when it was annotated, too.
tare_status pt2e_prepare(const recorded_case *c, const tare_model *model, const agreement *numbers,
                         findings *out, tare_model **prepared, tare_error *err);
tare_status pt2e_convert(const recorded_case *c, const tare_model *prepared, tare_model **out,
                         tare_error *err);

#endif
