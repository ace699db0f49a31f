// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution: every tap of a window is a line of channels. The addresses of some output
// pixels' taps are listed, and all blocks of channels meet them.
#include "runtime/kernels/qdepthwise.h"

#include <string.h>

#include "core/alloc.h"
#include "runtime/kernels/conv_shape.h"
#include "runtime/kernels/depthwise.h"
#include "runtime/kernels/qconstants.h"
#include "runtime/kernels/qlayer.h"

enum {
    PIXELS = 32, // whose addresses are listed together
    PARTS_PER_THREAD = 4,
    ALIGNMENT = 64,
    MOST_TAPS = 1 << 12,
};

struct qdepthwise {
    const depthwise_kernel *kernel;
    qconstants constants;
    conv_shape shape;
    conv_windows windows;
    size_t channels, blocks, fours; // of taps
    bool is_signed;                 // the result
    uint32_t *weights;              // [blocks][fours][DEPTHWISE_BLOCK], in the kernel's order
    depthwise_constants *ordered;   // [blocks]
};

// --- planning ---

static bool fits(const quantized_layer *layer, const tare_tensor *x) {
    const conv_geometry *g = &layer->conv;
    return layer->weight->ndim > 2 && !layer->adds && tare__qconstants_fit(layer, x) &&
           !g->is_transposed && !g->reflects && g->dims <= 2 && x->ndim == g->dims + 2 &&
           x->count > 0 && g->groups == g->in_channels && g->groups > 1 &&
           g->out_channels == g->groups && g->kernel[H] <= MOST_TAPS && g->kernel[W] <= MOST_TAPS &&
           g->kernel[H] * g->kernel[W] <= MOST_TAPS;
}

static void pack_channel(qdepthwise *p, const int8_t *w, size_t channel) {
    const size_t block = channel / DEPTHWISE_BLOCK;
    const size_t place = tare__depthwise_place(p->kernel->quads, channel % DEPTHWISE_BLOCK);
    const tile_epilogue e = tare__qconstants_epilogue(&p->constants, (int64_t)channel);
    depthwise_constants *own = &p->ordered[block];
    uint32_t *to = p->weights + block * p->fours * DEPTHWISE_BLOCK + place;
    for (size_t tap = 0; tap < tare__conv_window_taps(&p->windows); tap++)
        to[tap / DEPTHWISE_WORD * DEPTHWISE_BLOCK] |= (uint32_t)(uint8_t)w[tap]
                                                      << tap % DEPTHWISE_WORD * 8;
    own->start[place] = e.start[0];
    own->multiplier[place] = e.multiplier[0];
    own->bias[place] = e.bias[0];
}

static tare_status pack(qdepthwise *p, const tare_tensor *weight, tare_error *err) {
    const size_t taps = tare__conv_window_taps(&p->windows);
    p->fours = tare__ceil_div(taps, DEPTHWISE_WORD);
    p->blocks = tare__ceil_div(p->channels, DEPTHWISE_BLOCK);
    p->weights = tare__alloc_zeroed(p->blocks, p->fours * DEPTHWISE_BLOCK * sizeof *p->weights);
    p->ordered = tare__alloc_zeroed(p->blocks, sizeof *p->ordered);
    if (p->weights == NULL || p->ordered == NULL) return tare__out_of_memory(err);
    for (size_t c = 0; c < p->channels; c++)
        pack_channel(p, (const int8_t *)weight->data + c * taps, c);
    return TARE_OK;
}

static tare_status plan_layer(qdepthwise *p, const quantized_layer *layer, const tare_tensor *x,
                              const tare_tensor *y, tare_error *err) {
    TARE_TRY(tare__conv_shape_of(&layer->conv, x, &p->shape, err));
    p->windows = tare__conv_windows_of(&layer->conv, &p->shape);
    p->channels = (size_t)layer->conv.in_channels;
    p->is_signed = y->dtype == TARE_QINT8;
    TARE_TRY(tare__qconstants_create(layer, x->q, y->q, &p->constants, err));
    return pack(p, layer->weight, err);
}

tare_status tare__qdepthwise_create(const quantized_layer *layer, const tare_tensor *x,
                                    const tare_tensor *y, isa_level isa, qdepthwise **out,
                                    tare_error *err) {
    *out = NULL;
    if (!fits(layer, x)) return TARE_OK;
    qdepthwise *p = tare__alloc_zeroed(1, sizeof *p);
    if (p == NULL) return tare__out_of_memory(err);
    p->kernel = tare__depthwise_choose(isa);
    const tare_status status = plan_layer(p, layer, x, y, err);
    if (status != TARE_OK) {
        tare__qdepthwise_destroy(p);
        return status;
    }
    *out = p;
    return TARE_OK;
}

