// SPDX-License-Identifier: Apache-2.0
// Linear layers whose weights have group-wise scales. Reads ONNX Runtime's MatMulNBits; writes
// MatMulNBits, or from opset 21 on DequantizeLinear with a block_size and MatMul.
#include "ops/quantized/grouped.h"

#include <math.h>

#include "io/onnx/families/families.h"
#include "io/onnx/pack.h"
#include "io/onnx/read/rules_common.h"
#include "io/onnx/schema.h"
#include "io/onnx/write/state.h"
#include "ops/quantized/layer.h"

// --- reading ---

enum { MOST_BLOCK = 1 << 15 };

// Quantized values [outs][blocks][size * bits / 8]; the lowest bits of a byte hold the first value.
typedef struct n_bits {
    const tare_tensor *quantized, *scale, *zero_point, *bias; // the last two may be NULL
    int64_t ins, outs, bits, size, blocks, accuracy;
    int64_t group, groups; // group divides the number of inputs
} n_bits;

static tare_status need_constant(onnx_call *c, size_t i, const char *name,
                                 const tare_tensor **out) {
    value v;
    *out = tare__onnx_constant(c, i);
    if (*out != NULL) return TARE_OK;
    TARE_TRY(tare__onnx_need_input(c, i, name, &v));
    return tare__onnx_fail(c, "input %zu ('%s') must be constant", i, name);
}

static tare_status take_constant(onnx_call *c, size_t i, const char *name,
                                 const tare_tensor **out) {
    *out = NULL;
    return tare__onnx_input(c, i).kind != VALUE_NONE ? need_constant(c, i, name, out) : TARE_OK;
}

static tare_status read_sizes(onnx_call *c, n_bits *n) {
    TARE_TRY(tare__onnx_attr_int(c, "K", 0, &n->ins));
    TARE_TRY(tare__onnx_attr_int(c, "N", 0, &n->outs));
    TARE_TRY(tare__onnx_attr_int(c, "bits", 4, &n->bits));
    TARE_TRY(tare__onnx_attr_int(c, "block_size", 0, &n->size));
    TARE_TRY(tare__onnx_attr_int(c, "accuracy_level", 0, &n->accuracy));
    tare__onnx_ignore_attr(c, "weight_prepacked"); // 0: the default layout, the only one read here
    if (n->bits != 2 && n->bits != 4 && n->bits != 8)
        return tare__onnx_fail(c, "expected 2, 4 or 8 bits, found %lld", (long long)n->bits);
    if (n->ins < 1 || n->ins > INT32_MAX || n->outs < 1 || n->outs > INT32_MAX || n->size < 16 ||
        n->size > MOST_BLOCK || (n->size & (n->size - 1)) != 0)
        return tare__onnx_malformed(c,
                                    "expected K and N of at least 1 and a block_size of 16, 32, .. "
                                    "32768, found %lld, %lld and %lld",
                                    (long long)n->ins, (long long)n->outs, (long long)n->size);
    n->blocks = n->ins / n->size + (n->ins % n->size != 0);
    n->group = n->size; // a power of two: halves of a half may divide
    while (n->ins % n->group != 0) n->group /= 2;
    n->groups = n->ins / n->group;
    return TARE_OK;
}

static tare_status check_count(onnx_call *c, const tare_tensor *t, const char *name,
                               int64_t per_output, int64_t outs) {
    if (t->count % outs == 0 && t->count / outs == per_output) return TARE_OK;
    return tare__onnx_malformed(c, "'%s' has %lld elements, expected %lld for each of %lld outputs",
                                name, (long long)t->count, (long long)per_output, (long long)outs);
}

static bool is_real(const tare_tensor *t) {
    return t->dtype == TARE_FLOAT32 || t->dtype == TARE_FLOAT16 || t->dtype == TARE_BFLOAT16;
}

// With g_idx, columns would belong to blocks in another order than the inputs.
static tare_status check_order(onnx_call *c, const n_bits *n) {
    const tare_tensor *order = NULL;
    TARE_TRY(take_constant(c, 4, "g_idx", &order));
    for (int64_t i = 0; order != NULL && i < order->count; i++)
        if (tare__tensor_get_int(order, i) != i / n->size)
            return tare__onnx_fail(
                c, "groups of inputs that are not adjacent (g_idx) are not supported");
    return TARE_OK;
}

