// SPDX-License-Identifier: Apache-2.0
// Sizes that depend on the batch. Sizes that the file computes from shapes are computed for a
// second batch size, too. For sizes that are plain numbers in the file, the position of the batch
// size tells whether they depend on it.
#include <string.h>

#include "core/tensor/tensor.h"
#include "io/onnx/read/rules_common.h"
#include "io/onnx/read/sizes.h"

// --- sizes as constants ---

// Shape and dtype of v for the other batch size; NULL if they are not known.
static const tare_tensor *other_meta(const onnx_call *c, const value *v) {
    if (v->kind == VALUE_TENSOR) return tare__onnx_constant_of(c->in, v->as.tensor)->other;
    if (v->kind != VALUE_NODE) return NULL;
    const value *other = &tare__onnx_info(c->in, v->as.node)->other;
    return other->kind == VALUE_TENSOR ? other->as.tensor : NULL;
}

static tare_status open_sizes(onnx_call *c, const value *x, size_t from, size_t count,
                              tare_tensor *out) {
    value *entries = tare__arena_array(&c->in->memory, count + 1, sizeof *entries);
    if (entries == NULL) return tare__out_of_memory(c->in->err);
    for (size_t d = 0; d < count; d++)
        TARE_TRY(tare__onnx_size(c, x, (int)(from + d), &entries[d]));
    return tare__onnx_set_entries(c, out, entries);
}

tare_status tare__onnx_sizes(onnx_call *c, const value *x, size_t from, size_t count, value *out) {
    const tare_tensor *meta = tare__onnx_meta(c, x), *other = other_meta(c, x);
    value otherwise;
    TARE_TRY(tare__onnx_int_tensor(c, meta->shape + from, count, out));
    if (c->in->open != NULL) return open_sizes(c, x, from, count, out->as.tensor);
    if (count == 0 || other == NULL || other->ndim != meta->ndim ||
        memcmp(other->shape + from, meta->shape + from, count * sizeof *meta->shape) == 0)
        return TARE_OK;
    TARE_TRY(tare__onnx_int_tensor(c, other->shape + from, count, &otherwise));
    tare__onnx_constant_of(c->in, out->as.tensor)->other = otherwise.as.tensor;
    return TARE_OK;
}

// --- reshape ---

// Computes the sizes of torch's reshape from `dims`, where one may be -1.
static bool complete(const int64_t *dims, size_t count, int64_t elements, int64_t *out) {
    int64_t known = 1;
    size_t open = count;
    for (size_t d = 0; d < count; d++) {
        out[d] = dims[d];
        if (dims[d] == -1 && open == count)
            open = d;
        else if (dims[d] < 0 || (dims[d] > 0 && known > INT64_MAX / dims[d]))
            return false;
        else
            known *= dims[d];
    }
    if (open == count) return known == elements;
    if (known == 0 || elements % known != 0) return false;
    out[open] = elements / known;
    return true;
}

// Counts the dimensions whose size differs between the two batch sizes. *at is the first such
// dimension.
static int differing_dims(const tare_tensor *x, const tare_tensor *other, int *at) {
    int count = 0;
    for (int d = x->ndim - 1; d >= 0; d--)
        if (x->shape[d] != other->shape[d]) *at = d, count++;
    return count;
}

// The dimension of `out` that is the batch, if dimension 0 of x is: only ones may precede it, and
// its size is a multiple of the batch size.
static size_t first_dim(const onnx_import *in, const tare_tensor *x, const tare_tensor *other,
                        const int64_t *out, size_t count) {
    if (x->shape[0] % in->batch != 0 ||
        other->shape[0] / in->other_batch != x->shape[0] / in->batch)
        return count;
    for (size_t d = 0; d < count; d++) {
        if (out[d] % in->batch == 0 && out[d] > 0) return d;
        if (out[d] != 1) return count;
    }
    return count;
}

// The same if dimension `at` of x is the batch: a dimension of equal size with equally many
// elements before it.
static size_t same_dim(const tare_tensor *x, int at, const int64_t *out, size_t count) {
    int64_t before = 1, passed = 1;
    for (int d = 0; d < at; d++) before *= x->shape[d];
    for (size_t d = 0; d < count; d++) {
        if (passed == before && out[d] == x->shape[at]) return d;
        passed *= out[d];
    }
    return count;
}

// The dimension of `out` that is the batch of x; `count` if none can be told.
static size_t batch_dim(const onnx_import *in, const tare_tensor *x, const tare_tensor *other,
                        const int64_t *out, size_t count) {
    int at = 0;
    if (other->ndim != x->ndim || differing_dims(x, other, &at) != 1) return count;
    return at == 0 ? first_dim(in, x, other, out, count) : same_dim(x, at, out, count);
}

