// SPDX-License-Identifier: Apache-2.0
// Products of two quantized tensors, one block of channels after the other.
#include "runtime/gemm/quantized_product.h"

#include "runtime/kernels/scratch.h"

static const int32_t no_starts[PRODUCT_BLOCK];
static const float no_bias[PRODUCT_BLOCK];
static const requant value_rule = {.rule = REQUANT_O};

size_t tare__quantized_product_bytes(size_t depth, size_t channels) {
    return tare__quantized_product_lanes(channels) * tare__round_up(depth, 4);
}

void tare__quantized_product_pack(const attention_kernels *k, const quantized_matrix *m,
                                  uint32_t *w, int32_t *sums) {
    const size_t depth = tare__ceil_div(m->rows, 4);
    for (size_t i = 0; i < m->columns; i += PRODUCT_BLOCK) {
        quantized_matrix block = *m;
        block.x += i;
        block.columns = tare__remaining(m->columns, i, PRODUCT_BLOCK);
        k->pack_columns(&block, tare__quantized_product_lanes(block.columns), w + i * depth,
                        sums != NULL ? sums + i : NULL);
    }
}

static void run_block(const quantized_product *p, size_t channel, const float *multipliers) {
    const size_t channels = tare__remaining(p->channels, channel, PRODUCT_BLOCK);
    const size_t step =
        tare__product_run_rows(p->kernel, tare__product_vectors(channels), 1, p->rows);
    const uint8_t *x[PRODUCT_RUN_ROWS];
    for (size_t row = 0; row < p->rows; row += step) {
        const size_t rows = tare__remaining(p->rows, row, step);
        for (size_t i = 0; i < rows; i++) x[i] = p->x + (row + i) * p->x_step;
        const product_tile tile = {
            .x = x,
            .rows = rows,
            .taps = 1,
            .tap_size = p->tap_size,
            .flip = p->flip,
            .w = p->w + channel * tare__ceil_div(p->tap_size, 4),
            .channels = channels,
            .epilogue = {.requant = &value_rule,
                         .start = p->starts != NULL ? p->starts + channel : no_starts,
                         .multiplier = multipliers,
                         .bias = no_bias},
            .real = p->y + row * p->y_step + channel,
            .y_stride = p->y_step,
        };
        p->kernel->run(&tile);
    }
}

// The same product of unsigned quantized values.
static quantized_product copy_rows(const quantized_product *p) {
    quantized_product own = *p;
    for (size_t row = 0; row < p->rows; row++)
        tare__product_to_unsigned(p->x + row * p->x_step, p->tap_size,
                                  p->as_unsigned + row * p->tap_size);
    own.x = p->as_unsigned;
    own.x_step = p->tap_size;
    own.flip = 0;
    return own;
}

void tare__quantized_product_run(const quantized_product *given) {
    const bool needs_unsigned = given->flip != 0 && !given->kernel->takes_signed;
    const quantized_product own = needs_unsigned ? copy_rows(given) : *given, *p = &own;
    float multipliers[PRODUCT_BLOCK];
    for (size_t i = 0; i < PRODUCT_BLOCK; i++) multipliers[i] = p->multiplier;
    for (size_t channel = 0; channel < p->channels; channel += PRODUCT_BLOCK)
        run_block(p, channel, multipliers);
}
