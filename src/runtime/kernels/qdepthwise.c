// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution: a plane is padded, and each of its output channels slides over it.
#include "runtime/kernels/qdepthwise.h"

#include <string.h>

#include "core/alloc.h"
#include "runtime/kernels/conv_shape.h"
#include "runtime/kernels/qconstants.h"
#include "runtime/kernels/tile.h"

enum {
    MOST_OUTS = 3,     // of an input channel; more share a gathered matrix
    MOST_DEPTH = 1024, // words
    PARTS_PER_THREAD = 4,
};

struct qdepthwise_plan {
    const depthwise_kernel *kernel;
    qconstants constants;
    conv_geometry g;
    conv_shape shape;
    size_t outs;       // of an input channel
    size_t depth;      // words of four taps
    size_t *offset;    // [depth] from the place of an output pixel to the word's first tap
    uint32_t *weights; // [out_channels][depth][words]
    size_t stage_bytes;
};

// --- planning ---

static size_t words_of_row(const conv_geometry *g) {
    return tare__ceil_div((size_t)g->kernel[W], 4);
}

static const depthwise_kernel *find_kernel(const conv_geometry *g, isa_level isa) {
    const uint64_t reach = (uint64_t)g->stride[W] + (uint64_t)g->dilation[W];
    const depthwise_kernel *k = tare__depthwise_kernels;
    while (k->needs > isa || k->reach < reach) k++; // ends: the last row needs nothing
    return k;
}

static bool fits(const quantized_layer *layer, const tare_tensor *x) {
    const conv_geometry *g = &layer->conv;
    return tare__qconstants_fit(layer, x) && !layer->adds && !g->is_transposed && !g->reflects &&
           g->dims <= 2 && x->count > 0 && g->groups == g->in_channels && g->groups > 1 &&
           g->out_channels <= MOST_OUTS * g->groups && g->kernel[H] <= MOST_DEPTH &&
           g->kernel[W] <= MOST_DEPTH && (size_t)g->kernel[H] * words_of_row(g) <= MOST_DEPTH;
}

static void pack_channel(const qdepthwise_plan *p, const int8_t *w, uint32_t *to) {
    const size_t width = (size_t)p->g.kernel[W], columns = words_of_row(&p->g);
    for (size_t d = 0; d < p->depth; d++, to += p->kernel->words) {
        const size_t row = d / columns, first = d % columns * 4;
        int8_t bytes[4] = {0};
        for (size_t i = 0; i < 4 && first + i < width; i++) bytes[i] = w[row * width + first + i];
        tare__store_weights(bytes, p->kernel->words, to);
    }
}

static tare_status pack(qdepthwise_plan *p, const tare_tensor *weight, tare_error *err) {
    const size_t columns = words_of_row(&p->g), channel = p->depth * p->kernel->words;
    const size_t taps = (size_t)(weight->count / weight->shape[0]);
    p->offset = tare__alloc_zeroed(p->depth, sizeof *p->offset);
    p->weights = tare__alloc_zeroed((size_t)p->g.out_channels * channel, sizeof *p->weights);
    if (p->offset == NULL || p->weights == NULL) return tare__out_of_memory(err);
    for (size_t d = 0; d < p->depth; d++)
        p->offset[d] = d / columns * (size_t)p->g.dilation[H] * p->shape.staged_width +
                       d % columns * 4 * (size_t)p->g.dilation[W];
    for (size_t o = 0; o < (size_t)p->g.out_channels; o++)
        pack_channel(p, (const int8_t *)weight->data + o * taps, p->weights + o * channel);
    return TARE_OK;
}

static tare_status plan_layer(qdepthwise_plan *p, const quantized_layer *layer,
                              const tare_tensor *x, const tare_tensor *y, isa_level isa,
                              tare_error *err) {
    p->g = layer->conv;
    p->outs = (size_t)(p->g.out_channels / p->g.groups);
    p->depth = (size_t)p->g.kernel[H] * words_of_row(&p->g);
    p->kernel = find_kernel(&p->g, isa);
    TARE_TRY(tare__conv_shape_of(&p->g, x, &p->shape, err));
    if (!tare__mul_size(p->shape.staged_height, p->shape.staged_width, &p->stage_bytes) ||
        p->stage_bytes > SIZE_MAX / 2)
        return tare__out_of_memory(err);
    // The idle taps of a row's last word are read too.
    p->stage_bytes =
        tare__round_up(p->stage_bytes + 4 * (size_t)p->g.dilation[W] + DEPTHWISE_SLACK, 64);
    TARE_TRY(tare__qconstants_create(layer, x->q, y->q, &p->constants, err));
    return pack(p, layer->weight, err);
}

