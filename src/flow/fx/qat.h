// SPDX-License-Identifier: Apache-2.0
// Module swaps of quantization-aware training: prepare replaces float modules by ones with a
// fake-quantized weight, convert replaces these by float modules.
// Private to flow/fx.
#ifndef FLOW_FX_QAT_H
#define FLOW_FX_QAT_H

#include "flow/fx/prepare.h"

/// Step of prepare: assigns every module the qconfig of torch's propagation, which uses types and
/// names but neither regexes nor order, and refuses impossible ones. With is_qat, swaps modules
/// that have a QAT class in the backend, and extends the mapping's types by those classes.
tare_status tare__prepare_modules(prepare_pass *p);

/// The float module (or fused pair) of a QAT module: torch's to_float, which folds a batch norm
/// with its running statistics. The caller releases *out.
tare_status tare__qat_to_float(const registry *classes, const module *qat, module **out,
                               tare_error *err);

#endif
