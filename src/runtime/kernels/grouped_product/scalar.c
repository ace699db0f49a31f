// SPDX-License-Identifier: Apache-2.0
// Products with group-wise weights in plain C, which define the bits.
#include <math.h>

#include "runtime/kernels/grouped.h"

static const uint8_t *group_at(const grouped_tile *t, size_t panel, size_t group) {
    return tare__grouped_panel(t, panel) +
           group * tare__grouped_bytes(t->group, t->bits, t->has_zeros);
}

// The value of input k of a group.
static int32_t weight_at(const grouped_tile *t, const uint8_t *group, size_t k, size_t output) {
    const uint8_t *lines = group + tare__grouped_head_bytes(t->has_zeros);
    const size_t inputs = tare__grouped_line_inputs(t->bits), within = k % inputs;
    const uint8_t byte = lines[k / inputs * GROUPED_LINE + output * 4 + within % 4];
    if (t->bits == 8) return byte;
    return within < 4 ? byte & 15 : byte >> 4;
}

static int32_t zero_of(const grouped_tile *t, const uint8_t *group, size_t output) {
    return t->has_zeros ? tare__grouped_zeros(group)[output] : 1 << (t->bits - 1);
}

// x: of the group.
static float group_sum_of_floats(const grouped_tile *t, const uint8_t *group, size_t output,
                                 const float *x) {
    const int32_t zero = zero_of(t, group, output);
    float group_sum = 0;
    for (size_t k = 0; k < t->group; k++)
        group_sum = fmaf(x[k], (float)(weight_at(t, group, k, output) - zero), group_sum);
    return group_sum;
}

static float group_sum_of_quantized(const grouped_tile *t, const uint8_t *group, size_t output,
                                    const int8_t *x) {
    const int32_t zero = zero_of(t, group, output);
    int32_t group_sum = 0;
    for (size_t k = 0; k < t->group; k++)
        group_sum += (weight_at(t, group, k, output) - zero) * x[k];
    return (float)group_sum;
}

static void multiply(const grouped_tile *t, bool of_quantized) {
    const size_t ins = t->groups * t->group;
    float *y = t->sums;
    for (size_t r = 0; r < t->rows; r++)
        for (size_t p = 0; p < t->panel_count; p++)
            for (size_t o = 0; o < GROUPED_OUTPUTS; o++) {
                float sum = 0;
                for (size_t g = 0; g < t->groups; g++) {
                    const uint8_t *group = group_at(t, p, g);
                    const size_t at = r * ins + g * t->group;
                    sum = fmaf(of_quantized ? group_sum_of_quantized(t, group, o, t->quantized + at)
                                            : group_sum_of_floats(t, group, o, t->x + at),
                               tare__grouped_scales(group)[o], sum);
                }
                *y++ = sum;
            }
}

void grouped_floats__scalar(const grouped_tile *t) {
    multiply(t, false);
}
void grouped_quantized__scalar(const grouped_tile *t) {
    multiply(t, true);
}