static tare_status check_sizes(onnx_call *c, const tare_tensor *meta, const int64_t *dims,
                               size_t count, int64_t *out) {
    if (count > TARE_MAX_DIMS)
        return tare__onnx_fail(c, "%zu dimensions are too many, at most %d fit", count,
                               TARE_MAX_DIMS);
    if (meta != NULL && complete(dims, count, meta->count, out)) return TARE_OK;
    char from[200] = "";
    char to[200];
    if (meta != NULL) tare__shape_text(meta->ndim, meta->shape, from, sizeof from);
    tare__shape_text((int)count, dims, to, sizeof to);
    return tare__onnx_malformed(c, "shape %s cannot become %s", from, to);
}

// True if all dimensions but the first are merged into one, for any batch size.
static bool is_flattening(const tare_tensor *meta, const tare_tensor *other, const int64_t *sizes,
                          size_t count) {
    if (count != 2 || meta->ndim < 3 || meta->shape[0] <= 0) return false;
    if (sizes[0] != -1 && sizes[0] != meta->shape[0]) return false;
    if (sizes[1] != meta->count / meta->shape[0]) return false;
    return other == NULL || (other->shape[0] > 0 && sizes[1] == other->count / other->shape[0]);
}

// x.reshape(..); or torch.flatten(x, 1), as users write it, where all dimensions after the batch
// become one.
static tare_status emit_reshape(onnx_call *c, const value *x, const int64_t *sizes, size_t count,
                                value *out) {
    if (is_flattening(tare__onnx_meta(c, x), other_meta(c, x), sizes, count)) {
        const value flat[] = {*x, tare__int(1)};
        const onnx_emit e = {.target = "torch.flatten", .args = flat, .arg_count = 2};
        return tare__onnx_function(c, &e, out);
    }
    value args[1 + TARE_MAX_DIMS] = {*x};
    for (size_t d = 0; d < count; d++) args[1 + d] = tare__int(sizes[d]);
    if (count == 0) TARE_TRY(tare__onnx_int_tuple(c, sizes, 0, &args[1])); // a scalar
    const onnx_emit e = {.target = "reshape", .args = args, .arg_count = count > 0 ? 1 + count : 2};
    return tare__onnx_method(c, &e, out);
}

// --- reshape to open sizes ---

// reshape with the sizes as given, nodes included.
static tare_status emit_reshape_to(onnx_call *c, const value *x, const value *dims, size_t count,
                                   value *out) {
    value args[1 + TARE_MAX_DIMS] = {*x};
    memcpy(args + 1, dims, count * sizeof *dims);
    const onnx_emit e = {.target = "reshape", .args = args, .arg_count = 1 + count};
    return tare__onnx_method(c, &e, out);
}

// The sizes `dims` for the first (or other) stand-in sizes; -1 if unknown.
static void stand_in(const onnx_call *c, const value *dims, size_t count, bool other,
                     int64_t *out) {
    for (size_t d = 0; d < count; d++) {
        const value known = tare__onnx_known(c->in, &dims[d], other);
        out[d] = known.kind == VALUE_INT ? known.as.integer : -1;
    }
}

// If one size is open, it becomes -1, so that the call needs no size nodes. If several are, the
// call takes the file's sizes.
tare_status tare__onnx_reshape_to(onnx_call *c, const value *x, const value *dims, size_t count,
                                  value *out) {
    int64_t now[TARE_MAX_DIMS], otherwise[TARE_MAX_DIMS], sizes[TARE_MAX_DIMS];
    const tare_tensor *meta = tare__onnx_meta(c, x), *other = other_meta(c, x);
    stand_in(c, dims, count < TARE_MAX_DIMS ? count : TARE_MAX_DIMS, false, now);
    if (c->in->open == NULL) return tare__onnx_reshape(c, x, now, count, out);
    TARE_TRY(check_sizes(c, meta, now, count, sizes));
    if (other == NULL) other = meta;
    stand_in(c, dims, count, true, now);
    TARE_TRY(check_sizes(c, other, now, count, otherwise));
    size_t open = 0;
    for (size_t d = 0; d < count; d++) open += sizes[d] != otherwise[d];
    if (open > 1) {
        value known[TARE_MAX_DIMS];
        for (size_t d = 0; d < count; d++)
            known[d] = sizes[d] == otherwise[d] ? tare__int(sizes[d]) : dims[d];
        return emit_reshape_to(c, x, known, count, out);
    }
    for (size_t d = 0; d < count; d++)
        if (sizes[d] != otherwise[d]) sizes[d] = -1;
    return emit_reshape(c, x, sizes, count, out);
}

