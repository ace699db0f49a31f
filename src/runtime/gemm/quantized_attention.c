// SPDX-License-Identifier: Apache-2.0
// Quantized attention: two products, and softmax weights in bytes between them.
#include "runtime/gemm/quantized_attention.h"

#include <assert.h>
#include <string.h>

#include "runtime/kernels/scratch.h"

enum { ALIGNMENT = 64 };

// Scratch of a thread.
typedef struct attention_memory {
    uint32_t *keys, *values; // packed
    int32_t *starts;         // initial values of the sums with each key
    float *scores;           // [QUANTIZED_ROW_BLOCK][score_step]
    uint8_t *weights;        // [QUANTIZED_ROW_BLOCK][weight_step]
    float *mixed;            // [QUANTIZED_ROW_BLOCK][value_step], for a quantized result
    uint8_t *as_unsigned;    // [QUANTIZED_ROW_BLOCK][width] of queries
    size_t score_step, weight_step, value_step;
    uint32_t totals[QUANTIZED_ROW_BLOCK];
} attention_memory;

static size_t take(unsigned char *memory, size_t *used, size_t bytes, void **out) {
    *out = memory != NULL ? memory + *used : NULL;
    return *used += tare__round_up(bytes, ALIGNMENT);
}

// Lays it out in `memory`; NULL: only counts the bytes.
static size_t lay_out(const attention_call *c, unsigned char *memory, attention_memory *m) {
    const size_t keys = (size_t)c->keys, width = (size_t)c->width;
    const size_t value_width = (size_t)c->value_width;
    size_t used = 0;
    void *at[7];
    m->score_step = m->weight_step = tare__round_up(keys, ALIGNMENT);
    m->value_step = tare__quantized_product_lanes(value_width);
    take(memory, &used, tare__quantized_product_bytes(width, keys), &at[0]);
    take(memory, &used, tare__quantized_product_bytes(keys, value_width), &at[1]);
    take(memory, &used, tare__quantized_product_lanes(keys) * sizeof *m->starts, &at[2]);
    take(memory, &used, QUANTIZED_ROW_BLOCK * m->score_step * sizeof *m->scores, &at[3]);
    take(memory, &used, QUANTIZED_ROW_BLOCK * m->weight_step, &at[4]);
    take(memory, &used, QUANTIZED_ROW_BLOCK * m->value_step * sizeof *m->mixed, &at[5]);
    take(memory, &used, QUANTIZED_ROW_BLOCK * width, &at[6]);
    m->keys = at[0];
    m->values = at[1];
    m->starts = at[2];
    m->scores = at[3];
    m->weights = at[4];
    m->mixed = at[5];
    m->as_unsigned = at[6];
    return used;
}

size_t tare__attention_quantized_bytes(const attention_quantized *a) {
    attention_memory m;
    return lay_out(a->call, NULL, &m);
}

static uint8_t flip_to_signed(const tare_tensor *t) {
    return t->dtype == TARE_QINT8 ? 0 : 0x80;
}

void tare__attention_quantized_init(attention_quantized *out, const attention_call *call,
                                    const quantized_scheme *scheme, isa_level isa) {
    *out = (attention_quantized){
        .kernels = tare__attention_choose(isa),
        .product = tare__product_choose(isa),
        .elementwise = tare__elementwise_choose(isa),
        .call = call,
        .gives_quantized = scheme != NULL,
        .numbers = tare__quantized_attention_of(call),
        .query_flip = flip_to_signed(call->q) ^ 0x80, // products take unsigned values
        .key_flip = flip_to_signed(call->k),
        .value_flip = flip_to_signed(call->v),
    };
    if (scheme != NULL) out->scheme = *scheme;
    out->query_zero = out->numbers.query_zero + 128;
}

// --- packing ---

