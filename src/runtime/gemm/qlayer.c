// SPDX-License-Identifier: Apache-2.0
// Chooses what computes a quantized layer, and runs it. Depthwise convolutions have kernels of
// their own; all else is a product. A transposed convolution is several ordinary ones.
#include "runtime/gemm/qlayer.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "runtime/gemm/qdepthwise.h"
#include "runtime/gemm/qlibrary.h"
#include "runtime/gemm/qproduct.h"
#include "runtime/gemm/subconvolution.h"

// Threads share subconvolutions where there are as many for each; else they share every
// subconvolution's rows.
enum { SUBCONVOLUTIONS_PER_THREAD = 8, ALIGNMENT = 64 };

typedef struct packed_subconvolution {
    qdepthwise *depthwise; // one of them
    qproduct *product;
} packed_subconvolution;

struct qlayer {
    qlibrary *library; // in place of a single product; while it is chosen, there are both
    bool by_library;
    size_t
        raised_bytes; // of an image whose quantized values a run makes unsigned first; 0: none are
    size_t raised_channels;
    size_t subconvolution_count;
    packed_subconvolution subs[];
};

static bool wants_raised(const packed_subconvolution *p) {
    return p->product != NULL && tare__qproduct_wants_raised(p->product);
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
        if (!wants_raised(p)) continue;
        l->raised_bytes = tare__conv_image_quantized(&of.windows);
        l->raised_channels = of.windows.channels;
    }
    return TARE_OK;
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
    return tare__qproduct_refusal(layer, x); // it covers what depthwise kernels do
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

// The most that any subconvolution needs.
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

static size_t raised_bytes(const qlayer *layer, size_t batch) {
    return tare__round_up(batch * layer->raised_bytes, ALIGNMENT);
}

size_t tare__qlayer_scratch_bytes(const qlayer *layer, size_t thread_count, size_t batch) {
    if (layer->by_library) return tare__qlibrary_scratch_bytes(layer->library, thread_count);
    return raised_bytes(layer, batch) + (are_subconvolutions_shared(layer, thread_count)
                                             ? thread_count * subconvolution_scratch(layer, 1)
                                             : subconvolution_scratch(layer, thread_count));
}

// A layer's input, whose pixels may lie apart, to unsigned quantized values beside each other.
typedef struct raising {
    const uint8_t *x;
    size_t stride, channels;
    uint8_t *to;
} raising;

static void raise_pixels(void *user, size_t first, size_t end, size_t worker) {
    const raising *r = user;
    (void)worker;
    if (r->stride == r->channels) {
        tare__product_raise(r->x + first * r->stride, (end - first) * r->channels,
                            r->to + first * r->channels);
        return;
    }
    for (size_t i = first; i < end; i++)
        tare__product_raise(r->x + i * r->stride, r->channels, r->to + i * r->channels);
}

// Of the whole batch, at the beginning of the scratch memory.
static void raise_input(const qlayer *layer, const qlayer_run *run) {
    enum { GRAIN_BYTES = 1 << 15 };
    const size_t channels = layer->raised_channels;
    raising r = {.x = run->x,
                 .stride = run->x_stride != 0 ? run->x_stride : channels,
                 .channels = channels,
                 .to = run->scratch};
    const size_t bytes = run->batch * layer->raised_bytes;
    // Little is not worth waking threads for.
    thread_pool *pool = tare__workspace_pool(run->space, bytes);
    tare__parallel(pool, bytes / channels, GRAIN_BYTES / channels + 1, raise_pixels, &r);
}

static void run_subconvolution(const packed_subconvolution *p, const qlayer_run *run) {
    if (p->product != NULL)
        tare__qproduct_run(p->product, run);
    else
        tare__qdepthwise_run(p->depthwise, run);
}

// The run as a subconvolution sees it: the memory behind the raised input, and that where it wants
// it.
static qlayer_run run_of_subconvolution(const qlayer *layer, size_t sub, const qlayer_run *run) {
    qlayer_run own = *run;
    own.scratch = (unsigned char *)run->scratch + raised_bytes(layer, run->batch);
    if (!wants_raised(&layer->subs[sub])) return own;
    own.x = run->scratch;
    own.x_stride = 0;
    return own;
}

typedef struct subconvolutions_job {
    const qlayer *layer;
    const qlayer_run *run;
    size_t scratch; // of a thread
} subconvolutions_job;

// Subconvolutions were cut when the layer was made, each with weights and scratch memory of its
// own: a task each, not a loop that may be cut anew.
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
    if (layer->raised_bytes > 0) raise_input(layer, run);
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
