// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Packs weights in groups into panels, and multiplies rows with them.
#include "runtime/gemm/floats/grouped_product.h"

#include <string.h>

#include "core/hash/hash.h"
#include "core/memory/alloc.h"
#include "runtime/kernels/scan.h"

// Distinguishes the packed weights from other data that is derived from a tensor.
#define WEIGHTS_TAG UINT64_C(0x6772703770616e65)

bool tare__grouped_layer_suits(const grouped_weights *w) {
    const int64_t inputs = (int64_t)tare__grouped_line_inputs(w->bits);
    return w->outs > 0 && w->ins > 0 && w->group % inputs == 0;
}

// --- packing ---

// Packs 4 bytes: inputs k to k + 3, and with 4 bits also k + 4 to k + 7.
static void pack_quad(const grouped_weights *w, int64_t output, int64_t k, uint8_t *to) {
    const uint8_t *quantized = w->quantized->data;
    if (w->bits == 8) {
        memcpy(to, quantized + output * w->ins + k, 4);
        return;
    }
    const uint8_t *from = quantized + (output * w->ins + k) / 2;
    for (size_t i = 0; i < 2; i++) {
        to[2 * i] = (uint8_t)((from[i] & 15) | (from[i + 2] & 15) << 4);
        to[2 * i + 1] = (uint8_t)(from[i] >> 4 | (from[i + 2] & 0xF0));
    }
}

static void pack_group(const grouped_weights *w, int64_t first, int64_t outputs, int64_t group,
                       uint8_t *to) {
    const int64_t inputs = (int64_t)tare__grouped_line_inputs(w->bits);
    const bool has_zeros = w->zero_point != NULL;
    uint8_t *line = to + tare__grouped_head_bytes(has_zeros);
    for (int64_t o = 0; o < outputs; o++) {
        const int64_t at = (first + o) * w->groups + group;
        ((float *)(void *)to)[o] = tare__f32(w->scale)[at];
        if (has_zeros) to[GROUPED_SCALE_BYTES + o] = ((const uint8_t *)w->zero_point->data)[at];
    }
    for (int64_t k = group * w->group; k < (group + 1) * w->group;
         k += inputs, line += GROUPED_LINE)
        for (int64_t o = 0; o < outputs; o++) pack_quad(w, first + o, k, line + o * 4);
}

static size_t group_bytes(const grouped_weights *w) {
    return tare__grouped_bytes((size_t)w->group, w->bits, w->zero_point != NULL);
}

static void pack_panel(const grouped_weights *w, int64_t first, uint8_t *panel) {
    const int64_t outputs =
        (int64_t)tare__remaining((size_t)w->outs, (size_t)first, GROUPED_OUTPUTS);
    for (int64_t g = 0; g < w->groups; g++, panel += group_bytes(w))
        pack_group(w, first, outputs, g, panel);
}

static tare_status pack_all(void *user, uint32_t *words, int32_t *sums, tare_error *err) {
    const grouped_layer *l = user;
    (void)sums, (void)err;
    memset(words, 0, l->panel_count * l->panel_bytes);
    for (size_t p = 0; p < l->panel_count; p++)
        pack_panel(&l->w, (int64_t)(p * GROUPED_OUTPUTS), (uint8_t *)words + p * l->panel_bytes);
    return TARE_OK;
}

// Scales and zero points are separate tensors, but packed with the weights.
static derived_key key_of(const grouped_weights *w) {
    const tare_tensor *z = w->zero_point;
    return (derived_key){
        .data = w->quantized->data,
        .numbers = {WEIGHTS_TAG, (uint64_t)w->outs, (uint64_t)w->ins, (uint64_t)w->group,
                    (uint64_t)w->bits,
                    tare__hash_bytes(w->scale->data, tare__tensor_bytes(w->scale)),
                    z != NULL ? tare__hash_bytes(z->data, tare__tensor_bytes(z)) : 0, z != NULL}};
}