void tare__qdepthwise_destroy(qdepthwise *p) {
    if (p == NULL) return;
    tare__qconstants_release(&p->constants);
    tare__free(p->weights);
    tare__free(p->ordered);
    tare__free(p);
}

qlayer_form tare__qdepthwise_form(const qdepthwise *p) {
    return (qlayer_form){
        .kernel = p->kernel->name,
        .is_depthwise = true,
        .weight_bytes = p->blocks * p->fours * DEPTHWISE_BLOCK * sizeof *p->weights,
        .macs = p->shape.out_height * p->shape.out_width * p->channels *
                tare__conv_window_taps(&p->windows),
    };
}

// --- running ---

static size_t address_bytes(const qdepthwise *p) {
    return tare__round_up(PIXELS * p->fours * DEPTHWISE_WORD * sizeof(uint8_t *), ALIGNMENT);
}
static size_t line_bytes(const qdepthwise *p) {
    return tare__round_up(p->channels, ALIGNMENT);
}

size_t tare__qdepthwise_scratch_bytes(const qdepthwise *p, size_t thread_count) {
    return line_bytes(p) + thread_count * address_bytes(p);
}

typedef struct depthwise_job {
    const qdepthwise *p;
    const qlayer_run *run;
    unsigned char *memory; // a line of zero points, and a slice for each thread
    size_t pixels, step;   // of all images; of a part
} depthwise_job;

static void run_pixels(const depthwise_job *job, size_t first, size_t count,
                       const uint8_t **taps_of) {
    const qdepthwise *p = job->p;
    const size_t taps = p->fours * DEPTHWISE_WORD;
    const window_list list = {.images = job->run->x,
                              .border = job->memory,
                              .first = first,
                              .count = count,
                              .pixel_step = taps,
                              .tap_step = 1};
    for (size_t i = 0; i < count * taps; i++)
        taps_of[i] = job->memory; // idle taps meet weights of 0
    tare__conv_windows_list(&p->windows, &list, taps_of);
    for (size_t b = 0; b < p->blocks; b++) {
        const size_t channel = b * DEPTHWISE_BLOCK, left = p->channels - channel;
        const size_t at = first * p->channels + channel;
        const depthwise_tile tile = {
            .x = taps_of,
            .first = channel,
            .pixels = count,
            .fours = p->fours,
            .flip = p->constants.flip,
            .w = p->weights + b * p->fours * DEPTHWISE_BLOCK,
            .requant = p->constants.requant,
            .constants = &p->ordered[b],
            .is_signed = p->is_signed,
            .channels = left < DEPTHWISE_BLOCK ? left : DEPTHWISE_BLOCK,
            .y = job->run->y != NULL ? job->run->y + at : NULL,
            .real = job->run->real != NULL ? job->run->real + at : NULL,
            .y_stride = p->channels,
        };
        p->kernel->run(&tile);
    }
}

static void run_part(void *user, size_t part, size_t worker) {
    const depthwise_job *job = user;
    const size_t first = part * job->step;
    const size_t last = first + job->step < job->pixels ? first + job->step : job->pixels;
    unsigned char *slice = job->memory + line_bytes(job->p) + worker * address_bytes(job->p);
    for (size_t i = first; i < last; i += PIXELS)
        run_pixels(job, i, last - i < PIXELS ? last - i : PIXELS, (const uint8_t **)(void *)slice);
}

void tare__qdepthwise_run(const qdepthwise *p, const qlayer_run *run) {
    const size_t pixels = run->batch * p->shape.out_height * p->shape.out_width;
    // Four taps of a channel cost about as much as 16 multiply-accumulates of a product.
    thread_pool *pool = tare__workspace_pool(run->space, pixels * p->channels * p->fours * 16);
    depthwise_job job = {.p = p, .run = run, .memory = run->scratch, .pixels = pixels};
    job.step = tare__share(pixels, PARTS_PER_THREAD * tare__thread_count(pool), PIXELS);
    memset(run->scratch, p->constants.zero_code ^ p->constants.flip, line_bytes(p));
    if (pixels > 0) tare__thread_pool_run(pool, tare__ceil_div(pixels, job.step), run_part, &job);
}
