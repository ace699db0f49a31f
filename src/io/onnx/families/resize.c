// SPDX-License-Identifier: Apache-2.0
// ONNX Resize. Where torch's interpolate gives the same result, it is called. ONNX has many more
// modes, all of which treat one dimension after the other: these become products with constant
// matrices, or, for nearest, selections by constant indices.
#include <math.h>
#include <string.h>

#include "core/math/float_to_int.h"
#include "io/onnx/families/families.h"
#include "io/onnx/read/rules_common.h"
#include "io/onnx/read/sizes.h"

// --- reading ---

enum { NEAREST, LINEAR, CUBIC };
enum {
    HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_HALF_PIXEL_FOR_NN,
    TF_CROP_AND_RESIZE
};
enum { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL };
enum { STRETCH, NOT_LARGER, NOT_SMALLER };
enum { MOST_OUTPUT = 1 << 20 };

typedef struct resize {
    value x;
    int ndim;
    int64_t in[TARE_MAX_DIMS], out[TARE_MAX_DIMS];
    double scale[TARE_MAX_DIMS], roi[2][TARE_MAX_DIMS];
    size_t mode, coordinates, nearest, policy;
    bool antialias, exclude_outside, has_sizes;
    value sizes[TARE_MAX_DIMS]; // the output sizes as ints, or nodes for open ones
    bool is_open;               // a resized dimension is open in the input or the output
    bool is_quantized;          // the quantized result keeps the parameters of x
    double cubic_a, extrapolation;
} resize;

// --- reading ---

static tare_status read_modes(onnx_call *c, resize *r) {
    TARE_TRY(ONNX_CHOICE(c, "mode", "nearest", &r->mode, "nearest", "linear", "cubic"));
    TARE_TRY(ONNX_CHOICE(c, "coordinate_transformation_mode", "half_pixel", &r->coordinates,
                         "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                         "align_corners", "asymmetric", "tf_half_pixel_for_nn",
                         "tf_crop_and_resize"));
    TARE_TRY(ONNX_CHOICE(c, "nearest_mode", "round_prefer_floor", &r->nearest, "round_prefer_floor",
                         "round_prefer_ceil", "floor", "ceil"));
    TARE_TRY(ONNX_CHOICE(c, "keep_aspect_ratio_policy", "stretch", &r->policy, "stretch",
                         "not_larger", "not_smaller"));
    TARE_TRY(tare__onnx_attr_bool(c, "antialias", false, &r->antialias));
    TARE_TRY(tare__onnx_attr_bool(c, "exclude_outside", false, &r->exclude_outside));
    TARE_TRY(tare__onnx_attr_float(c, "cubic_coeff_a", -0.75, &r->cubic_a));
    return tare__onnx_attr_float(c, "extrapolation_value", 0, &r->extrapolation);
}

// Reads constant input i: a float per axis, or (roi) two. *count is 0 if it is absent.
static tare_status read_floats(onnx_call *c, size_t i, const char *name, size_t expected,
                               double *out, size_t *count) {
    const value v = tare__onnx_input(c, i);
    const tare_tensor *t = tare__onnx_constant(c, i);
    *count = 0;
    if (v.kind == VALUE_NONE || (t != NULL && t->count == 0)) return TARE_OK;
    if (t == NULL) return tare__onnx_fail(c, "input '%s' must be constant", name);
    if (t->count != (int64_t)expected)
        return tare__onnx_malformed(c, "input '%s' has %lld values, expected %zu", name,
                                    (long long)t->count, expected);
    for (size_t k = 0; k < expected; k++) out[k] = tare__tensor_get(t, (int64_t)k);
    *count = expected;
    return TARE_OK;
}

// Uses one scale for all axes, to keep the aspect ratio.
static tare_status keep_ratio(onnx_call *c, resize *r, const int64_t *axes, size_t count) {
    double scale = r->scale[axes[0]];
    for (size_t i = 1; i < count; i++) {
        const double other = r->scale[axes[i]];
        if (r->policy == NOT_LARGER ? other < scale : other > scale) scale = other;
    }
    for (size_t i = 0; i < count; i++) {
        r->scale[axes[i]] = scale;
        const double out = floor(scale * (double)r->in[axes[i]] + 0.5);
        if (!(out >= 1 && out <= MOST_OUTPUT))
            return tare__onnx_fail(c, "a dimension of size %lld cannot be resized to %g",
                                   (long long)r->in[axes[i]], out);
        r->out[axes[i]] = (int64_t)out;
    }
    return TARE_OK;
}

