// SPDX-License-Identifier: Apache-2.0
// Stores a weight's quantization parameters in a reference module as buffers and configs.
#include "core/memory/arena.h"
#include "ops/classes/reference.h"

// "weight_scale" for the weight "weight".
static const char *key_of(arena *memory, const char *name, const char *suffix) {
    return tare__arena_printf(memory, "%s_%s", name, suffix);
}

// A tensor of *count numbers, or of one number and without dimensions if count is NULL.
static tare_status make_numbers(tare_dtype dtype, const double *numbers, const int64_t *count,
                                tare_tensor **out, tare_error *err) {
    TARE_TRY(tare_tensor_create(dtype, count != NULL ? 1 : 0, count, out, err));
    for (int64_t i = 0; i < (*out)->count; i++) tare__tensor_set(*out, i, numbers[i]);
    return TARE_OK;
}

static tare_status set_numbers(module *m, const char *key, tare_dtype dtype, const double *numbers,
                               const int64_t *count, tare_error *err) {
    tare_tensor *t = NULL;
    if (key == NULL) return tare__out_of_memory(err);
    TARE_TRY(make_numbers(dtype, numbers, count, &t, err));
    const tare_status status = tare__module_set_tensor(m, key, t, false, err);
    tare_tensor_release(t);
    return status;
}

// Buffers NAME_scale, NAME_zero_point and NAME_axis, as torch's reference modules have them. A
// weight without parameters (float16) has 1, 0 and 0.
static tare_status set_buffers(module *m, const weight_qparams *w, arena *memory, tare_error *err) {
    static const double one = 1, none = 0;
    const qparams *q = w->q;
    const bool is_float = q != NULL && q->scheme == TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS;
    const double axis = q != NULL ? q->axis : 0;
    const int64_t *count = q != NULL ? &q->count : NULL;
    TARE_TRY(set_numbers(m, key_of(memory, w->name, "scale"), TARE_FLOAT32,
                         q != NULL ? q->scale : &one, count, err));
    TARE_TRY(set_numbers(m, key_of(memory, w->name, "zero_point"),
                         is_float ? TARE_FLOAT32 : TARE_INT64, q != NULL ? q->zero_point : &none,
                         count, err));
    return set_numbers(m, key_of(memory, w->name, "axis"), TARE_INT32, &axis, NULL, err);
}

// Symmetric schemes are stored as affine ones; their zero point is stored, too.
static tare_qscheme affine(tare_qscheme scheme) {
    if (scheme == TARE_PER_GROUP_SYMMETRIC) return TARE_PER_GROUP_AFFINE;
    if (scheme == TARE_PER_TENSOR_SYMMETRIC) return TARE_PER_TENSOR_AFFINE;
    return scheme == TARE_PER_CHANNEL_SYMMETRIC ? TARE_PER_CHANNEL_AFFINE : scheme;
}

static tare_status set_weight_config(module *m, const weight_qparams *w, arena *memory,
                                     tare_error *err) {
    const char *dtype_key = key_of(memory, w->name, "dtype");
    const char *scheme_key = key_of(memory, w->name, "qscheme");
    if (dtype_key == NULL || scheme_key == NULL) return tare__out_of_memory(err);
    const value dtype = tare__dtype_value(w->dtype);
    value scheme = tare__none();
    if (w->q != NULL) scheme = (value){.kind = VALUE_QSCHEME, .as.qscheme = affine(w->q->scheme)};
    TARE_TRY(tare__module_set_config(m, dtype_key, &dtype, err));
    return tare__module_set_config(m, scheme_key, &scheme, err);
}

// Group-wise quantized values always store the range, which determines their number of bits.
static bool keeps_range(const weight_qparams *w) {
    return w->q != NULL && (w->is_decomposed || tare__qscheme_is_per_group(w->q->scheme));
}

static tare_status set_range(module *m, const weight_qparams *w, arena *memory, tare_error *err) {
    const char *min_key = key_of(memory, w->name, "quant_min");
    const char *max_key = key_of(memory, w->name, "quant_max");
    if (min_key == NULL || max_key == NULL) return tare__out_of_memory(err);
    const value yes = tare__bool(true), low = tare__int(w->q->quant_min),
                high = tare__int(w->q->quant_max);
    if (w->is_decomposed) TARE_TRY(tare__module_set_config(m, "is_decomposed", &yes, err));
    TARE_TRY(tare__module_set_config(m, min_key, &low, err));
    return tare__module_set_config(m, max_key, &high, err);
}

static tare_status set_weight(module *m, const weight_qparams *w, arena *memory, tare_error *err) {
    TARE_TRY(set_weight_config(m, w, memory, err));
    if (keeps_range(w)) TARE_TRY(set_range(m, w, memory, err));
    return set_buffers(m, w, memory, err);
}

tare_status tare__reference_set_weight(module *m, const weight_qparams *w, tare_error *err) {
    arena memory = {0};
    const tare_status status = set_weight(m, w, &memory, err);
    tare__arena_release(&memory);
    return status;
}
