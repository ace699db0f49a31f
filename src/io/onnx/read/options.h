// SPDX-License-Identifier: Apache-2.0
// Sizes that the user gives where the file has names for them.
// Private to io/onnx/read.
#ifndef IO_ONNX_READ_OPTIONS_H
#define IO_ONNX_READ_OPTIONS_H

#include "core/memory/map.h"
#include "io/onnx/schema.h"
#include "tare/model.h"

/// What the file calls a dimension; NULL: nothing.
const char *tare__onnx_dim_name(const Onnx__TensorShapeProto__Dimension *d);
/// options may be NULL. False where nothing was given.
bool tare__onnx_option_dim(const tare_model_read_options *options, const char *name, int64_t *out);
bool tare__onnx_option_shape(const tare_model_read_options *options, const char *input, int *ndim,
                             int64_t out[TARE_MAX_DIMS]);
/// Every name that was given must be the graph's, and every size one that a dimension can have.
tare_status tare__onnx_check_options(const tare_model_read_options *options,
                                     const Onnx__GraphProto *g, tare_error *err);

#endif
