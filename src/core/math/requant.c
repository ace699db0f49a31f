// SPDX-License-Identifier: Apache-2.0
// Requantization: constants that are computed once per layer or batch.
#include "core/math/requant.h"

#include <inttypes.h>
#include <string.h>

#include "core/memory/alloc.h"

static const char *const rule_names[REQUANT_RULE_COUNT] = {[REQUANT_UNSET] = "",
                                                           [REQUANT_F] = "F",
                                                           [REQUANT_O] = "O",
                                                           [REQUANT_Q] = "Q",
                                                           [REQUANT_FIXED_POINT] = "fixed_point"};

const char *tare__requant_rule_name(requant_rule rule) {
    const unsigned index = (unsigned)rule;
    return rule_names[index < REQUANT_RULE_COUNT ? index : REQUANT_UNSET];
}

requant_rule tare__requant_rule_from_name(const char *name) {
    for (int i = 1; i < REQUANT_RULE_COUNT; i++)
        if (strcmp(rule_names[i], name) == 0) return (requant_rule)i;
    return REQUANT_UNSET;
}

// --- dynamic quantization parameters ---

// Widens a range that includes zero so that its ends are in the same ratio as those of the
// quantized values.
static void balance(float *min, float *max, int32_t quant_min, int32_t quant_max) {
    const int32_t quantized_min = -((quant_max - quant_min) / 2 + 1);
    const int32_t quantized_max = (quant_max - quant_min) / 2;
    const float below = fabsf(*min / (float)quantized_min),
                above = fabsf(*max / (float)quantized_max);
    const float step = below > above ? below : above;
    *min = step * (float)quantized_min;
    *max = step * (float)quantized_max;
}

// Increases a scale that is too small for kernels that invert it, and the range accordingly.
static double raise_scale(double scale, float *min, float *max, int32_t span) {
    const float smallest = 6.1e-5F;
    const double raised = smallest;
    const float ratio = smallest / (float)scale; // in float: it decides ties of the zero point
    if (*min == 0.0F)
        *max = smallest * (float)span;
    else if (*max == 0.0F)
        *min = -smallest * (float)span;
    else {
        *min *= ratio;
        *max *= ratio;
    }
    return raised;
}

// Uses the end of the range whose estimate has the smaller error (gemmlowp's argument).
static double zero_point_estimate(double scale, float min, float max, int32_t quant_min,
                                  int32_t quant_max) {
    const double at_min = (double)min / scale, at_max = (double)max / scale;
    const double error_min = fabs((double)quant_min) - fabs(at_min);
    const double error_max = fabs((double)quant_max) - fabs(at_max);
    return error_min < error_max ? quant_min - at_min : quant_max - at_max;
}

dynamic_qparams tare__choose_dynamic_qparams(const dynamic_range *range) {
    const int32_t divisor = range->reduce_range ? 2 : 1;
    const int32_t quant_min = range->quant_min / divisor, quant_max = range->quant_max / divisor;
    const int32_t span = quant_max - quant_min;
    float min = range->min, max = range->max;
    const bool balanced = range->symmetric && min < 0 && max > 0;
    if (balanced) balance(&min, &max, quant_min, quant_max);
    min = min < 0 ? min : 0.0F;
    max = max > 0 ? max : 0.0F;
    double scale = ((double)max - (double)min) / span;
    if ((float)scale == 0.0F || isinf(1.0F / (float)scale)) scale = 0.1;
    if (scale < 6.1e-5F) scale = raise_scale(scale, &min, &max, span);
    double zero = zero_point_estimate(scale, min, max, quant_min, quant_max);
    if (balanced) zero = ((double)quant_min + (double)quant_max) / 2; // 127.5 becomes 128
    if (zero < quant_min) zero = quant_min;
    if (zero > quant_max) zero = quant_max;
    return (dynamic_qparams){scale, tare__saturate_int32(zero)};
}

