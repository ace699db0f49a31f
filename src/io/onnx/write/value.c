// SPDX-License-Identifier: Apache-2.0
// Values of the file: names, constants, tensors of the model.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/math/requant.h"
#include "core/memory/alloc.h"
#include "io/native/quantized_json.h"
#include "io/onnx/pack.h"
#include "io/onnx/schema.h"
#include "io/onnx/write/state.h"
#include "ops/classes/reference.h"

enum { MOST_SHARED = 64 }; // bytes of a constant that equal constants share

static void key_of(const tare_tensor *t, char out[32]) {
    snprintf(out, 32, "%p", (const void *)t);
}

static const char *no_memory(onnx_out *o) {
    tare__out_try(o, tare__out_of_memory(o->call.err));
    return "";
}

// --- names ---

const char *tare__out_unique(onnx_writer *w, map *names, const char *wish) {
    const char *name = wish;
    for (int i = 1; tare__map_has(names, name); i++) {
        name = tare__arena_printf(&w->memory, "%s_%d", wish, i);
        if (name == NULL) return NULL;
    }
    name = tare__arena_strdup(&w->memory, name);
    return name != NULL && tare__map_set(names, name, NULL) ? name : NULL;
}

bool tare__out_bind(onnx_writer *w, const tare_tensor *t, const char *name) {
    char key[32];
    key_of(t, key);
    return tare__map_set(&w->values, key, (void *)name); // NOLINT: only read
}

const char *tare__out_bound(const onnx_writer *w, const tare_tensor *t) {
    char key[32];
    key_of(t, key);
    return tare__map_get(&w->values, key);
}

const char *tare__out_path(const onnx_writer *w, const tare_tensor *t) {
    char key[32];
    key_of(t, key);
    return tare__map_get(&w->paths, key);
}

// --- initializers ---

out_tensor *tare__out_find_tensor(const onnx_writer *w, const char *name) {
    const size_t at = (size_t)tare__map_get(&w->tensor_names, name);
    return at > 0 ? &w->tensors[at - 1] : NULL;
}

// A key for constants with equal type, shape and elements. False if there is none; out->failed says
// whether memory ran out.
static bool content_key(const tare_tensor *t, int type, text *out) {
    if (tare__tensor_bytes(t) > MOST_SHARED || t->data == NULL) return false;
    tare__text_printf(out, "%d", type);
    for (int d = 0; d < t->ndim; d++) tare__text_printf(out, ",%" PRId64, t->shape[d]);
    tare__text_char(out, ':');
    const unsigned char *bytes = t->data;
    for (size_t i = 0; i < tare__tensor_bytes(t); i++) tare__text_printf(out, "%02x", bytes[i]);
    return !out->failed;
}

const char *tare__out_add_tensor(onnx_writer *w, const char *name, const tare_tensor *t, int type) {
    if (!tare__grow((void **)&w->tensors, &w->tensor_capacity, w->tensor_count, sizeof *w->tensors))
        return NULL;
    const char *own = tare__out_unique(w, &w->names, name);
    text key = {0};
    bool done = own != NULL;
    if (done && content_key(t, type, &key) && !tare__map_has(&w->constants, tare__text_chars(&key)))
        done = tare__map_set(&w->constants, tare__text_chars(&key), (void *)own); // NOLINT
    done = done && !key.failed;
    tare__text_release(&key);
    if (!done || !tare__map_set(&w->tensor_names, own, tare__map_int(w->tensor_count + 1)))
        return NULL;
    w->tensors[w->tensor_count++] =
        (out_tensor){.name = own, .t = tare_tensor_retain((tare_tensor *)t), .type = type};
    return own;
}

static int type_of(onnx_out *o, tare_dtype dtype) {
    const int type = tare__onnx_type_of_dtype(tare__dtype(dtype)->storage);
    if (type == 0) tare__out_refuse(o, "ONNX has no element type for %s", tare_dtype_name(dtype));
    return type;
}

static const char *add_tensor(onnx_out *o, const char *name, const tare_tensor *t) {
    const int type = type_of(o, t->dtype);
    if (tare__out_failed(o)) return "";
    const char *made = tare__out_add_tensor(o->w, name, t, type);
    return made != NULL ? made : no_memory(o);
}

