// SPDX-License-Identifier: Apache-2.0
// Quantized tensors in files: integers, scales and zero points as separate tensors, and a JSON
// object that connects them.
#ifndef IO_NATIVE_QUANTIZED_JSON_H
#define IO_NATIVE_QUANTIZED_JSON_H

#include "core/json/json.h"
#include "core/memory/map.h"
#include "core/tensor/tensor.h"

/// Suffixes of the components' names, appended to the tensor's name.
#define QUANTIZED_INTEGERS   ".int_repr"
#define QUANTIZED_SCALE      ".scale"
#define QUANTIZED_ZERO_POINT ".zero_point"

/// The tensor described at `at` ({dtype, qscheme, axis?, quant_min?, quant_max?}) from its
/// components, which may be NULL where the file lacks them. `name` is for messages. The caller
/// releases *out.
tare_status tare__quantized_join(const json_at *at, const char *name, const tare_tensor *integers,
                                 const tare_tensor *scale, const tare_tensor *zero_point,
                                 tare_tensor **out, tare_error *err);
/// The components of a quantized tensor; the caller releases all three.
tare_status tare__quantized_split(const tare_tensor *t, tare_tensor **integers, tare_tensor **scale,
                                  tare_tensor **zero_point, tare_error *err);
void tare__quantized_to_json(const tare_tensor *t, text *out);

#endif