// Reads input `sizes`: the values for the stand-in sizes, and the entries in r->sizes.
static tare_status read_out(onnx_call *c, resize *r, const int64_t *axes, size_t count,
                            double *sizes, size_t *size_count) {
    value given[TARE_MAX_DIMS];
    bool is_given = false;
    const value v = tare__onnx_input(c, 3);
    if (!tare__onnx_holds_open(c->in, &v)) {
        TARE_TRY(read_floats(c, 3, "sizes", count, sizes, size_count));
        for (size_t i = 0; i < *size_count; i++)
            r->sizes[axes[i]] = tare__int(tare__cut_int64(sizes[i]));
        return TARE_OK;
    }
    TARE_TRY(tare__onnx_input_sizes(c, 3, "sizes", TARE_MAX_DIMS, given, size_count, &is_given));
    if (*size_count != count)
        return tare__onnx_malformed(c, "input 'sizes' has %zu values, expected %zu", *size_count,
                                    count);
    for (size_t i = 0; i < count; i++) {
        r->sizes[axes[i]] = given[i];
        sizes[i] = (double)tare__onnx_stand_in(c, &given[i]);
    }
    return TARE_OK;
}

// Notes whether a dimension that is resized is open.
static tare_status note_open(onnx_call *c, resize *r, const int64_t *axes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        value in;
        value *out = &r->sizes[axes[i]];
        TARE_TRY(tare__onnx_size(c, &r->x, (int)axes[i], &in));
        if (r->has_sizes && out->kind == VALUE_NONE) *out = tare__int(r->out[axes[i]]);
        const bool stays =
            r->has_sizes ? tare__onnx_same_size(c, &in, out) : r->scale[axes[i]] == 1;
        r->is_open |= !stays && (in.kind == VALUE_NODE || out->kind == VALUE_NODE);
    }
    return TARE_OK;
}

static tare_status read_sizes(onnx_call *c, resize *r, const int64_t *axes, size_t count) {
    double scales[TARE_MAX_DIMS], sizes[TARE_MAX_DIMS], roi[2 * TARE_MAX_DIMS];
    size_t scale_count, size_count, roi_count;
    TARE_TRY(read_floats(c, 2, "scales", count, scales, &scale_count));
    TARE_TRY(read_out(c, r, axes, count, sizes, &size_count));
    if ((scale_count > 0) == (size_count > 0) || count == 0)
        return tare__onnx_malformed(c, "expected either scales or sizes");
    const bool crops = r->coordinates == TF_CROP_AND_RESIZE;
    TARE_TRY(read_floats(c, crops ? 1 : TARE_MAX_DIMS, "roi", 2 * count, roi, &roi_count));
    if (crops && roi_count == 0) return tare__onnx_malformed(c, "input 'roi' is missing");
    r->has_sizes = size_count > 0;
    for (size_t i = 0; i < count; i++) {
        const int64_t d = axes[i];
        r->scale[d] = r->has_sizes ? sizes[i] / (double)r->in[d] : scales[i];
        const double out = r->has_sizes ? sizes[i] : floor((double)r->in[d] * scales[i]);
        if (!(r->scale[d] > 0) || !(out >= 1 && out <= MOST_OUTPUT) || r->in[d] < 1)
            return tare__onnx_fail(c, "a dimension of size %lld cannot be resized to %g",
                                   (long long)r->in[d], out);
        r->out[d] = (int64_t)out;
        if (crops) r->roi[0][d] = roi[i];
        if (crops) r->roi[1][d] = roi[count + i];
    }
    return r->has_sizes && r->policy != STRETCH ? keep_ratio(c, r, axes, count) : TARE_OK;
}

