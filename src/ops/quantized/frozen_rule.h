// SPDX-License-Identifier: Apache-2.0
// The rounding rule of an integer layer, kept in the layer.
#ifndef OPS_QUANTIZED_FROZEN_RULE_H
#define OPS_QUANTIZED_FROZEN_RULE_H

#include "ir/module.h"
#include "tare/quantize.h"

/// Freezes how an integer layer with this weight rounds under an engine, in config `rule`: what a
/// model computes never depends on the machine that runs it. m: with the layer's config.
tare_status tare__module_set_rule(module *m, tare_engine engine, const tare_tensor *weight,
                                  tare_error *err);
/// The same for every integer layer among the weighted ones that has no rule, as in files that are
/// written from models of torch's; nothing for any other module.
tare_status tare__module_complete_rule(module *m, tare_engine engine, tare_error *err);

#endif
