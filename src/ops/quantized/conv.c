// SPDX-License-Identifier: Apache-2.0
// Quantized convolution modules, plain and transposed, in one to three dimensions: the definition,
// in plain loops over [N][C][D][H][W].
#include <inttypes.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "ops/quantized/layer.h"
#include "ops/quantized/quantized.h"

typedef struct conv_run {
    const quantized_layer *layer;
    const conv_geometry *g;
    const requant *r;
    const int16_t *x, *w;      // quantized values minus their zero points
    const tare_tensor *addend; // ConvAdd2d's second input; NULL: none
    int64_t in[SPATIAL], out[SPATIAL];
} conv_run;

static tare_status check_addend(op_call *call, int ndim, const int64_t *shape) {
    const tare_tensor *addend = tare__call_layer_addend(call);
    if (addend == NULL || !tare__is_byte_quantized(addend))
        return tare__call_fail(call, "expected a quantized tensor as its second input");
    if (addend->ndim == ndim && memcmp(addend->shape, shape, sizeof *shape * (size_t)ndim) == 0)
        return TARE_OK;
    char expected[128], found[128];
    tare__shape_text(ndim, shape, expected, sizeof expected);
    tare__shape_text(addend->ndim, addend->shape, found, sizeof found);
    return tare__call_fail(call, "expected %s as its second input, found %s", expected, found);
}

static tare_status output_shape(op_call *call, const quantized_layer *layer, const tare_tensor *x,
                                int64_t *shape) {
    const conv_geometry *g = &layer->conv;
    int64_t sizes[5], out[SPATIAL];
    char found[128];
    tare__shape_text(x->ndim, x->shape, found, sizeof found);
    if (!tare__conv_sizes(g, x, sizes) || sizes[1] != g->in_channels)
        return tare__call_fail(call, "expected %" PRId64 " channels and %d dimensions, found %s",
                               g->in_channels, g->dims, found);
    if (!tare__conv_output_size(g, sizes + 2, out))
        return tare__call_fail(call, "an input of shape %s leaves no output", found);
    const int first = x->ndim - g->dims;
    if (first == 2) shape[0] = x->shape[0];
    shape[first - 1] = g->out_channels;
    for (int d = 0; d < g->dims; d++) shape[first + d] = out[SPATIAL - g->dims + d];
    return TARE_OK;
}

tare_status tare__quantized_conv_shape(op_call *call) {
    quantized_layer layer;
    int64_t shape[TARE_MAX_DIMS];
    TARE_TRY(tare__call_layer_read(call, &layer));
    const tare_tensor *x = tare__call_layer_input(call);
    if (x == NULL || !tare__is_byte_quantized(x))
        return tare__call_fail(call, "expected a quint8 or qint8 tensor as its input");
    TARE_TRY(output_shape(call, &layer, x, shape));
    if (layer.adds) TARE_TRY(check_addend(call, x->ndim, shape));
    if (layer.gives_floats) return tare__call_result(call, TARE_FLOAT32, x->ndim, shape, NULL);
    const qparams *q = tare__qparams_per_tensor(x->dtype, layer.scale, layer.zero_point);
    if (q == NULL) return tare__out_of_memory(call->err);
    const tare_status status = tare__call_result(call, x->dtype, x->ndim, shape, q);
    tare__qparams_release(q);
    return status;
}

// --- positions of the input elements ---

// The input position for kernel element k of output position o along dimension d; -1: padding.
static int64_t meets(const conv_run *run, int d, int64_t o, int64_t k) {
    const conv_geometry *g = run->g;
    const int64_t size = run->in[d];
    if (g->is_transposed) {
        const int64_t at = o + g->pad_before[d] - k * g->dilation[d];
        return at >= 0 && at % g->stride[d] == 0 && at / g->stride[d] < size ? at / g->stride[d]
                                                                             : -1;
    }
    int64_t at = o * g->stride[d] - g->pad_before[d] + k * g->dilation[d];
    if (g->reflects && at < 0) at = -at;
    if (g->reflects && at >= size) at = 2 * (size - 1) - at;
    return at >= 0 && at < size ? at : -1;
}

// Offsets of kernel elements and of the corresponding input elements, for one output position.
typedef struct taps {
    int64_t *kernel, *input;
    int64_t count;
} taps;

static void find_taps(const conv_run *run, const int64_t *o, taps *t) {
    const int64_t *k = run->g->kernel;
    t->count = 0;
    for (int64_t a = 0; a < k[0]; a++) {
        const int64_t d = meets(run, 0, o[0], a);
        for (int64_t b = 0; d >= 0 && b < k[1]; b++) {
            const int64_t h = meets(run, 1, o[1], b);
            for (int64_t c = 0; h >= 0 && c < k[2]; c++) {
                const int64_t w = meets(run, 2, o[2], c);
                if (w < 0) continue;
                t->kernel[t->count] = (a * k[1] + b) * k[2] + c;
                t->input[t->count++] = (d * run->in[1] + h) * run->in[2] + w;
            }
        }
    }
}

