// SPDX-License-Identifier: Apache-2.0
// The kernels over lines of floats, once for all levels: loops over sixteen lanes, which a compiler
// turns into the vectors that a level has. A level's file defines LINES(name) and includes this.
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "runtime/kernels/lines.h"

enum { LANES = 16 };

typedef struct lanes {
    float v[LANES];
} lanes;

// Elements beyond `count` are `otherwise`.
static inline lanes load_part(const float *x, size_t count, float otherwise) {
    lanes a;
    for (size_t i = 0; i < LANES; i++) a.v[i] = i < count ? x[i] : otherwise;
    return a;
}

static inline lanes load(const float *x) {
    lanes a;
    memcpy(a.v, x, sizeof a.v);
    return a;
}

static inline float sum_of(const lanes *a) {
    float half[LANES / 2];
    for (int i = 0; i < 8; i++) half[i] = a->v[i] + a->v[i + 8];
    for (int i = 0; i < 4; i++) half[i] += half[i + 4];
    return (half[0] + half[2]) + (half[1] + half[3]);
}

// exp(x) for x <= 0, 0 below -87.3 (where floats end): x = n ln 2 + r with |r| <= ln 2 / 2, and a
// polynomial of degree 6 for exp(r) (Cephes, expf.c). NaN stays NaN.
static inline lanes exp_lanes(lanes x) {
    const float log2_e = 1.44269504088896341F, high = 0.693359375F, low = -2.12194440e-4F;
    const float magic = 12582912.0F; // 1.5 * 2^23: adding it rounds to a whole number
    lanes n, p;
    int32_t bits[LANES];
    for (int i = 0; i < LANES; i++) {
        const float at = x.v[i] < -87.3F ? -87.3F : x.v[i];
        n.v[i] = at * log2_e + magic;
        const float whole = n.v[i] - magic;
        const float r = (at - whole * high) - whole * low;
        float s = 1.9875691500e-4F;
        s = s * r + 1.3981999507e-3F;
        s = s * r + 8.3334519073e-3F;
        s = s * r + 4.1665795894e-2F;
        s = s * r + 1.6666665459e-1F;
        s = s * r + 5.0000001201e-1F;
        p.v[i] = s * (r * r) + r + 1.0F;
    }
    // The low bits of n are the whole number; 2^n has it in its exponent.
    memcpy(bits, n.v, sizeof bits);
    for (int i = 0; i < LANES; i++) bits[i] = (int32_t)((uint32_t)bits[i] << 23) + 0x3f800000;
    memcpy(n.v, bits, sizeof bits);
    for (int i = 0; i < LANES; i++) p.v[i] = x.v[i] < -87.3F ? 0.0F : p.v[i] * n.v[i];
    return p;
}

void LINES(f32_add)(const float *x, size_t count, float *y) {
    for (size_t i = 0; i < count; i++) y[i] += x[i];
}

void LINES(f32_raise)(const float *x, size_t count, float *y) {
    for (size_t i = 0; i < count; i++) y[i] = x[i] > y[i] || x[i] != x[i] ? x[i] : y[i];
}

static float greatest(const float *x, size_t count) {
    lanes top = load_part(x, count, x[0]);
    for (size_t i = LANES; i + LANES <= count; i += LANES)
        for (int k = 0; k < LANES; k++)
            top.v[k] = x[i + (size_t)k] > top.v[k] ? x[i + (size_t)k] : top.v[k];
    for (size_t i = count / LANES * LANES; i < count; i++)
        top.v[0] = x[i] > top.v[0] ? x[i] : top.v[0];
    float best = top.v[0];
    for (int k = 1; k < LANES; k++) best = top.v[k] > best ? top.v[k] : best;
    return best;
}

void LINES(f32_softmax)(const float *x, size_t count, float *y) {
    const float top = greatest(x, count);
    lanes sums = {{0}};
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        lanes a = load(x + i);
        for (int k = 0; k < LANES; k++) a.v[k] -= top;
        a = exp_lanes(a);
        for (int k = 0; k < LANES; k++) sums.v[k] += a.v[k];
        memcpy(y + i, a.v, sizeof a.v);
    }
    if (i < count) {
        lanes a = load_part(x + i, count - i, -INFINITY);
        for (int k = 0; k < LANES; k++) a.v[k] -= top;
        a = exp_lanes(a);
        for (size_t k = 0; k < count - i; k++) sums.v[k] += a.v[k];
        memcpy(y + i, a.v, (count - i) * sizeof *y);
    }
    const float factor = 1.0F / sum_of(&sums);
    for (i = 0; i < count; i++) y[i] *= factor;
}

static float mean_of(const float *x, size_t count) {
    lanes sums = {{0}};
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int k = 0; k < LANES; k++) sums.v[k] += x[i + (size_t)k];
    for (size_t k = 0; i < count; i++, k++) sums.v[k] += x[i];
    return sum_of(&sums) / (float)count;
}

static float variance_of(const float *x, size_t count, float mean) {
    lanes sums = {{0}};
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int k = 0; k < LANES; k++) {
            const float d = x[i + (size_t)k] - mean;
            sums.v[k] += d * d;
        }
    for (size_t k = 0; i < count; i++, k++) sums.v[k] += (x[i] - mean) * (x[i] - mean);
    return sum_of(&sums) / (float)count;
}

void LINES(f32_normalize)(const float *x, size_t count, const float *weight, const float *bias,
                          float eps, float *y) {
    const float mean = mean_of(x, count);
    const float scale = 1.0F / sqrtf(variance_of(x, count, mean) + eps);
    if (weight != NULL && bias != NULL)
        for (size_t i = 0; i < count; i++) y[i] = (x[i] - mean) * scale * weight[i] + bias[i];
    else
        for (size_t i = 0; i < count; i++)
            y[i] = (x[i] - mean) * scale * (weight != NULL ? weight[i] : 1.0F) +
                   (bias != NULL ? bias[i] : 0.0F);
}