static bool size_of(const grouped_weights *w, grouped_layer *out, packed_size *size) {
    out->panel_count = tare__ceil_div((size_t)w->outs, GROUPED_OUTPUTS);
    if (!tare__mul_size((size_t)w->groups, group_bytes(w), &out->panel_bytes)) return false;
    out->panel_bytes = tare__round_up(out->panel_bytes, GROUPED_LINE);
    return tare__packed_size_of(out->panel_count, out->panel_bytes / sizeof(uint32_t), 0, size);
}

tare_status tare__grouped_layer_pack(const grouped_weights *w, bool relu, grouped_layer *out,
                                     tare_error *err) {
    grouped_layer l = {.w = *w, .relu = relu};
    packed_size size;
    if (!size_of(w, &l, &size)) return tare__out_of_memory(err);
    const derived_key key = key_of(w);
    TARE_TRY(tare__packed_weights_get(w->quantized, &key, &size, pack_all, &l, &l.packed, err));
    *out = l;
    return TARE_OK;
}

void tare__grouped_layer_release(grouped_layer *l) {
    tare__packed_weights_release(l->packed);
    l->packed = NULL;
}

size_t tare__grouped_layer_bytes(const grouped_layer *l) {
    return l->panel_count * l->panel_bytes;
}

// --- products ---

// Dynamically quantized rows.
typedef struct quantized_rows {
    float *scales;           // [rows]
    int32_t *quantized_sums; // [rows][groups]
    int8_t *quantized;       // [rows][ins]
} quantized_rows;

static size_t place_quantized(const grouped_layer *l, size_t rows, unsigned char *memory,
                              quantized_rows *out) {
    const size_t of_scales = tare__round_up(rows * sizeof(float), GROUPED_LINE);
    const size_t of_sums =
        tare__round_up(rows * (size_t)l->w.groups * sizeof(int32_t), GROUPED_LINE);
    const size_t of_quantized = tare__round_up(rows * (size_t)l->w.ins, GROUPED_LINE);
    if (memory != NULL)
        *out = (quantized_rows){.scales = (float *)(void *)memory,
                                .quantized_sums = (int32_t *)(void *)(memory + of_scales),
                                .quantized = (int8_t *)memory + of_scales + of_sums};
    return of_scales + of_sums + of_quantized;
}

size_t tare__grouped_scratch_bytes(const grouped_layer *l, size_t rows) {
    return l->w.quantizes_input ? place_quantized(l, rows, NULL, NULL) : 0;
}

typedef struct grouped_job {
    const kernel_context *context;
    const grouped_kernels *kernels;
    const grouped_layer *l;
    size_t rows;
    const float *x;
    float *y;
    quantized_rows quantized;
} grouped_job;

static float row_scale(const grouped_job *j, const float *x, size_t count) {
    float least, most;
    bool has_nan = false;
    tare__scan_choose(j->context->isa)->extremes(x, count, &least, &most, &has_nan);
    if (has_nan) return tare__grouped_row_scale(x, (int64_t)count);
    const float of_both[] = {least, most};
    return tare__grouped_row_scale(of_both, 2);
}

// As unsigned values from 0 to 255, whose upper bit is then flipped to give signed ones.
static void quantize_row(const grouped_job *j, size_t row) {
    const size_t ins = (size_t)j->l->w.ins, group = (size_t)j->l->w.group;
    const float *x = j->x + row * ins;
    int8_t *quantized = j->quantized.quantized + row * ins;
    const float scale = row_scale(j, x, ins);
    const quantized_scheme scheme = {.scale = scale,
                                     .inverse = tare__inverse_scale((double)scale),
                                     .zero_point = 128,
                                     .least = 0,
                                     .most = 255};
    j->quantized.scales[row] = scale;
    j->context->elementwise->quantize(&scheme, x, ins, (uint8_t *)quantized);
    for (size_t k = 0; k < ins; k++) quantized[k] = (int8_t)(quantized[k] ^ -128);
    for (size_t g = 0; g < (size_t)j->l->w.groups; g++) {
        int32_t sum = 0;
        for (size_t k = g * group; k < (g + 1) * group; k++) sum += quantized[k];
        j->quantized.quantized_sums[row * (size_t)j->l->w.groups + g] = sum;
    }
}

