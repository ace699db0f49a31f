// SPDX-License-Identifier: Apache-2.0
// Modules as calls. A module of a float class is a call of its operator's row, with the module's
// tensors and constructor values bound to the parameters of the same names, so the arithmetic is
// only in the row. Class rows use these functions as `shape` and `forward`.
#ifndef OPS_CLASSES_MODULE_CALL_H
#define OPS_CLASSES_MODULE_CALL_H

#include "ops/call.h"

/// Float classes, and reference classes, whose weights are quantized and dequantized first.
tare_status tare__operator_module_shape(op_call *call);
tare_status tare__operator_module_forward(op_call *call);
/// Fills call->param, unless it has been filled before.
tare_status tare__operator_module_bind(op_call *call);
/// A constructor value of QAT classes: the batch norm does not update its statistics, even in train
/// mode.
#define QAT_FREEZE_BN "freeze_bn"
/// QAT classes (classes/qat.c): the child weight_fake_quant quantizes the weight, after scaling by
/// the batch norm; then the child bn and a relu, if the class has them.
tare_status tare__qat_module_shape(op_call *call);
tare_status tare__qat_module_forward(op_call *call);
tare_status tare__qat_module_check(const module *m, tare_error *err);
/// Containers and fused classes: the children "0", "1", .. run one after the other. A fused add
/// takes the second argument.
tare_status tare__sequence_module_shape(op_call *call);
tare_status tare__sequence_module_forward(op_call *call);

/// Runs call->module: the shape rule of its class and, unless shapes_only, allocation and forward.
/// On success call->result holds references; on failure none.
tare_status tare__module_run(op_call *call, bool shapes_only);
/// The call of another module with one argument, within the same run as `like`. input is lent.
op_call tare__module_call_of(const op_call *like, const module *m, const value *input);
/// As tare__module_run for another module with one argument, within the same run.
tare_status tare__module_run_on(const op_call *like, const module *m, const value *input,
                                bool shapes_only, value *out);

#endif
