// SPDX-License-Identifier: Apache-2.0
// Custom module classes, registered in addition to the built-in ones.
#ifndef MODEL_USER_CLASS_H
#define MODEL_USER_CLASS_H

#include "ir/module.h"
#include "tare/module.h"

/// The user's description of a class; NULL for built-in classes.
const tare_module_class *tare__user_class(const module_class *class);
/// Creates a module class that calls the user's functions; freed by tare__user_class_destroy.
tare_status tare__user_class_create(const tare_module_class *user, module_class **out,
                                    tare_error *err);
void tare__user_class_destroy(module_class *class);
/// Quantization parameters in the public form; q NULL: a weight with only a dtype.
tare_weight_qparams tare__weight_qparams_view(tare_dtype dtype, const qparams *q);

/// Config key and tensors that describe the result of a quantized custom module.
#define CUSTOM_OUTPUT_DTYPE      "output_dtype"
#define CUSTOM_OUTPUT_SCALE      "scale"
#define CUSTOM_OUTPUT_ZERO_POINT "zero_point"

#endif
