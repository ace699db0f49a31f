// SPDX-License-Identifier: Apache-2.0
// Tensors, their storages, and shared quantization parameters.
#include "core/tensor/tensor.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/tensor/derived.h"
#include "core/tensor/half.h"

enum { DATA_ALIGNMENT = 64 };

struct storage {
    _Atomic int refcount;
    bool read_only;
    size_t size;
    void *data;
    void *owner; // for adopted bytes only
    void (*release)(void *owner);
    void (*forget)(void *data, size_t size); // NULL: the bytes cannot be read again
    _Atomic(derived_table *) derived;        // NULL until something is derived from the bytes
};

// --- storage ---

// Header and bytes are one allocation, by calloc, because large zeroed blocks cost nothing until
// they are touched. The alignment is done here.
storage *tare__storage_create(size_t size) {
    size_t total = 0;
    if (!tare__add_size(size, sizeof(storage) + DATA_ALIGNMENT - 1, &total)) return NULL;
    storage *s = tare__alloc_zeroed(1, total);
    if (!s) return NULL;
    const uintptr_t address = (uintptr_t)(s + 1);
    const uintptr_t gap = (DATA_ALIGNMENT - address % DATA_ALIGNMENT) % DATA_ALIGNMENT;
    atomic_init(&s->refcount, 1);
    s->size = size;
    s->data = (unsigned char *)(s + 1) + gap;
    return s;
}

storage *tare__storage_adopt(void *data, size_t size, void *owner, void (*release)(void *owner)) {
    storage *s = tare__alloc_zeroed(1, sizeof *s);
    if (!s) return NULL;
    atomic_init(&s->refcount, 1);
    s->read_only = true;
    s->size = size;
    s->data = data;
    s->owner = owner;
    s->release = release;
    return s;
}

void tare__storage_set_forget(storage *s, void (*forget)(void *data, size_t size)) {
    s->forget = forget;
}

bool tare__storage_can_forget(const storage *s) {
    return s->forget != NULL;
}

void tare__tensor_forget(const tare_tensor *t) {
    if (t->store != NULL && t->store->forget != NULL && t->data != NULL)
        t->store->forget(t->data, tare__tensor_bytes(t));
}

storage *tare__storage_retain(storage *s) {
    if (s) atomic_fetch_add_explicit(&s->refcount, 1, memory_order_relaxed);
    return s;
}

void tare__storage_release(storage *s) {
    if (!s || atomic_fetch_sub_explicit(&s->refcount, 1, memory_order_acq_rel) != 1) return;
    if (s->release) s->release(s->owner);
    tare__derived_table_destroy(atomic_load(&s->derived));
    tare__free(s);
}

derived_table *tare__storage_derived(storage *s, derived_table *(*create)(size_t storage_size)) {
    derived_table *found = atomic_load(&s->derived);
    if (found != NULL || create == NULL) return found;
    derived_table *made = create(s->size);
    if (made == NULL || atomic_compare_exchange_strong(&s->derived, &found, made)) return made;
    tare__derived_table_destroy(made); // another thread was faster
    return found;
}

const void *tare__storage_data(const storage *s) {
    return s->data;
}

size_t tare__storage_size(const storage *s) {
    return s->size;
}

// --- quantization parameters ---

qparams *tare__qparams_create(tare_qscheme scheme, tare_dtype dtype, int axis, int64_t count,
                              const double *scale, const double *zero_point) {
    size_t bytes = 0;
    if (count < 0 || (uint64_t)count > SIZE_MAX / (2 * sizeof(double))) return NULL;
    const size_t n = (size_t)count;
    if (!tare__add_size(2 * n * sizeof(double), sizeof(qparams), &bytes)) return NULL;
    qparams *q = tare__alloc_zeroed(1, bytes);
    if (!q) return NULL;
    const dtype_info *info = tare__dtype(dtype);
    atomic_init(&q->refcount, 1);
    q->scheme = scheme;
    q->dtype = dtype;
    q->axis = axis;
    q->count = count;
    q->scale = (double *)(q + 1);
    q->zero_point = q->scale + n;
    q->quant_min = info->min;
    q->quant_max = info->max;
    if (n) memcpy(q->scale, scale, n * sizeof *scale);
    if (n) memcpy(q->zero_point, zero_point, n * sizeof *zero_point);
    return q;
}

