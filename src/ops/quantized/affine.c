// SPDX-License-Identifier: Apache-2.0
// torchao's affine primitives: parameters for each block of a tensor, and quantize and dequantize
// with them (torchao.quantization.quant_primitives, torchao 0.18). A block has a size in each
// dimension: (1, 32) is torchao's PerGroup(32), (1, columns) PerRow, the whole shape PerTensor.
#include <math.h>
#include <string.h>

#include "core/math/float_to_int.h"
#include "core/math/requant.h"
#include "core/memory/alloc.h"
#include "ops/families/arithmetic.h"
#include "ops/families/families.h"
#include "ops/quantized/decomposed.h"
#include "ops/rules.h"

// --- blocks ---

typedef struct blocks {
    const tare_tensor *x;
    int64_t size[TARE_MAX_DIMS], count[TARE_MAX_DIMS]; // of a block; number of blocks per dimension
    int64_t total;
} blocks;

static tare_status read_blocks(op_call *call, size_t index, blocks *b) {
    size_t given = 0;
    *b = (blocks){.total = 1};
    TARE_TRY(tare__call_need_tensor(call, 0, &b->x));
    TARE_TRY(tare__call_int_list(call, index, TARE_MAX_DIMS, b->size, &given));
    if ((int)given != b->x->ndim)
        return tare__call_fail(call, "Got input dim:%d, block_size of %zu", b->x->ndim, given);
    for (int d = 0; d < b->x->ndim; d++) {
        const int64_t size = b->x->shape[d];
        if (b->size[d] < 1 || (size != b->size[d] && size % b->size[d] != 0))
            return tare__call_fail(call,
                                   "Expecting input size at %d dimension: %lld to be divisible by "
                                   "block_size at %d dimension: %lld",
                                   d, (long long)size, d, (long long)b->size[d]);
        b->count[d] = size / b->size[d];
        b->total *= b->count[d];
    }
    return TARE_OK;
}

// An iterator over the elements of x that returns the index of each element's block.
typedef struct block_walk {
    const blocks *b;
    int64_t at[TARE_MAX_DIMS];
} block_walk;

static int64_t next_block(block_walk *w) {
    int64_t block = 0;
    for (int d = 0; d < w->b->x->ndim; d++)
        block = block * w->b->count[d] + w->at[d] / w->b->size[d];
    for (int d = w->b->x->ndim - 1; d >= 0; d--) {
        if (++w->at[d] < w->b->x->shape[d]) break;
        w->at[d] = 0;
    }
    return block;
}

static tare_status check_parameters(op_call *call, const blocks *b, const tare_tensor *scale,
                                    const tare_tensor *zero_point) {
    if (scale->count == b->total && (zero_point == NULL || zero_point->count == b->total))
        return TARE_OK;
    return tare__call_fail(
        call, "%lld scales and %lld zero points do not fit %lld blocks", (long long)scale->count,
        (long long)(zero_point != NULL ? zero_point->count : b->total), (long long)b->total);
}

// quant_min and quant_max at `index` and `index` + 1; those of the dtype if they are not given.
static tare_status read_range(op_call *call, size_t index, tare_dtype dtype, int64_t *min,
                              int64_t *max) {
    const dtype_info *info = tare__dtype(dtype);
    if (info->min >= info->max || info->is_quantized || dtype == TARE_BOOL)
        return tare__call_fail(call, "Unsupported dtype: %s", tare_dtype_name(dtype));
    TARE_TRY(tare__call_int(call, index, info->min, min));
    TARE_TRY(tare__call_int(call, index + 1, info->max, max));
    if (*min >= info->min && *max <= info->max && *min < *max) return TARE_OK;
    return tare__call_fail(call, "quant_min %lld and quant_max %lld are no range of %s",
                           (long long)*min, (long long)*max, tare_dtype_name(dtype));
}

// --- choose ---

