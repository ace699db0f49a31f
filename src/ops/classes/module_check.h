// SPDX-License-Identifier: Apache-2.0
// Checks float, fused, QAT and reference modules from files: their tensors must have the shapes
// that the constructor's values imply.
// Private to ops/classes.
#ifndef OPS_CLASSES_MODULE_CHECK_H
#define OPS_CLASSES_MODULE_CHECK_H

#include "ir/module.h"

/// A weighted or normalizing module: tensors that must be there, and the shape of each. Values that
/// are absent promise nothing. Errors name the tensor, the shape expected and the one found.
tare_status tare__operator_module_check(const module *m, tare_error *err);
/// A fused module: it has something to run.
tare_status tare__sequence_module_check(const module *m, tare_error *err);

#endif