qparams *tare__qparams_per_tensor(tare_dtype dtype, double scale, int64_t zero_point) {
    const double zero = (double)zero_point;
    return tare__qparams_create(TARE_PER_TENSOR_AFFINE, dtype, 0, 1, &scale, &zero);
}

// Parameters are immutable except for the reference count, so the cast is safe.
static _Atomic int *owners(const qparams *q) {
    return (_Atomic int *)&q->refcount;
}

qparams *tare__qparams_retain(const qparams *q) {
    if (q) atomic_fetch_add_explicit(owners(q), 1, memory_order_relaxed);
    return (qparams *)q;
}

void tare__qparams_release(const qparams *q) {
    if (!q || atomic_fetch_sub_explicit(owners(q), 1, memory_order_acq_rel) != 1) return;
    tare__free((qparams *)q);
}

bool tare__qparams_equal(const qparams *a, const qparams *b) {
    if (a == b) return true;
    if (!a || !b || a->scheme != b->scheme || a->dtype != b->dtype || a->axis != b->axis ||
        a->count != b->count || a->quant_min != b->quant_min || a->quant_max != b->quant_max)
        return false;
    for (int64_t i = 0; i < a->count; i++)
        if (a->scale[i] != b->scale[i] || a->zero_point[i] != b->zero_point[i]) return false;
    return true;
}

qparams_fault tare__qparams_fault(const qparams *q, int64_t *channel) {
    const dtype_info *info = tare__dtype(q->dtype);
    const bool is_integer =
        q->scheme != TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS && info->min < info->max;
    // Group-wise quantizers flip the sign, so that the largest value gets the longer side of the
    // range, and use 0 for groups of zeros.
    const bool is_of_groups = tare__qscheme_is_per_group(q->scheme);
    for (int64_t c = 0; c < q->count; c++) {
        const double scale = q->scale[c], zero = q->zero_point[c];
        *channel = c;
        if ((!((float)scale > 0) && !is_of_groups) || !isfinite((float)scale))
            return QPARAMS_BAD_SCALE;
        if (!isfinite(zero)) return QPARAMS_BAD_ZERO_POINT;
        if (is_integer &&
            (zero != rint(zero) || zero < (double)info->min || zero > (double)info->max))
            return QPARAMS_BAD_ZERO_POINT;
    }
    return QPARAMS_FINE;
}

// --- shapes ---

bool tare__shape_count(int ndim, const int64_t *shape, int64_t *out) {
    int64_t count = 1;
    bool empty = false;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0) return false;
        // A zero makes the product zero, but the other sizes must not overflow either.
        if (shape[i] == 0)
            empty = true;
        else if (count > INT64_MAX / shape[i])
            return false;
        else
            count *= shape[i];
    }
    *out = empty ? 0 : count;
    return true;
}

void tare__shape_text(int ndim, const int64_t *shape, char *out, size_t size) {
    if (size == 0) return;
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i <= ndim && used < size; i++) {
        const char *before = i == 0 ? "[" : i < ndim ? ", " : "";
        const int n = i < ndim ? snprintf(out + used, size - used, "%s%" PRId64, before, shape[i])
                               : snprintf(out + used, size - used, "%s]", ndim == 0 ? "[" : "");
        used += n > 0 ? (size_t)n : 0;
    }
}

// --- making tensors ---