const char *tare__out_constant(onnx_out *o, const tare_tensor *t, const char *name) {
    text key = {0};
    const char *known = NULL;
    const int type = type_of(o, t->dtype);
    if (tare__out_failed(o)) return "";
    if (content_key(t, type, &key)) known = tare__map_get(&o->w->constants, tare__text_chars(&key));
    const bool failed = key.failed;
    tare__text_release(&key);
    if (failed) return no_memory(o);
    return known != NULL ? known : add_tensor(o, name, t);
}

// Adds a constant and consumes the reference to the tensor. NULL if memory ran out.
static const char *take_constant(onnx_out *o, tare_tensor *t, const char *name) {
    if (t == NULL || tare__out_failed(o)) {
        tare_tensor_release(t);
        return "";
    }
    const char *made = tare__out_constant(o, t, name);
    tare_tensor_release(t);
    return made;
}

const char *tare__out_number(onnx_out *o, tare_dtype dtype, double number) {
    tare_tensor *t = NULL;
    if (tare__out_failed(o)) return "";
    tare__out_try(o, tare_tensor_create(dtype, 0, NULL, &t, o->call.err));
    if (t != NULL) tare__tensor_set(t, 0, number);
    return take_constant(o, t, "constant");
}

const char *tare__out_ints(onnx_out *o, const int64_t *ints, size_t count) {
    tare_tensor *t = NULL;
    const int64_t shape[] = {(int64_t)count};
    if (tare__out_failed(o)) return "";
    tare__out_try(o, tare_tensor_from_data(TARE_INT64, 1, shape, ints, &t, o->call.err));
    return take_constant(o, t, "sizes");
}

const tare_tensor *tare__out_int_tensor(onnx_out *o, const int64_t *ints, size_t count) {
    tare_tensor *t = NULL;
    const int64_t shape[] = {(int64_t)count};
    if (tare__out_failed(o)) return NULL;
    tare__out_try(o, tare_tensor_from_data(TARE_INT64, 1, shape, ints, &t, o->call.err));
    if (t == NULL) return NULL;
    const char *name = tare__out_constant(o, t, "indices");
    tare__out_try(o, tare__onnx_keep(&o->w->trace, t));
    if (!tare__out_failed(o) && !tare__out_bind(o->w, t, name)) no_memory(o);
    tare_tensor_release(t);
    return tare__out_failed(o) ? NULL : t;
}

void tare__out_qparams(onnx_out *o, const qparams *q, int64_t groups, tare_dtype dtype,
                       const char **scale, const char **zero_point) {
    const bool has_groups = tare__qscheme_is_per_group(q->scheme);
    const int64_t shape[] = {has_groups ? q->count / groups : q->count, groups};
    const int ndim = has_groups ? 2 : tare__qscheme_is_per_channel(q->scheme) ? 1 : 0;
    tare_tensor *scales = NULL, *zeros = NULL;
    *scale = *zero_point = "";
    if (tare__out_failed(o)) return;
    tare__out_try(o, tare_tensor_create(TARE_FLOAT32, ndim, shape, &scales, o->call.err));
    tare__out_try(o, tare_tensor_create(dtype, ndim, shape, &zeros, o->call.err));
    for (int64_t c = 0; c < q->count && !tare__out_failed(o); c++) {
        tare__tensor_set(scales, c, q->scale[c]);
        tare__tensor_set(zeros, c, q->zero_point[c]);
    }
    *scale = take_constant(o, scales, "scale");
    *zero_point = take_constant(o, zeros, "zero_point");
}

// --- sources ---

static void set_source(onnx_out *o, const char *path, onnx_source s) {
    onnx_source *source = tare__arena_alloc(&o->w->memory, sizeof *source);
    if (tare__out_failed(o)) return;
    if (source == NULL || !tare__map_set(&o->w->sources, path, source)) {
        no_memory(o);
        return;
    }
    *source = s;
}

void tare__out_source(onnx_out *o, const char *path, const char *quantized, const char *scale,
                      const char *zero_point, int axis) {
    set_source(o, path, (onnx_source){quantized, scale, zero_point, axis, 0});
}

void tare__out_turned_source(onnx_out *o, const char *path, const char *initializer, int bits) {
    set_source(o, path, (onnx_source){.initializer = initializer, .axis = -1, .turned_bits = bits});
}

// --- tensors ---

static void add_suffixed(onnx_out *o, const char *path, const char *suffix, const char *name) {
    const char *full = tare__arena_printf(&o->w->memory, "%s%s", path, suffix);
    if (full == NULL)
        no_memory(o);
    else if (!tare__map_has(&o->w->sources, full))
        tare__out_source(o, full, name, NULL, NULL, -1);
}

