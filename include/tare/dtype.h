// SPDX-License-Identifier: Apache-2.0
/// Element types and quantization schemes, with torch's names.
#ifndef TARE_DTYPE_H
#define TARE_DTYPE_H

#include <stddef.h>

#include "tare/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Values never change their number; 0 is «unset». quint8, qint8 and qint32 are logical: a tensor
/// of them has uint8, int8 or int32 storage plus quantization parameters.
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

/// How a scale and a zero point, or many of them, relate to a tensor.
typedef enum tare_qscheme {
    TARE_QSCHEME_UNSET = 0,
    TARE_PER_TENSOR_AFFINE = 1,
    TARE_PER_TENSOR_SYMMETRIC = 2,
    TARE_PER_CHANNEL_AFFINE = 3,
    TARE_PER_CHANNEL_SYMMETRIC = 4,
    TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS = 5,
    TARE_QSCHEME_COUNT = 6
} tare_qscheme;

/// "torch.quint8" and the like; "" for TARE_DTYPE_UNSET and unknown numbers.
TARE_API const char *tare_dtype_name(tare_dtype dtype);
/// Accepts "torch.quint8", "quint8" and torch's synonyms ("torch.float"); TARE_DTYPE_UNSET if
/// unknown.
TARE_API tare_dtype tare_dtype_from_name(const char *name);
/// Bytes of one element; 0 for TARE_DTYPE_UNSET. quint4x2 counts 1: its elements are unpacked in
/// memory.
TARE_API size_t tare_dtype_size(tare_dtype dtype);

/// "torch.per_tensor_affine" and the like; "" if unset.
TARE_API const char *tare_qscheme_name(tare_qscheme qscheme);
/// With or without "torch."; TARE_QSCHEME_UNSET if unknown.
TARE_API tare_qscheme tare_qscheme_from_name(const char *name);

#ifdef __cplusplus
}
#endif
#endif
