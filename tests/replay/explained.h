// SPDX-License-Identifier: Apache-2.0
// Does explain say what is so, of every operator of a converted model?
#ifndef REPLAY_EXPLAINED_H
#define REPLAY_EXPLAINED_H

#include "replay/findings.h"
#include "model/model.h"

/// Every headline has a reason, and the reason is about the operator: "quantized" and "left float"
/// each with a decision that makes it so, none fused into itself.
tare_status compare_explained(const tare_model *converted, findings *out, tare_error *err);

#endif
