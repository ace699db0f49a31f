// SPDX-License-Identifier: Apache-2.0
// Modules as calls. A module of a float class is its operator's row, with the module's tensors and
// constructor values bound to the parameters of their names: the arithmetic stands in the row
// alone. Class rows take these functions as their `shape` and `forward`.
#ifndef OPS_MODULE_CALL_H
#define OPS_MODULE_CALL_H

#include "ops/call.h"

/// Float classes; reference classes, whose weights go through their quantization parameters; and
/// QAT classes, whose weight goes through the child weight_fake_quant.
tare_status tare__operator_module_shape(op_call *call);
tare_status tare__operator_module_forward(op_call *call);
/// Containers and fused classes: the children "0", "1", .. in a row. A fused add takes the second
/// argument.
tare_status tare__sequence_module_shape(op_call *call);
tare_status tare__sequence_module_forward(op_call *call);

/// Runs call->module: its class's shape rule, allocation, its forward (only the first if
/// shapes_only). On success call->result holds references; on failure none.
tare_status tare__module_run(op_call *call, bool shapes_only);
/// As tare__module_run for another module with one argument, within the same run.
tare_status tare__module_run_on(const op_call *like, module *m, const value *input,
                                bool shapes_only, value *out);

#endif
