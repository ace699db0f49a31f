// SPDX-License-Identifier: Apache-2.0
// Lowering of models that are already quantized.
// Private to flow.
#ifndef FLOW_LOWER_LOWER_H
#define FLOW_LOWER_LOWER_H

#include "model/model.h"

/// Lowers the result of convert in FX mode: parameters in buffers, reference modules. The default
/// engine is the model's own.
tare_status tare__lower_fx(const tare_model *reference, tare_engine engine, tare_model **out,
                           tare_error *err);

#endif
