// SPDX-License-Identifier: Apache-2.0
/// Tensors: dense, row-major, reference counted; optionally quantized.
#ifndef TARE_TENSOR_H
#define TARE_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tare/dtype.h"
#include "tare/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The largest number of dimensions of a tensor.
#define TARE_MAX_DIMS 8

typedef struct tare_tensor tare_tensor;

/// Creates a tensor of zeros. shape: [ndim] sizes, outermost first, each >= 0; ndim: 0 to
/// TARE_MAX_DIMS. TARE_INVALID_ARGUMENT for other shapes and for quantized dtypes (quint8, ..),
/// which need parameters. The caller releases *out.
TARE_API tare_status tare_tensor_create(tare_dtype dtype, int ndim, const int64_t *shape,
                                        tare_tensor **out, tare_error *err);
/// Creates a tensor with a copy of `data` (element count x element size bytes, row-major).
/// Arguments and errors as for tare_tensor_create.
TARE_API tare_status tare_tensor_from_data(tare_dtype dtype, int ndim, const int64_t *shape,
                                           const void *data, tare_tensor **out, tare_error *err);
/// Creates a tensor over `data`, which is not copied: element count x element size bytes,
/// row-major, aligned for the dtype (elements that are not are copied). The data must stay valid
/// until release(owner) is called: once, in any thread, when the last tensor that shares the data
/// is released. release may be NULL; then there is no call. is_writable: runs may write results
/// there (tare_session_run_into), and tare_tensor_mutable_data returns it. Arguments and errors as
/// for tare_tensor_create; after a failure `release` is not called.
TARE_API tare_status tare_tensor_wrap(tare_dtype dtype, int ndim, const int64_t *shape, void *data,
                                      bool is_writable, void (*release)(void *owner), void *owner,
                                      tare_tensor **out, tare_error *err);
/// Adds a reference and returns its argument. NULL is allowed. Any thread may call it.
TARE_API tare_tensor *tare_tensor_retain(tare_tensor *tensor);
/// Drops a reference; the last one frees the tensor. NULL is allowed. Any thread may call it.
TARE_API void tare_tensor_release(tare_tensor *tensor);

/// The element type.
TARE_API tare_dtype tare_tensor_dtype(const tare_tensor *tensor);
/// The number of dimensions, 0 to TARE_MAX_DIMS.
TARE_API int tare_tensor_ndim(const tare_tensor *tensor);
/// The sizes, outermost first: tare_tensor_ndim of them. Lent until the tensor is released.
TARE_API const int64_t *tare_tensor_shape(const tare_tensor *tensor);
/// The number of elements: the product of the sizes, 1 for a scalar.
TARE_API int64_t tare_tensor_element_count(const tare_tensor *tensor);
/// The elements in row-major order; for quantized tensors the integers. NULL if the tensor has a
/// shape but no data. Lent until the tensor is released.
TARE_API const void *tare_tensor_data(const tare_tensor *tensor);
/// As tare_tensor_data, for writing. NULL if the elements are mapped from a file or shared with
/// another tensor.
TARE_API void *tare_tensor_mutable_data(tare_tensor *tensor);

/// The number of scales: 1 for per-tensor schemes, the number of channels or groups for the others,
/// 0 for tensors that are not quantized.
TARE_API int64_t tare_tensor_qparam_count(const tare_tensor *tensor);
/// The scheme; TARE_QSCHEME_UNSET for tensors that are not quantized.
TARE_API tare_qscheme tare_tensor_qscheme(const tare_tensor *tensor);
/// The scale of a channel or group (index 0 for per-tensor schemes): value = (element - zero_point)
/// * scale. Returns 0 if there is no such channel.
TARE_API double tare_tensor_scale(const tare_tensor *tensor, int64_t channel);
/// The zero point of a channel or group (index 0 for per-tensor schemes): a whole number, except
/// with float qparams. Returns 0 if there is no such channel.
TARE_API double tare_tensor_zero_point(const tare_tensor *tensor, int64_t channel);

/// Converts any tensor to float32: integers by value, quantized tensors dequantized.
/// TARE_INVALID_ARGUMENT for tensors without data. The caller releases *out.
TARE_API tare_status tare_tensor_to_float(const tare_tensor *tensor, tare_tensor **out,
                                          tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
