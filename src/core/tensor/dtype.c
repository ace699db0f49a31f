// SPDX-License-Identifier: Apache-2.0
// Element types and quantization schemes: one row each.
#include "tare/dtype.h"

#include <limits.h>
#include <string.h>

#include "core/tensor/tensor.h"

// clang-format off
static const dtype_info rows[TARE_DTYPE_COUNT] = {
    //                       name                    file name  storage             size float  quant  min, max
    [TARE_DTYPE_UNSET]   = {"",                      NULL,      TARE_DTYPE_UNSET,   0, false, false, 0, 0},
    [TARE_FLOAT32]       = {"torch.float32",         "F32",     TARE_FLOAT32,       4, true,  false, 0, 0},
    [TARE_FLOAT64]       = {"torch.float64",         "F64",     TARE_FLOAT64,       8, true,  false, 0, 0},
    [TARE_FLOAT16]       = {"torch.float16",         "F16",     TARE_FLOAT16,       2, true,  false, 0, 0},
    [TARE_BFLOAT16]      = {"torch.bfloat16",        "BF16",    TARE_BFLOAT16,      2, true,  false, 0, 0},
    [TARE_UINT8]         = {"torch.uint8",           "U8",      TARE_UINT8,         1, false, false, 0, UINT8_MAX},
    [TARE_INT8]          = {"torch.int8",            "I8",      TARE_INT8,          1, false, false, INT8_MIN, INT8_MAX},
    [TARE_UINT16]        = {"torch.uint16",          "U16",     TARE_UINT16,        2, false, false, 0, UINT16_MAX},
    [TARE_INT16]         = {"torch.int16",           "I16",     TARE_INT16,         2, false, false, INT16_MIN, INT16_MAX},
    [TARE_INT32]         = {"torch.int32",           "I32",     TARE_INT32,         4, false, false, INT32_MIN, INT32_MAX},
    [TARE_INT64]         = {"torch.int64",           "I64",     TARE_INT64,         8, false, false, INT64_MIN, INT64_MAX},
    [TARE_BOOL]          = {"torch.bool",            "BOOL",    TARE_BOOL,          1, false, false, 0, 1},
    [TARE_QUINT8]        = {"torch.quint8",          "U8",      TARE_UINT8,         1, false, true,  0, UINT8_MAX},
    [TARE_QINT8]         = {"torch.qint8",           "I8",      TARE_INT8,          1, false, true,  INT8_MIN, INT8_MAX},
    [TARE_QINT32]        = {"torch.qint32",          "I32",     TARE_INT32,         4, false, true,  INT32_MIN, INT32_MAX},
    [TARE_QUINT4X2]      = {"torch.quint4x2",        "U8",      TARE_UINT8,         1, false, true,  0, 15},
    [TARE_FLOAT8_E5M2]   = {"torch.float8_e5m2",     "F8_E5M2", TARE_FLOAT8_E5M2,   1, true,  false, 0, 0},
    [TARE_FLOAT8_E4M3FN] = {"torch.float8_e4m3fn",   "F8_E4M3", TARE_FLOAT8_E4M3FN, 1, true,  false, 0, 0},
};

static const struct {
    const char *name;
    tare_dtype dtype;
} synonyms[] = {
    {"float", TARE_FLOAT32}, {"double", TARE_FLOAT64}, {"half", TARE_FLOAT16},
    {"short", TARE_INT16},   {"int", TARE_INT32},      {"long", TARE_INT64},
};

static const char *const qscheme_names[TARE_QSCHEME_COUNT] = {
    [TARE_QSCHEME_UNSET]                   = "",
    [TARE_PER_TENSOR_AFFINE]               = "torch.per_tensor_affine",
    [TARE_PER_TENSOR_SYMMETRIC]            = "torch.per_tensor_symmetric",
    [TARE_PER_CHANNEL_AFFINE]              = "torch.per_channel_affine",
    [TARE_PER_CHANNEL_SYMMETRIC]           = "torch.per_channel_symmetric",
    [TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS] = "torch.per_channel_affine_float_qparams",
    [TARE_PER_GROUP_AFFINE]                = "tare.per_group_affine",
    [TARE_PER_GROUP_SYMMETRIC]             = "tare.per_group_symmetric",
};
// clang-format on

static const char prefix[] = "torch.";

static const char *without_prefix(const char *name) {
    return strncmp(name, prefix, sizeof prefix - 1) == 0 ? name + sizeof prefix - 1 : name;
}

const dtype_info *tare__dtype(tare_dtype dtype) {
    // Numbers also come from outside: an unknown one counts as unset.
    const unsigned index = (unsigned)dtype;
    return &rows[index < TARE_DTYPE_COUNT ? index : TARE_DTYPE_UNSET];
}

tare_dtype tare__dtype_from_file_name(const char *file_name) {
    for (int i = 1; i < TARE_DTYPE_COUNT; i++)
        if (!rows[i].is_quantized && strcmp(rows[i].file_name, file_name) == 0)
            return (tare_dtype)i;
    return TARE_DTYPE_UNSET;
}

const char *tare_dtype_name(tare_dtype dtype) {
    return tare__dtype(dtype)->name;
}

size_t tare_dtype_size(tare_dtype dtype) {
    return tare__dtype(dtype)->size;
}

tare_dtype tare_dtype_from_name(const char *name) {
    const char *bare = without_prefix(name);
    for (int i = 1; i < TARE_DTYPE_COUNT; i++)
        if (strcmp(without_prefix(rows[i].name), bare) == 0) return (tare_dtype)i;
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        if (strcmp(synonyms[i].name, bare) == 0) return synonyms[i].dtype;
    return TARE_DTYPE_UNSET;
}

const char *tare_qscheme_name(tare_qscheme qscheme) {
    const unsigned index = (unsigned)qscheme;
    return qscheme_names[index < TARE_QSCHEME_COUNT ? index : TARE_QSCHEME_UNSET];
}

tare_qscheme tare_qscheme_from_name(const char *name) {
    const char *bare = without_prefix(name);
    for (int i = 1; i < TARE_QSCHEME_COUNT; i++)
        if (strcmp(without_prefix(qscheme_names[i]), bare) == 0) return (tare_qscheme)i;
    return TARE_QSCHEME_UNSET;
}