tare_status tare__qdepthwise_plan_create(const quantized_layer *layer, const tare_tensor *x,
                                         const tare_tensor *y, isa_level isa, qdepthwise_plan **out,
                                         tare_error *err) {
    *out = NULL;
    if (!fits(layer, x)) return TARE_OK;
    qdepthwise_plan *plan = tare__alloc_zeroed(1, sizeof *plan);
    if (plan == NULL) return tare__out_of_memory(err);
    const tare_status status = plan_layer(plan, layer, x, y, isa, err);
    if (status != TARE_OK) {
        tare__qdepthwise_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return TARE_OK;
}

void tare__qdepthwise_plan_destroy(qdepthwise_plan *plan) {
    if (plan == NULL) return;
    tare__qconstants_release(&plan->constants);
    tare__free(plan->weights);
    tare__free(plan->offset);
    tare__free(plan);
}

const char *tare__qdepthwise_kernel_name(const qdepthwise_plan *plan) {
    return plan->kernel->name;
}

// --- running ---

typedef struct depthwise_job {
    const qdepthwise_plan *plan;
    const uint8_t *x;
    uint8_t *y; // codes, or
    float *real;
    unsigned char *memory;     // a padded plane for each thread
    size_t planes, plane_step; // of all samples; those of a part
} depthwise_job;

static void run_plane(const depthwise_job *job, size_t plane, uint8_t *stage) {
    const qdepthwise_plan *p = job->plan;
    const conv_shape *s = &p->shape;
    const size_t first = plane % (size_t)p->g.groups * p->outs, size = s->out_height * s->out_width;
    tare__stage_plane(s, job->x + plane * s->height * s->width, p->constants.flip,
                      p->constants.zero_code, stage);
    for (size_t o = 0; o < p->outs; o++) {
        const size_t at = (plane * p->outs + o) * size;
        const depthwise_tile tile = {
            .x = stage,
            .x_stride = (size_t)p->g.stride[H] * s->staged_width,
            .stride = (size_t)p->g.stride[W],
            .dilation = (size_t)p->g.dilation[W],
            .offset = p->offset,
            .w = p->weights + (first + o) * p->depth * p->kernel->words,
            .depth = p->depth,
            .height = s->out_height,
            .width = s->out_width,
            .epilogue = tare__qconstants_epilogue(&p->constants, (int64_t)(first + o)),
            .y = job->y != NULL ? job->y + at : NULL,
            .real = job->real != NULL ? job->real + at : NULL,
        };
        p->kernel->run(&tile);
    }
}

static void run_part(void *user, size_t part, size_t worker) {
    const depthwise_job *job = user;
    const size_t first = part * job->plane_step, last = first + job->plane_step;
    for (size_t i = first; i < last && i < job->planes; i++)
        run_plane(job, i, job->memory + worker * job->plan->stage_bytes);
}

tare_status tare__qdepthwise_run(const qdepthwise_plan *p, const tare_tensor *x, tare_tensor *y,
                                 workspace *space, tare_error *err) {
    // A word counts as much as its 16 lanes would in a matrix product.
    thread_pool *pool = tare__workspace_pool(space, (size_t)y->count * p->depth * 16);
    const size_t threads = tare__thread_count(pool);
    const bool gives_floats = y->dtype == TARE_FLOAT32;
    depthwise_job job = {.plan = p,
                         .x = x->data,
                         .y = gives_floats ? NULL : y->data,
                         .real = gives_floats ? tare__f32(y) : NULL};
    size_t bytes;
    if (y->count == 0) return TARE_OK;
    if (!tare__mul_size(p->stage_bytes, threads, &bytes)) return tare__out_of_memory(err);
    job.memory = tare__scratch_reserve(&space->memory, bytes);
    if (job.memory == NULL) return tare__out_of_memory(err);
    job.planes = (size_t)x->count / (p->shape.height * p->shape.width);
    job.plane_step = tare__share(job.planes, PARTS_PER_THREAD * threads, 1);
    tare__thread_pool_run(pool, tare__ceil_div(job.planes, job.plane_step), run_part, &job);
    return TARE_OK;
}
