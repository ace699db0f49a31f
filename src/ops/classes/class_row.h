// SPDX-License-Identifier: Apache-2.0
// Macros for rows of classes, and the packages of classes.
// Private to ops/classes.
#ifndef OPS_CLASSES_CLASS_ROW_H
#define OPS_CLASSES_CLASS_ROW_H

#include "ops/classes/classes.h"
#include "ops/classes/module_call.h"
#include "ops/classes/module_check.h"
#include "ops/quantized/packed.h"
#include "ops/quantized/quantized.h"
#include "ops/text/describe.h"

#define NN     "torch.nn."
#define NNI    "torch.ao.nn.intrinsic."
#define NNQAT  "torch.ao.nn.qat."
#define NNIQAT "torch.ao.nn.intrinsic.qat."
#define NNQR   "torch.ao.nn.quantized.reference."
#define NNQ    "torch.ao.nn.quantized."
#define NNIQ   "torch.ao.nn.intrinsic.quantized."
#define NNQD   "torch.ao.nn.quantized.dynamic."
#define NNIQD  "torch.ao.nn.intrinsic.quantized.dynamic."

/// The functions that run a role.
#define RUN_FLOAT                                                                                  \
    .shape = tare__operator_module_shape, .forward = tare__operator_module_forward,                \
    .check = tare__operator_module_check
#define RUN_REFERENCE RUN_FLOAT
#define RUN_QAT                                                                                    \
    .shape = tare__qat_module_shape, .forward = tare__qat_module_forward,                          \
    .check = tare__qat_module_check
#define RUN_FUSED                                                                                  \
    .shape = tare__sequence_module_shape, .forward = tare__sequence_module_forward,                \
    .check = tare__sequence_module_check
#define RUN_QUANTIZED                                                                              \
    .shape = tare__quantized_module_shape, .forward = tare__quantized_module_forward,              \
    .check = tare__quantized_module_check
#define RUN_DYNAMIC RUN_QUANTIZED
#define RUN_GROUPED RUN_QUANTIZED
#define RUN_PACKED  .check = tare__packed_check

/// The row of class `package class_name`. `printed`: its name in a module tree. Role, operator
/// family, dims and fused operators (`with`) identify it (tare__class_triple). `fields` are printed
/// in its parentheses (NULL: none).
#define CLASS(package, class_name, printed, the_role, family, dimensions, with, fields)            \
    {                                                                                              \
        .name = package class_name, .print_name = printed, .role = ROLE_##the_role, .op = family,  \
        .dims = (dimensions), .fused = FUSED_##with, .describe = tare__describe_fields,            \
        .kind = (fields), RUN_##the_role                                                           \
    }

#endif
