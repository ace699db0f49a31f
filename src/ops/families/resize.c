// SPDX-License-Identifier: Apache-2.0
// torch.nn.functional.interpolate: nearest, linear and cubic resizing.
#include <math.h>
#include <string.h>

#include "ops/families/families.h"
#include "ops/layer_call.h"
#include "ops/rules.h"

enum { SIZE = 1, SCALE, MODE, ALIGN, RECOMPUTE, ANTIALIAS, SCALE_DEPTH };

static tare_status read_mode(op_call *call, resize_call *p) {
    static const struct {
        const char *name;
        resize_mode mode;
        int dims; // 0: any
    } modes[] = {{"nearest", RESIZE_NEAREST, 0},  {"nearest-exact", RESIZE_NEAREST_EXACT, 0},
                 {"linear", RESIZE_LINEAR, 1},    {"bilinear", RESIZE_LINEAR, 2},
                 {"trilinear", RESIZE_LINEAR, 3}, {"bicubic", RESIZE_CUBIC, 2}};
    const char *mode;
    TARE_TRY(tare__call_text(call, MODE, "nearest", &mode));
    TARE_TRY(tare__call_bool(call, ALIGN, false, &p->align_corners));
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i].name, mode) == 0 && (modes[i].dims == 0 || modes[i].dims == p->dims)) {
            p->mode = modes[i].mode;
            return TARE_OK;
        }
    return tare__call_fail(call, "mode '%s' is not supported for %d dimensions", mode, p->dims);
}

// Reads one scale factor for all dimensions, or a list of one per dimension.
static tare_status read_scales(op_call *call, const resize_call *p, double scale[3]) {
    const value *v = call->param[SCALE];
    const bool is_list = v->kind == VALUE_LIST || v->kind == VALUE_TUPLE;
    if (is_list && v->count != (uint32_t)p->dims && v->count != 1)
        return tare__call_fail(call, "%u scale factors for %d dimensions", v->count, p->dims);
    for (int d = 0; d < p->dims; d++) {
        const value *item = is_list ? &v->as.items[v->count == 1 ? 0 : d] : v;
        double *out = &scale[3 - p->dims + d];
        if (!tare__call_number(item, out) || !(*out > 0 && *out < 0x1p31))
            return tare__call_fail(call, "a scale factor must be a positive number");
    }
    return TARE_OK;
}

// Overloads with an output size may also have scale factors per dimension, which then determine the
// step. None and non-positive factors have no effect.
static tare_status read_scales_of_size(op_call *call, const resize_call *p, double scale[3]) {
    for (size_t d = 3 - (size_t)p->dims; d < 3; d++) {
        TARE_TRY(tare__call_double(call, SCALE_DEPTH + d, 0, &scale[d]));
        if (scale[d] > 0 && !(scale[d] >= 0x1p-31 && scale[d] < 0x1p31))
            return tare__call_fail(call, "the scale %g is out of range", scale[d]);
    }
    return TARE_OK;
}

// As in torch, the step follows from the sizes, unless a scale factor is given that need not be
// recomputed.
static void choose_step(resize_call *p, int d, double scale) {
    if (p->mode >= RESIZE_LINEAR && p->align_corners)
        p->step[d] = p->out[d] > 1 ? (float)(p->in[d] - 1) / (float)(p->out[d] - 1) : 0;
    else
        p->step[d] = scale > 0 ? (float)(1.0 / scale) : (float)p->in[d] / (float)p->out[d];
}

static tare_status read_sizes(op_call *call, resize_call *p) {
    int64_t size[3] = {1, 1, 1};
    double scale[3] = {0};
    bool recompute;
    const bool has_size = tare__call_given(call, SIZE);
    if (has_size == tare__call_given(call, SCALE))
        return tare__call_fail(call, "needs either size or scale_factor");
    TARE_TRY(tare__call_bool(call, RECOMPUTE, false, &recompute));
    if (has_size) {
        TARE_TRY(tare__call_ints(call, SIZE, (size_t)p->dims, 1, size + 3 - p->dims));
        TARE_TRY(read_scales_of_size(call, p, scale));
    } else {
        TARE_TRY(read_scales(call, p, scale));
    }
    for (int d = 3 - p->dims; d < 3; d++) {
        const double wanted = has_size ? (double)size[d] : floor((double)p->in[d] * scale[d]);
        if (!(wanted >= 1 && wanted <= INT32_MAX) || p->in[d] < 1)
            return tare__call_fail(call, "input of shape %s cannot be resized to %g",
                                   tare__call_shape_text(call, p->x), wanted);
        p->out[d] = (int64_t)wanted;
        choose_step(p, d, recompute ? 0 : scale[d]);
    }
    return TARE_OK;
}

