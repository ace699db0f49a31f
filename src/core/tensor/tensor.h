// SPDX-License-Identifier: Apache-2.0
// Tensors inside the library. Data is always dense and row-major.
#ifndef CORE_TENSOR_TENSOR_H
#define CORE_TENSOR_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "tare/tensor.h"

/// The properties of a dtype; one row per dtype.
typedef struct dtype_info {
    const char *name;      // "torch.quint8"
    const char *file_name; // safetensors' name of the storage ("U8"); NULL: has none
    tare_dtype storage;    // quint8 -> uint8; itself for plain types
    uint8_t size;          // bytes of an element
    bool is_float, is_quantized;
    int64_t min, max; // of the integers; 0, 0 for floats
} dtype_info;
const dtype_info *tare__dtype(tare_dtype dtype); // never NULL; a row of zeros and "" for unset
/// The integer whose lowest bits, as many as the dtype has, are those of `bits`.
int64_t tare__dtype_wrap(uint64_t bits, const dtype_info *info);
tare_dtype tare__dtype_from_file_name(const char *file_name); // plain types only

/// Memory of tensors. Reference counted (atomically) and shared between tensors: an allocated
/// block, or a mapped file that `unmap` releases.
typedef struct storage storage;
storage *tare__storage_create(size_t size); // zeroed, 64-byte aligned
storage *tare__storage_adopt(void *data, size_t size,
                             void *owner, // read-only bytes of another owner
                             void (*release)(void *owner));
/// Marks adopted bytes as readable again: forget releases their memory until they are read again.
void tare__storage_set_forget(storage *s, void (*forget)(void *data, size_t size));
/// True if that is set.
bool tare__storage_can_forget(const storage *s);
storage *tare__storage_retain(storage *s);
void tare__storage_release(storage *s);
const void *tare__storage_data(const storage *s);
size_t tare__storage_size(const storage *s);

/// Quantization parameters, shared between tensors, immutable after creation.
typedef struct qparams {
    _Atomic int refcount;
    tare_qscheme scheme;
    tare_dtype dtype; // of the tensor: quint8, qint8, qint32, quint4x2
    int axis;         // channel axis; 0 for other schemes
    // Channels; 1 for per-tensor schemes. For group-wise schemes the groups in the order of the
    // elements; the size of a group follows from the tensor (tare__group_size).
    int64_t count;
    double *scale;      // [count]
    double *zero_point; // [count]; integers except with float qparams
    int64_t quant_min, quant_max;
} qparams;
/// Copies the arrays. NULL if memory ran out. quant_min/max are the dtype's full range.
qparams *tare__qparams_create(tare_qscheme scheme, tare_dtype dtype, int axis, int64_t count,
                              const double *scale, const double *zero_point);
qparams *tare__qparams_per_tensor(tare_dtype dtype, double scale, int64_t zero_point);
qparams *tare__qparams_retain(const qparams *q);
void tare__qparams_release(const qparams *q);
bool tare__qparams_equal(const qparams *a, const qparams *b);
/// Why parameters are invalid for a tensor: a scale that is not positive and finite in float32 (for
/// groups: not finite), a zero point that is not finite or, except for float qparams, not an
/// integer in the dtype's range.
typedef enum qparams_fault {
    QPARAMS_FINE = 0,
    QPARAMS_BAD_SCALE,
    QPARAMS_BAD_ZERO_POINT,
} qparams_fault;
/// The first fault, and its channel.
qparams_fault tare__qparams_fault(const qparams *q, int64_t *channel);
static inline bool tare__qscheme_is_per_channel(tare_qscheme s) {
    return s >= TARE_PER_CHANNEL_AFFINE && s <= TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS;
}
static inline bool tare__qscheme_is_per_group(tare_qscheme s) {
    return s == TARE_PER_GROUP_AFFINE || s == TARE_PER_GROUP_SYMMETRIC;
}
static inline bool tare__qscheme_is_per_tensor(tare_qscheme s) {
    return s == TARE_PER_TENSOR_AFFINE || s == TARE_PER_TENSOR_SYMMETRIC;
}

struct tare_tensor {
    // Set only while the tensor is created; a tensor is immutable except for its data.
    tare_dtype dtype;
    int ndim;
    int64_t shape[TARE_MAX_DIMS];
    int64_t count; // product of shape
    void *data;    // NULL: a meta tensor, shape and dtype only
    storage *store;
    const qparams *q; // quantized dtypes only
    // torch would store the channels innermost (ops/memory_order.h); tare's data is row-major all
    // the same.
    bool is_channels_last;
    _Atomic int refcount;
};

