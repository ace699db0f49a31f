// SPDX-License-Identifier: Apache-2.0
// Sizes that the user gives for named dimensions.
// Private to io/onnx/read.
#ifndef IO_ONNX_READ_OPTIONS_H
#define IO_ONNX_READ_OPTIONS_H

#include "core/memory/map.h"
#include "io/onnx/schema.h"
#include "tare/model.h"

/// The file's name of a dimension; NULL if it has none.
const char *tare__onnx_dim_name(const Onnx__TensorShapeProto__Dimension *d);
/// Finds the size given for a dimension; false if there is none. options may be NULL.
bool tare__onnx_option_dim(const tare_model_read_options *options, const char *name, int64_t *out);
bool tare__onnx_option_shape(const tare_model_read_options *options, const char *input, int *ndim,
                             int64_t out[TARE_MAX_DIMS]);
/// Fails unless every given name is a dimension of the graph and every size is valid.
tare_status tare__onnx_check_options(const tare_model_read_options *options,
                                     const Onnx__GraphProto *g, tare_error *err);

#endif
