// SPDX-License-Identifier: Apache-2.0
// The rounding rule of an integer layer, stored with the layer.
#ifndef OPS_QUANTIZED_FROZEN_RULE_H
#define OPS_QUANTIZED_FROZEN_RULE_H

#include "ir/module.h"
#include "tare/quantize.h"

/// Stores the rounding rule of an integer layer with this weight under an engine as config `rule`
/// of module m. With a stored rule, results do not depend on the machine.
tare_status tare__module_set_rule(module *m, tare_engine engine, const tare_tensor *weight,
                                  tare_error *err);
/// The same for an integer layer with weights that has no rule yet, as in files written from torch
/// models. Does nothing for any other module.
tare_status tare__module_complete_rule(module *m, tare_engine engine, tare_error *err);

#endif