static const char *add_model_tensor(onnx_out *o, const tare_tensor *t) {
    const char *path = tare__out_path(o->w, t);
    const char *made = add_tensor(o, path != NULL ? path : "constant", t);
    if (tare__out_failed(o)) return "";
    if (path != NULL) add_suffixed(o, path, t->q != NULL ? QUANTIZED_INTEGERS : "", made);
    if (!tare__out_bind(o->w, t, made)) return no_memory(o);
    return made;
}

const char *tare__out_quantized(onnx_out *o, const tare_tensor *t) {
    if (tare__out_failed(o)) return "";
    const char *name = tare__out_bound(o->w, t);
    if (name != NULL) return name;
    if (t->data != NULL) return add_model_tensor(o, t);
    tare__out_refuse(o, "an input is not produced by any node");
    return "";
}

// Records the parameters with which a tensor of the model was dequantized.
static void note_qparams(onnx_out *o, const tare_tensor *t, const char *quantized) {
    char key[32];
    key_of(t, key);
    const char *path = tare__out_path(o->w, t), *weight = tare__map_get(&o->w->weights, key);
    if (tare__out_failed(o) || t->q->scheme == TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS) return;
    const out_node *n = &o->w->nodes[o->w->node_count - 1];
    const char *scale = n->inputs[1], *zero_point = n->inputs[2];
    if (path != NULL) {
        add_suffixed(o, path, QUANTIZED_SCALE, scale);
        add_suffixed(o, path, QUANTIZED_ZERO_POINT, zero_point);
    }
    if (weight == NULL || tare__map_has(&o->w->sources, weight)) return;
    const bool is_per_channel = tare__qscheme_is_per_channel(t->q->scheme);
    tare__out_source(o, weight, quantized, scale, zero_point, is_per_channel ? t->q->axis : -1);
    add_suffixed(o, weight, "_scale", scale);
    add_suffixed(o, weight, "_zero_point", zero_point);
}

const char *tare__out_tensor(onnx_out *o, const tare_tensor *t) {
    const char *quantized = tare__out_quantized(o, t);
    if (t->q == NULL || o->on_quantized) return quantized;
    const out_dynamic *d = tare__out_find_dynamic(o, t);
    if (d != NULL) return OUT(o, "DequantizeLinear", quantized, d->scale, d->zero_point);
    const char *made = tare__out_dequantize(o, quantized, t->q);
    note_qparams(o, t, quantized);
    return made;
}

// --- parameters that are computed ---

out_dynamic *tare__out_find_dynamic(const onnx_out *o, const tare_tensor *t) {
    char key[32];
    key_of(t, key);
    return tare__map_get(&o->w->dynamic, key);
}

void tare__out_set_dynamic(onnx_out *o, const tare_tensor *t, const char *scale,
                           const char *zero_point) {
    char key[32];
    out_dynamic *d = tare__arena_alloc(&o->w->memory, sizeof *d);
    if (tare__out_failed(o)) return;
    if (d != NULL) *d = (out_dynamic){.scale = scale, .zero_point = zero_point};
    key_of(t, key);
    if (d == NULL || !tare__map_set(&o->w->dynamic, key, d)) no_memory(o);
}

// --- weights that are quantized when they are used ---

static tare_tensor *make_quantized(onnx_out *o, const module *m, const char *name,
                                   const char *path) {
    onnx_writer *w = o->w;
    tare_tensor *quantized = NULL;
    char key[32];
    tare__out_try(o, tare__reference_quantized(m, name, &quantized, o->call.err));
    if (tare__out_failed(o)) return NULL;
    if (!tare__map_set(&w->quantized, path, quantized)) {
        tare_tensor_release(quantized);
        no_memory(o);
        return NULL;
    }
    key_of(quantized, key);
    const char *made = add_tensor(o, path, quantized);
    const char *kept = tare__arena_strdup(&w->memory, path);
    if (tare__out_failed(o)) return NULL;
    if (kept == NULL || !tare__map_set(&w->weights, key, (void *)kept) || // NOLINT: only read
        !tare__out_bind(w, quantized, made))
        no_memory(o);
    return quantized;
}

const tare_tensor *tare__out_quantized_weight(onnx_out *o, const module *m, const char *name) {
    char key[128];
    const tare_tensor *own = tare__module_tensor(m, name);
    snprintf(key, sizeof key, "%s_scale", name);
    if (tare__out_failed(o) || own == NULL || !tare__module_has_tensor(m, key)) return NULL;
    const char *path = tare__out_path(o->w, own);
    if (path == NULL) path = name;
    const tare_tensor *known = tare__map_get(&o->w->quantized, path);
    return known != NULL ? known : make_quantized(o, m, name, path);
}