static tare_status read_n_bits(onnx_call *c, n_bits *n) {
    *n = (n_bits){.bits = 4};
    TARE_TRY(read_sizes(c, n));
    TARE_TRY(need_constant(c, 1, "B", &n->quantized));
    TARE_TRY(need_constant(c, 2, "scales", &n->scale));
    TARE_TRY(take_constant(c, 3, "zero_points", &n->zero_point));
    TARE_TRY(take_constant(c, 5, "bias", &n->bias));
    TARE_TRY(check_order(c, n));
    if (n->quantized->dtype != TARE_UINT8 || !is_real(n->scale))
        return tare__onnx_fail(c, "expected uint8 weights with float scales, found %s and %s",
                               tare_dtype_name(n->quantized->dtype),
                               tare_dtype_name(n->scale->dtype));
    TARE_TRY(check_count(c, n->quantized, "B", n->blocks * (n->size * n->bits / 8), n->outs));
    TARE_TRY(check_count(c, n->scale, "scales", n->blocks, n->outs));
    if (n->bias != NULL) TARE_TRY(check_count(c, n->bias, "bias", 1, n->outs));
    if (n->zero_point == NULL) return TARE_OK;
    const int64_t packed = (n->blocks * n->bits + 7) / 8;
    return check_count(c, n->zero_point, "zero_points",
                       n->zero_point->dtype == TARE_UINT8 ? packed : n->blocks, n->outs);
}

// Value i of a row of bytes.
static uint8_t quantized_at(const n_bits *n, const uint8_t *row, int64_t i) {
    const int64_t in_byte = 8 / n->bits;
    const unsigned shift = (unsigned)(i % in_byte * n->bits);
    return (uint8_t)((unsigned)row[i / in_byte] >> shift & ((1U << n->bits) - 1));
}

// Values of 4 bits are stored in pairs, so a row needs an even number of them.
static int64_t our_bits(const n_bits *n) {
    return n->bits == 8 || n->ins % 2 != 0 ? 8 : 4;
}

static tare_status make_quantized(onnx_call *c, const n_bits *n, value *out) {
    const int64_t bits = our_bits(n), shape[] = {n->outs, n->ins * bits / 8};
    const int64_t row_bytes = n->quantized->count / n->outs;
    tare_tensor *t = NULL;
    if (bits == n->bits && n->group == n->size) { // the layout of the file is ours
        TARE_TRY(tare__tensor_reshape(n->quantized, 2, shape, &t, tare__onnx_error(c)));
        return tare__onnx_take_tensor(c, t, out);
    }
    TARE_TRY(tare__onnx_new_tensor(c, TARE_UINT8, 2, shape, &t));
    const uint8_t *from = n->quantized->data;
    uint8_t *to = t->data;
    for (int64_t o = 0; o < n->outs; o++, from += row_bytes, to += shape[1])
        for (int64_t k = 0; k < n->ins; k++) {
            const unsigned q = quantized_at(n, from, k);
            if (bits == 8)
                to[k] = (uint8_t)q;
            else
                to[k / 2] = (uint8_t)(to[k / 2] | q << (k % 2 * 4));
        }
    return tare__onnx_take_tensor(c, t, out);
}

static tare_status make_scales(onnx_call *c, const n_bits *n, value *out) {
    const int64_t shape[] = {n->outs, n->groups}, repeats = n->size / n->group;
    tare_tensor *t = NULL;
    TARE_TRY(tare__onnx_new_floats(c, 2, shape, &t));
    for (int64_t i = 0; i < t->count; i++) {
        const int64_t block = i % n->groups / repeats;
        tare__f32(t)[i] = (float)tare__tensor_get(n->scale, i / n->groups * n->blocks + block);
    }
    return tare__onnx_take_tensor(c, t, out);
}

static double zero_at(const n_bits *n, int64_t output, int64_t block) {
    if (n->zero_point == NULL) return (double)(INT64_C(1) << (n->bits - 1));
    const int64_t in_row = n->zero_point->count / n->outs;
    if (n->zero_point->dtype != TARE_UINT8)
        return tare__tensor_get(n->zero_point, output * in_row + block);
    return quantized_at(n, (const uint8_t *)n->zero_point->data + output * in_row, block);
}