dynamic_qparams tare__choose_decomposed_qparams(const dynamic_range *range, float eps,
                                                int32_t symmetric_zero_point) {
    const float low = range->min < 0 ? range->min : 0, high = range->max > 0 ? range->max : 0;
    const int64_t least = range->quant_min, most = range->quant_max;
    const float steps = (float)(most - least), magnitude = -low > high ? -low : high;
    float scale = range->symmetric ? magnitude / (steps / 2) : (high - low) / steps;
    if (scale < eps) scale = eps;
    const int64_t shifted = least - tare__saturate_int32((double)(low / scale));
    return (dynamic_qparams){
        .scale = (double)scale,
        .zero_point = range->symmetric ? symmetric_zero_point
                                       : (int32_t)tare__clamp_int(shifted, least, most),
    };
}

// --- requantization parameters ---

static bool is_scale(double scale) {
    return isfinite((float)scale) && (float)scale > 0;
}

static tare_status check_spec(const requant_spec *s, tare_error *err) {
    if (s->rule <= REQUANT_UNSET || s->rule >= REQUANT_RULE_COUNT)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "no requantization rule has number %d",
                          (int)s->rule);
    if (s->weight_scale_count != 1 && s->weight_scale_count != s->channel_count)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "expected 1 or %" PRId64 " weight scales, found %" PRId64,
                          s->channel_count, s->weight_scale_count);
    if (!is_scale(s->input_scale) || !is_scale(s->output_scale))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "expected finite scales > 0, found input %g, output %g", s->input_scale,
                          s->output_scale);
    for (int64_t c = 0; c < s->weight_scale_count; c++)
        if (!is_scale(s->weight_scale[c]))
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "expected a finite scale > 0, found %g for channel %" PRId64,
                              s->weight_scale[c], c);
    if (s->quant_min >= INT32_MIN / 2 && s->quant_min <= s->output_zero_point &&
        s->output_zero_point <= s->quant_max && s->quant_max <= INT32_MAX / 2)
        return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "expected quant_min <= zero point <= quant_max within 31 bits, found %" PRId64
                      ", %" PRId64 ", %" PRId64,
                      s->quant_min, s->output_zero_point, s->quant_max);
}

// real = m * 2^-shift with 2^30 <= m < 2^31, exactly, because a float has only 24 bits. Multipliers
// too small for any int32 accumulator to reach one half give 0; those of 2^30 and more saturate
// every quantized value except 0.
static void fixed_point(float real, int32_t *fixed, int32_t *shift) {
    int exponent = 0;
    const double fraction = frexp((double)real, &exponent);
    *fixed = tare__saturate_int32(ldexp(fraction, 31));
    *shift = 31 - exponent;
    if (*shift > 62) *fixed = 0;
    if (*shift < 1) *fixed = INT32_MAX;
    *shift = (int32_t)tare__clamp_int(*shift, 1, 62);
}

static void fill_channel(requant *r, const requant_spec *s, int64_t c) {
    const double weight_scale = s->weight_scale[s->weight_scale_count == 1 ? 0 : c];
    const float aw = (float)s->input_scale * (float)weight_scale;
    const float ratio = aw / (float)s->output_scale;
    const float bias = s->bias ? s->bias[c] : 0.0F;
    const bool is_o = r->rule == REQUANT_O;
    r->multiplier[c] = is_o ? aw : ratio;
    if (s->bias) {
        r->bias[c] = is_o ? bias : bias / aw;
        r->bias_int[c] = tare__saturate_int32((double)(bias * (1.0F / aw)));
    }
    if (r->rule == REQUANT_FIXED_POINT) fixed_point(ratio, &r->fixed[c], &r->shift[c]);
}

// The header and its five arrays are one block, in which every array starts on a cache line.
enum { ARRAYS = 5, LINE = 64 };

static requant *allocate(int64_t channel_count) {
    const size_t header = (sizeof(requant) + LINE - 1) / LINE * LINE;
    if (channel_count < 0 || (uint64_t)channel_count > SIZE_MAX / 64) return NULL;
    const size_t padded =
        ((size_t)channel_count + REQUANT_PADDING - 1) / REQUANT_PADDING * REQUANT_PADDING;
    const size_t array_bytes = padded * sizeof(float);
    unsigned char *block = tare__alloc_lines(1, header + ARRAYS * array_bytes);
    if (!block) return NULL;
    requant *r = (requant *)block;
    unsigned char *arrays = block + header;
    r->channel_count = channel_count;
    r->multiplier = (float *)arrays;
    r->bias = (float *)(arrays + array_bytes);
    r->bias_int = (int32_t *)(arrays + 2 * array_bytes);
    r->fixed = (int32_t *)(arrays + 3 * array_bytes);
    r->shift = (int32_t *)(arrays + 4 * array_bytes);
    return r;
}