static tare_status read_resize(onnx_call *c, resize *r) {
    int64_t axes[TARE_MAX_DIMS];
    size_t count = 0;
    bool given = false;
    const tare_tensor *t = NULL;
    *r = (resize){0};
    TARE_TRY(tare__onnx_need_input(c, 0, "X", &r->x));
    TARE_TRY(tare__onnx_need_meta(c, 0, "X", &t));
    r->is_quantized = t->q != NULL && !tare__qscheme_is_per_channel(t->q->scheme);
    if (t->dtype != TARE_FLOAT32 && !r->is_quantized)
        return tare__onnx_fail(c, "resizing %s is not supported", tare_dtype_name(t->dtype));
    r->ndim = t->ndim;
    for (int d = 0; d < t->ndim; d++) {
        r->in[d] = r->out[d] = t->shape[d];
        r->scale[d] = 1;
        TARE_TRY(tare__onnx_size(c, &r->x, d, &r->sizes[d]));
    }
    TARE_TRY(read_modes(c, r));
    TARE_TRY(tare__onnx_attr_ints(c, "axes", TARE_MAX_DIMS, axes, &count, &given));
    for (int d = 0; !given && d < r->ndim; d++) axes[count++] = d;
    for (size_t i = 0; i < count; i++) TARE_TRY(tare__onnx_axis(c, axes[i], r->ndim, &axes[i]));
    TARE_TRY(read_sizes(c, r, axes, count));
    return note_open(c, r, axes, count);
}

// --- torch's interpolate ---

static bool is_interpolated(const resize *r) {
    if (r->ndim < 3 || r->ndim > 5 || r->out[0] != r->in[0] || r->out[1] != r->in[1]) return false;
    if (r->antialias || r->exclude_outside) return false;
    bool exact = true, grows_to_one = false;
    for (int d = 2; d < r->ndim; d++) {
        exact = exact && fabs(r->scale[d] * (double)r->in[d] - (double)r->out[d]) < 1e-3;
        grows_to_one = grows_to_one || (r->out[d] == 1 && r->in[d] != 1);
    }
    if (r->is_open && r->policy != STRETCH) return false;
    if (r->mode == NEAREST) return r->coordinates == ASYMMETRIC && r->nearest == FLOOR;
    // With known sizes cubic interpolation is a matrix product.
    if (r->mode == CUBIC && !(r->is_open && r->ndim == 4 && r->cubic_a == -0.75)) return false;
    if (r->coordinates == ALIGN_CORNERS) return exact;
    return r->coordinates == HALF_PIXEL || (r->coordinates == PYTORCH_HALF_PIXEL && !grows_to_one);
}

static tare_status call_interpolate(onnx_call *c, const resize *r) {
    static const char *const linear[] = {"linear", "bilinear", "trilinear"};
    const size_t dims = (size_t)r->ndim - 2;
    value items[3];
    bool equal = true;
    keyword kwargs[3];
    size_t count = 0;
    for (size_t d = 0; d < dims; d++) {
        items[d] = r->has_sizes ? tare__int(r->out[d + 2]) : tare__float(r->scale[d + 2]);
        equal = equal && r->scale[d + 2] == r->scale[2];
    }
    if (r->has_sizes) {
        kwargs[count].name = "size";
        value *size = &kwargs[count++].value;
        *size = tare__value_sequence(tare__onnx_arena(c), VALUE_TUPLE, (uint32_t)dims);
        if (size->as.items == NULL) return tare__out_of_memory(tare__onnx_error(c));
        for (size_t d = 0; d < dims; d++)
            size->as.items[d] =
                r->sizes[d + 2].kind == VALUE_NODE ? r->sizes[d + 2] : tare__int(r->out[d + 2]);
    } else {
        kwargs[count++] = (keyword){"scale_factor", items[0]};
        if (!equal) TARE_TRY(tare__onnx_list(c, items, dims, &kwargs[0].value));
    }
    kwargs[count++] = (keyword){"mode", tare__string(r->mode == NEAREST  ? "nearest"
                                                     : r->mode == LINEAR ? linear[dims - 1]
                                                                         : "bicubic")};
    if (r->mode != NEAREST)
        kwargs[count++] = (keyword){"align_corners", tare__bool(r->coordinates == ALIGN_CORNERS)};
    return tare__onnx_one_with(c, &(onnx_emit){.target = "torch.nn.functional.interpolate",
                                               .args = &r->x,
                                               .arg_count = 1,
                                               .kwargs = kwargs,
                                               .kwarg_count = count});
}

// --- one dimension by ONNX's formulas ---

