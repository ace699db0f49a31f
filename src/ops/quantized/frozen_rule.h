// SPDX-License-Identifier: Apache-2.0
// The rounding rule of an integer layer, stored with the layer.
#ifndef OPS_QUANTIZED_FROZEN_RULE_H
#define OPS_QUANTIZED_FROZEN_RULE_H

#include "ir/module.h"
#include "tare/quantize.h"

/// Stores in config `rule` how an integer layer with this weight rounds under an engine, so that
/// results never depend on the machine. m: the module with the config.
tare_status tare__module_set_rule(module *m, tare_engine engine, const tare_tensor *weight,
                                  tare_error *err);
/// The same for every integer layer among the weighted ones that has no rule, as in files that are
/// written from models of torch's; nothing for any other module.
tare_status tare__module_complete_rule(module *m, tare_engine engine, tare_error *err);

#endif
