// SPDX-License-Identifier: Apache-2.0
// Random quantized layers for tests of kernels: extreme quantized values, every rule, one to four
// threads.
#ifndef SUPPORT_LAYER_CASE_H
#define SUPPORT_LAYER_CASE_H

#include "runtime/gemm/qlayer.h"

enum { MOST_THREADS = 4 };

typedef struct random_state {
    uint64_t state;
} random_state;

typedef struct layer_case {
    random_state random;
    quantized_layer layer;
    tare_tensor *weight, *bias, *x, *addend, *y;
    requant *r;
    bool has_zero_points; // the weight; set before finishing
} layer_case;

/// A pool of each size, for a program's tests.
int start_layer_pools(void **state);
int end_layer_pools(void **state);

/// A layer by a seed, then its geometry is set, and its tensors are made: input, weight, output.
void begin_layer_case(layer_case *c, uint64_t seed, requant_rule rule, int64_t channels);
void finish_layer_case(layer_case *c, int ndim, const int64_t *in, const int64_t *w,
                       const int64_t *out);
void end_layer_case(layer_case *c);

/// Runs it on x, moved to channels last, into y. addend: quantized values channels last, NULL: the
/// layer's own, if it adds. Where threads are even in number, pixels lie apart. Buffers are of
/// exactly the right size, so that sanitizers see what is read beyond.
void run_layer_case(const layer_case *c, const qlayer *p, int threads,
                    const product_addend *addend);
/// Fails if element `at` of y, of a channel, is not what core/math/requant.h makes of the sum.
void check_layer_integer(const layer_case *c, int64_t channel, int64_t sum, int64_t at,
                         const char *kernel);
/// Between [N][C][pixels] and [N][pixels][C]; without a batch N is 1.
void move_layer_channels(const layer_case *c, const uint8_t *x, const tare_tensor *like,
                         bool to_last, uint8_t *y);

#endif