static tare_status check_shape(tare_dtype dtype, int ndim, const int64_t *shape, int64_t *count,
                               tare_error *err) {
    if (ndim < 0 || ndim > TARE_MAX_DIMS)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "a tensor has 0 to %d dimensions, found %d",
                          TARE_MAX_DIMS, ndim);
    const size_t element = tare_dtype_size(dtype);
    if (element == 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected a dtype, found number %d",
                          (int)dtype);
    if (tare__shape_count(ndim, shape, count) && (uint64_t)*count <= PTRDIFF_MAX / element)
        return TARE_OK;
    char found[200];
    tare__shape_text(ndim, shape, found, sizeof found);
    return tare__fail(
        err, TARE_INVALID_ARGUMENT,
        "expected sizes >= 0 whose product in bytes does not overflow, found shape %s", found);
}

// The last dimension must consist of whole groups.
static tare_status check_groups(int ndim, const int64_t *shape, int64_t groups, tare_error *err) {
    int64_t count = 0;
    if (ndim < 1 || !tare__shape_count(ndim, shape, &count) || count == 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "a scheme per group needs at least one element");
    if (groups > 0 && count % groups == 0 && shape[ndim - 1] % (count / groups) == 0)
        return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "%" PRId64 " scales do not divide rows of %" PRId64
                      " elements into equal groups",
                      groups, shape[ndim - 1]);
}

static tare_status check_qparams(tare_dtype dtype, int ndim, const int64_t *shape, const qparams *q,
                                 tare_error *err) {
    if (!q) return TARE_OK;
    if (q->dtype != dtype || !tare__dtype(dtype)->is_quantized)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "quantization parameters of %s given to a tensor of %s",
                          tare_dtype_name(q->dtype), tare_dtype_name(dtype));
    if (tare__qscheme_is_per_group(q->scheme)) return check_groups(ndim, shape, q->count, err);
    if (!tare__qscheme_is_per_channel(q->scheme)) {
        if (q->count == 1) return TARE_OK;
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "a per-tensor scheme has 1 scale, found %" PRId64, q->count);
    }
    if (q->axis < 0 || q->axis >= ndim)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "channel axis %d is out of range for a tensor of %d dimensions", q->axis,
                          ndim);
    if (shape[q->axis] != q->count)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "axis %d has %" PRId64 " channels, but there are %" PRId64 " scales",
                          q->axis, shape[q->axis], q->count);
    return TARE_OK;
}

tare_status tare__tensor_meta(tare_dtype dtype, int ndim, const int64_t *shape, const qparams *q,
                              tare_tensor **out, tare_error *err) {
    int64_t count = 0;
    TARE_TRY(check_shape(dtype, ndim, shape, &count, err));
    TARE_TRY(check_qparams(dtype, ndim, shape, q, err));
    tare_tensor *t = tare__alloc_zeroed(1, sizeof *t);
    if (!t) return tare__out_of_memory(err);
    atomic_init(&t->refcount, 1);
    t->dtype = dtype;
    t->ndim = ndim;
    for (int i = 0; i < ndim; i++) t->shape[i] = shape[i];
    t->count = count;
    t->q = tare__qparams_retain(q);
    *out = t;
    return TARE_OK;
}

tare_status tare__tensor_allocate(tare_tensor *t, tare_error *err) {
    if (t->data) return TARE_OK;
    t->store = tare__storage_create(tare__tensor_bytes(t));
    if (!t->store) return tare__out_of_memory(err);
    t->data = t->store->data;
    return TARE_OK;
}

static tare_status create(tare_dtype dtype, int ndim, const int64_t *shape, const qparams *q,
                          tare_tensor **out, tare_error *err) {
    tare_tensor *t = NULL;
    TARE_TRY(tare__tensor_meta(dtype, ndim, shape, q, &t, err));
    const tare_status status = tare__tensor_allocate(t, err);
    if (status != TARE_OK)
        tare_tensor_release(t);
    else
        *out = t;
    return status;
}

static tare_status refuse_quantized(tare_dtype dtype, tare_error *err) {
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "expected a plain dtype, found %s, which needs a scale and a zero point",
                      tare_dtype_name(dtype));
}

