// SPDX-License-Identifier: Apache-2.0
// im2col (windows of images as columns), col2im (sums of such columns), and sampling of images at
// the points of a grid.
#include <math.h>
#include <string.h>

#include "ops/families/families.h"
#include "ops/parts.h"
#include "ops/rules.h"

// --- im2col(input, kernel_size, dilation, padding, stride) and col2im ---

typedef struct window_plan {
    const tare_tensor *x;
    int64_t batch, channels; // batch: 1 if there is no such dimension
    int64_t image[2], kernel[2], dilation[2], padding[2], stride[2], blocks[2];
} window_plan;

static tare_status read_pair(op_call *call, size_t i, int64_t least, int64_t out[2]) {
    TARE_TRY(tare__call_ints(call, i, 2, least, out));
    for (int d = 0; d < 2; d++)
        if (out[d] < least || out[d] > INT32_MAX)
            return tare__call_fail(call, "size %lld is out of range", (long long)out[d]);
    return TARE_OK;
}

// Reads kernel_size, dilation, padding and stride, from parameter `at` on, and computes the number
// of blocks.
static tare_status read_windows(op_call *call, size_t at, window_plan *p) {
    TARE_TRY(read_pair(call, at, 1, p->kernel));
    TARE_TRY(read_pair(call, at + 1, 1, p->dilation));
    TARE_TRY(read_pair(call, at + 2, 0, p->padding));
    TARE_TRY(read_pair(call, at + 3, 1, p->stride));
    for (int d = 0; d < 2; d++) {
        if (p->image[d] < 0 || p->image[d] > INT32_MAX)
            return tare__call_fail(call, "size %lld is out of range", (long long)p->image[d]);
        const int64_t room = p->image[d] + 2 * p->padding[d] -
                             tare__size_product(p->dilation[d], p->kernel[d] - 1) - 1;
        if (room < 0)
            return tare__call_fail(call, "a window of %lld does not fit a size of %lld",
                                   (long long)p->kernel[d], (long long)p->image[d]);
        p->blocks[d] = room / p->stride[d] + 1;
    }
    return TARE_OK;
}

// Reads the dimensions before the last `own`: batch and channels, or channels only.
static tare_status read_front(op_call *call, int own, window_plan *p) {
    TARE_TRY(tare__need_float(call, 0, &p->x));
    const int front = p->x->ndim - own;
    if (front != 1 && front != 2)
        return tare__call_fail(call, "input must have %d or %d dimensions, found shape %s", own + 1,
                               own + 2, tare__call_shape_text(call, p->x));
    p->batch = front == 2 ? p->x->shape[0] : 1;
    p->channels = p->x->shape[front - 1];
    return TARE_OK;
}

static tare_status read_im2col(op_call *call, window_plan *p) {
    *p = (window_plan){.batch = 1};
    TARE_TRY(read_front(call, 2, p));
    p->image[0] = p->x->shape[p->x->ndim - 2];
    p->image[1] = p->x->shape[p->x->ndim - 1];
    return read_windows(call, 1, p);
}

static tare_status read_col2im(op_call *call, window_plan *p) {
    *p = (window_plan){.batch = 1};
    TARE_TRY(read_front(call, 1, p));
    TARE_TRY(read_pair(call, 1, 1, p->image));
    TARE_TRY(read_windows(call, 2, p));
    const int64_t area = tare__size_product(p->kernel[0], p->kernel[1]);
    const int64_t blocks = tare__size_product(p->blocks[0], p->blocks[1]);
    if (p->channels % area != 0 || p->x->shape[p->x->ndim - 1] != blocks)
        return tare__call_fail(call, "input of shape %s does not hold windows of this size",
                               tare__call_shape_text(call, p->x));
    p->channels /= area;
    return TARE_OK;
}

// Sets the result to [batch, if the input has one][sizes..].
static tare_status front_result(op_call *call, const window_plan *p, bool has_batch,
                                const int64_t *sizes, int count) {
    int64_t shape[4] = {p->batch};
    const int front = has_batch ? 1 : 0;
    memcpy(shape + front, sizes, (size_t)count * sizeof *sizes);
    return tare__call_result(call, TARE_FLOAT32, front + count, shape, NULL);
}

static tare_status im2col_shape(op_call *call) {
    window_plan p;
    TARE_TRY(read_im2col(call, &p));
    const int64_t area = tare__size_product(p.kernel[0], p.kernel[1]);
    const int64_t sizes[] = {tare__size_product(p.channels, area),
                             tare__size_product(p.blocks[0], p.blocks[1])};
    return front_result(call, &p, p.x->ndim == 4, sizes, 2);
}

