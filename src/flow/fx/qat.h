// SPDX-License-Identifier: Apache-2.0
// Module swaps of quantization-aware training: float modules become ones with a fake quantized
// weight in prepare, and float ones again in convert.
// Private to flow/fx.
#ifndef FLOW_FX_QAT_H
#define FLOW_FX_QAT_H

#include "flow/fx/prepare.h"

/// Step of prepare: gives every module the qconfig that torch's propagation gives it, which knows
/// types and names but neither regexes nor order, and refuses what none can have. With is_qat,
/// modules that the backend has a QAT class for are swapped, and the mapping's types extended by
/// those classes.
tare_status tare__prepare_modules(prepare_pass *p);

/// The float module (or fused pair) that a QAT module stands for: torch's to_float, which folds a
/// batch norm with its running statistics. The caller releases *out.
tare_status tare__qat_to_float(const registry *classes, const module *qat, module **out,
                               tare_error *err);

#endif