static void quantize_rows(void *user, size_t first, size_t end, size_t worker) {
    (void)worker;
    for (size_t row = first; row < end; row++) quantize_row(user, row);
}

static void finish(const grouped_job *j, size_t row, size_t output, size_t count,
                   const float *sums) {
    const grouped_weights *w = &j->l->w;
    const float *bias = w->bias != NULL ? tare__f32(w->bias) + output : NULL;
    float *y = j->y + row * (size_t)w->outs + output;
    for (size_t i = 0; i < count; i++) {
        float v = w->quantizes_input ? sums[i] * j->quantized.scales[row] : sums[i];
        if (bias != NULL) v = v + bias[i];
        y[i] = j->l->relu && v < 0 ? 0.0F : v;
    }
}

static void multiply_tile(const grouped_job *j, size_t panel, size_t panels, size_t row,
                          size_t rows) {
    const grouped_weights *w = &j->l->w;
    const size_t ins = (size_t)w->ins, groups = (size_t)w->groups;
    float sums[GROUPED_MOST_ROWS * GROUPED_MOST_PANELS * GROUPED_OUTPUTS];
    grouped_tile t = {.panels = (const uint8_t *)j->l->packed->words + panel * j->l->panel_bytes,
                      .panel_count = panels,
                      .panel_bytes = j->l->panel_bytes,
                      .groups = groups,
                      .group = (size_t)w->group,
                      .bits = w->bits,
                      .has_zeros = w->zero_point != NULL,
                      .rows = rows,
                      .sums = sums};
    if (w->quantizes_input) {
        t.quantized = j->quantized.quantized + row * ins;
        t.quantized_sums = j->quantized.quantized_sums + row * groups;
        j->kernels->quantized(&t);
    } else {
        t.x = j->x + row * ins;
        j->kernels->floats(&t);
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t p = 0; p < panels; p++) {
            const size_t output = (panel + p) * GROUPED_OUTPUTS;
            finish(j, row + r, output, tare__remaining((size_t)w->outs, output, GROUPED_OUTPUTS),
                   sums + (r * panels + p) * GROUPED_OUTPUTS);
        }
}

// All rows are multiplied with a block of panels before the next block.
static void multiply_blocks(void *user, size_t first, size_t end, size_t worker) {
    const grouped_job *j = user;
    (void)worker;
    for (size_t block = first; block < end; block++) {
        const size_t panel = block * GROUPED_MOST_PANELS;
        const size_t panels = tare__remaining(j->l->panel_count, panel, GROUPED_MOST_PANELS);
        for (size_t row = 0; row < j->rows; row += j->kernels->rows)
            multiply_tile(j, panel, panels, row, tare__remaining(j->rows, row, j->kernels->rows));
    }
}

void tare__grouped_multiply(const kernel_context *kernels, const grouped_layer *l, size_t rows,
                            const float *x, void *memory, float *y) {
    enum { LEAST_SHARED_BYTES = 1 << 15 }; // of weights: read in the time a thread takes to wake up
    grouped_job j = {.context = kernels,
                     .kernels = tare__grouped_kernels_choose(kernels->isa),
                     .l = l,
                     .rows = rows,
                     .x = x,
                     .y = y};
    thread_pool *pool = kernels->space.pool;
    if (rows * tare__grouped_layer_bytes(l) < LEAST_SHARED_BYTES) pool = NULL;
    if (l->w.quantizes_input) {
        (void)place_quantized(l, rows, memory, &j.quantized);
        tare__thread_pool_run_ranges(rows > 1 ? pool : NULL, rows, (thread_grain){1, rows},
                                     quantize_rows, &j);
    }
    const size_t blocks = tare__ceil_div(l->panel_count, GROUPED_MOST_PANELS);
    tare__thread_pool_run_ranges(pool, blocks, (thread_grain){1, blocks}, multiply_blocks, &j);
}