enum { CHOOSE_MAPPING = 1, CHOOSE_BLOCK, CHOOSE_DTYPE, CHOOSE_MIN, CHOOSE_EPS = 6, CHOOSE_SCALE };
enum { CHOOSE_ZERO = 8, CHOOSE_KEEPDIM };

typedef enum mapping { SYMMETRIC, SYMMETRIC_NO_CLIPPING, ASYMMETRIC } mapping;

typedef struct choice {
    blocks b;
    mapping mapping;
    int64_t quant_min, quant_max;
    float eps;
    tare_dtype scale_dtype, zero_dtype;
    bool keepdim;
} choice;

static tare_status read_mapping(op_call *call, mapping *out) {
    static const char *const names[] = {"SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR", "ASYMMETRIC"};
    const char *name = NULL;
    TARE_TRY(tare__call_text(call, CHOOSE_MAPPING, "", &name));
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *out = (mapping)i;
        return TARE_OK;
    }
    return tare__call_fail(call, "Unsupported mapping type: %s", name);
}

static double least_normal(tare_dtype dtype) {
    return dtype == TARE_FLOAT16 ? 0x1p-14 : 0x1p-126;
}

static tare_status read_choice(op_call *call, choice *c) {
    tare_dtype target;
    double eps;
    *c = (choice){0};
    TARE_TRY(read_blocks(call, CHOOSE_BLOCK, &c->b));
    TARE_TRY(tare__decomposed_check_float(call, c->b.x));
    TARE_TRY(read_mapping(call, &c->mapping));
    TARE_TRY(tare__call_dtype(call, CHOOSE_DTYPE, TARE_DTYPE_UNSET, &target));
    TARE_TRY(read_range(call, CHOOSE_MIN, target, &c->quant_min, &c->quant_max));
    TARE_TRY(tare__call_double(call, CHOOSE_EPS, least_normal(c->b.x->dtype), &eps));
    TARE_TRY(tare__call_dtype(call, CHOOSE_SCALE, c->b.x->dtype, &c->scale_dtype));
    const tare_dtype zero = c->mapping == ASYMMETRIC ? TARE_INT32 : c->b.x->dtype;
    TARE_TRY(tare__call_dtype(call, CHOOSE_ZERO, zero, &c->zero_dtype));
    TARE_TRY(tare__call_bool(call, CHOOSE_KEEPDIM, false, &c->keepdim));
    c->eps = tare__round_to(c->b.x->dtype, (float)eps);
    if (c->b.x->count > 0) return TARE_OK;
    return tare__call_fail(call, "needs at least one element");
}

// Without keepdim, a dimension that is a single block is dropped, unless that block has size 1.
static tare_status choose_shape(op_call *call) {
    choice c;
    int64_t shape[TARE_MAX_DIMS];
    int ndim = 0;
    TARE_TRY(read_choice(call, &c));
    for (int d = 0; d < c.b.x->ndim; d++)
        if (c.keepdim || c.b.count[d] > 1 || c.b.size[d] == 1) shape[ndim++] = c.b.count[d];
    return tare__call_result_pair(call, c.scale_dtype, c.zero_dtype, ndim, shape);
}

static float at_least(float x, float least) {
    return x < least ? least : x; // as torch.clamp: NaN stays
}

static void choose_one(const choice *c, float low, float high, double *scale, double *zero) {
    const tare_dtype dtype = c->b.x->dtype;
    const float min = low < 0 ? low : 0, max = high > 0 ? high : 0;
    const double steps = (double)c->quant_max - (double)c->quant_min;
    float s;
    const int64_t middle = (c->quant_max + c->quant_min + 1) / 2;
    *zero = (double)middle;
    if (c->mapping == SYMMETRIC) {
        s = tare__round_to(dtype, (-min > max ? -min : max) / (float)(steps / 2));
    } else if (c->mapping == SYMMETRIC_NO_CLIPPING) {
        const float of_min = tare__round_to(dtype, min / (float)c->quant_min);
        const float of_max = tare__round_to(dtype, max / (float)c->quant_max);
        s = of_min > of_max ? of_min : of_max;
    } else {
        s = tare__round_to(dtype, tare__round_to(dtype, max - min) / (float)steps);
    }
    s = at_least(s, c->eps);
    *scale = (double)s;
    if (c->mapping != ASYMMETRIC) return;
    const float shift = nearbyintf(tare__round_to(dtype, min / s));
    const double q = (double)tare__round_to(dtype, (float)c->quant_min - shift);
    *zero = fmin(fmax(q, (double)c->quant_min), (double)c->quant_max);
}

