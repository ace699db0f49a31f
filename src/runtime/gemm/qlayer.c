// SPDX-License-Identifier: Apache-2.0
// Chooses the implementation of a quantized layer, and runs it: depthwise kernels for depthwise
// convolutions, a product for everything else. A transposed convolution consists of several
// ordinary ones.
#include "runtime/gemm/qlayer.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "runtime/gemm/qdepthwise.h"
#include "runtime/gemm/qlibrary.h"
#include "runtime/gemm/qproduct.h"
#include "runtime/gemm/subconvolution.h"

// With at least this many subconvolutions per thread, threads divide the subconvolutions; otherwise
// they divide the rows of each one.
enum { SUBCONVOLUTIONS_PER_THREAD = 8, ALIGNMENT = 64 };

typedef struct packed_subconvolution {
    qdepthwise *depthwise; // exactly one of them is set
    qproduct *product;
} packed_subconvolution;

struct qlayer {
    qlibrary *library; // instead of a single product; both exist until one is chosen
    bool by_library;
    // Of an image that a run converts to unsigned values first; 0: it does not.
    size_t unsigned_bytes;
    size_t unsigned_channels;
    size_t subconvolution_count;
    packed_subconvolution subs[];
};

static bool needs_unsigned(const packed_subconvolution *p) {
    return p->product != NULL && tare__qproduct_needs_unsigned(p->product);
}

static tare_status pack(qlayer *l, const conv_split *split, const quantized_layer *layer,
                        const tare_tensor *x, const tare_tensor *y, isa_level isa,
                        tare_error *err) {
    for (size_t i = 0; i < l->subconvolution_count; i++) {
        const subconvolution of = tare__subconvolution_of(split, i);
        packed_subconvolution *p = &l->subs[i];
        TARE_TRY(tare__qdepthwise_create(layer, &of, x, y, isa, &p->depthwise, err));
        if (p->depthwise == NULL)
            TARE_TRY(tare__qproduct_create(layer, &of, x, y, isa, &p->product, err));
        if (!needs_unsigned(p)) continue;
        l->unsigned_bytes = tare__conv_image_quantized(&of.windows);
        l->unsigned_channels = of.windows.channels;
    }
    return TARE_OK;
}

isa_level tare__qlayer_level(const quantized_layer *layer, const tare_tensor *y, isa_level isa) {
    const size_t outs = (size_t)layer->out_channels;
    const size_t rows = (size_t)y->count / outs, depth = (size_t)layer->weight->count / outs;
    return tare__product_is_small(rows, depth, outs) ? tare__isa_without_tiles(isa) : isa;
}

tare_status tare__qlayer_create(const quantized_layer *layer, const tare_tensor *x,
                                const tare_tensor *y, isa_level isa, qlayer **out,
                                tare_error *err) {
    conv_split split;
    *out = NULL;
    if (tare__qlayer_refusal(layer, x) != NULL || !tare__conv_split_of(layer, x, &split))
        return TARE_OK;
    const size_t count = tare__subconvolution_count(&split);
    qlayer *l = tare__alloc_zeroed(1, sizeof *l + count * sizeof *l->subs);
    if (l == NULL) return tare__out_of_memory(err);
    l->subconvolution_count = count;
    const tare_status status = pack(l, &split, layer, x, y, isa, err);
    if (status == TARE_OK)
        *out = l;
    else
        tare__qlayer_destroy(l);
    return status;
}

void tare__qlayer_destroy(qlayer *layer) {
    if (layer == NULL) return;
    for (size_t i = 0; i < layer->subconvolution_count; i++) {
        tare__qdepthwise_destroy(layer->subs[i].depthwise);
        tare__qproduct_destroy(layer->subs[i].product);
    }
    tare__qlibrary_destroy(layer->library);
    tare__free(layer);
}

tare_status tare__qlayer_take_library(qlayer *layer, const quantized_layer *of,
                                      const tare_tensor *x, const tare_tensor *y, isa_level isa,
                                      size_t thread_count, bool *done, tare_error *err) {
    if (layer->subconvolution_count == 1 && layer->subs[0].product != NULL)
        TARE_TRY(tare__qlibrary_create(of, x, y, isa, thread_count, &layer->library, err));
    *done = layer->library != NULL;
    layer->by_library = *done;
    return TARE_OK;
}

void tare__qlayer_choose(qlayer *layer, bool library, bool drop_other) {
    layer->by_library = library && layer->library != NULL;
    if (!drop_other) return;
    if (layer->by_library) {
        tare__qproduct_destroy(layer->subs[0].product);
        layer->subs[0].product = NULL;
    } else {
        tare__qlibrary_destroy(layer->library);
        layer->library = NULL;
    }
}

static qlayer_form form_of(const packed_subconvolution *p) {
    return p->product != NULL ? tare__qproduct_form(p->product)
                              : tare__qdepthwise_form(p->depthwise);
}

qlayer_form tare__qlayer_form(const qlayer *layer) {
    if (layer->by_library) return tare__qlibrary_form(layer->library);
    qlayer_form form = form_of(&layer->subs[0]);
    form.subconvolution_count = layer->subconvolution_count;
    for (size_t i = 1; i < layer->subconvolution_count; i++) {
        const qlayer_form next = form_of(&layer->subs[i]);
        form.weight_bytes += next.weight_bytes;
        form.macs += next.macs;
    }
    return form;
}

const char *tare__qlayer_refusal(const quantized_layer *layer, const tare_tensor *x) {
    return tare__qproduct_refusal(layer, x); // it supports all layers that depthwise kernels do
}

