// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Elements of tensors of any dtype as doubles and as integers: one, or many that lie one behind the
// other.
#include <math.h>

#include "core/tensor/half.h"
#include "core/tensor/tensor.h"

// Truncates like C, but is defined for every double: out of range gives the bounds, NaN gives 0.
static int64_t to_integer(double value, const dtype_info *info) {
    if (isnan(value)) return 0;
    if (value <= (double)info->min) return info->min;
    if (value >= (double)info->max) return info->max;
    return (int64_t)value;
}

// STORAGE(dtype, C type, the double of an element e, the element of a double v)
#define INTEGERS(dtype, type) STORAGE(dtype, type, (double)e, (type)to_integer(v, info))
#define STORAGES                                                                                   \
    STORAGE(TARE_FLOAT32, float, (double)e, (float)v)                                              \
    STORAGE(TARE_FLOAT64, double, e, v)                                                            \
    STORAGE(TARE_FLOAT16, uint16_t, (double)tare__float16_to_float(e),                             \
            tare__float_to_float16((float)v))                                                      \
    STORAGE(TARE_BFLOAT16, uint16_t, (double)tare__bfloat16_to_float(e),                           \
            tare__float_to_bfloat16((float)v))                                                     \
    STORAGE(TARE_FLOAT8_E5M2, uint8_t, (double)tare__float8_e5m2_to_float(e),                      \
            tare__float_to_float8_e5m2((float)v))                                                  \
    STORAGE(TARE_FLOAT8_E4M3FN, uint8_t, (double)tare__float8_e4m3fn_to_float(e),                  \
            tare__float_to_float8_e4m3fn((float)v))                                                \
    STORAGE(TARE_BOOL, uint8_t, e != 0, v != 0)                                                    \
    INTEGERS(TARE_UINT8, uint8_t)                                                                  \
    INTEGERS(TARE_INT8, int8_t)                                                                    \
    INTEGERS(TARE_UINT16, uint16_t)                                                                \
    INTEGERS(TARE_INT16, int16_t)                                                                  \
    INTEGERS(TARE_INT32, int32_t)                                                                  \
    INTEGERS(TARE_INT64, int64_t)

double tare__tensor_get(const tare_tensor *t, int64_t i) {
    switch (tare__dtype(t->dtype)->storage) {
#define STORAGE(dtype, type, from, to)                                                             \
    case dtype: {                                                                                  \
        const type e = ((const type *)t->data)[i];                                                 \
        return from;                                                                               \
    }
        STORAGES
#undef STORAGE
    default:
        return 0;
    }
}

void tare__tensor_set(tare_tensor *t, int64_t i, double v) {
    const dtype_info *info = tare__dtype(t->dtype);
    switch (info->storage) {
#define STORAGE(dtype, type, from, to)                                                             \
    case dtype:                                                                                    \
        ((type *)t->data)[i] = to;                                                                 \
        return;
        STORAGES
#undef STORAGE
    default:
        return;
    }
}

void tare__tensor_load(const tare_tensor *t, int64_t first, int64_t step, int64_t count,
                       double *out) {
    switch (tare__dtype(t->dtype)->storage) {
#define STORAGE(dtype, type, from, to)                                                             \
    case dtype: {                                                                                  \
        const type *at = (const type *)t->data + first;                                            \
        for (int64_t i = 0; step == 1 && i < count; i++) {                                         \
            const type e = at[i];                                                                  \
            out[i] = from;                                                                         \
        }                                                                                          \
        for (int64_t i = 0; step != 1 && i < count; i++) {                                         \
            const type e = at[i * step];                                                           \
            out[i] = from;                                                                         \
        }                                                                                          \
        return;                                                                                    \
    }
        STORAGES
#undef STORAGE
    default:
        for (int64_t i = 0; i < count; i++) out[i] = 0;
        return;
    }
}

void tare__tensor_store(tare_tensor *t, int64_t first, int64_t count, const double *values) {
    const dtype_info *info = tare__dtype(t->dtype);
    switch (info->storage) {
#define STORAGE(dtype, type, from, to)                                                             \
    case dtype: {                                                                                  \
        type *at = (type *)t->data + first;                                                        \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const double v = values[i];                                                            \
            at[i] = to;                                                                            \
        }                                                                                          \
        return;                                                                                    \
    }
        STORAGES
#undef STORAGE
    default:
        return;
    }
}

int64_t tare__dtype_wrap(uint64_t bits, const dtype_info *info) {
    const unsigned unused = 64 - 8u * info->size;
    if (info->min == 0) return (int64_t)(bits << unused >> unused);
    const uint64_t sign = UINT64_C(1) << (8u * info->size - 1);
    const uint64_t kept = bits << unused >> unused;
    return (int64_t)((kept ^ sign) - sign);
}

// Only int64 has integers that a double cannot represent.
int64_t tare__tensor_get_int(const tare_tensor *t, int64_t i) {
    switch (tare__dtype(t->dtype)->storage) {
    case TARE_INT64:
        return ((const int64_t *)t->data)[i];
    case TARE_INT8:
        return ((const int8_t *)t->data)[i];
    case TARE_UINT8:
        return ((const uint8_t *)t->data)[i];
    default:
        break;
    }
    return to_integer(tare__tensor_get(t, i), tare__dtype(TARE_INT64));
}

void tare__tensor_set_int(tare_tensor *t, int64_t i, int64_t value) {
    if (t->dtype == TARE_INT64)
        ((int64_t *)t->data)[i] = value;
    else
        tare__tensor_set(t, i, (double)value);
}