tare_status tare_tensor_create(tare_dtype dtype, int ndim, const int64_t *shape, tare_tensor **out,
                               tare_error *err) {
    if (tare__dtype(dtype)->is_quantized) return refuse_quantized(dtype, err);
    return create(dtype, ndim, shape, NULL, out, err);
}

tare_status tare_tensor_from_data(tare_dtype dtype, int ndim, const int64_t *shape,
                                  const void *data, tare_tensor **out, tare_error *err) {
    tare_tensor *t = NULL;
    TARE_TRY(tare_tensor_create(dtype, ndim, shape, &t, err));
    if (t->count) memcpy(t->data, data, tare__tensor_bytes(t));
    *out = t;
    return TARE_OK;
}

tare_status tare__tensor_quantized(int ndim, const int64_t *shape, const qparams *q,
                                   tare_tensor **out, tare_error *err) {
    return create(q->dtype, ndim, shape, q, out, err);
}

static tare_status look_into(tare_tensor *t, storage *store, size_t offset, tare_error *err) {
    // An empty storage may have no address, but a tensor with data needs one.
    if (store->data == NULL) return tare__tensor_allocate(t, err);
    unsigned char *data = (unsigned char *)store->data + offset;
    if ((uintptr_t)data % tare_dtype_size(t->dtype) !=
        0) { // not every machine reads unaligned elements
        TARE_TRY(tare__tensor_allocate(t, err));
        memcpy(t->data, data, tare__tensor_bytes(t));
        return TARE_OK;
    }
    t->store = tare__storage_retain(store);
    t->data = data;
    return TARE_OK;
}

tare_status tare_tensor_wrap(tare_dtype dtype, int ndim, const int64_t *shape, void *data,
                             bool is_writable, void (*release)(void *owner), void *owner,
                             tare_tensor **out, tare_error *err) {
    if (tare__dtype(dtype)->is_quantized) return refuse_quantized(dtype, err);
    tare_tensor *t = NULL;
    TARE_TRY(tare__tensor_meta(dtype, ndim, shape, NULL, &t, err));
    // `release` is only called if the tensor is returned.
    storage *store = tare__storage_adopt(data, tare__tensor_bytes(t), NULL, NULL);
    const tare_status status =
        store != NULL ? look_into(t, store, 0, err) : tare__out_of_memory(err);
    if (status != TARE_OK) {
        tare__storage_release(store);
        tare_tensor_release(t);
        return status;
    }
    store->read_only = !is_writable;
    store->owner = owner;
    store->release = release;
    tare__storage_release(store); // the tensor has its own reference, or a copy
    *out = t;
    return TARE_OK;
}

tare_status tare__tensor_view(storage *store, size_t offset, tare_dtype dtype, int ndim,
                              const int64_t *shape, const qparams *q, tare_tensor **out,
                              tare_error *err) {
    tare_tensor *t = NULL;
    TARE_TRY(tare__tensor_meta(dtype, ndim, shape, q, &t, err));
    const size_t bytes = tare__tensor_bytes(t);
    const bool fits = offset <= store->size && bytes <= store->size - offset;
    const tare_status status =
        fits ? look_into(t, store, offset, err)
             : tare__fail(err, TARE_INVALID_ARGUMENT,
                          "bytes %zu to %zu + %zu lie outside the %zu bytes there are", offset,
                          offset, bytes, store->size);
    if (status != TARE_OK)
        tare_tensor_release(t);
    else
        *out = t;
    return status;
}

tare_status tare__tensor_writable(const tare_tensor *t, tare_tensor **out, tare_error *err) {
    storage *store = tare__storage_adopt(t->data, tare__tensor_bytes(t), NULL, NULL);
    if (store == NULL) return tare__out_of_memory(err);
    store->read_only = false;
    const tare_status status =
        tare__tensor_view(store, 0, t->dtype, t->ndim, t->shape, t->q, out, err);
    tare__storage_release(store);
    return status;
}

