// SPDX-License-Identifier: Apache-2.0
// Per-channel constants. With quantized values x, weights w without zero point and the input's zero
// point z,
//   sum of (x - z) * w = sum of x * w - z * sum of w,
// whose last term does not depend on the input and is the initial value of the sum.
#include "runtime/gemm/qconstants.h"

#include <math.h>

#include "core/memory/alloc.h"
#include "runtime/gemm/weight_sum.h"

bool tare__qconstants_fit(const quantized_layer *layer, const tare_tensor *x) {
    return (layer->is_plain || layer->adds) && layer->rule != REQUANT_FIXED_POINT &&
           tare__is_byte_quantized(x);
}

// sums: of each channel's weights; NULL: compute them.
static void fill(const quantized_layer *layer, const int32_t *sums, qconstants *q) {
    const size_t count = (size_t)(layer->weight->count / layer->out_channels);
    const int8_t *w = layer->weight->data;
    for (int64_t c = 0; c < layer->out_channels; c++, w += count) {
        q->sum[c] = sums != NULL ? sums[c] : tare__weight_sum(w, count);
        const int32_t offset = tare__wrap_int32(-(int64_t)q->sum[c] * q->zero_value);
        const bool in_sum = q->requant->rule == REQUANT_Q;
        q->start[c] = tare__add_wrapping(offset, in_sum ? q->requant->bias_int[c] : 0);
    }
}

// True if no float before rounding reaches 2^30, whatever the sum: converting it then cannot
// overflow.
static bool stays_small(const requant *r) {
    for (int64_t c = 0; c < r->channel_count; c++) {
        const double multiplier = fabs((double)r->multiplier[c]), bias = fabs((double)r->bias[c]);
        const double most = r->rule == REQUANT_O ? (0x1p31 * multiplier + bias) * (double)r->inverse
                                                 : (0x1p31 + bias) * multiplier;
        if (!(most < 0x1p29)) return false;
    }
    return true;
}

tare_status tare__qconstants_create_of(const quantized_layer *layer, const int32_t *sums,
                                       const qparams *input, const qparams *output, qconstants *out,
                                       tare_error *err) {
    const size_t count = (size_t)layer->out_channels + PRODUCT_LANES - 1; // see tile_epilogue
    const bool is_signed = input->dtype == TARE_QINT8;
    qconstants q = {
        .flip = is_signed ? 0x80 : 0,
        .zero_value = (uint8_t)((int32_t)input->zero_point[0] + (is_signed ? 128 : 0)),
        .sum = tare__alloc_zeroed(count, sizeof *q.sum),
        .start = tare__alloc_lines(count, sizeof *q.start),
        .no_bias = tare__alloc_lines(count, sizeof *q.no_bias),
    };
    tare_status status = q.sum && q.start && q.no_bias ? TARE_OK : tare__out_of_memory(err);
    if (status == TARE_OK)
        status = tare__quantized_layer_requant(layer, input, output, &q.requant, err);
    if (status != TARE_OK) {
        tare__qconstants_release(&q);
        return status;
    }
    fill(layer, sums, &q);
    q.is_small = stays_small(q.requant);
    *out = q;
    return TARE_OK;
}

tare_status tare__qconstants_create(const quantized_layer *layer, const qparams *input,
                                    const qparams *output, qconstants *out, tare_error *err) {
    return tare__qconstants_create_of(layer, NULL, input, output, out, err);
}

void tare__qconstants_set_input(qconstants *q, const qparams *weight, double scale,
                                int32_t zero_point) {
    const requant *r = q->requant;
    for (int64_t c = 0; c < r->channel_count; c++) {
        r->multiplier[c] = (float)scale * (float)weight->scale[weight->count == 1 ? 0 : c];
        q->start[c] = tare__wrap_int32(-(int64_t)q->sum[c] * zero_point);
    }
}

void tare__qconstants_release(qconstants *q) {
    tare__requant_destroy(q->requant);
    tare__free(q->sum);
    tare__free_aligned(q->start);
    tare__free_aligned(q->no_bias);
    *q = (qconstants){0};
}

tile_epilogue tare__qconstants_epilogue(const qconstants *q, int64_t first_channel) {
    const requant *r = q->requant;
    return (tile_epilogue){
        .requant = r,
        .is_small = q->is_small,
        .start = q->start + first_channel,
        .multiplier = r->multiplier + first_channel,
        .bias = (r->rule == REQUANT_Q ? q->no_bias : r->bias) + first_channel,
        .weight_sums = q->sum + first_channel,
    };
}
