// SPDX-License-Identifier: Apache-2.0
// Code that calls torch's functions, as an exporter would leave it.
#ifndef PT2E_CAPTURE_H
#define PT2E_CAPTURE_H

#include "ir/graph.h"

/// Every call of a torch function that has a row becomes a call of the aten operator that
/// torch.export makes of it. Other calls stay: aten's own, and functions without a row, which then
/// match nothing but themselves. TARE_INVALID_ARGUMENT for arguments that the function has not.
tare_status tare__capture(graph *g, tare_error *err);

#endif
