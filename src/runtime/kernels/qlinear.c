// SPDX-License-Identifier: Apache-2.0
// Quantized linear: weights packed once, inputs per run, one kernel call.
#include "runtime/kernels/qlinear.h"

#include <string.h>

#include "core/alloc.h"
#include "runtime/kernels/qconstants.h"
#include "runtime/kernels/tile.h"

enum { ROW_STEP = 8 }; // rows that kernels take together

struct qlinear_plan {
    const linear_kernel *kernel;
    qconstants constants;
    size_t features, channels, depth; // depth: words of four features
    uint32_t *weights;
    bool fuses;
};

static const linear_kernel *find_kernel(isa_level isa) {
    const linear_kernel *k = tare__linear_kernels;
    while (k->needs > isa) k++; // ends: the last row needs nothing
    return k;
}

static uint32_t word_of(const uint8_t *bytes, size_t count) {
    uint32_t word = 0;
    for (size_t i = 0; i < 4 && i < count; i++) word |= (uint32_t)bytes[i] << 8 * i;
    return word;
}

static tare_status pack_weights(qlinear_plan *plan, const tare_tensor *w, tare_error *err) {
    const size_t lanes = plan->kernel->lanes, padded = tare__round_up(plan->channels, lanes);
    size_t words;
    if (!tare__mul_size(padded, plan->depth, &words) || words > SIZE_MAX / sizeof *plan->weights)
        return tare__out_of_memory(err);
    plan->weights = tare__alloc_aligned(words * sizeof *plan->weights, 64);
    if (plan->weights == NULL) return tare__out_of_memory(err);
    memset(plan->weights, 0, words * sizeof *plan->weights);
    for (size_t c = 0; c < plan->channels; c++) {
        const uint8_t *row = (const uint8_t *)w->data + c * plan->features;
        uint32_t *to = plan->weights + c / lanes * lanes * plan->depth + c % lanes;
        for (size_t d = 0; d < plan->depth; d++)
            to[d * lanes] = word_of(row + 4 * d, plan->features - 4 * d);
    }
    return TARE_OK;
}

