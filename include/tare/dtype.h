// SPDX-License-Identifier: Apache-2.0
/// Element types and quantization schemes, with torch's names.
#ifndef TARE_DTYPE_H
#define TARE_DTYPE_H

#include <stddef.h>

#include "tare/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The numbers are fixed for all versions; 0 means unset. quint8, qint8 and qint32 are torch's
/// quantized dtypes: their tensors store uint8, int8 or int32 and have quantization parameters.
typedef enum tare_dtype {
    TARE_DTYPE_UNSET = 0,
    TARE_FLOAT32 = 1,
    TARE_FLOAT64 = 2,
    TARE_FLOAT16 = 3,
    TARE_BFLOAT16 = 4,
    TARE_UINT8 = 5,
    TARE_INT8 = 6,
    TARE_UINT16 = 7,
    TARE_INT16 = 8,
    TARE_INT32 = 9,
    TARE_INT64 = 10,
    TARE_BOOL = 11,
    TARE_QUINT8 = 12,
    TARE_QINT8 = 13,
    TARE_QINT32 = 14,
    TARE_QUINT4X2 = 15,
    TARE_FLOAT8_E5M2 = 16,
    TARE_FLOAT8_E4M3FN = 17,
    TARE_DTYPE_COUNT = 18
} tare_dtype;

/// How scales and zero points apply to a tensor: one pair for the whole tensor, one per channel, or
/// one per group of neighbours along the last dimension (torchao's PerGroup; torch has no names for
/// these schemes).
typedef enum tare_qscheme {
    TARE_QSCHEME_UNSET = 0,
    TARE_PER_TENSOR_AFFINE = 1,
    TARE_PER_TENSOR_SYMMETRIC = 2,
    TARE_PER_CHANNEL_AFFINE = 3,
    TARE_PER_CHANNEL_SYMMETRIC = 4,
    TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS = 5,
    TARE_PER_GROUP_AFFINE = 6,
    TARE_PER_GROUP_SYMMETRIC = 7,
    TARE_QSCHEME_COUNT = 8
} tare_qscheme;

/// torch's name of a dtype ("torch.quint8"); "" for TARE_DTYPE_UNSET and unknown numbers. Static
/// storage.
TARE_API const char *tare_dtype_name(tare_dtype dtype);
/// The dtype with this name: "torch.quint8", "quint8" or a synonym of torch ("torch.float").
/// TARE_DTYPE_UNSET for unknown names.
TARE_API tare_dtype tare_dtype_from_name(const char *name);
/// Bytes of one element in memory; 0 for TARE_DTYPE_UNSET. It is 1 for quint4x2, whose elements are
/// kept unpacked.
TARE_API size_t tare_dtype_size(tare_dtype dtype);

/// torch's name of a scheme ("torch.per_tensor_affine"); "" for TARE_QSCHEME_UNSET and unknown
/// numbers. Static storage.
TARE_API const char *tare_qscheme_name(tare_qscheme qscheme);
/// The scheme with this name, with or without "torch."; TARE_QSCHEME_UNSET for unknown names.
TARE_API tare_qscheme tare_qscheme_from_name(const char *name);

#ifdef __cplusplus
}
#endif
#endif
