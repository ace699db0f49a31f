// SPDX-License-Identifier: Apache-2.0
// Convert: what custom configs ask for, node by node.
// Private to flow/fx.
#ifndef FLOW_FX_CONVERT_CUSTOM_H
#define FLOW_FX_CONVERT_CUSTOM_H

#include "flow/fx/convert.h"

/// The index-th input; one that comes quantized is dequantized first.
tare_status tare__convert_input(convert_pass *c, node *placeholder, int64_t index);
/// Outputs that stay quantized.
tare_status tare__convert_output(convert_pass *c, node *output);
/// A call of a standalone module that prepare left this state of.
tare_status tare__convert_standalone_call(convert_pass *c, node *n, const prepared_state *state);
/// A call of an observed custom module, which takes its output's observer over.
tare_status tare__convert_custom_call(convert_pass *c, node *n, const char *quantized_class);
/// That observer's node becomes a dequantize.
tare_status tare__convert_custom_result(convert_pass *c, node *observer, node *n);

#endif
