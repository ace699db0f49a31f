// SPDX-License-Identifier: Apache-2.0
// Private to flow/fx.
#ifndef FLOW_FX_MODULE_REFUSAL_H
#define FLOW_FX_MODULE_REFUSAL_H

#include "model/pass.h"

/// Why no dtype config for the class of a weighted module accepts the qconfig, so that convert
/// leaves it float: a sentence with both dtypes, in scratch memory or static; NULL: one accepts it.
tare_status tare__module_refusal(pass *p, const module *called, const tare_qconfig *q,
                                 const char **why);

/// True if groups divide the rows of a module's weight. Otherwise *row and *group are the sizes
/// that do not fit.
bool tare__groups_fit(const module *called, const tare_observer_info *weight, int64_t *row,
                      int64_t *group);

#endif