tare_status tare__resize_read(op_call *call, resize_call *p) {
    *p = (resize_call){.in = {1, 1, 1}, .out = {1, 1, 1}, .step = {1, 1, 1}};
    TARE_TRY(tare__need_float(call, 0, &p->x));
    p->dims = p->x->ndim - 2;
    if (p->dims < 1 || p->dims > 3)
        return tare__call_fail(call, "input must have 3 to 5 dimensions, found shape %s",
                               tare__call_shape_text(call, p->x));
    for (int d = 0; d < p->dims; d++) p->in[3 - p->dims + d] = p->x->shape[2 + d];
    TARE_TRY(read_mode(call, p));
    return read_sizes(call, p);
}

static tare_status interpolate_shape(op_call *call) {
    resize_call p;
    bool antialias;
    TARE_TRY(tare__call_bool(call, ANTIALIAS, false, &antialias));
    // Turns the call into one of the antialias row, which no executor handles.
    if (antialias) call->op = tare__op_of_family(&tare__resize_ops, "interpolate_antialias");
    int64_t shape[TARE_MAX_DIMS];
    TARE_TRY(tare__resize_read(call, &p));
    memcpy(shape, p.x->shape, sizeof shape);
    for (int d = 0; d < p.dims; d++) shape[2 + d] = p.out[3 - p.dims + d];
    return tare__call_result(call, TARE_FLOAT32, p.x->ndim, shape, NULL);
}

static resize_taps nearest_taps(const resize_call *p, int d, int64_t i) {
    const int64_t last = p->in[d] - 1;
    const float middle = p->mode == RESIZE_NEAREST_EXACT ? 0.5f : 0.0f;
    const int64_t at = (int64_t)floorf(((float)i + middle) * p->step[d]);
    return (resize_taps){.count = 1, .at = {at < last ? at : last}, .weight = {1}};
}

static float position_of(const resize_call *p, int d, int64_t i) {
    return p->align_corners ? p->step[d] * (float)i : p->step[d] * ((float)i + 0.5f) - 0.5f;
}

static resize_taps linear_taps(const resize_call *p, int d, int64_t i) {
    const int64_t last = p->in[d] - 1;
    const float position = position_of(p, d, i), inside = position > 0 ? position : 0;
    const int64_t at = (int64_t)inside < last ? (int64_t)inside : last;
    const float left = inside - (float)at, weight = left < 1 ? left : 1;
    return (resize_taps){
        .count = 2, .at = {at, at < last ? at + 1 : last}, .weight = {1 - weight, weight}};
}

// Keys' cubic convolution with a = -0.75, as in torch: for distances up to 1, and up to 2.
static float cubic_near(float x) {
    return ((-0.75f + 2) * x - (-0.75f + 3)) * x * x + 1;
}
static float cubic_far(float x) {
    return ((-0.75f * x + 5 * 0.75f) * x - 8 * 0.75f) * x + 4 * 0.75f;
}

static resize_taps cubic_taps(const resize_call *p, int d, int64_t i) {
    const int64_t last = p->in[d] - 1;
    const float position = position_of(p, d, i), t = position - floorf(position);
    resize_taps made = {
        .count = RESIZE_MOST_TAPS,
        .weight = {cubic_far(t + 1), cubic_near(t), cubic_near(1 - t), cubic_far(2 - t)}};
    for (int k = 0; k < RESIZE_MOST_TAPS; k++) {
        const int64_t at = (int64_t)floorf(position) - 1 + k;
        made.at[k] = at < 0 ? 0 : at < last ? at : last;
    }
    return made;
}

resize_taps tare__resize_taps_of(const resize_call *p, int d, int64_t i) {
    if (d < 3 - p->dims) return (resize_taps){.count = 1, .weight = {1}};
    if (p->mode == RESIZE_CUBIC) return cubic_taps(p, d, i);
    return p->mode == RESIZE_LINEAR ? linear_taps(p, d, i) : nearest_taps(p, d, i);
}