// *out stays VALUE_NONE if all zero points are the middle of the quantized range.
static tare_status make_zero_points(onnx_call *c, const n_bits *n, value *out) {
    const int64_t shape[] = {n->outs, n->groups}, repeats = n->size / n->group;
    const double middle = our_bits(n) == 4 ? 8 : 128, most = (double)((1 << n->bits) - 1);
    tare_tensor *t = NULL;
    bool is_usual = true;
    *out = tare__none();
    TARE_TRY(tare__onnx_new_tensor(c, TARE_UINT8, 2, shape, &t));
    for (int64_t i = 0; i < t->count; i++) {
        const double zero = zero_at(n, i / n->groups, i % n->groups / repeats);
        if (!(zero >= 0 && zero <= most) || zero != floor(zero)) {
            tare_tensor_release(t);
            return tare__onnx_fail(c, "zero point %g is not an integer of %lld bits", zero,
                                   (long long)n->bits);
        }
        is_usual &= zero == middle;
        ((uint8_t *)t->data)[i] = (uint8_t)zero;
    }
    if (!is_usual) return tare__onnx_take_tensor(c, t, out);
    tare_tensor_release(t);
    return TARE_OK;
}

static tare_status make_bias(onnx_call *c, const n_bits *n, value *out) {
    tare_tensor *t = NULL;
    TARE_TRY(tare__onnx_new_floats(c, 1, &n->outs, &t));
    for (int64_t i = 0; i < n->outs; i++) tare__f32(t)[i] = (float)tare__tensor_get(n->bias, i);
    return tare__onnx_take_tensor(c, t, out);
}

static tare_status call_layer(onnx_call *c, const n_bits *n, const value *x, value *out) {
    const keyword config[] = {
        {"in_features", tare__int(n->ins)},
        {"out_features", tare__int(n->outs)},
        {"bits", tare__int(our_bits(n))},
        {"group_size", tare__int(n->group)},
        // accuracy_level is the least precision of the inputs: 4 is int8.
        {"activation_dtype", tare__dtype_value(n->accuracy == 4 ? TARE_INT8 : TARE_FLOAT32)}};
    keyword tensors[4] = {{"weight"}, {"weight_scale"}};
    size_t count = 2;
    value zero;
    TARE_TRY(make_quantized(c, n, &tensors[0].value));
    TARE_TRY(make_scales(c, n, &tensors[1].value));
    TARE_TRY(make_zero_points(c, n, &zero));
    if (zero.kind != VALUE_NONE) tensors[count++] = (keyword){"weight_zero_point", zero};
    if (n->bias != NULL) {
        tensors[count] = (keyword){"bias"};
        TARE_TRY(make_bias(c, n, &tensors[count++].value));
    }
    return tare__onnx_module(c,
                             &(onnx_module){.class_name = "tare.GroupedLinear",
                                            .config = config,
                                            .config_count = sizeof config / sizeof *config,
                                            .tensors = tensors,
                                            .tensor_count = count,
                                            .args = x,
                                            .arg_count = 1},
                             out);
}

static tare_status translate_mat_mul_n_bits(onnx_call *c) {
    n_bits n;
    value x, y;
    const tare_tensor *t = NULL;
    TARE_TRY(tare__onnx_need_first(c, "A", &x, &t));
    TARE_TRY(read_n_bits(c, &n));
    if (!is_real(t))
        return tare__onnx_fail(c, "a product with %s is not supported", tare_dtype_name(t->dtype));
    const tare_dtype dtype = t->dtype;
    TARE_TRY(tare__onnx_to(c, &x, TARE_FLOAT32, &x));
    TARE_TRY(call_layer(c, &n, &x, &y));
    return tare__onnx_finish(c, &y, dtype);
}

static const onnx_rule read_rows[] = {
    {"MatMulNBits", .translate = translate_mat_mul_n_bits},
};

// --- writing ---

// A layer to be written.
typedef struct grouped_out {
    onnx_out *o;
    grouped_weights w;
    const module *m;
    const char *x;
} grouped_out;

static const char *keep(onnx_out *o, tare_tensor *t, const char *name, int type) {
    const char *made =
        t != NULL && !tare__out_failed(o) ? tare__out_add_tensor(o->w, name, t, type) : NULL;
    if (t != NULL && made == NULL) tare__out_try(o, tare__out_of_memory(tare__out_call(o)->err));
    tare_tensor_release(t);
    return made != NULL ? made : "";
}

