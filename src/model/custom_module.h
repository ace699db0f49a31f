// SPDX-License-Identifier: Apache-2.0
// Custom modules: their classes replace a float module when it is observed and when it is
// quantized.
#ifndef MODEL_CUSTOM_MODULE_H
#define MODEL_CUSTOM_MODULE_H

#include "core/tensor/tensor.h"
#include "model/model.h"

/// Calls observed_class.from_float(float_module); the class must be in the context. The caller
/// releases *out.
tare_status tare__custom_module_observe(const tare_context *context, const char *observed_class,
                                        const module *float_module, module **out, tare_error *err);
/// Calls quantized_class.from_observed(observed). output: the parameters of its results; NULL: they
/// are not quantized.
tare_status tare__custom_module_quantize(const tare_context *context, const char *quantized_class,
                                         const module *observed, const qparams *output,
                                         module **out, tare_error *err);

#endif