resize_plane_taps tare__resize_plane_taps_of(const resize_call *r,
                                             const resize_taps *const taps[3]) {
    const int counts[] = {taps[0]->count, taps[1]->count, taps[2]->count};
    resize_plane_taps plane_taps = {.count = 0};
    for (int i = 0; i < counts[0] * counts[1] * counts[2]; i++) {
        const int tap[] = {i / counts[2] / counts[1], i / counts[2] % counts[1], i % counts[2]};
        float weight = 1;
        int64_t index = 0;
        for (int d = 0; d < 3; d++) {
            weight *= taps[d]->weight[tap[d]];
            index = index * r->in[d] + taps[d]->at[tap[d]];
        }
        if (weight == 0) continue;
        plane_taps.at[plane_taps.count] = index;
        plane_taps.weight[plane_taps.count++] = weight;
    }
    return plane_taps;
}

static tare_status interpolate_reference(op_call *call) {
    resize_call r;
    TARE_TRY(tare__resize_read(call, &r));
    resize_taps *along = tare__arena_array(call->memory, (size_t)r.out[2], sizeof *along);
    if (along == NULL) return tare__out_of_memory(call->err);
    for (int64_t i = 0; i < r.out[2]; i++) along[i] = tare__resize_taps_of(&r, 2, i);
    const int64_t in = r.in[0] * r.in[1] * r.in[2], out = r.out[0] * r.out[1] * r.out[2];
    const int64_t planes = r.x->shape[0] * r.x->shape[1];
    float *y = tare__f32(tare__call_out(call));
    resize_taps depth = {0}, height = {0};
    for (int64_t i = 0; i < out; i++) {
        const int64_t row = i / r.out[2];
        if (i % r.out[2] == 0) {
            depth = tare__resize_taps_of(&r, 0, row / r.out[1]);
            height = tare__resize_taps_of(&r, 1, row % r.out[1]);
        }
        const resize_plane_taps plane_taps = tare__resize_plane_taps_of(
            &r, (const resize_taps *[]){&depth, &height, &along[i % r.out[2]]});
        for (int64_t plane = 0; plane < planes; plane++) {
            float sum = 0;
            for (size_t k = 0; k < plane_taps.count; k++)
                sum += plane_taps.weight[k] * tare__f32(r.x)[plane * in + plane_taps.at[k]];
            y[plane * out + i] = sum;
        }
    }
    return TARE_OK;
}

// --- antialias: when downsampling, the filter is widened by the scale, as in Pillow (torch's
// _upsample_bilinear2d_aa, _upsample_bicubic2d_aa) ---

// The input pixels that contribute to an output pixel along a dimension: `count` from `first` on.
typedef struct wide_taps {
    int64_t first, count;
    float *weight;
} wide_taps;

static float triangle(float x) {
    const float distance = fabsf(x);
    return distance < 1 ? 1 - distance : 0;
}

// Keys' cubic convolution with a = -0.5.
static float wide_cubic(float x) {
    const float distance = fabsf(x);
    if (distance < 1) return ((-0.5f + 2) * distance - (-0.5f + 3)) * distance * distance + 1;
    return distance < 2 ? (((distance - 5) * distance + 8) * distance - 4) * -0.5f : 0;
}

static tare_status wide_taps_of(op_call *call, const resize_call *p, int d, wide_taps **out) {
    const float half = p->mode == RESIZE_CUBIC ? 2 : 1, step = p->step[d];
    const float support = step >= 1 ? half * step : half, narrowing = step >= 1 ? 1 / step : 1;
    wide_taps *taps = tare__arena_array(call->memory, (size_t)p->out[d], sizeof *taps);
    if (taps == NULL) return tare__out_of_memory(call->err);
    for (int64_t i = 0; i < p->out[d]; i++) {
        const float centre = step * ((float)i + 0.5f);
        const int64_t from = (int64_t)(centre - support + 0.5f),
                      to = (int64_t)(centre + support + 0.5f);
        wide_taps *t = &taps[i];
        t->first = from > 0 ? from : 0;
        t->count = (to < p->in[d] ? to : p->in[d]) - t->first;
        t->weight = tare__arena_array(call->memory, (size_t)t->count + 1, sizeof *t->weight);
        if (t->weight == NULL) return tare__out_of_memory(call->err);
        float sum = 0;
        for (int64_t k = 0; k < t->count; k++) {
            const float x = ((float)(k + t->first) - centre + 0.5f) * narrowing;
            t->weight[k] = p->mode == RESIZE_CUBIC ? wide_cubic(x) : triangle(x);
            sum += t->weight[k];
        }
        for (int64_t k = 0; sum != 0 && k < t->count; k++) t->weight[k] /= sum;
    }
    *out = taps;
    return TARE_OK;
}