static tare_tensor *new_tensor(onnx_out *o, tare_dtype dtype, int ndim, const int64_t *shape) {
    tare_tensor *t = NULL;
    if (!tare__out_failed(o))
        tare__out_try(o, tare_tensor_create(dtype, ndim, shape, &t, tare__out_call(o)->err));
    return t;
}

// A tensor of the module as an initializer with the tensor's name and this shape.
static const char *own_tensor(grouped_out *g, const char *name, int ndim, const int64_t *shape) {
    onnx_out *o = g->o;
    const tare_tensor *t = tare__module_tensor(g->m, name);
    const char *known = tare__out_bound(o->w, t), *path = tare__out_path(o->w, t);
    tare_tensor *shaped = NULL;
    if (tare__out_failed(o)) return "";
    if (known != NULL) return known;
    tare__out_try(o, tare__tensor_reshape(t, ndim, shape, &shaped, tare__out_call(o)->err));
    known = keep(o, shaped, path != NULL ? path : name, tare__onnx_type_of_dtype(t->dtype));
    if (tare__out_failed(o)) return "";
    if (!tare__out_bind(o->w, t, known))
        tare__out_try(o, tare__out_of_memory(tare__out_call(o)->err));
    else if (path != NULL)
        tare__out_source(o, path, known, NULL, NULL, -1);
    return known;
}

// --- MatMulNBits ---

// The block size for MatMulNBits: the largest power of two that divides the group, at most
// MOST_BLOCK.
static int64_t block_for(const grouped_weights *w) {
    const int64_t block = w->group & -w->group;
    return block > MOST_BLOCK ? MOST_BLOCK : block;
}

static const char *block_scales(grouped_out *g, int64_t block) {
    const grouped_weights *w = &g->w;
    const int64_t shape[] = {w->outs, w->ins / block}, repeats = w->group / block;
    if (repeats == 1) return own_tensor(g, "weight_scale", 2, shape);
    tare_tensor *t = new_tensor(g->o, TARE_FLOAT32, 2, shape);
    for (int64_t i = 0; t != NULL && i < t->count; i++)
        tare__f32(t)[i] = tare__f32(w->scale)[i / repeats];
    return keep(g->o, t, "scales", tare__onnx_type_of_dtype(TARE_FLOAT32));
}

static const char *block_zero_points(grouped_out *g, int64_t block) {
    const grouped_weights *w = &g->w;
    const int64_t count = w->ins / block, in_byte = 8 / w->bits;
    const int64_t shape[] = {w->outs, (count + in_byte - 1) / in_byte};
    if (w->zero_point == NULL) return "";
    tare_tensor *t = new_tensor(g->o, TARE_UINT8, 2, shape);
    for (int64_t i = 0; t != NULL && i < w->outs * count; i++) {
        const int64_t o = i / count, k = i % count;
        uint8_t *byte = (uint8_t *)t->data + o * shape[1] + k / in_byte;
        const unsigned zero = (unsigned)tare__grouped_zero(w, o, k * block / w->group);
        *byte = (uint8_t)(*byte | zero << (k % in_byte * w->bits));
    }
    return keep(g->o, t, "zero_points", tare__onnx_type_of_dtype(TARE_UINT8));
}

static const char *write_n_bits(grouped_out *g) {
    const grouped_weights *w = &g->w;
    onnx_out *o = g->o;
    const int64_t block = block_for(w), shape[] = {w->outs, w->ins / block, block * w->bits / 8};
    if (block < 16)
        tare__out_refuse(o, "MatMulNBits does not support groups of %lld", (long long)w->group);
    const char *quantized = own_tensor(g, "weight", 3, shape), *scales = block_scales(g, block);
    const char *zeros = block_zero_points(g, block);
    const char *bias = w->bias != NULL ? own_tensor(g, "bias", 1, &w->outs) : "";
    const char *y = OUT(o, "MatMulNBits", g->x, quantized, scales, zeros, "", bias);
    tare__out_of_runtime(o);
    tare__out_attr_int(o, "K", w->ins);
    tare__out_attr_int(o, "N", w->outs);
    tare__out_attr_int(o, "bits", w->bits);
    tare__out_attr_int(o, "block_size", block);
    tare__out_attr_int(o, "accuracy_level", w->quantizes_input ? 4 : 0);
    return y;
}

