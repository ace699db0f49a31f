// SPDX-License-Identifier: Apache-2.0
// Divides a convolution into ordinary ones: a transposed one by remainders of its stride, and
// weights that do not fit int8 into addends.
#include "runtime/gemm/subconvolution.h"

#include "core/math/divisor.h"
#include "ops/quantized/engine_rules.h"
#include "ops/rules.h"
#include "runtime/kernels/scratch.h"

enum { MOST_SUBCONVOLUTIONS = 1 << 12, MOST_KERNEL = 1 << 20 };
static const uint64_t most_staged = UINT64_C(1)
                                    << 48; // quantized values of an image with its padding

// --- the layer ---

// floor((w + addend) / addends): the addend'th of `addends` numbers whose sum is the weight w
// without its zero point.
static int32_t addend_of(int32_t w, size_t addend, size_t addends) {
    const int32_t n = (int32_t)addends, shifted = w + (int32_t)addend + n * 1024; // positive
    return shifted / n - 1024;
}

static size_t count_addends(int32_t least, int32_t most) {
    size_t addends = 1;
    while (addend_of(least, 0, addends) < INT8_MIN ||
           addend_of(most, addends - 1, addends) > INT8_MAX)
        addends++;
    return addends;
}

// Quantized values have 8 bits and zero points are at most 255, so three addends are enough.
static size_t addends_of_weight(const tare_tensor *weight) {
    const qparams *q = weight->q;
    const bool per_channel = tare__qscheme_is_per_channel(q->scheme);
    const int64_t inner = per_channel ? tare__inner_count(weight, q->axis) : 1;
    int32_t least = 0, most = 0;
    for (int64_t i = 0; i < weight->count; i++) {
        const int64_t c = per_channel ? i / inner % q->count : 0;
        const int32_t w = tare__load_quantized(weight, i) - (int32_t)q->zero_point[c];
        least = w < least ? w : least;
        most = w > most ? w : most;
    }
    return count_addends(least, most);
}

// A linear layer is a convolution of one pixel.
static void split_linear(const quantized_layer *layer, conv_split *out) {
    *out = (conv_split){.g = {.groups = 1,
                              .in_channels = layer->weight->shape[1],
                              .out_channels = layer->out_channels,
                              .kernel = {1, 1, 1},
                              .stride = {1, 1, 1},
                              .dilation = {1, 1, 1}},
                        .in = {1, 1, 1},
                        .out = {1, 1, 1}};
}

static bool split_conv(const quantized_layer *layer, const tare_tensor *x, conv_split *out) {
    int64_t sizes[5], result[SPATIAL];
    *out = (conv_split){.g = layer->conv};
    if (!tare__conv_sizes(&out->g, x, sizes) || !tare__conv_output_size(&out->g, sizes + 2, result))
        return false;
    for (int d = 0; d < SPATIAL; d++) {
        out->in[d] = (size_t)sizes[2 + d];
        out->out[d] = (size_t)result[d];
    }
    return true;
}

static bool count_subconvolutions(conv_split *s) {
    size_t count = 1;
    for (int d = 0; d < SPATIAL; d++) {
        const size_t stride = (size_t)s->g.stride[d];
        s->counts[d] = !s->g.is_transposed ? 1 : stride < s->out[d] ? stride : s->out[d];
        if (s->counts[d] > MOST_SUBCONVOLUTIONS / count || s->g.kernel[d] > MOST_KERNEL)
            return false;
        count *= s->counts[d];
    }
    return true;
}

// True if kernels can copy the image with its padding.
static bool may_be_staged(const conv_split *s) {
    uint64_t left = most_staged / (uint64_t)s->g.in_channels;
    for (int d = 0; d < SPATIAL && !s->g.is_transposed; d++) {
        const uint64_t reach = (uint64_t)s->g.dilation[d] * (uint64_t)(s->g.kernel[d] - 1);
        const uint64_t span = (s->out[d] - 1) * (uint64_t)s->g.stride[d] + reach + 1;
        if (span > left) return false;
        left /= span;
    }
    return true;
}

bool tare__conv_split_of(const quantized_layer *layer, const tare_tensor *x, conv_split *out) {
    if (layer->weight->ndim == 2)
        split_linear(layer, out);
    else if (!split_conv(layer, x, out))
        return false;
    out->has_zero_points = tare__has_zero_points(layer->weight);
    out->addends = out->has_zero_points ? addends_of_weight(layer->weight) : 1;
    return count_subconvolutions(out) && may_be_staged(out);
}