tare_status tare__tensor_rows(const tare_tensor *t, int64_t first, int64_t count, tare_tensor **out,
                              tare_error *err) {
    int64_t shape[TARE_MAX_DIMS];
    assert(t->ndim > 0 && first >= 0 && count >= 0 && count <= t->shape[0] - first);
    memcpy(shape, t->shape, sizeof shape);
    shape[0] = count;
    const size_t row = t->shape[0] > 0 ? tare__tensor_bytes(t) / (size_t)t->shape[0] : 0;
    const char *start = t->data, *base = tare__storage_data(t->store);
    return tare__tensor_view(t->store, (size_t)(start - base) + (size_t)first * row, t->dtype,
                             t->ndim, shape, t->q, out, err);
}

// The same bytes with another dtype, shape or quantization parameters.
static tare_status share(const tare_tensor *t, tare_dtype dtype, int ndim, const int64_t *shape,
                         const qparams *q, tare_tensor **out, tare_error *err) {
    tare_tensor *made = NULL;
    TARE_TRY(tare__tensor_meta(dtype, ndim, shape, q, &made, err));
    made->data = t->data;
    made->store = tare__storage_retain(t->store);
    *out = made;
    return TARE_OK;
}

tare_status tare__tensor_reshape(const tare_tensor *t, int ndim, const int64_t *shape,
                                 tare_tensor **out, tare_error *err) {
    int64_t count = 0;
    TARE_TRY(check_shape(t->dtype, ndim, shape, &count, err));
    if (count == t->count) return share(t, t->dtype, ndim, shape, t->q, out, err);
    char from[200], to[200];
    tare__shape_text(t->ndim, t->shape, from, sizeof from);
    tare__shape_text(ndim, shape, to, sizeof to);
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "shape %s of %" PRId64 " elements cannot become %s", from, t->count, to);
}

tare_status tare__tensor_requalify(const tare_tensor *t, const qparams *q, tare_tensor **out,
                                   tare_error *err) {
    const tare_dtype from = tare__dtype(t->dtype)->storage;
    const tare_dtype dtype = q ? q->dtype : from;
    if (tare__dtype(dtype)->storage == from) return share(t, dtype, t->ndim, t->shape, q, out, err);
    return tare__fail(err, TARE_INVALID_ARGUMENT, "integers of %s cannot be read as %s",
                      tare_dtype_name(t->dtype), tare_dtype_name(dtype));
}

tare_status tare__tensor_copy(const tare_tensor *t, tare_tensor **out, tare_error *err) {
    if (!t->data) return tare__tensor_meta(t->dtype, t->ndim, t->shape, t->q, out, err);
    tare_tensor *made = NULL;
    TARE_TRY(create(t->dtype, t->ndim, t->shape, t->q, &made, err));
    if (t->count) memcpy(made->data, t->data, tare__tensor_bytes(t));
    *out = made;
    return TARE_OK;
}

tare_status tare__tensor_scalar_float(float value, tare_tensor **out, tare_error *err) {
    return tare_tensor_from_data(TARE_FLOAT32, 0, NULL, &value, out, err);
}

tare_status tare__tensor_scalar_int(int64_t value, tare_tensor **out, tare_error *err) {
    return tare_tensor_from_data(TARE_INT64, 0, NULL, &value, out, err);
}

tare_tensor *tare_tensor_retain(tare_tensor *tensor) {
    if (tensor) atomic_fetch_add_explicit(&tensor->refcount, 1, memory_order_relaxed);
    return tensor;
}

void tare_tensor_release(tare_tensor *tensor) {
    if (!tensor || atomic_fetch_sub_explicit(&tensor->refcount, 1, memory_order_acq_rel) != 1)
        return;
    tare__storage_release(tensor->store);
    tare__qparams_release(tensor->q);
    tare__free(tensor);
}

// --- reading and writing ---