static tare_status col2im_shape(op_call *call) {
    window_plan p;
    TARE_TRY(read_col2im(call, &p));
    const int64_t sizes[] = {p.channels, p.image[0], p.image[1]};
    return front_result(call, &p, p.x->ndim == 3, sizes, 3);
}

// The index in the image of element (row, column) of the columns; -1: padding. A channel has a row
// for each element of the kernel; each column is a block.
static int64_t index_in_image(const window_plan *p, int64_t row, int64_t column) {
    const int64_t tap[] = {row / p->kernel[1] % p->kernel[0], row % p->kernel[1]};
    const int64_t block[] = {column / p->blocks[1], column % p->blocks[1]};
    int64_t at[2];
    for (int d = 0; d < 2; d++) {
        at[d] = block[d] * p->stride[d] - p->padding[d] + tap[d] * p->dilation[d];
        if (at[d] < 0 || at[d] >= p->image[d]) return -1;
    }
    const int64_t channel = row / p->kernel[1] / p->kernel[0];
    return (channel * p->image[0] + at[0]) * p->image[1] + at[1];
}

static void copy_windows(const window_plan *p, float *columns, float *images, bool to_columns) {
    const int64_t rows = p->channels * p->kernel[0] * p->kernel[1];
    const int64_t count = p->blocks[0] * p->blocks[1];
    const int64_t image = p->channels * p->image[0] * p->image[1];
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = 0; k < count; k++, columns++) {
                const int64_t at = index_in_image(p, r, k);
                if (to_columns)
                    *columns = at < 0 ? 0 : images[b * image + at];
                else if (at >= 0)
                    images[b * image + at] += *columns;
            }
}

static tare_status im2col_reference(op_call *call) {
    window_plan p;
    TARE_TRY(read_im2col(call, &p));
    copy_windows(&p, tare__f32(tare__call_out(call)), tare__f32(p.x), true);
    return TARE_OK;
}

static tare_status col2im_reference(op_call *call) {
    window_plan p;
    TARE_TRY(read_col2im(call, &p));
    tare_tensor *y = tare__call_out(call);
    memset(y->data, 0, tare__tensor_bytes(y));
    copy_windows(&p, tare__f32(p.x), tare__f32(y), false);
    return TARE_OK;
}

// --- grid_sampler(input [N][C]image, grid [N]points[dims], interpolation, padding, align_corners)
// ---

enum { SAMPLE_LINEAR, SAMPLE_NEAREST, SAMPLE_CUBIC };
enum { OUTSIDE_ZEROS, OUTSIDE_BORDER, OUTSIDE_REFLECTION };

typedef struct sampler {
    const tare_tensor *x, *grid;
    int dims;
    int64_t mode, outside;
    bool aligns;
    int64_t size[3]; // of an image, outermost dimension first; leading unused sizes are 1
    int64_t plane, points;
} sampler;

// A mode by its number, as aten has it, or by its name, as torch.nn.functional.grid_sample does.
static tare_status read_mode(op_call *call, size_t i, const char *const names[3], int64_t *out) {
    const value *v = call->param[i];
    if (v == NULL || v->kind != VALUE_STRING) return tare__call_int(call, i, 0, out);
    for (*out = 0; *out < 3; ++*out)
        if (strcmp(v->as.text, names[*out]) == 0) return TARE_OK;
    return tare__call_fail(call, "'%s' is not supported", v->as.text);
}