/// Tells that a tensor's data will not be read soon. The pages of mapped weights are released, so
/// that a pass that creates new weights does not hold both. No effect on other tensors. The data
/// stays readable.
void tare__tensor_forget(const tare_tensor *t);

/// Shape and dtype without data; takes a reference on q (NULL unless quantized). Checks that q is
/// of this dtype and that per-channel parameters fit the shape.
tare_status tare__tensor_meta(tare_dtype dtype, int ndim, const int64_t *shape, const qparams *q,
                              tare_tensor **out, tare_error *err);
/// Gives a meta tensor its data, zeroed. No effect if it has data already.
tare_status tare__tensor_allocate(tare_tensor *t, tare_error *err);
/// A quantized tensor of zeros; takes a reference on q; dtype is q's.
tare_status tare__tensor_quantized(int ndim, const int64_t *shape, const qparams *q,
                                   tare_tensor **out, tare_error *err);
/// A tensor over bytes [offset, offset + size) of `store` (reference taken); checks bounds. Bytes
/// that are not aligned for the dtype are copied instead.
tare_status tare__tensor_view(storage *store, size_t offset, tare_dtype dtype, int ndim,
                              const int64_t *shape, const qparams *q, tare_tensor **out,
                              tare_error *err);
/// A second tensor with the same memory, which may be written while `t` exists.
tare_status tare__tensor_writable(const tare_tensor *t, tare_tensor **out, tare_error *err);
/// The slice [first, first + count) of dimension 0, sharing the data.
tare_status tare__tensor_rows(const tare_tensor *t, int64_t first, int64_t count, tare_tensor **out,
                              tare_error *err);
/// The same data under another shape of equal element count.
tare_status tare__tensor_reshape(const tare_tensor *t, int ndim, const int64_t *shape,
                                 tare_tensor **out, tare_error *err);
/// The same data with other quantization parameters (NULL: the plain integers).
tare_status tare__tensor_requalify(const tare_tensor *t, const qparams *q, tare_tensor **out,
                                   tare_error *err);
tare_status tare__tensor_copy(const tare_tensor *t, tare_tensor **out, tare_error *err);
tare_status tare__tensor_scalar_float(float value, tare_tensor **out, tare_error *err); // 0-dim
tare_status tare__tensor_scalar_int(int64_t value, tare_tensor **out,
                                    tare_error *err); // 0-dim int64

/// Elements that share parameters in a scheme per group; 0 for other tensors.
int64_t tare__group_size(const tare_tensor *t);
size_t tare__tensor_bytes(const tare_tensor *t);
/// Does not compare dtypes.
bool tare__same_shape(const tare_tensor *a, const tare_tensor *b);
/// True if dtype, shape and bytes are equal. Both tensors need data.
bool tare__same_elements(const tare_tensor *a, const tare_tensor *b);
/// The element count of a shape; false on overflow or a negative size.
bool tare__shape_count(int ndim, const int64_t *shape, int64_t *out);
/// The element at flat index i as a double (a quantized tensor's integer, not dequantized).
double tare__tensor_get(const tare_tensor *t, int64_t i);
void tare__tensor_set(tare_tensor *t, int64_t i, double value);
/// The same for `count` elements: first, first + step, ..; and first, first + 1, ..
void tare__tensor_load(const tare_tensor *t, int64_t first, int64_t step, int64_t count,
                       double *out);
void tare__tensor_store(tare_tensor *t, int64_t first, int64_t count, const double *values);
/// As tare__tensor_get and tare__tensor_set, for integers and bools, exactly; floats are truncated.
int64_t tare__tensor_get_int(const tare_tensor *t, int64_t i);
void tare__tensor_set_int(tare_tensor *t, int64_t i, int64_t value);
bool tare__tensor_is_quantized(const tare_tensor *t);
/// TARE_INVALID_ARGUMENT if a float is NaN: "input 'x' is NaN at [12, 3]" for what "input", name
/// "x". Tensors without data and with other dtypes pass.
tare_status tare__tensor_refuse_nan(const tare_tensor *t, const char *what, const char *name,
                                    tare_error *err);
/// The same, also for infinities.
tare_status tare__tensor_refuse_infinite(const tare_tensor *t, const char *what, const char *name,
                                         tare_error *err);
/// "[1, 3, 8, 8]" into out.
void tare__shape_text(int ndim, const int64_t *shape, char *out, size_t size);

static inline float *tare__f32(const tare_tensor *t) {
    return (float *)t->data;
}

#endif