bool tare__conv_split_of_floats(const conv_geometry *g, const int64_t in[SPATIAL],
                                const int64_t out[SPATIAL], conv_split *split) {
    *split = (conv_split){.g = *g, .addends = 1};
    for (int d = 0; d < SPATIAL; d++) {
        split->in[d] = (size_t)in[d];
        split->out[d] = (size_t)out[d];
    }
    return count_subconvolutions(split);
}

size_t tare__subconvolution_count(const conv_split *s) {
    return s->counts[D] * s->counts[H] * s->counts[W];
}

// --- its subconvolutions ---

// A dimension of a subconvolution.
typedef struct subconvolution_axis {
    size_t out, stride, step, first, tap_step, taps;
    ptrdiff_t before;
} subconvolution_axis;

static subconvolution_axis ordinary_axis(const conv_split *s, int d) {
    return (subconvolution_axis){.out = s->out[d],
                                 .stride = (size_t)s->g.stride[d],
                                 .step = (size_t)s->g.dilation[d],
                                 .tap_step = 1,
                                 .taps = (size_t)s->g.kernel[d],
                                 .before = (ptrdiff_t)s->g.pad_before[d]};
}

// Output r + stride * q reads pixel q + (r + pad - k * dilation) / stride with those kernel
// elements k for which this is an integer: the first such k, and then every stride / common
// divisor.
static subconvolution_axis transposed_axis(const conv_split *s, int d, size_t r) {
    const int64_t stride = s->g.stride[d], dilation = s->g.dilation[d], kernel = s->g.kernel[d];
    const int64_t divisor = (int64_t)tare__greatest_divisor((uint64_t)stride, (uint64_t)dilation),
                  apart = stride / divisor;
    const int64_t at = (int64_t)r + s->g.pad_before[d];
    subconvolution_axis a = {.out = tare__ceil_div(s->out[d] - r, (size_t)stride),
                             .stride = 1,
                             .step = (size_t)(dilation / divisor),
                             .first = (size_t)kernel,
                             .tap_step = (size_t)(apart < kernel ? apart : kernel),
                             .taps = 1}; // a tap of weight 0 if there is no other
    int64_t k = 0;
    while (k < apart && k < kernel && (at - k * dilation) % stride != 0) k++;
    if (k == apart || k == kernel) return a;
    a.first = (size_t)k;
    a.taps = (size_t)((kernel - 1 - k) / apart + 1);
    a.before =
        (ptrdiff_t)((int64_t)(a.taps - 1) * (dilation / divisor) - (at - k * dilation) / stride);
    return a;
}

static conv_windows windows_of(const conv_split *s, const subconvolution_axis a[SPATIAL]) {
    return (conv_windows){
        .depth = s->in[D],
        .height = s->in[H],
        .width = s->in[W],
        .channels = (size_t)s->g.in_channels,
        .out_depth = a[D].out,
        .out_height = a[H].out,
        .out_width = a[W].out,
        .front = a[D].before,
        .above = a[H].before,
        .before = a[W].before,
        .addends = s->addends,
        .planes = a[D].taps,
        .rows = a[H].taps,
        .columns = a[W].taps,
        .stride = {a[D].stride, a[H].stride, a[W].stride},
        .step = {a[D].step, a[H].step, a[W].step},
        .reflects = s->g.reflects,
    };
}

static void set_taps(const conv_split *s, const subconvolution_axis a[SPATIAL], weight_taps *t) {
    *t = (weight_taps){.are_plain = !s->g.is_transposed && !s->has_zero_points,
                       .is_reversed = s->g.is_transposed,
                       .groups = (size_t)s->g.groups,
                       .outs = (size_t)s->g.out_channels,
                       .ins = (size_t)s->g.in_channels,
                       .addends = s->addends};
    for (int d = 0; d < SPATIAL; d++) {
        t->kernel[d] = (size_t)s->g.kernel[d];
        t->first[d] = a[d].first;
        t->step[d] = a[d].tap_step;
        t->count[d] = a[d].taps;
    }
}