tare_status tare__requant_create(const requant_spec *spec, requant **out, tare_error *err) {
    TARE_TRY(check_spec(spec, err));
    requant *r = allocate(spec->channel_count);
    if (!r) return tare__out_of_memory(err);
    r->rule = spec->rule;
    r->inverse = tare__inverse_scale(spec->output_scale);
    r->zero_point = (int32_t)spec->output_zero_point;
    r->lo = (int32_t)(spec->relu ? spec->output_zero_point : spec->quant_min);
    r->hi = (int32_t)spec->quant_max;
    for (int64_t c = 0; c < spec->channel_count; c++) fill_channel(r, spec, c);
    *out = r;
    return TARE_OK;
}

void tare__requant_destroy(requant *r) {
    tare__free_aligned(r);
}

// --- elementwise operators ---

qnnpack_add tare__qnnpack_add(quantized_range a, quantized_range b, quantized_range out,
                              int32_t quant_min, int32_t quant_max, bool relu) {
    const float ratio_a = a.scale / out.scale, ratio_b = b.scale / out.scale;
    // QNNPACK refuses ratios outside 2^-14 .. 2^8; here they must only not shift out of range.
    const int exponent = ilogbf(ratio_a > ratio_b ? ratio_a : ratio_b);
    const int shift = (int)tare__clamp_int(21 - (int64_t)exponent, 1, 62);
    const int64_t ma = tare__saturate_int32(ldexp((double)ratio_a, shift));
    const int64_t mb = tare__saturate_int32(ldexp((double)ratio_b, shift));
    return (qnnpack_add){
        .multiplier_a = ma,
        .multiplier_b = mb,
        .offset = ma * a.zero_point + mb * b.zero_point,
        .shift = shift,
        .zero_point = out.zero_point,
        .lo = relu && out.zero_point > quant_min ? out.zero_point : quant_min,
        .hi = quant_max,
    };
}

static scalar_op keep_quantized(double scale, int64_t zero_point, int64_t quant_min,
                                int64_t quant_max) {
    return (scalar_op){.scale = scale,
                       .zero_point = zero_point,
                       .effect = SCALAR_KEEP,
                       .quant_min = quant_min,
                       .quant_max = quant_max,
                       .lo = quant_min};
}

scalar_op tare__add_scalar(double scale, int64_t zero_point, double addend, int64_t quant_min,
                           int64_t quant_max, bool relu) {
    scalar_op op = keep_quantized(scale, zero_point, quant_min, quant_max);
    const double span = (double)(quant_max - quant_min);
    const double moved = (double)zero_point - nearbyint(addend / scale);
    op.moved = moved;
    if (moved < (double)quant_min) {
        op.effect = SCALAR_REQUANTIZE;
        op.scale = ((double)quant_max - moved) / span * scale;
        op.zero_point = quant_min;
    } else if (moved > (double)quant_max) {
        op.effect = SCALAR_REQUANTIZE;
        op.scale = (moved - (double)quant_min) / span * scale;
        op.zero_point = quant_max;
    } else if (!isnan(moved)) {
        op.zero_point = (int64_t)moved;
    }
    op.multiplier = (float)scale * tare__inverse_scale(op.scale);
    if (relu) op.lo = op.zero_point;
    return op;
}

scalar_op tare__mul_scalar(double scale, int64_t zero_point, double factor, int64_t quant_min,
                           int64_t quant_max, bool relu) {
    scalar_op op = keep_quantized(scale, zero_point, quant_min, quant_max);
    if (factor > 0) {
        op.scale = scale * factor;
    } else if (factor < 0) {
        op.effect = SCALAR_MIRROR;
        op.scale = scale * fabs(factor);
        op.zero_point = quant_max + quant_min - zero_point;
    } else {
        op.effect = SCALAR_ZERO;
        op.scale = 1.0;
        op.zero_point = 0;
    }
    if (relu) op.lo = op.zero_point;
    return op;
}