static tare_status antialias_shape(op_call *call) {
    resize_call p;
    TARE_TRY(tare__resize_read(call, &p));
    if (p.dims != 2 || (p.mode != RESIZE_LINEAR && p.mode != RESIZE_CUBIC))
        return tare__call_fail(call, "antialias needs the mode 'bilinear' or 'bicubic'");
    int64_t shape[TARE_MAX_DIMS] = {p.x->shape[0], p.x->shape[1], p.out[1], p.out[2]};
    return tare__call_result(call, TARE_FLOAT32, 4, shape, NULL);
}

// Resizes each row, then each column.
static tare_status antialias_reference(op_call *call) {
    resize_call p;
    wide_taps *rows, *columns;
    TARE_TRY(tare__resize_read(call, &p));
    TARE_TRY(wide_taps_of(call, &p, 1, &rows));
    TARE_TRY(wide_taps_of(call, &p, 2, &columns));
    const int64_t height = p.in[1], width = p.in[2], wide = p.out[2];
    float *narrow =
        tare__arena_array(call->memory, (size_t)tare__size_product(height, wide), sizeof *narrow);
    if (narrow == NULL) return tare__out_of_memory(call->err);
    float *y = tare__f32(tare__call_out(call));
    for (int64_t plane = 0; plane < p.x->shape[0] * p.x->shape[1]; plane++) {
        const float *x = tare__f32(p.x) + plane * height * width;
        for (int64_t i = 0; i < height * wide; i++) {
            const wide_taps *t = &columns[i % wide];
            float sum = 0;
            for (int64_t k = 0; k < t->count; k++)
                sum += x[i / wide * width + t->first + k] * t->weight[k];
            narrow[i] = sum;
        }
        for (int64_t i = 0; i < p.out[1] * wide; i++, y++) {
            const wide_taps *t = &rows[i / wide];
            float sum = 0;
            for (int64_t k = 0; k < t->count; k++)
                sum += narrow[(t->first + k) * wide + i % wide] * t->weight[k];
            *y = sum;
        }
    }
    return TARE_OK;
}

// In ".vec" overloads output_size is None if factors are given. The others have a size, and a
// factor for each dimension.
#define RESIZE(name, mode)                                                                         \
    "torch.ops.aten." name ".vec(mode=" mode ") torch.ops.aten." name ".default(mode=" mode ") "
#define RESIZE_OVERLOADS                                                                           \
    RESIZE("upsample_nearest1d", "nearest")                                                        \
    RESIZE("upsample_nearest2d", "nearest")                                                        \
    RESIZE("upsample_nearest3d", "nearest")                                                        \
    RESIZE("_upsample_nearest_exact1d", "nearest-exact")                                           \
    RESIZE("_upsample_nearest_exact2d", "nearest-exact")                                           \
    RESIZE("_upsample_nearest_exact3d", "nearest-exact")                                           \
    RESIZE("upsample_linear1d", "linear")                                                          \
    RESIZE("upsample_bilinear2d", "bilinear")                                                      \
    RESIZE("upsample_trilinear3d", "trilinear")                                                    \
    RESIZE("upsample_bicubic2d", "bicubic")

static const op_info rows[] = {
    {.id = "interpolate",
     .functions = "torch.nn.functional.interpolate|torch.nn.functional.upsample",
     .overloads = RESIZE_OVERLOADS,
     .params = "input/self|size/output_size|scale_factor/"
               "scale_factors|mode|align_corners|recompute_scale_factor|antialias|"
               "scales_d|scales_h|scales_w/scales",
     .traits = OP_KEEPS_QPARAMS | OP_ON_QUANTIZED | OP_BY_SAMPLE,
     .shape = interpolate_shape,
     .reference = interpolate_reference},
    {.id = "interpolate_antialias",
     .functions = "torch.ops.tare.interpolate_antialias",
     .overloads =
         RESIZE("_upsample_bilinear2d_aa", "bilinear") RESIZE("_upsample_bicubic2d_aa", "bicubic"),
     .params = "input/self|size/output_size|scale_factor/"
               "scale_factors|mode|align_corners|recompute_scale_factor|antialias|"
               "scales_d|scales_h|scales_w/scales",
     .shape = antialias_shape,
     .reference = antialias_reference},
};

const op_table tare__resize_ops = OP_TABLE(rows);