const char *tare__out_input(onnx_out *o, size_t i) {
    const value *v = i < o->call.param_count ? o->call.param[i] : NULL;
    if (v == NULL || v->kind == VALUE_NONE) return "";
    if (v->kind == VALUE_TENSOR) return tare__out_tensor(o, v->as.tensor);
    double number;
    if (tare__call_number(v, &number))
        return tare__out_number(o, v->kind == VALUE_FLOAT ? TARE_FLOAT32 : TARE_INT64, number);
    tare__out_refuse(o, "its parameter %zu is neither a tensor nor a number", i);
    return "";
}

const char *tare__out_operand(onnx_out *o, size_t i, tare_dtype dtype) {
    const value *v = i < o->call.param_count ? o->call.param[i] : NULL;
    double number;
    if (v != NULL && v->kind == VALUE_TENSOR) {
        const tare_tensor *t = v->as.tensor;
        return tare__out_cast(o, tare__out_tensor(o, t), t->q != NULL ? TARE_FLOAT32 : t->dtype,
                              dtype);
    }
    if (v != NULL && tare__call_number(v, &number)) return tare__out_number(o, dtype, number);
    tare__out_refuse(o, "its parameter %zu is neither a tensor nor a number", i);
    return "";
}

// --- sizes that follow the batch ---

// The batch size as an int64 vector of one element.
static const char *batch_size(onnx_out *o) {
    onnx_writer *w = o->w;
    if (w->batch_size != NULL) return w->batch_size;
    for (size_t i = 0; i < w->spec->input_count; i++) {
        const tare_tensor *a = w->trace.inputs[i].as.tensor, *b = w->other.inputs[i].as.tensor;
        if (a->ndim == 0 || a->shape[0] != w->batch || b->shape[0] != w->other_batch) continue;
        const char *shape = OUT(o, "Shape", tare__out_quantized(o, a));
        w->batch_size = tare__out_slice(o, shape, 0, 0, 1, 1);
        return w->batch_size;
    }
    tare__out_refuse(o, "a size depends on the batch, which no input has");
    return "";
}

// Writes a size as factor * batch + offset, if that gives both sizes.
static const char *one_size(onnx_out *o, int64_t size, int64_t other) {
    const int64_t step = o->w->other_batch - o->w->batch;
    if (size == other) return tare__out_ints(o, &size, 1);
    if (o->w->open.count > 0) return tare__out_open_size(o, size, other);
    if ((other - size) % step != 0) {
        tare__out_refuse(o, "a size is not a linear function of the batch size");
        return "";
    }
    const int64_t factor = (other - size) / step, more = size - factor * o->w->batch;
    const char *made = batch_size(o);
    if (factor != 1) made = OUT(o, "Mul", made, tare__out_ints(o, &factor, 1));
    if (more != 0) made = OUT(o, "Add", made, tare__out_ints(o, &more, 1));
    return made;
}

const char *tare__out_sizes(onnx_out *o, const int64_t *sizes, const int64_t *other, size_t count) {
    enum { MOST = 2 * TARE_MAX_DIMS };
    const char *items[MOST];
    if (other == NULL || !o->w->has_other || memcmp(sizes, other, count * sizeof *sizes) == 0)
        return tare__out_ints(o, sizes, count);
    for (size_t i = 0; i < count && i < MOST; i++) items[i] = one_size(o, sizes[i], other[i]);
    if (count == 1) return items[0];
    const char *made = tare__out_node(o, "Concat", items, count);
    tare__out_attr_int(o, "axis", 0);
    return made;
}

const char *tare__out_sizes_but_one(onnx_out *o, const int64_t *sizes, const int64_t *other,
                                    size_t count) {
    int64_t left[2 * TARE_MAX_DIMS], left_other[2 * TARE_MAX_DIMS];
    if (other == NULL || o->w->open.count == 0) return tare__out_sizes(o, sizes, other, count);
    for (size_t i = 0; i < count; i++) {
        left[i] = sizes[i];
        left_other[i] = other[i];
    }
    for (size_t i = 0; i < count; i++) {
        if (sizes[i] == other[i] || tare__out_knows_size(o, sizes[i], other[i])) continue;
        left[i] = left_other[i] = -1;
        break;
    }
    return tare__out_sizes(o, left, left_other, count);
}