static void pack(const attention_quantized *a, const attention_head *head,
                 const attention_memory *m) {
    const size_t keys = (size_t)a->call->keys, width = (size_t)a->call->width;
    const size_t key_depth = tare__ceil_div(width, 4);
    for (size_t j = 0; j < keys; j += PRODUCT_BLOCK) {
        const quantized_matrix block = {.x = head->k + j * head->k_step,
                                        .step = head->k_step,
                                        .rows = tare__remaining(keys, j, PRODUCT_BLOCK),
                                        .columns = width,
                                        .flip = a->key_flip};
        a->kernels->pack_rows(&block, tare__quantized_product_lanes(block.rows),
                              m->keys + j * key_depth, m->starts + j);
    }
    for (size_t j = 0; j < keys; j++)
        m->starts[j] = tare__wrap_int32(-(int64_t)a->query_zero * m->starts[j]);
    const quantized_matrix values = {.x = head->v,
                                     .step = head->v_step,
                                     .rows = keys,
                                     .columns = (size_t)a->call->value_width,
                                     .flip = a->value_flip};
    tare__quantized_product_pack(a->kernels, &values, m->values, NULL);
}

// --- a row block ---

static void multiply_keys(const attention_quantized *a, const attention_head *head,
                          const attention_memory *m, size_t first, size_t rows) {
    const quantized_product p = {.kernel = a->product,
                                 .x = head->q + first * head->q_step,
                                 .x_step = head->q_step,
                                 .rows = rows,
                                 .tap_size = (size_t)a->call->width,
                                 .flip = a->query_flip,
                                 .as_unsigned = m->as_unsigned,
                                 .w = m->keys,
                                 .channels = (size_t)a->call->keys,
                                 .starts = m->starts,
                                 .multiplier = a->numbers.factor,
                                 .y = m->scores,
                                 .y_step = m->score_step};
    tare__quantized_product_run(&p);
}

static void weigh(const attention_quantized *a, const attention_head *head, attention_memory *m,
                  size_t first, size_t rows) {
    const bool is_plain = a->call->mask == NULL && !a->call->is_causal;
    for (size_t i = 0; i < rows; i++) {
        float *scores = m->scores + i * m->score_step;
        if (!is_plain)
            tare__quantized_attention_mask(a->call, &head->at, (int64_t)(first + i), scores);
        m->totals[i] =
            a->kernels->weigh(scores, (size_t)a->call->keys, m->weights + i * m->weight_step);
    }
}

static void finish_row(const attention_quantized *a, uint32_t total, float *y) {
    const size_t width = (size_t)a->call->value_width;
    if (total == 0)
        memset(y, 0, width * sizeof *y);
    else
        a->kernels->scale(1.0F / (float)total, a->numbers.offset, width, y);
}

static void multiply_values(const attention_quantized *a, const attention_head *head,
                            const attention_memory *m, size_t first, size_t rows) {
    const size_t width = (size_t)a->call->value_width;
    float *y = a->gives_quantized ? m->mixed : (float *)head->y + first * head->y_step;
    const size_t step = a->gives_quantized ? m->value_step : head->y_step;
    const quantized_product p = {.kernel = a->product,
                                 .x = m->weights,
                                 .x_step = m->weight_step,
                                 .rows = rows,
                                 .tap_size = (size_t)a->call->keys,
                                 .w = m->values,
                                 .channels = width,
                                 .multiplier = a->numbers.value_scale,
                                 .y = y,
                                 .y_step = step};
    tare__quantized_product_run(&p);
    for (size_t i = 0; i < rows; i++) {
        finish_row(a, m->totals[i], y + i * step);
        if (!a->gives_quantized) continue;
        uint8_t *quantized = (uint8_t *)head->y + (first + i) * head->y_step;
        a->elementwise->quantize(&a->scheme, y + i * step, width, quantized);
    }
}

void tare__attention_quantized_run(const attention_quantized *a, const attention_head *head,
                                   void *memory) {
    const size_t queries = (size_t)a->call->queries;
    attention_memory m;
    (void)lay_out(a->call, memory, &m);
    assert(m.starts != NULL && m.mixed != NULL && head->y != NULL);
    pack(a, head, &m);
    for (size_t first = 0; first < queries; first += QUANTIZED_ROW_BLOCK) {
        const size_t rows = tare__remaining(queries, first, QUANTIZED_ROW_BLOCK);
        multiply_keys(a, head, &m, first, rows);
        weigh(a, head, &m, first, rows);
        multiply_values(a, head, &m, first, rows);
    }
}