bool tare__same_shape(const tare_tensor *a, const tare_tensor *b) {
    return a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

bool tare__same_elements(const tare_tensor *a, const tare_tensor *b) {
    if (a->dtype != b->dtype || !tare__same_shape(a, b)) return false;
    return a->data == b->data || a->count == 0 ||
           memcmp(a->data, b->data, tare__tensor_bytes(a)) == 0;
}

size_t tare__tensor_bytes(const tare_tensor *t) {
    return (size_t)t->count * tare_dtype_size(t->dtype); // checked when the tensor was made
}

bool tare__tensor_is_quantized(const tare_tensor *t) {
    return tare__dtype(t->dtype)->is_quantized;
}

tare_dtype tare_tensor_dtype(const tare_tensor *tensor) {
    return tensor->dtype;
}

int tare_tensor_ndim(const tare_tensor *tensor) {
    return tensor->ndim;
}

const int64_t *tare_tensor_shape(const tare_tensor *tensor) {
    return tensor->shape;
}

int64_t tare_tensor_element_count(const tare_tensor *tensor) {
    return tensor->count;
}

const void *tare_tensor_data(const tare_tensor *tensor) {
    return tensor->data;
}

void *tare_tensor_mutable_data(tare_tensor *tensor) {
    const storage *s = tensor->store;
    if (!s || s->read_only || atomic_load(&tensor->store->refcount) != 1) return NULL;
    return tensor->data;
}

int64_t tare_tensor_qparam_count(const tare_tensor *tensor) {
    return tensor->q ? tensor->q->count : 0;
}

tare_qscheme tare_tensor_qscheme(const tare_tensor *tensor) {
    return tensor->q ? tensor->q->scheme : TARE_QSCHEME_UNSET;
}

double tare_tensor_scale(const tare_tensor *tensor, int64_t channel) {
    if (channel < 0 || channel >= tare_tensor_qparam_count(tensor)) return 0;
    return tensor->q->scale[channel];
}

double tare_tensor_zero_point(const tare_tensor *tensor, int64_t channel) {
    if (channel < 0 || channel >= tare_tensor_qparam_count(tensor)) return 0;
    return tensor->q->zero_point[channel];
}

// "[12, 3]", the index of flat element i.
static void index_text(const tare_tensor *t, int64_t i, char *out, size_t size) {
    int64_t index[TARE_MAX_DIMS] = {0};
    for (int d = t->ndim - 1; d >= 0; d--) {
        index[d] = i % t->shape[d];
        i /= t->shape[d];
    }
    tare__shape_text(t->ndim, index, out, size);
}

// The number of float32 elements at the beginning that are certainly finite. Works in blocks
// without early exit and compares integers, so that compilers vectorize it: without its sign, a
// float's bit pattern is ordered like the float, an infinity's is 0x7F800000, and NaNs' are larger.
static int64_t count_numbers(const tare_tensor *t, bool refuses_infinite) {
    enum { BLOCK = 1024 };
    const int32_t most = refuses_infinite ? 0x7F7FFFFF : 0x7F800000;
    int32_t patterns[BLOCK];
    int64_t i = 0;
    if (t->dtype != TARE_FLOAT32) return 0;
    for (; i + BLOCK <= t->count; i += BLOCK) {
        int32_t any = 0; // negative: a pattern is too large
        memcpy(patterns, tare__f32(t) + i, sizeof patterns);
        for (int k = 0; k < BLOCK; k++) any |= most - (patterns[k] & INT32_MAX);
        if (any < 0) break;
    }
    return i;
}

static tare_status refuse_no_number(const tare_tensor *t, bool refuses_infinite, const char *what,
                                    const char *name, tare_error *err) {
    if (!t->data || !tare__dtype(t->dtype)->is_float) return TARE_OK;
    for (int64_t i = count_numbers(t, refuses_infinite); i < t->count; i++) {
        const double x =
            t->dtype == TARE_FLOAT32 ? (double)tare__f32(t)[i] : tare__tensor_get(t, i);
        if (!isnan(x) && (!refuses_infinite || !isinf(x))) continue;
        char index[200];
        index_text(t, i, index, sizeof index);
        return tare__fail(err, TARE_INVALID_ARGUMENT, "%s '%s' is %s at %s", what, name,
                          isnan(x) ? "NaN"
                          : x > 0  ? "inf"
                                   : "-inf",
                          index);
    }
    return TARE_OK;
}

tare_status tare__tensor_refuse_nan(const tare_tensor *t, const char *what, const char *name,
                                    tare_error *err) {
    return refuse_no_number(t, false, what, name, err);
}

tare_status tare__tensor_refuse_infinite(const tare_tensor *t, const char *what, const char *name,
                                         tare_error *err) {
    return refuse_no_number(t, true, what, name, err);
}

// --- to float ---

int64_t tare__group_size(const tare_tensor *t) {
    return t->q != NULL && tare__qscheme_is_per_group(t->q->scheme) ? t->count / t->q->count : 0;
}

// The distance in elements of neighbours along the channel axis.
static int64_t channel_stride(const tare_tensor *t) {
    int64_t stride = 1;
    for (int d = t->q->axis + 1; d < t->ndim; d++) stride *= t->shape[d];
    return stride;
}

// 8-bit values with one scale and an integer zero point, in a loop that compilers vectorize; false
// for other tensors.
static bool dequantize_bytes(const tare_tensor *t, float *out) {
    const qparams *q = t->q;
    const double zero_point = q->zero_point[0];
    const bool is_small = fabs(zero_point) <= 0x1p20 && zero_point == rint(zero_point);
    if (!tare__qscheme_is_per_tensor(q->scheme) || !is_small) return false;
    const int32_t zero = (int32_t)zero_point;
    const float scale = (float)q->scale[0];
    const uint8_t *bytes = t->data;
    const int8_t *signed_bytes = t->data;
    if (t->dtype == TARE_QUINT8)
        for (int64_t i = 0; i < t->count; i++) out[i] = (float)(bytes[i] - zero) * scale;
    else if (t->dtype == TARE_QINT8)
        for (int64_t i = 0; i < t->count; i++) out[i] = (float)(signed_bytes[i] - zero) * scale;
    else
        return false;
    return true;
}

// value = f32(code - zero point) * f32(scale); with float parameters (f32(code) - zero point) *
// scale. The integers are subtracted exactly before the one conversion.
static void dequantize_into(const tare_tensor *t, float *out) {
    const qparams *q = t->q;
    if (dequantize_bytes(t, out)) return;
    const bool per_channel = tare__qscheme_is_per_channel(q->scheme);
    const bool float_zero = q->scheme == TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS;
    const bool has_many = !tare__qscheme_is_per_tensor(q->scheme);
    const int64_t stride = per_channel ? channel_stride(t) : has_many ? tare__group_size(t) : 1;
    for (int64_t i = 0; i < t->count; i++) {
        assert(stride > 0); // because the tensor is not empty
        const int64_t c = has_many ? i / stride % q->count : 0;
        const double code = tare__tensor_get(t, i);
        const float scale = (float)q->scale[c];
        out[i] = float_zero ? ((float)code - (float)q->zero_point[c]) * scale
                            : (float)(code - q->zero_point[c]) * scale;
    }
}

tare_status tare_tensor_to_float(const tare_tensor *tensor, tare_tensor **out, tare_error *err) {
    const bool quantized = tare__tensor_is_quantized(tensor);
    if (!tensor->data || (quantized && !tensor->q))
        return tare__fail(err, TARE_INVALID_ARGUMENT, "a tensor of %s without %s has no values",
                          tare_dtype_name(tensor->dtype),
                          tensor->data ? "a scale and a zero point" : "data");
    tare_tensor *made = NULL;
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, tensor->ndim, tensor->shape, &made, err));
    float *values = made->data;
    const int64_t *wide = tensor->dtype == TARE_INT64 ? tensor->data : NULL;
    if (quantized)
        dequantize_into(tensor, values);
    else
        for (int64_t i = 0; i < tensor->count;
             i++) // converting int64 through double would round twice
            values[i] = wide ? (float)wide[i] : (float)tare__tensor_get(tensor, i);
    *out = made;
    return TARE_OK;
}
