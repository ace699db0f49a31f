// SPDX-License-Identifier: Apache-2.0
// Checks float, fused, QAT and reference modules from files: their tensors must have the shapes
// that the constructor's values imply.
// Private to ops/classes.
#ifndef OPS_CLASSES_MODULE_CHECK_H
#define OPS_CLASSES_MODULE_CHECK_H

#include "ir/module.h"

/// Checks that a module with weights or normalization has its required tensors, and the shape of
/// each. Sizes whose constructor value is absent are not checked. Errors name the tensor, the shape
/// expected and the one found.
tare_status tare__operator_module_check(const module *m, tare_error *err);
/// Checks that a fused module has children.
tare_status tare__sequence_module_check(const module *m, tare_error *err);

#endif
