// SPDX-License-Identifier: Apache-2.0
// Quantized attention, one matrix of queries at a time (ops/layer_call.h defines the arithmetic).
// Keys and values are packed like a product's weights; a row block of queries goes from scores to
// results while it is in the cache.
#ifndef RUNTIME_GEMM_QUANTIZED_ATTENTION_H
#define RUNTIME_GEMM_QUANTIZED_ATTENTION_H

#include "ops/layer_call.h"
#include "runtime/gemm/quantized_product.h"
#include "runtime/kernels/elementwise.h"

typedef struct attention_quantized {
    const attention_kernels *kernels;
    const product_kernel *product;
    const elementwise_kernels *elementwise;
    const attention_call *call; // lent
    bool gives_quantized;
    quantized_scheme scheme; // of a quantized result
    quantized_attention numbers;
    uint8_t query_flip, key_flip, value_flip;
    int32_t query_zero; // as an unsigned value
} attention_quantized;

/// call, and what it refers to, must outlive *out. scheme: of the result; NULL: the result is
/// float.
void tare__attention_quantized_init(attention_quantized *out, const attention_call *call,
                                    const quantized_scheme *scheme, isa_level isa);
/// Bytes of scratch for one thread.
size_t tare__attention_quantized_bytes(const attention_quantized *a);

/// One matrix of queries, its keys, values and result. Steps are distances of rows in elements.
typedef struct attention_head {
    attention_offsets at;
    const uint8_t *q, *k, *v;
    size_t q_step, k_step, v_step, y_step;
    void *y; // floats or quantized values
} attention_head;
/// memory: 64-byte aligned.
void tare__attention_quantized_run(const attention_quantized *a, const attention_head *head,
                                   void *memory);

#endif