// The coordinate in the input of output element i of dimension d.
static double original(const resize *r, int d, int64_t i) {
    const double in = (double)r->in[d], out = r->scale[d] * in, x = (double)i;
    switch (r->coordinates) {
    case ALIGN_CORNERS:
        return out == 1 ? 0 : x * (in - 1) / (out - 1);
    case ASYMMETRIC:
        return x / r->scale[d];
    case TF_HALF_PIXEL_FOR_NN:
        return (x + 0.5) / r->scale[d];
    case PYTORCH_HALF_PIXEL:
        return r->out[d] == 1 ? 0 : (x + 0.5) / r->scale[d] - 0.5;
    case HALF_PIXEL_SYMMETRIC:
        return in / 2 * (1 - (double)r->out[d] / out) + (x + 0.5) / r->scale[d] - 0.5;
    case TF_CROP_AND_RESIZE: {
        const double start = r->roi[0][d], length = r->roi[1][d] - start;
        const double within =
            r->out[d] == 1 ? length * (in - 1) / 2 : x * length * (in - 1) / (out - 1);
        return start * (in - 1) + within;
    }
    default:
        return (x + 0.5) / r->scale[d] - 0.5;
    }
}

static bool is_outside(const resize *r, int d, double x) {
    return r->coordinates == TF_CROP_AND_RESIZE && (x < 0 || x > (double)(r->in[d] - 1));
}

static int64_t clamped(double x, int64_t size) {
    return x < 0 ? 0 : x > (double)(size - 1) ? size - 1 : tare__cut_int64(x);
}

static int64_t nearest_of(const resize *r, int d, double x) {
    const double at = r->nearest == PREFER_FLOOR  ? ceil(x - 0.5)
                      : r->nearest == PREFER_CEIL ? floor(x + 0.5)
                      : r->nearest == FLOOR       ? floor(x)
                                                  : ceil(x);
    return clamped(at, r->in[d]);
}