void tare__qlayer_set_input(qlayer *layer, const qparams *weight, double scale,
                            int32_t zero_point) {
    tare__qproduct_set_input(layer->subs[0].product, weight, scale, zero_point);
}

bool tare__qlayer_adds(const qlayer *layer) {
    for (size_t i = 0; i < layer->subconvolution_count; i++)
        if (layer->subs[i].depthwise != NULL) return false;
    return true;
}

// --- running ---

static size_t scratch_of(const packed_subconvolution *p, size_t thread_count) {
    return p->product != NULL ? tare__qproduct_scratch_bytes(p->product, thread_count)
                              : tare__qdepthwise_scratch_bytes(p->depthwise, thread_count);
}

// The largest scratch size of any subconvolution.
static size_t subconvolution_scratch(const qlayer *layer, size_t thread_count) {
    size_t most = 0;
    for (size_t i = 0; i < layer->subconvolution_count; i++) {
        const size_t bytes = scratch_of(&layer->subs[i], thread_count);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static bool are_subconvolutions_shared(const qlayer *layer, size_t thread_count) {
    return layer->subconvolution_count >= thread_count * SUBCONVOLUTIONS_PER_THREAD;
}

bool tare__qlayer_takes_stride(const qlayer *layer) {
    return !layer->by_library;
}

static size_t unsigned_bytes(const qlayer *layer, size_t batch) {
    return tare__round_up(batch * layer->unsigned_bytes, ALIGNMENT);
}

size_t tare__qlayer_scratch_bytes(const qlayer *layer, size_t thread_count, size_t batch) {
    if (layer->by_library) return tare__qlibrary_scratch_bytes(layer->library, thread_count);
    return unsigned_bytes(layer, batch) + (are_subconvolutions_shared(layer, thread_count)
                                               ? thread_count * subconvolution_scratch(layer, 1)
                                               : subconvolution_scratch(layer, thread_count));
}

// A layer's input, whose pixels may lie apart, to unsigned quantized values beside each other.
typedef struct unsigned_copy {
    const uint8_t *x;
    size_t stride, channels;
    uint8_t *to;
} unsigned_copy;

static void copy_pixels(void *user, size_t first, size_t end, size_t worker) {
    const unsigned_copy *r = user;
    (void)worker;
    if (r->stride == r->channels) {
        tare__product_to_unsigned(r->x + first * r->stride, (end - first) * r->channels,
                                  r->to + first * r->channels);
        return;
    }
    for (size_t i = first; i < end; i++)
        tare__product_to_unsigned(r->x + i * r->stride, r->channels, r->to + i * r->channels);
}

// Of the whole batch, at the beginning of the scratch memory.
static void copy_input(const qlayer *layer, const qlayer_run *run) {
    enum { GRAIN_BYTES = 1 << 15 };
    const size_t channels = layer->unsigned_channels;
    unsigned_copy r = {.x = run->x,
                       .stride = run->x_stride != 0 ? run->x_stride : channels,
                       .channels = channels,
                       .to = run->scratch};
    const size_t bytes = run->batch * layer->unsigned_bytes;
    // For little data it is not worth waking threads.
    thread_pool *pool = tare__workspace_pool(run->space, bytes);
    tare__parallel(pool, bytes / channels, GRAIN_BYTES / channels + 1, copy_pixels, &r);
}

static void run_subconvolution(const packed_subconvolution *p, const qlayer_run *run) {
    if (p->product != NULL)
        tare__qproduct_run(p->product, run);
    else
        tare__qdepthwise_run(p->depthwise, run);
}

// The run of a subconvolution: its scratch follows the unsigned copy of the input, which it reads
// if its kernel needs unsigned values.
static qlayer_run run_of_subconvolution(const qlayer *layer, size_t sub, const qlayer_run *run) {
    qlayer_run own = *run;
    own.scratch = (unsigned char *)run->scratch + unsigned_bytes(layer, run->batch);
    if (!needs_unsigned(&layer->subs[sub])) return own;
    own.x = run->scratch;
    own.x_stride = 0;
    return own;
}

typedef struct subconvolutions_job {
    const qlayer *layer;
    const qlayer_run *run;
    size_t scratch; // scratch of a thread
} subconvolutions_job;

// Subconvolutions were separated when the layer was created, each with weights and scratch of its
// own: a task for each, not a loop that may be divided differently.
static void run_one(void *user, size_t sub, size_t worker) {
    const subconvolutions_job *job = user;
    const workspace alone = {0};
    qlayer_run run = run_of_subconvolution(job->layer, sub, job->run);
    run.space = &alone;
    run.scratch = (unsigned char *)run.scratch + worker * job->scratch;
    run_subconvolution(&job->layer->subs[sub], &run);
}

void tare__qlayer_run(const qlayer *layer, const qlayer_run *run) {
    const size_t threads = tare__thread_count(run->space->pool);
    if (layer->by_library) {
        tare__qlibrary_run(layer->library, run);
        return;
    }
    if (layer->unsigned_bytes > 0) copy_input(layer, run);
    if (layer->subconvolution_count > 1 && are_subconvolutions_shared(layer, threads)) {
        subconvolutions_job job = {layer, run, subconvolution_scratch(layer, 1)};
        tare__thread_pool_run(run->space->pool, layer->subconvolution_count, run_one, &job);
    } else {
        for (size_t i = 0; i < layer->subconvolution_count; i++) {
            const qlayer_run own = run_of_subconvolution(layer, i, run);
            run_subconvolution(&layer->subs[i], &own);
        }
    }
}