// --- DequantizeLinear and MatMul ---

// The quantized values [ins][outs], as MatMul takes them.
static const char *turned_quantized(grouped_out *g, int type) {
    const grouped_weights *w = &g->w;
    const int64_t shape[] = {w->ins, w->outs};
    const int32_t shift = w->zero_point == NULL ? 1 << (w->bits - 1) : 0; // stored as signed
    onnx_out *o = g->o;
    const char *made = tare__out_bound(o->w, w->quantized),
               *path = tare__out_path(o->w, w->quantized);
    if (made != NULL) return made;
    tare_tensor *t = new_tensor(o, w->zero_point == NULL ? TARE_INT8 : TARE_UINT8, 2, shape);
    for (int64_t i = 0; t != NULL && i < t->count; i++)
        tare__tensor_set_int(t, i, tare__grouped_value(w, i % w->outs, i / w->outs) - shift);
    made = keep(o, t, path != NULL ? path : "weight", type);
    if (tare__out_failed(o)) return "";
    if (!tare__out_bind(o->w, w->quantized, made))
        tare__out_try(o, tare__out_of_memory(tare__out_call(o)->err));
    else if (path != NULL)
        tare__out_turned_source(o, path, made, w->bits);
    return made;
}

// The parameters of the groups, [groups][outs].
static const char *turned_scales(grouped_out *g) {
    const grouped_weights *w = &g->w;
    const int64_t shape[] = {w->groups, w->outs};
    tare_tensor *t = new_tensor(g->o, TARE_FLOAT32, 2, shape);
    for (int64_t i = 0; t != NULL && i < t->count; i++)
        tare__f32(t)[i] = tare__f32(w->scale)[i % w->outs * w->groups + i / w->outs];
    return keep(g->o, t, "scales", tare__onnx_type_of_dtype(TARE_FLOAT32));
}

static const char *turned_zero_points(grouped_out *g, int type) {
    const grouped_weights *w = &g->w;
    const int64_t shape[] = {w->groups, w->outs};
    if (w->zero_point == NULL) return "";
    tare_tensor *t = new_tensor(g->o, TARE_UINT8, 2, shape);
    for (int64_t i = 0; t != NULL && i < t->count; i++)
        tare__tensor_set_int(t, i, tare__grouped_zero(w, i % w->outs, i / w->outs));
    return keep(g->o, t, "zero_points", type);
}

static const char *write_dequantized(grouped_out *g) {
    const grouped_weights *w = &g->w;
    onnx_out *o = g->o;
    const bool is_signed = w->zero_point == NULL;
    const int type = w->bits == 4 ? (is_signed ? ONNX_INT4 : ONNX_UINT4)
                                  : tare__onnx_type_of_dtype(is_signed ? TARE_INT8 : TARE_UINT8);
    const char *y = OUT(o, "DequantizeLinear", turned_quantized(g, type), turned_scales(g),
                        turned_zero_points(g, type));
    tare__out_attr_int(o, "axis", 0);
    tare__out_attr_int(o, "block_size", w->group);
    if (w->quantizes_input)
        tare__out_note(o, "its inputs stay float: only com.microsoft's MatMulNBits, below opset "
                          "21, can express dynamic quantization");
    y = OUT(o, "MatMul", g->x, y);
    return w->bias != NULL ? OUT(o, "Add", y, own_tensor(g, "bias", 1, &w->outs)) : y;
}

static void write_grouped(onnx_out *o) {
    op_call *call = tare__out_call(o);
    grouped_out g = {.o = o, .m = call->module};
    tare__out_try(o, tare__grouped_read(call->module, &g.w, call->err));
    if (tare__out_failed(o)) return;
    g.x = tare__out_tensor(o, tare__call_layer_input(call));
    if (call->module->class->fused == FUSED_RELU) tare__out_then_relu(o);
    tare__out_result(o, tare__out_opset(o) >= 21 ? write_dequantized(&g) : write_n_bits(&g));
}

static const onnx_write_rule write_rows[] = {
    {"grouped.module", "MatMulNBits; DequantizeLinear, MatMul, Add", .write = write_grouped},
};

const onnx_family tare__onnx_grouped_family = {.read = ONNX_RULES(read_rows),
                                               .write = ONNX_WRITE_RULES(write_rows)};