tare_status tare__qlinear_plan_create(const quantized_layer *layer, const tare_tensor *x,
                                      const tare_tensor *y, isa_level isa, qlinear_plan **out,
                                      tare_error *err) {
    *out = NULL;
    if (!tare__qconstants_fit(layer, x) || layer->weight->count == 0) return TARE_OK;
    qlinear_plan *plan = tare__alloc_zeroed(1, sizeof *plan);
    if (plan == NULL) return tare__out_of_memory(err);
    plan->kernel = find_kernel(isa);
    plan->features = (size_t)layer->weight->shape[1];
    plan->channels = (size_t)layer->out_channels;
    plan->depth = (plan->features + 3) / 4;
    tare_status status = tare__qconstants_create(layer, x->q, y->q, &plan->constants, err);
    if (status == TARE_OK) status = pack_weights(plan, layer->weight, err);
    if (status != TARE_OK) {
        tare__qlinear_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return TARE_OK;
}

void tare__qlinear_plan_destroy(qlinear_plan *plan) {
    if (plan == NULL) return;
    tare__qconstants_release(&plan->constants);
    tare__free_aligned(plan->weights);
    tare__free(plan);
}

const char *tare__qlinear_kernel_name(const qlinear_plan *plan) {
    return plan->kernel->name;
}

// One row of codes to words; features beyond the last are 0, and so are their weights.
static void pack_row(const qlinear_plan *plan, const uint8_t *x, uint32_t *out) {
    const uint32_t flip = plan->constants.flip * 0x01010101u;
    for (size_t d = 0; d < plan->depth; d++) {
        const uint32_t word = word_of(x + 4 * d, plan->features - 4 * d) ^ flip;
        if (plan->kernel->words == 1) {
            out[d] = word;
        } else { // (x0, x2) and (x1, x3) in 16 bits each
            out[2 * d] = word & 0x00FF00FFu;
            out[2 * d + 1] = word >> 8 & 0x00FF00FFu;
        }
    }
}

// The rows and channels of one run, in parts of `row_step` by `channel_step`.
typedef struct linear_job {
    const qlinear_plan *plan;
    const uint32_t *packed;
    uint8_t *y; // codes, or
    float *real;
    size_t rows, row_step, channel_step, channel_parts;
} linear_job;

static void run_part(void *user, size_t part, size_t worker) {
    const linear_job *job = user;
    const qlinear_plan *plan = job->plan;
    const size_t row = part / job->channel_parts * job->row_step;
    const size_t channel = part % job->channel_parts * job->channel_step;
    const size_t rows = job->rows - row, channels = plan->channels - channel;
    const size_t at = row * plan->channels + channel;
    (void)worker;
    const linear_tile tile = {
        .x = job->packed + row * plan->depth * plan->kernel->words,
        .w = plan->weights + channel * plan->depth,
        .depth = plan->depth,
        .rows = rows < job->row_step ? rows : job->row_step,
        .channels = channels < job->channel_step ? channels : job->channel_step,
        .epilogue = tare__qconstants_epilogue(&plan->constants, (int64_t)channel),
        .y = job->y != NULL ? job->y + at : NULL,
        .real = job->real != NULL ? job->real + at : NULL,
        .fuses = plan->fuses,
        .y_stride = plan->channels,
    };
    plan->kernel->run(&tile);
}

// Each thread takes a share of the channels, or of the rows where there are more of those.
static void run_parts(linear_job *job, thread_pool *pool) {
    const size_t count = tare__thread_count(pool), channels = job->plan->channels;
    const bool by_rows = job->rows > channels;
    job->row_step = by_rows ? tare__share(job->rows, count, ROW_STEP) : job->rows;
    job->channel_step = by_rows ? channels : tare__share(channels, count, job->plan->kernel->lanes);
    job->channel_parts = tare__ceil_div(channels, job->channel_step);
    const size_t row_parts = tare__ceil_div(job->rows, job->row_step);
    tare__thread_pool_run(pool, row_parts * job->channel_parts, run_part, job);
}

void tare__qlinear_set_input(qlinear_plan *plan, const qparams *weight, double scale,
                             int32_t zero_point, bool fuses) {
    plan->fuses = fuses;
    tare__qconstants_set_input(&plan->constants, weight, scale, zero_point);
}

tare_status tare__qlinear_run_codes(const qlinear_plan *plan, const uint8_t *x, size_t rows,
                                    tare_tensor *y, workspace *space, tare_error *err) {
    const size_t row = plan->depth * plan->kernel->words;
    size_t words;
    if (rows == 0) return TARE_OK;
    if (!tare__mul_size(rows, row, &words) || words > SIZE_MAX / sizeof(uint32_t))
        return tare__out_of_memory(err);
    uint32_t *packed = tare__scratch_reserve(&space->memory, words * sizeof *packed);
    if (packed == NULL) return tare__out_of_memory(err);
    for (size_t n = 0; n < rows; n++) pack_row(plan, x + n * plan->features, packed + n * row);
    const bool gives_floats = y->dtype == TARE_FLOAT32;
    linear_job job = {.plan = plan,
                      .packed = packed,
                      .y = gives_floats ? NULL : y->data,
                      .real = gives_floats ? tare__f32(y) : NULL,
                      .rows = rows};
    run_parts(&job, tare__workspace_pool(space, rows * plan->channels * plan->features));
    return TARE_OK;
}

tare_status tare__qlinear_run(const qlinear_plan *plan, const tare_tensor *x, tare_tensor *y,
                              workspace *space, tare_error *err) {
    return tare__qlinear_run_codes(plan, x->data, (size_t)x->count / plan->features, y, space, err);
}