subconvolution tare__subconvolution_of(const conv_split *s, size_t index) {
    const size_t r[SPATIAL] = {index / s->counts[W] / s->counts[H],
                               index / s->counts[W] % s->counts[H], index % s->counts[W]};
    subconvolution_axis a[SPATIAL];
    subconvolution p;
    for (int d = 0; d < SPATIAL; d++) {
        a[d] = s->g.is_transposed ? transposed_axis(s, d, r[d]) : ordinary_axis(s, d);
        p.out[d] = s->out[d];
        p.origin[d] = r[d];
        p.apart[d] = s->g.is_transposed ? (size_t)s->g.stride[d] : 1;
    }
    p.windows = windows_of(s, a);
    set_taps(s, a, &p.taps);
    return p;
}

size_t tare__subconvolution_pixel(const subconvolution *p, size_t pixel) {
    if (!tare__subconvolution_is_scattered(p)) return pixel;
    const conv_windows *w = &p->windows;
    const size_t x = pixel % w->out_width, rows = pixel / w->out_width;
    const size_t y = rows % w->out_height, planes = rows / w->out_height;
    const size_t z = planes % w->out_depth, n = planes / w->out_depth;
    const size_t plane = n * p->out[D] + p->origin[D] + z * p->apart[D];
    const size_t row = plane * p->out[H] + p->origin[H] + y * p->apart[H];
    return row * p->out[W] + p->origin[W] + x * p->apart[W];
}

// --- weights ---

// The kernel element of a tap.
static size_t element_of(const weight_taps *t, int d, size_t tap) {
    return t->first[d] + (t->is_reversed ? t->count[d] - 1 - tap : tap) * t->step[d];
}

// The kernel element of a tap; false: a zero outside the kernel.
static bool find_element(const weight_taps *t, size_t a, size_t b, size_t c, size_t *out) {
    const size_t i = element_of(t, D, a), j = element_of(t, H, b), k = element_of(t, W, c);
    *out = (i * t->kernel[H] + j) * t->kernel[W] + k;
    return i < t->kernel[D] && j < t->kernel[H] && k < t->kernel[W];
}

// The first weight of output channel o and the i-th input channel of its group.
static size_t kernel_of(const weight_taps *t, size_t o, size_t i) {
    const size_t ins = t->ins / t->groups, outs = t->outs / t->groups, first_in = o / outs * ins;
    const size_t block = t->is_reversed ? (first_in + i) * outs + o % outs : o * ins + i;
    return block * t->kernel[D] * t->kernel[H] * t->kernel[W];
}

// Gathers the taps of a kernel, minus the zero point.
static void gather_kernel(const weight_taps *t, const int8_t *w, int32_t zero_point, size_t addend,
                          int8_t *to) {
    size_t element;
    for (size_t a = 0; a < t->count[D]; a++)
        for (size_t b = 0; b < t->count[H]; b++)
            for (size_t c = 0; c < t->count[W]; c++) {
                const bool is_one = find_element(t, a, b, c, &element);
                *to++ = is_one ? (int8_t)addend_of(w[element] - zero_point, addend, t->addends) : 0;
            }
}

void tare__weight_taps_gather(const weight_taps *t, const tare_tensor *weight, int8_t *to) {
    const size_t ins = t->ins / t->groups;
    const size_t window = t->count[D] * t->count[H] * t->count[W];
    const int8_t *w = weight->data;
    const qparams *q = weight->q;
    for (size_t o = 0; o < t->outs; o++) {
        const int32_t zero_point = (int32_t)q->zero_point[o % (size_t)q->count];
        for (size_t i = 0; i < ins; i++)
            for (size_t p = 0; p < t->addends; p++, to += window)
                gather_kernel(t, w + kernel_of(t, o, i), zero_point, p, to);
    }
}

static void gather_floats(const weight_taps *t, const float *w, float *to) {
    size_t element;
    for (size_t a = 0; a < t->count[D]; a++)
        for (size_t b = 0; b < t->count[H]; b++)
            for (size_t c = 0; c < t->count[W]; c++)
                *to++ = find_element(t, a, b, c, &element) ? w[element] : 0;
}

void tare__weight_taps_gather_floats(const weight_taps *t, const float *w, float *to) {
    const size_t window = t->count[D] * t->count[H] * t->count[W];
    for (size_t o = 0; o < t->outs; o++)
        for (size_t i = 0; i < t->ins / t->groups; i++, to += window)
            gather_floats(t, w + kernel_of(t, o, i), to);
}