// Writes the minimum and maximum of each block to lows and highs, both of length b->total.
static void find_extremes(const blocks *b, const float *x, float *lows, float *highs) {
    block_walk w = {.b = b};
    for (int64_t i = 0; i < b->total; i++) {
        lows[i] = INFINITY;
        highs[i] = -INFINITY;
    }
    for (int64_t i = 0; i < b->x->count; i++) {
        const int64_t k = next_block(&w);
        lows[k] = x[i] < lows[k] || isnan(x[i]) ? x[i] : lows[k];
        highs[k] = x[i] > highs[k] || isnan(x[i]) ? x[i] : highs[k];
    }
}

static tare_status choose(op_call *call) {
    choice c;
    tare_tensor *real = NULL;
    TARE_TRY(read_choice(call, &c));
    float *lows = tare__realloc_array(NULL, (size_t)c.b.total, 2 * sizeof *lows);
    if (lows == NULL) return tare__out_of_memory(call->err);
    float *highs = lows + c.b.total;
    const tare_status status = tare_tensor_to_float(c.b.x, &real, call->err);
    if (status == TARE_OK) find_extremes(&c.b, tare__f32(real), lows, highs);
    for (int64_t i = 0; status == TARE_OK && i < c.b.total; i++) {
        double scale, zero;
        choose_one(&c, lows[i], highs[i], &scale, &zero);
        tare__tensor_set(call->result.as.items[0].as.tensor, i, scale);
        tare__tensor_set(call->result.as.items[1].as.tensor, i, zero);
    }
    tare_tensor_release(real);
    tare__free(lows);
    return status;
}

// --- quantize ---

enum { AFFINE_BLOCK = 1, AFFINE_SCALE, AFFINE_ZERO, AFFINE_DTYPE, AFFINE_MIN, AFFINE_OUTPUT = 7 };

static tare_status quantize_shape(op_call *call) {
    blocks b;
    const tare_tensor *scale, *zero;
    tare_dtype dtype;
    int64_t min, max;
    TARE_TRY(read_blocks(call, AFFINE_BLOCK, &b));
    TARE_TRY(tare__decomposed_check_float(call, b.x));
    TARE_TRY(tare__call_need_tensor(call, AFFINE_SCALE, &scale));
    TARE_TRY(tare__call_need_tensor(call, AFFINE_ZERO, &zero));
    TARE_TRY(check_parameters(call, &b, scale, zero));
    TARE_TRY(tare__call_dtype(call, AFFINE_DTYPE, TARE_DTYPE_UNSET, &dtype));
    TARE_TRY(read_range(call, AFFINE_MIN, dtype, &min, &max));
    return tare__call_result(call, dtype, b.x->ndim, b.x->shape, NULL);
}