static tare_status reshape_numbers(onnx_call *c, const value *x, const int64_t *dims, size_t count,
                                   value *out) {
    value sizes[TARE_MAX_DIMS];
    if (count > TARE_MAX_DIMS) return check_sizes(c, tare__onnx_meta(c, x), dims, count, NULL);
    for (size_t d = 0; d < count; d++) sizes[d] = tare__int(dims[d]);
    return tare__onnx_reshape_to(c, x, sizes, count, out);
}

tare_status tare__onnx_reshape(onnx_call *c, const value *x, const int64_t *dims, size_t count,
                               value *out) {
    int64_t sizes[TARE_MAX_DIMS];
    const tare_tensor *meta = tare__onnx_meta(c, x);
    if (c->in->open != NULL) return reshape_numbers(c, x, dims, count, out);
    TARE_TRY(check_sizes(c, meta, dims, count, sizes));
    const tare_tensor *other = other_meta(c, x);
    const size_t d = other != NULL ? batch_dim(c->in, meta, other, sizes, count) : count;
    if (d < count) sizes[d] = -1;
    return emit_reshape(c, x, sizes, count, out);
}

// --- constants as long as the batch ---

// A constant that has a row for each sample, and a constant difference between rows: arange(batch)
// and what is computed from it, or equal rows.
typedef struct progression {
    tare_tensor *first; // row 0, [1][..]
    double step;
} progression;

static bool has_steps(const tare_tensor *t, int64_t row, double *step) {
    *step = 0;
    for (int64_t i = row; i < t->count; i++) {
        const double way = tare__tensor_get(t, i) - tare__tensor_get(t, i - row);
        if (i == row) *step = way;
        if (way != *step) return false;
    }
    return true;
}

static tare_status read_progression(onnx_call *c, const tare_tensor *t, const tare_tensor *other,
                                    progression *p) {
    int at = 0;
    *p = (progression){0};
    const bool is_batched = (t->dtype == TARE_INT64 || t->dtype == TARE_FLOAT32) &&
                            other->ndim == t->ndim && differing_dims(t, other, &at) == 1 &&
                            at == 0 && t->shape[0] == c->in->batch &&
                            other->shape[0] == c->in->other_batch;
    if (!is_batched || t->count <= 0) return TARE_OK;
    const int64_t row = t->count / t->shape[0];
    if (!has_steps(other, row, &p->step)) return TARE_OK;
    for (int64_t i = 0; i < t->count; i++)
        if (tare__tensor_get(t, i) != tare__tensor_get(other, i)) return TARE_OK;
    int64_t shape[TARE_MAX_DIMS];
    memcpy(shape, t->shape, sizeof shape);
    shape[0] = 1;
    TARE_TRY(tare__onnx_new_tensor(c, t->dtype, t->ndim, shape, &p->first));
    for (int64_t i = 0; i < row; i++) tare__tensor_set(p->first, i, tare__tensor_get(t, i));
    return TARE_OK;
}

// An input whose dimension 0 is the batch.
static const node *batched_input(onnx_import *in) {
    for (const node *n = in->draft->first; n != NULL && n->op == NODE_PLACEHOLDER; n = n->next) {
        const draft_info *info = tare__onnx_info(in, n);
        if (info->meta.kind != VALUE_TENSOR || info->other.kind != VALUE_TENSOR) continue;
        const tare_tensor *t = info->meta.as.tensor, *other = info->other.as.tensor;
        if (t->ndim > 0 && t->shape[0] == in->batch && other->shape[0] == in->other_batch) return n;
    }
    return NULL;
}

tare_status tare__onnx_follow_batch(onnx_call *c, value *constant) {
    const tare_tensor *t = constant->as.tensor;
    const tare_tensor *other = tare__onnx_constant_of(c->in, t)->other;
    node *x = (node *)batched_input(c->in);
    progression p = {0};
    value size, steps, row, step;
    if (c->in->open != NULL || other == NULL || x == NULL) return TARE_OK;
    TARE_TRY(read_progression(c, t, other, &p));
    if (p.first == NULL) return TARE_OK;
    TARE_TRY(tare__onnx_take_tensor(c, p.first, &row));
    step = t->dtype == TARE_INT64 ? tare__int((int64_t)p.step) : tare__float(p.step);
    TARE_TRY(ONNX_METHOD(c, &size, "size", tare__node_value(x), tare__int(0)));
    TARE_TRY(ONNX_CALL(c, &steps, "torch.arange", tare__int(0), size));
    value args[1 + TARE_MAX_DIMS] = {steps, tare__int(-1)};
    for (int d = 1; d < t->ndim; d++) args[1 + d] = tare__int(1);
    const onnx_emit stands = {.target = "reshape", .args = args, .arg_count = 1 + (size_t)t->ndim};
    if (t->ndim > 1) TARE_TRY(tare__onnx_method(c, &stands, &steps));
    TARE_TRY(ONNX_CALL(c, &steps, "operator.mul", steps, step));
    return ONNX_CALL(c, constant, "operator.add", steps, row);
}