// --- sums ---

// The sum of output channel o for one image, modulo 2^32 as hardware computes it. Padding equals
// the input's zero point and adds nothing.
static int32_t accumulate(const conv_run *run, const int16_t *image, int64_t o, const taps *t) {
    const conv_geometry *g = run->g;
    const int64_t ins = g->in_channels / g->groups, outs = g->out_channels / g->groups;
    const int64_t kernel = g->kernel[0] * g->kernel[1] * g->kernel[2];
    const int64_t plane = run->in[0] * run->in[1] * run->in[2];
    const int64_t first_in = o / outs * ins;
    int64_t acc = 0;
    for (int64_t i = 0; i < ins; i++) {
        const int64_t block = g->is_transposed ? (first_in + i) * outs + o % outs : o * ins + i;
        const int16_t *w = run->w + block * kernel, *x = image + (first_in + i) * plane;
        for (int64_t k = 0; k < t->count; k++) {
            const int32_t product = x[t->input[k]] * w[t->kernel[k]];
            acc += product;
        }
    }
    return tare__wrap_int32(acc);
}

static int32_t conv_quantized(const conv_run *run, int64_t o, int32_t acc, int64_t at) {
    if (run->addend == NULL) return tare__requantize(run->r, o, acc);
    const qparams *q = run->addend->q;
    const int64_t stored = tare__load_quantized(run->addend, at),
                  zero_point = (int64_t)q->zero_point[0];
    return tare__requantize_sum(run->r, o, acc, (float)(stored - zero_point),
                                tare__addend_factor(run->r, (float)q->scale[0]));
}

static void convolve(const conv_run *run, int64_t batch, tare_tensor *y, taps *t) {
    const conv_geometry *g = run->g;
    const int64_t *out = run->out;
    const int64_t in_plane = run->in[0] * run->in[1] * run->in[2], plane = out[0] * out[1] * out[2];
    for (int64_t p = 0; p < plane; p++) {
        const int64_t position[SPATIAL] = {p / (out[1] * out[2]), p / out[2] % out[1], p % out[2]};
        find_taps(run, position, t);
        for (int64_t n = 0; n < batch; n++)
            for (int64_t o = 0; o < g->out_channels; o++) {
                const int64_t at = (n * g->out_channels + o) * plane + p;
                const int32_t acc = accumulate(run, run->x + n * g->in_channels * in_plane, o, t);
                if (run->layer->gives_floats)
                    tare__f32(y)[at] = tare__requant_o_value(run->r, o, acc);
                else
                    tare__store_quantized(y, at, conv_quantized(run, o, acc, at));
            }
    }
}

static tare_status run_conv(op_call *call, conv_run *run, int64_t batch) {
    const int64_t kernel = run->g->kernel[0] * run->g->kernel[1] * run->g->kernel[2];
    int64_t *offsets = tare__realloc_array(NULL, (size_t)kernel, 2 * sizeof *offsets);
    if (offsets == NULL) return tare__out_of_memory(call->err);
    taps t = {.kernel = offsets, .input = offsets + kernel};
    convolve(run, batch, tare__call_out(call), &t);
    tare__free(offsets);
    return TARE_OK;
}

tare_status tare__quantized_conv_forward(op_call *call) {
    quantized_layer layer;
    TARE_TRY(tare__call_layer_read(call, &layer));
    const tare_tensor *x = tare__call_layer_input(call), *y = tare__call_out(call);
    int64_t sizes[5];
    conv_run run = {.layer = &layer, .g = &layer.conv};
    if (!tare__conv_sizes(run.g, x, sizes) || !tare__conv_output_size(run.g, sizes + 2, run.out))
        return tare__call_fail(call, "its input does not fit"); // checked by the shape rule
    memcpy(run.in, sizes + 2, sizeof run.in);
    if (layer.adds) run.addend = tare__call_layer_addend(call);
    int16_t *xs = NULL, *ws = NULL;
    requant *r = NULL;
    tare_status status = tare__quantized_layer_requant(&layer, x->q, y->q, &r, call->err);
    if (status == TARE_OK) status = tare__centered_quantized(x, &xs, call->err);
    if (status == TARE_OK) status = tare__centered_quantized(layer.weight, &ws, call->err);
    run.r = r;
    run.x = xs;
    run.w = ws;
    if (status == TARE_OK) status = run_conv(call, &run, sizes[0]);
    tare__requant_destroy(r);
    tare__free(xs);
    tare__free(ws);
    return status;
}
