// SPDX-License-Identifier: Apache-2.0
// Convert: what custom configs request, node by node.
// Private to flow/fx.
#ifndef FLOW_FX_CONVERT_CUSTOM_H
#define FLOW_FX_CONVERT_CUSTOM_H

#include "flow/fx/convert.h"

/// Input `index`; if it is quantized, inserts a dequantize.
tare_status tare__convert_input(convert_pass *c, node *placeholder, int64_t index);
/// Keeps outputs quantized.
tare_status tare__convert_output(convert_pass *c, node *output);
/// Converts the standalone module of a call, with the state that prepare kept.
tare_status tare__convert_standalone_call(convert_pass *c, node *n, const prepared_state *state);
/// Converts the observed custom module of a call, and takes over the observer of its output.
tare_status tare__convert_custom_call(convert_pass *c, node *n, const char *quantized_class);
/// Replaces that observer by a dequantize.
tare_status tare__convert_custom_result(convert_pass *c, node *observer, node *n);

#endif