// --- shapes of reshape ---

// The only size that differs between the two batch sizes; `count` if there is none, or more than
// one.
static size_t differing(const int64_t *sizes, const int64_t *others, size_t count) {
    size_t found = count;
    for (size_t d = 0; d < count; d++) {
        if (sizes[d] == others[d]) continue;
        if (found < count) return count;
        found = d;
    }
    return found;
}

// The sizes of an ONNX shape input. A 0 keeps x's size, unless the node allows sizes of 0.
typedef struct shape_input {
    int64_t dims[TARE_MAX_DIMS];
    int64_t others[TARE_MAX_DIMS]; // for the other batch
    size_t count;
    bool follows; // the file computes the sizes from shapes, so `others` is exact
} shape_input;

static tare_status keep_zeros(onnx_call *c, const tare_tensor *meta, const tare_tensor *other,
                              shape_input *s) {
    for (size_t d = 0; d < s->count; d++) {
        if (s->dims[d] != 0) continue;
        if ((int)d >= meta->ndim)
            return tare__onnx_malformed(
                c, "shape has a 0 for dimension %zu, which the input does not have", d);
        s->dims[d] = meta->shape[d];
        s->others[d] = other != NULL && (int)d < other->ndim ? other->shape[d] : meta->shape[d];
        s->follows |= s->dims[d] != s->others[d];
    }
    return TARE_OK;
}

static tare_status read_shape_input(onnx_call *c, size_t i, bool allows_zeros,
                                    const tare_tensor *meta, const tare_tensor *other,
                                    shape_input *s) {
    TARE_TRY(tare__onnx_input_ints(c, i, "shape", TARE_MAX_DIMS, s->dims, &s->count, NULL));
    const tare_tensor *said = tare__onnx_constant_of(c->in, tare__onnx_constant(c, i))->other;
    s->follows = said != NULL && said->count == (int64_t)s->count;
    for (size_t d = 0; d < s->count; d++)
        s->others[d] = s->follows ? tare__tensor_get_int(said, (int64_t)d) : s->dims[d];
    return allows_zeros ? TARE_OK : keep_zeros(c, meta, other, s);
}

static tare_status reshape_by_open(onnx_call *c, const value *x, size_t i, bool allows_zeros,
                                   value *out) {
    value dims[TARE_MAX_DIMS];
    size_t count = 0;
    const tare_tensor *meta = tare__onnx_meta(c, x);
    TARE_TRY(tare__onnx_input_sizes(c, i, "shape", TARE_MAX_DIMS, dims, &count, NULL));
    for (size_t d = 0; d < count && !allows_zeros; d++) {
        if (dims[d].kind != VALUE_INT || dims[d].as.integer != 0) continue;
        if ((int)d >= meta->ndim)
            return tare__onnx_malformed(
                c, "shape has a 0 for dimension %zu, which the input does not have", d);
        TARE_TRY(tare__onnx_size(c, x, (int)d, &dims[d]));
    }
    return tare__onnx_reshape_to(c, x, dims, count, out);
}

tare_status tare__onnx_reshape_by(onnx_call *c, const value *x, size_t i, bool allows_zeros,
                                  value *out) {
    int64_t sizes[TARE_MAX_DIMS], others[TARE_MAX_DIMS];
    shape_input s;
    const tare_tensor *meta = tare__onnx_meta(c, x);
    const tare_tensor *other = other_meta(c, x);
    if (c->in->open != NULL) return reshape_by_open(c, x, i, allows_zeros, out);
    TARE_TRY(read_shape_input(c, i, allows_zeros, meta, other, &s));
    TARE_TRY(check_sizes(c, meta, s.dims, s.count, sizes));
    const bool is_known = other != NULL && complete(s.others, s.count, other->count, others);
    size_t d = is_known && s.follows ? differing(sizes, others, s.count) : s.count;
    if (d == s.count && other != NULL) d = batch_dim(c->in, meta, other, sizes, s.count);
    if (d == s.count && is_known) d = differing(sizes, others, s.count);
    if (d < s.count) sizes[d] = -1;
    return emit_reshape(c, x, sizes, s.count, out);
}
