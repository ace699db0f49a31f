// SPDX-License-Identifier: Apache-2.0
/// Tensors: dense, row-major, reference counted; optionally quantized.
#ifndef TARE_TENSOR_H
#define TARE_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "tare/dtype.h"
#include "tare/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TARE_MAX_DIMS 8

typedef struct tare_tensor tare_tensor;

/// A tensor of zeros of a plain dtype. shape: ndim sizes, outermost first, each >= 0; ndim
/// 0..TARE_MAX_DIMS. TARE_INVALID_ARGUMENT for others, and for logical dtypes (quint8, ..), which
/// need parameters. The caller releases *out.
TARE_API tare_status tare_tensor_create(tare_dtype dtype, int ndim, const int64_t *shape,
                                        tare_tensor **out, tare_error *err);
/// As create, with `data` (element count x element size bytes) copied in.
TARE_API tare_status tare_tensor_from_data(tare_dtype dtype, int ndim, const int64_t *shape,
                                           const void *data, tare_tensor **out, tare_error *err);
TARE_API tare_tensor *tare_tensor_retain(tare_tensor *tensor); // returns its argument; NULL is fine
TARE_API void tare_tensor_release(tare_tensor *tensor);        // NULL is fine

TARE_API tare_dtype tare_tensor_dtype(const tare_tensor *tensor);
/// shape: tare_tensor_ndim sizes, lent; element_count: their product.
TARE_API int tare_tensor_ndim(const tare_tensor *tensor);
TARE_API const int64_t *tare_tensor_shape(const tare_tensor *tensor);
TARE_API int64_t tare_tensor_element_count(const tare_tensor *tensor);
/// Row-major elements; of quantized tensors the integers. Lent until the tensor is released. NULL
/// if it has a shape only.
TARE_API const void *tare_tensor_data(const tare_tensor *tensor);
/// Writable elements, or NULL when they are mapped from a file or shared with another tensor.
TARE_API void *tare_tensor_mutable_data(tare_tensor *tensor);

/// How many scales there are: 1 for per-tensor schemes, else the channels; 0 if the tensor is not
/// quantized. Then the scheme is unset, too.
TARE_API int64_t tare_tensor_qparam_count(const tare_tensor *tensor);
TARE_API tare_qscheme tare_tensor_qscheme(const tare_tensor *tensor);
/// value = (element - zero_point) * scale, channel by channel (0 for per-tensor schemes). 0 where
/// there is no such channel. Zero points are whole numbers except with float qparams.
TARE_API double tare_tensor_scale(const tare_tensor *tensor, int64_t channel);
TARE_API double tare_tensor_zero_point(const tare_tensor *tensor, int64_t channel);

/// float32 values of any tensor: integers converted, quantized ones dequantized. The caller
/// releases *out.
TARE_API tare_status tare_tensor_to_float(const tare_tensor *tensor, tare_tensor **out,
                                          tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