static tare_status quantize(op_call *call) {
    blocks b;
    tare_tensor *y = tare__call_out(call);
    const tare_tensor *scale = tare__call_tensor(call, AFFINE_SCALE);
    const tare_tensor *zero = tare__call_tensor(call, AFFINE_ZERO);
    int64_t min, max;
    TARE_TRY(read_blocks(call, AFFINE_BLOCK, &b));
    TARE_TRY(read_range(call, AFFINE_MIN, y->dtype, &min, &max));
    // Half precision is rounded after each operation, unless the scales are wider.
    const tare_dtype dtype = scale->dtype == b.x->dtype ? b.x->dtype : TARE_FLOAT32;
    block_walk w = {.b = &b};
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t k = next_block(&w);
        const float inverse =
            tare__round_to(scale->dtype, 1.0F / (float)tare__tensor_get(scale, k));
        const float product = tare__round_to(dtype, (float)tare__tensor_get(b.x, i) * inverse);
        const float q =
            tare__round_to(dtype, nearbyintf(product) + (float)tare__tensor_get(zero, k));
        tare__tensor_set(y, i, tare__decomposed_clamp((double)q, min, max));
    }
    return TARE_OK;
}

// --- dequantize ---

static tare_status dequantize_shape(op_call *call) {
    blocks b;
    const tare_tensor *scale;
    tare_dtype dtype, output;
    int64_t min, max;
    TARE_TRY(read_blocks(call, AFFINE_BLOCK, &b));
    TARE_TRY(tare__call_need_tensor(call, AFFINE_SCALE, &scale));
    TARE_TRY(check_parameters(call, &b, scale, tare__call_tensor(call, AFFINE_ZERO)));
    TARE_TRY(tare__call_dtype(call, AFFINE_DTYPE, TARE_DTYPE_UNSET, &dtype));
    TARE_TRY(read_range(call, AFFINE_MIN, dtype, &min, &max));
    if (b.x->dtype != dtype)
        return tare__call_fail(call, "Expected: %s, got: %s", tare_dtype_name(dtype),
                               tare_dtype_name(b.x->dtype));
    TARE_TRY(tare__call_dtype(call, AFFINE_OUTPUT, TARE_FLOAT32, &output));
    if (output != TARE_FLOAT32 && output != TARE_FLOAT16 && output != TARE_BFLOAT16)
        return tare__call_fail(call, "Unsupported output dtype: %s", tare_dtype_name(output));
    return tare__call_result(call, output, b.x->ndim, b.x->shape, NULL);
}

static tare_status dequantize(op_call *call) {
    blocks b;
    tare_tensor *y = tare__call_out(call);
    const tare_tensor *scale = tare__call_tensor(call, AFFINE_SCALE);
    const tare_tensor *zero = tare__call_tensor(call, AFFINE_ZERO);
    TARE_TRY(read_blocks(call, AFFINE_BLOCK, &b));
    block_walk w = {.b = &b};
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t k = next_block(&w);
        float q = tare__round_to(y->dtype, (float)tare__tensor_get(b.x, i));
        if (zero != NULL)
            q = tare__round_to(y->dtype,
                               q - tare__round_to(y->dtype, (float)tare__tensor_get(zero, k)));
        tare__tensor_set(y, i, (double)(q * (float)tare__tensor_get(scale, k)));
    }
    return TARE_OK;
}

// --- rows ---

#define TORCHAO(name, more, parameters, rule, compute)                                             \
    {                                                                                              \
        .id = "torchao." name, .functions = "torch.ops.torchao." name ".default",                  \
        .params = parameters, .traits = OP_ANY_DTYPE | (more), .shape = rule, .reference = compute \
    }

// clang-format off
static const op_info rows[] = {
    TORCHAO("choose_qparams_affine", 0,
            "input|mapping_type|block_size|target_dtype|quant_min|quant_max|eps|scale_dtype|zero_point_dtype|keepdim",
            choose_shape, choose),
    TORCHAO("quantize_affine", 0, "input|block_size|scale|zero_point|output_dtype|quant_min|quant_max",
            quantize_shape, quantize),
    TORCHAO("dequantize_affine", OP_DEQUANTIZES,
            "input|block_size|scale|zero_point|input_dtype|quant_min|quant_max|output_dtype",
            dequantize_shape, dequantize),
};
// clang-format on

const op_table tare__affine_ops = OP_TABLE(rows);