static tare_status read_sampler(op_call *call, sampler *s) {
    static const char *const modes[] = {"bilinear", "nearest", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    *s = (sampler){.size = {1, 1, 1}, .plane = 1, .points = 1};
    TARE_TRY(tare__need_float(call, 0, &s->x));
    TARE_TRY(tare__need_float(call, 1, &s->grid));
    TARE_TRY(read_mode(call, 2, modes, &s->mode));
    TARE_TRY(read_mode(call, 3, paddings, &s->outside));
    TARE_TRY(tare__call_bool(call, 4, false, &s->aligns));
    s->dims = s->x->ndim - 2;
    const bool fits = (s->dims == 2 || s->dims == 3) && s->grid->ndim == s->x->ndim &&
                      s->grid->shape[0] == s->x->shape[0] &&
                      s->grid->shape[s->grid->ndim - 1] == s->dims;
    if (!fits)
        return tare__call_fail(call, "a grid of shape %s does not fit an input of shape %s",
                               tare__call_shape_text(call, s->grid),
                               tare__call_shape_text(call, s->x));
    if (s->mode < 0 || s->mode > SAMPLE_CUBIC || s->outside < 0 ||
        s->outside > OUTSIDE_REFLECTION || (s->mode == SAMPLE_CUBIC && s->dims == 3))
        return tare__call_fail(call, "interpolation %lld with padding %lld is not supported",
                               (long long)s->mode, (long long)s->outside);
    for (int d = 0; d < s->dims; d++) {
        s->size[3 - s->dims + d] = s->x->shape[2 + d];
        s->plane *= s->x->shape[2 + d];
        s->points *= s->grid->shape[1 + d];
        if (s->x->shape[2 + d] < 1 || s->x->shape[2 + d] > INT32_MAX)
            return tare__call_fail(call, "input of shape %s cannot be sampled",
                                   tare__call_shape_text(call, s->x));
    }
    return TARE_OK;
}

static tare_status sampler_shape(op_call *call) {
    sampler s;
    int64_t shape[TARE_MAX_DIMS];
    TARE_TRY(read_sampler(call, &s));
    memcpy(shape, s.x->shape, sizeof shape);
    for (int d = 0; d < s.dims; d++) shape[2 + d] = s.grid->shape[1 + d];
    return tare__call_result(call, TARE_FLOAT32, s.x->ndim, shape, NULL);
}

// Maps a coordinate in [-1, 1] to an element index. -1 and 1 are the centres (aligns) or the outer
// edges of the outermost elements.
static float unnormalized(const sampler *s, float v, int64_t size) {
    return s->aligns ? (v + 1) / 2 * (float)(size - 1) : ((v + 1) * (float)size - 1) / 2;
}

// Reflects v at low / 2 and high / 2 until it is between them.
static float reflected(float v, int64_t low, int64_t high) {
    if (low == high) return 0;
    const float least = (float)low / 2, span = (float)(high - low) / 2;
    const float way = fabsf(v - least), rest = fmodf(way, span);
    const bool is_back = fmodf(floorf(way / span), 2) != 0;
    return is_back ? span - rest + least : rest + least;
}

static float inside_of(const sampler *s, float v, int64_t size) {
    if (s->outside == OUTSIDE_ZEROS) return v;
    if (s->outside == OUTSIDE_REFLECTION)
        v = s->aligns ? reflected(v, 0, 2 * (size - 1)) : reflected(v, -1, 2 * size - 1);
    const float last = (float)(size - 1);
    return v > 0 ? (v < last ? v : last) : 0; // NaN becomes 0
}

// The elements along one dimension that a point is interpolated from, and their weights.
typedef struct sample_taps {
    int count;
    float at[4], weight[4]; // at: whole numbers
} sample_taps;

static float cubic_near(float x) {
    return ((-0.75f + 2) * x - (-0.75f + 3)) * x * x + 1;
}
static float cubic_far(float x) {
    return ((-0.75f * x + 5 * 0.75f) * x - 8 * 0.75f) * x + 4 * 0.75f;
}

static sample_taps taps_at(const sampler *s, int d, float v) {
    const int64_t size = s->size[d];
    if (d < 3 - s->dims) return (sample_taps){.count = 1, .weight = {1}};
    const float position = unnormalized(s, v, size);
    if (s->mode == SAMPLE_CUBIC) {
        const float first = floorf(position), t = position - first;
        sample_taps c = {
            .count = 4,
            .weight = {cubic_far(t + 1), cubic_near(t), cubic_near(1 - t), cubic_far(2 - t)}};
        for (int k = 0; k < 4; k++) c.at[k] = inside_of(s, first - 1 + (float)k, size);
        return c;
    }
    const float inside = inside_of(s, position, size), first = floorf(inside);
    if (s->mode == SAMPLE_NEAREST)
        return (sample_taps){.count = 1, .at = {nearbyintf(inside)}, .weight = {1}};
    return (sample_taps){
        .count = 2, .at = {first, first + 1}, .weight = {first + 1 - inside, inside - first}};
}

// The elements of a plane that a point is interpolated from, and their weights.
enum { MOST_TAPS = 16 }; // 4 x 4, or 2 x 2 x 2
typedef struct sample_point {
    int count;
    int64_t at[MOST_TAPS]; // OUTSIDE: the value is 0
    float weight[MOST_TAPS];
} sample_point;

enum { OUTSIDE = -1 };

// The index in a plane of the element at these coordinates.
static int64_t index_in_plane(const sampler *s, const float at[3]) {
    int64_t index = 0;
    for (int d = 0; d < 3; d++) {
        if (!(at[d] >= 0 && at[d] < (float)s->size[d])) return OUTSIDE;
        const int64_t i = (int64_t)at[d];
        index = index * s->size[d] + (i < s->size[d] ? i : s->size[d] - 1);
    }
    return index;
}

// `grid`: a point, whose first coordinate belongs to the innermost dimension.
static void read_point(const sampler *s, const float *grid, sample_point *p) {
    sample_taps taps[3];
    for (int d = 0; d < 3; d++) taps[d] = taps_at(s, d, d < 3 - s->dims ? 0 : grid[2 - d]);
    p->count = 0;
    for (int i = 0; i < taps[0].count; i++)
        for (int j = 0; j < taps[1].count; j++)
            for (int k = 0; k < taps[2].count; k++, p->count++) {
                const float at[] = {taps[0].at[i], taps[1].at[j], taps[2].at[k]};
                p->at[p->count] = index_in_plane(s, at);
                p->weight[p->count] = taps[0].weight[i] * taps[1].weight[j] * taps[2].weight[k];
            }
}

static float sample(const sample_point *p, const float *plane) {
    float sum = 0;
    for (int t = 0; t < p->count; t++)
        sum += (p->at[t] == OUTSIDE ? 0 : plane[p->at[t]]) * p->weight[t];
    return sum;
}

enum { POINTS = 16 }; // whose elements are found before the channels are gone through

// `count` points of a batch from point `at` on, in all channels.
static void sample_points(const sampler *s, int64_t batch, int64_t at, int64_t count, float *y) {
    const int64_t channels = s->x->shape[1], first = batch * s->points + at;
    sample_point points[POINTS];
    for (int64_t i = 0; i < count; i++)
        read_point(s, tare__f32(s->grid) + (first + i) * s->dims, &points[i]);
    for (int64_t c = batch * channels; c < (batch + 1) * channels; c++)
        for (int64_t i = 0; i < count; i++)
            y[c * s->points + at + i] = sample(&points[i], tare__f32(s->x) + c * s->plane);
}

// A part is a point.
static tare_status sampler_part(op_call *call, int64_t first, int64_t end) {
    sampler s;
    TARE_TRY(read_sampler(call, &s));
    for (int64_t i = first, count; i < end; i += count) {
        const int64_t at = i % s.points, left = s.points - at;
        count = end - i < left ? end - i : left;
        if (count > POINTS) count = POINTS;
        sample_points(&s, i / s.points, at, count, tare__f32(tare__call_out(call)));
    }
    return TARE_OK;
}

static tare_status sampler_parts(op_call *call, call_parts *out) {
    sampler s;
    TARE_TRY(read_sampler(call, &s));
    *out = (call_parts){.count = s.x->shape[0] * s.points,
                        .work = tare__size_product(s.x->shape[1], MOST_TAPS),
                        .run = sampler_part};
    return TARE_OK;
}

static tare_status sampler_reference(op_call *call) {
    return tare__run_parts(call, sampler_parts);
}

// --- rows ---

#define ATEN(name) "torch.ops.aten." name

// clang-format off
static const op_info rows[] = {
    {.id = "im2col", .functions = "torch.nn.functional.unfold|torch._C._nn.im2col|" ATEN("im2col.default"), .params = "input/self|kernel_size|dilation|padding|stride",
     .shape = im2col_shape, .reference = im2col_reference},
    {.id = "col2im", .functions = "torch.nn.functional.fold|torch._C._nn.col2im|" ATEN("col2im.default"), .params = "input/self|output_size|kernel_size|dilation|padding|stride",
     .shape = col2im_shape, .reference = col2im_reference},
    {.id = "grid_sampler", .functions = "torch.grid_sampler|torch.nn.functional.grid_sample|" ATEN("grid_sampler.default") "|" ATEN("grid_sampler_2d.default") "|" ATEN("grid_sampler_3d.default"),
     .params = "input|grid|interpolation_mode/mode|padding_mode|align_corners", .shape = sampler_shape, .reference = sampler_reference, .parts = sampler_parts},
};
// clang-format on

const op_table tare__windows_ops = OP_TABLE(rows);