// The weight of Keys' cubic kernel, or of the triangle, at this distance.
static double kernel_at(const resize *r, double distance) {
    const double x = fabs(distance), a = r->cubic_a;
    if (r->mode == LINEAR) return x < 1 ? 1 - x : 0;
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// Adds the weights of one output element to its row of the matrix. With antialias the kernel is as
// wide as the distance of output elements.
static void fill_row(const resize *r, int d, double x, float *row) {
    const double narrow = r->antialias && r->scale[d] < 1 ? r->scale[d] : 1;
    const double reach = (r->mode == LINEAR ? 1 : 2) / narrow;
    const double first = floor(x - reach);
    const int64_t count = tare__cut_int64(ceil(x + reach) - first + 1);
    double sum = 0;
    for (int pass = 0; pass < 2;
         pass++) // pass 0 sums the weights, pass 1 stores them divided by the sum
        for (int64_t k = 0; k < count; k++) {
            const double at = first + (double)k, weight = kernel_at(r, (at - x) * narrow);
            const bool inside = at >= 0 && at < (double)r->in[d];
            if (!inside && r->exclude_outside) continue;
            if (pass == 0)
                sum += weight;
            else if (sum != 0)
                row[clamped(at, r->in[d])] += (float)(weight / sum);
        }
}

// --- one dimension as a call ---

static tare_status select_nearest(onnx_call *c, const resize *r, int d, value *x) {
    tare_tensor *t = NULL;
    value at;
    TARE_TRY(tare__onnx_new_tensor(c, TARE_INT64, 1, &r->out[d], &t));
    for (int64_t i = 0; i < r->out[d]; i++)
        tare__tensor_set_int(t, i, nearest_of(r, d, original(r, d, i)));
    TARE_TRY(tare__onnx_take_tensor(c, t, &at));
    return ONNX_CALL(c, x, "torch.index_select", *x, tare__int(d), at);
}

// The matrix is the left operand: as the right one it would be taken for a linear layer.
static tare_status multiply(onnx_call *c, const resize *r, int d, value *x) {
    const int64_t in = r->in[d], out = r->out[d], shape[] = {out, in};
    tare_tensor *t = NULL;
    value matrix;
    float *row = tare__arena_array(tare__onnx_arena(c), (size_t)in, sizeof *row);
    if (row == NULL) return tare__out_of_memory(tare__onnx_error(c));
    TARE_TRY(tare__onnx_new_floats(c, 2, shape, &t));
    for (int64_t i = 0; i < out; i++) {
        const double at = original(r, d, i);
        memset(row, 0, (size_t)in * sizeof *row);
        if (!is_outside(r, d, at)) fill_row(r, d, at, row);
        for (int64_t k = 0; k < in; k++) tare__f32(t)[i * in + k] = row[k];
    }
    TARE_TRY(tare__onnx_take_tensor(c, t, &matrix));
    const bool transposes = d != r->ndim - 2;
    if (transposes) TARE_TRY(ONNX_CALL(c, x, "torch.transpose", *x, tare__int(d), tare__int(-2)));
    TARE_TRY(ONNX_CALL(c, x, "torch.matmul", matrix, *x));
    return transposes ? ONNX_CALL(c, x, "torch.transpose", *x, tare__int(d), tare__int(-2))
                      : TARE_OK;
}

// Elements outside the cropped region get the extrapolation value.
static tare_status extrapolate(onnx_call *c, const resize *r, int d, value *x) {
    int64_t shape[TARE_MAX_DIMS];
    tare_tensor *mask = NULL;
    value where;
    bool any = false;
    for (int k = 0; k < r->ndim; k++) shape[k] = k == d ? r->out[d] : 1;
    TARE_TRY(tare__onnx_new_tensor(c, TARE_BOOL, r->ndim, shape, &mask));
    for (int64_t i = 0; i < r->out[d]; i++) {
        const bool outside = is_outside(r, d, original(r, d, i));
        tare__tensor_set(mask, i, outside);
        any = any || outside;
    }
    TARE_TRY(tare__onnx_take_tensor(c, mask, &where));
    if (!any) return TARE_OK;
    return ONNX_CALL(c, x, "torch.masked_fill", *x, where, tare__float(r->extrapolation));
}

static tare_status translate_resize_rule(onnx_call *c) {
    resize r;
    TARE_TRY(read_resize(c, &r));
    if (is_interpolated(&r)) return call_interpolate(c, &r);
    if (r.is_open)
        return tare__onnx_fail(
            c, "an open dimension can only be resized as by torch's interpolate, not in this mode");
    if (r.is_quantized && r.mode != NEAREST)
        return tare__onnx_fail(c, "integers can only be resized by mode nearest, or as by torch's "
                                  "interpolate, not in this coordinate_transformation_mode");
    value x = r.x;
    for (int d = 0; d < r.ndim; d++) {
        const bool crops =
            r.coordinates == TF_CROP_AND_RESIZE && (r.roi[0][d] != 0 || r.roi[1][d] != 1);
        if (r.in[d] == r.out[d] && r.scale[d] == 1 && !crops) continue;
        if (r.mode == NEAREST)
            TARE_TRY(select_nearest(c, &r, d, &x));
        else
            TARE_TRY(multiply(c, &r, d, &x));
        TARE_TRY(extrapolate(c, &r, d, &x));
    }
    tare__onnx_set_output(c, 0, &x);
    return TARE_OK;
}

// torch's grid_sample. Opset 20 renamed the modes.
static tare_status translate_grid_sample(onnx_call *c) {
    size_t mode, outside;
    bool aligns;
    value x, grid;
    TARE_TRY(tare__onnx_need_input(c, 0, "X", &x));
    TARE_TRY(tare__onnx_need_input(c, 1, "grid", &grid));
    TARE_TRY(ONNX_CHOICE(c, "mode", "linear", &mode, "linear", "nearest", "cubic", "bilinear",
                         "nearest", "bicubic"));
    TARE_TRY(ONNX_CHOICE(c, "padding_mode", "zeros", &outside, "zeros", "border", "reflection"));
    TARE_TRY(tare__onnx_attr_bool(c, "align_corners", false, &aligns));
    const value args[] = {x, grid, tare__int((int64_t)(mode % 3)), tare__int((int64_t)outside),
                          tare__bool(aligns)};
    return tare__onnx_one(c, "torch.grid_sampler", 5, args);
}

static const onnx_rule read_rows[] = {
    {"GridSample", .translate = translate_grid_sample},
    {"Resize", .translate = translate_resize_rule},
};

// --- writing ---

enum { SIZE = 1, SCALE, MODE, ALIGN, RECOMPUTE, SCALE_DEPTH = 7 };

typedef struct modes {
    const char *mode, *nearest, *coordinates;
} modes;

static bool choose_modes(onnx_out *o, modes *m) {
    const char *mode = tare__out_text(o, MODE, "nearest");
    const bool aligns = tare__out_bool(o, ALIGN, false);
    if (strcmp(mode, "nearest") == 0)
        *m = (modes){"nearest", "floor", "asymmetric"};
    else if (strcmp(mode, "nearest-exact") == 0)
        *m = (modes){"nearest", "round_prefer_ceil", "half_pixel"};
    else if (strcmp(mode, "bicubic") == 0)
        *m = (modes){"cubic", "floor", aligns ? "align_corners" : "half_pixel"};
    else if (strstr(mode, "linear") != NULL)
        *m = (modes){"linear", "floor", aligns ? "align_corners" : "half_pixel"};
    else
        tare__out_refuse(o, "Resize has no mode for '%s'", mode);
    return !tare__out_failed(o);
}

// The scale factor by which the size of dimension d of x was computed; 0: unknown.
static double factor_of_size(onnx_out *o, const tare_tensor *x, int d) {
    double factor = 0;
    const value *v = d < 2 ? NULL : tare__out_call(o)->param[SCALE_DEPTH + 3 - x->ndim + d];
    if (v == NULL || !tare__call_number(v, &factor) || !(factor > 0)) return 0;
    return factor;
}

// ONNX takes sizes or factors. True if the factors give exactly these sizes.
static bool has_factors_of_size(onnx_out *o, const tare_tensor *x, const tare_tensor *y) {
    bool has = false, fits = true;
    for (int d = 2; tare__out_given(o, SIZE) && d < x->ndim; d++) {
        const double factor = factor_of_size(o, x, d), size = (double)y->shape[d];
        const double used = factor > 0 ? factor : size / (double)x->shape[d];
        has = has || factor > 0;
        fits = fits && floorf((float)x->shape[d] * (float)used) == (float)y->shape[d];
    }
    if (has && !fits)
        tare__out_refuse(o, "Resize does not take sizes that differ from those of its factors");
    return has;
}

// A float32 scale per dimension, or the sizes if torch computes with sizes.
static const char *scales(onnx_out *o, const tare_tensor *x, const tare_tensor *y) {
    const value *v = tare__out_call(o)->param[SCALE];
    const int64_t count = x->ndim;
    tare_tensor *t = NULL;
    if (tare__out_failed(o)) return "";
    tare__out_try(o, tare_tensor_create(TARE_FLOAT32, 1, &count, &t, tare__out_call(o)->err));
    for (int d = 0; t != NULL && d < x->ndim; d++) {
        double scale = (double)y->shape[d] / (double)x->shape[d];
        const bool is_list = v != NULL && tare__value_has_items(v);
        const double factor = factor_of_size(o, x, d);
        if (d < 2)
            scale = 1;
        else if (factor > 0)
            scale = factor;
        else if (is_list)
            tare__call_number(&v->as.items[v->count == 1 ? 0 : d - 2], &scale);
        else if (v != NULL && v->kind != VALUE_NONE)
            tare__call_number(v, &scale);
        tare__f32(t)[d] = (float)scale;
    }
    const char *name = t != NULL ? tare__out_constant(o, t, "scales") : "";
    tare_tensor_release(t);
    return name;
}

static void write_interpolate(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0), *y = tare__out_result_meta(o);
    const tare_tensor *other = tare__out_result_other(o);
    const bool by_scale =
        has_factors_of_size(o, x, y) || (tare__out_given(o, SCALE) && !tare__out_given(o, SIZE) &&
                                         !tare__out_bool(o, RECOMPUTE, false));
    modes m = {"", "", ""};
    if (!choose_modes(o, &m)) return;
    const char *in = tare__out_input(o, 0);
    const char *made = by_scale
                           ? OUT(o, "Resize", in, "", scales(o, x, y))
                           : OUT(o, "Resize", in, "", "",
                                 tare__out_sizes(o, y->shape, other != NULL ? other->shape : NULL,
                                                 (size_t)y->ndim));
    tare__out_attr_text(o, "mode", m.mode);
    tare__out_attr_text(o, "coordinate_transformation_mode", m.coordinates);
    if (strcmp(m.mode, "nearest") == 0) tare__out_attr_text(o, "nearest_mode", m.nearest);
    tare__out_result(o, made);
}

static const onnx_write_rule write_rows[] = {
    {"interpolate", "Resize", .takes_open_sizes = true, .write = write_interpolate},
};

const onnx_family tare__onnx_resize_family = {.read = ONNX_RULES(read_rows),
                                              .write = ONNX_WRITE_RULES(write_rows)};
