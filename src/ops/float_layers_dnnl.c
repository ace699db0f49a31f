// SPDX-License-Identifier: Apache-2.0
// Float layers by oneDNN 2.x, through its C API. Everything is compiled for channels last: on the
// processors measured its kernels for that order are as fast as those for its own blocks of
// channels, and elementwise neighbours, pooling and views need no special form of it.
//
// Threads are ours: a layer is cut into parts (bands of rows of the output), each a primitive of
// its own for one thread. Debian's oneDNN would take libgomp's threads, which spin while they wait
// and ruin every other thread on a machine that has no core to spare for them.
#include "ops/float_layers.h"

#include <string.h>

#include "core/alloc.h"
#include "core/derived.h"
#include "ops/one_thread.h"

#ifdef TARE_HAVE_DNNL
#include <oneapi/dnnl/dnnl.h>

// Cutting a layer of fewer multiply-accumulates costs more than it saves.
enum { LEAST_SHARED_MACS = 1 << 20, MOST_PARTS = 64 };

// Tells our packed weights from what others make of a tensor.
#define WEIGHTS_TAG UINT64_C(0x646e6e6c666c6f61)

// Fewer multiply-accumulates with an element are not worth rounding it to bfloat16 first.
enum { LEAST_BF16_MACS = 32 };

// What a primitive works in. One per part: parts of different layers never run at once.
typedef struct work_memory {
    void *data;
    size_t size;
} work_memory;

struct float_layers {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    thread_pool *pool; // lent
    size_t thread_count;
    bool uses_bf16;
    // [thread_count + 1]: the parts of a layer, and the rest of a batch. narrow: inputs in
    // bfloat16.
    work_memory *work, *narrow;
};

enum { SRC, WEIGHTS, BIAS, DST, WORK, MEMORIES };

// Weights in the order that a primitive wants. Those of a model hang on its tensor, for all who
// need them so; others are a part's own.
typedef struct packed_weights {
    derived_thing base; // `of` NULL: a part's own
    dnnl_memory_desc_t desc;
    void *data;
} packed_weights;

typedef struct float_part {
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[MEMORIES]; // SRC, WEIGHTS, DST and WORK point to others' data
    dnnl_primitive_t narrowing;     // of `wide` to SRC; NULL: SRC is what is given
    dnnl_memory_t wide;
    packed_weights *weights; // reference owned; NULL: another part's
    void *bias;
    bool lends_weights;       // memory[WEIGHTS] is the first part's
    int64_t x_first, y_first; // elements
    size_t times;             // it runs so often, each time one step further
    int64_t x_step, y_step;
} float_part;

struct float_layer {
    float_layers *shared;
    size_t part_count;
    float_part parts[];
};

static tare_status status_of(dnnl_status_t status, tare_error *err) {
    if (status == dnnl_success) return TARE_OK;
    if (status == dnnl_out_of_memory) return tare__out_of_memory(err);
    return tare__fail(err, TARE_UNSUPPORTED, "oneDNN refuses a float layer (status %d)",
                      (int)status);
}
#define DNNL_TRY(call) TARE_TRY(status_of((call), err))

// oneDNN also emulates it, slower than it computes float32.
static tare_status check_bf16(bool uses_bf16, tare_error *err) {
    const unsigned has = (unsigned)dnnl_get_effective_cpu_isa();
    const unsigned needed = (unsigned)dnnl_cpu_isa_avx512_core_bf16;
    if (!uses_bf16 || (has & needed) == needed) return TARE_OK;
    return tare__fail(err, TARE_UNSUPPORTED,
                      "bfloat16: this machine lacks its instructions (AVX512-BF16)");
}

tare_status tare__float_layers_create(thread_pool *pool, bool uses_bf16, float_layers **out,
                                      tare_error *err) {
    TARE_TRY(check_bf16(uses_bf16, err));
    float_layers *l = tare__alloc_zeroed(1, sizeof *l);
    if (l == NULL) return tare__out_of_memory(err);
    l->pool = pool;
    l->uses_bf16 = uses_bf16;
    l->thread_count = tare__thread_count(pool);
    l->work = tare__alloc_zeroed(l->thread_count + 1, sizeof *l->work);
    l->narrow = tare__alloc_zeroed(l->thread_count + 1, sizeof *l->narrow);
    dnnl_status_t status = l->work != NULL && l->narrow != NULL ? dnnl_success : dnnl_out_of_memory;
    if (status == dnnl_success) status = dnnl_engine_create(&l->engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = dnnl_stream_create(&l->stream, l->engine, dnnl_stream_default_flags);
    if (status != dnnl_success) {
        tare__float_layers_destroy(l);
        return status_of(status, err);
    }
    *out = l;
    return TARE_OK;
}

static void free_work(work_memory *work, size_t count) {
    for (size_t i = 0; work != NULL && i < count; i++) tare__free_aligned(work[i].data);
    tare__free(work);
}

void tare__float_layers_destroy(float_layers *l) {
    if (l == NULL) return;
    if (l->stream != NULL) dnnl_stream_destroy(l->stream);
    if (l->engine != NULL) dnnl_engine_destroy(l->engine);
    free_work(l->work, l->thread_count + 1);
    free_work(l->narrow, l->thread_count + 1);
    tare__free(l);
}

// --- what follows a layer ---

static const dnnl_alg_kind_t algorithms[EPILOGUE_KIND_COUNT] = {
    [EPILOGUE_ADD] = dnnl_alg_kind_undef,       [EPILOGUE_RELU] = dnnl_eltwise_relu,
    [EPILOGUE_CLIP] = dnnl_eltwise_clip,        [EPILOGUE_LEAKY] = dnnl_eltwise_relu,
    [EPILOGUE_SIGMOID] = dnnl_eltwise_logistic, [EPILOGUE_TANH] = dnnl_eltwise_tanh,
    [EPILOGUE_SILU] = dnnl_eltwise_swish,       [EPILOGUE_HARDSWISH] = dnnl_eltwise_hardswish,
    [EPILOGUE_GELU] = dnnl_eltwise_gelu_erf,
};

static tare_status append_epilogue(dnnl_post_ops_t ops, const float_epilogue *e, tare_error *err) {
    for (size_t i = 0; i < e->count; i++) {
        const epilogue_kind kind = e->steps[i].kind;
        if (kind == EPILOGUE_ADD)
            DNNL_TRY(dnnl_post_ops_append_sum(ops, 1.0F));
        else
            DNNL_TRY(dnnl_post_ops_append_eltwise(ops, 1.0F, algorithms[kind], e->steps[i].alpha,
                                                  e->steps[i].beta));
    }
    return TARE_OK;
}

static tare_status create_attributes(const float_epilogue *e, dnnl_primitive_attr_t *out,
                                     tare_error *err) {
    dnnl_post_ops_t ops = NULL;
    DNNL_TRY(dnnl_primitive_attr_create(out));
    // The library's own work memory belongs to the thread that made a primitive.
    DNNL_TRY(dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user));
    tare_status status = status_of(dnnl_post_ops_create(&ops), err);
    if (status != TARE_OK) return status;
    status = append_epilogue(ops, e, err);
    if (status == TARE_OK) status = status_of(dnnl_primitive_attr_set_post_ops(*out, ops), err);
    dnnl_post_ops_destroy(ops);
    return status;
}

// --- layers ---

// A layer to be: its memories as the caller gives them.
typedef struct form {
    dnnl_memory_desc_t given[MEMORIES]; // of the weights: as they come
    dnnl_memory_desc_t wanted_weights;  // in any order
    bool is_bf16;                       // weights and input are rounded, sums and output are not
    bool is_band;                       // its weights are those of the other parts
    const float *w, *bias;              // as they come; bias NULL: none
    const tare_tensor *model_weights;   // w lies in it, and others may want it packed; NULL: no
} form;

static tare_status create_memory(const float_layers *l, dnnl_memory_t *memory,
                                 const dnnl_memory_desc_t *desc, void **data, tare_error *err) {
    if (data != NULL) {
        *data = tare__alloc_aligned(dnnl_memory_desc_get_size(desc), 64);
        if (*data == NULL) return tare__out_of_memory(err);
    }
    DNNL_TRY(dnnl_memory_create(memory, desc, l->engine, data != NULL ? *data : DNNL_MEMORY_NONE));
    return TARE_OK;
}

static tare_status reorder(const float_layers *l, dnnl_memory_t from, dnnl_memory_t to,
                           tare_error *err) {
    const dnnl_memory_desc_t *source, *target;
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t primitive;
    DNNL_TRY(dnnl_memory_get_memory_desc(from, &source));
    DNNL_TRY(dnnl_memory_get_memory_desc(to, &target));
    DNNL_TRY(dnnl_reorder_primitive_desc_create(&pd, source, l->engine, target, l->engine, NULL));
    dnnl_status_t status = dnnl_primitive_create(&primitive, pd);
    dnnl_primitive_desc_destroy(pd);
    DNNL_TRY(status);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    status = dnnl_primitive_execute(primitive, l->stream, 2, args);
    if (status == dnnl_success) status = dnnl_stream_wait(l->stream);
    dnnl_primitive_destroy(primitive);
    DNNL_TRY(status);
    return TARE_OK;
}

// oneDNN takes what it only reads without const.
static tare_status pack(const float_layers *l, const dnnl_memory_desc_t *given, const float *data,
                        dnnl_memory_t to, tare_error *err) {
    dnnl_memory_t from = NULL;
    DNNL_TRY(dnnl_memory_create(&from, given, l->engine, (void *)data));
    const tare_status status = reorder(l, from, to, err);
    dnnl_memory_destroy(from);
    return status;
}

// --- packed weights ---

static void destroy_weights(derived_thing *thing) {
    packed_weights *w = (packed_weights *)(void *)thing;
    tare__free_aligned(w->data);
    tare__free(w);
}

static void release_weights(packed_weights *w) {
    if (w == NULL) return;
    if (w->base.of != NULL)
        tare__derived_release(&w->base);
    else
        destroy_weights(&w->base);
}

typedef struct weights_request {
    const float_layers *layers;
    const form *form;
    const dnnl_memory_desc_t *wanted;
} weights_request;

static tare_status fill_packed(const weights_request *r, packed_weights *w, tare_error *err) {
    dnnl_memory_t memory = NULL;
    w->base.destroy = destroy_weights;
    w->desc = *r->wanted;
    tare_status status = create_memory(r->layers, &memory, r->wanted, &w->data, err);
    if (status == TARE_OK)
        status = pack(r->layers, &r->form->given[WEIGHTS], r->form->w, memory, err);
    if (memory != NULL) dnnl_memory_destroy(memory);
    return status;
}

static tare_status make_weights(void *user, derived_offer offer, derived_thing **out,
                                tare_error *err) {
    const weights_request *r = user;
    (void)offer; // files hold weights in the order of our kernels only
    packed_weights *w = tare__alloc_zeroed(1, sizeof *w);
    if (w == NULL) return tare__out_of_memory(err);
    const tare_status status = fill_packed(r, w, err);
    if (status != TARE_OK) {
        destroy_weights(&w->base);
        return status;
    }
    if (r->form->model_weights != NULL) tare__tensor_forget(r->form->model_weights);
    *out = &w->base;
    return TARE_OK;
}

// FNV-1a.
static uint64_t hash_of(const dnnl_memory_desc_t *desc) {
    const unsigned char *bytes = (const unsigned char *)desc;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < sizeof *desc; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

// Equal keys may hide different orders, as unlikely as that is.
static tare_status get_weights(const weights_request *r, packed_weights **out, tare_error *err) {
    const form *f = r->form;
    derived_thing *thing = NULL;
    *out = NULL;
    if (f->model_weights != NULL) {
        const derived_key key = {
            .data = f->w,
            .numbers = {WEIGHTS_TAG, hash_of(&f->given[WEIGHTS]), hash_of(r->wanted)}};
        TARE_TRY(tare__derive(f->model_weights->store, &key, make_weights, (void *)r, &thing, err));
        packed_weights *found = (packed_weights *)(void *)thing;
        if (dnnl_memory_desc_equal(&found->desc, r->wanted)) {
            *out = found;
            return TARE_OK;
        }
        tare__derived_release(thing);
    }
    TARE_TRY(make_weights((void *)r, (derived_offer){NULL, 0}, &thing, err));
    *out = (packed_weights *)(void *)thing;
    return TARE_OK;
}

// Bands of one image have the same weights, mostly in the same order.
static tare_status fill_weights(float_layer *layer, float_part *part, const form *f,
                                const dnnl_memory_desc_t *wanted, tare_error *err) {
    const dnnl_memory_desc_t *first = NULL;
    dnnl_memory_t lent = layer->parts[0].memory[WEIGHTS];
    if (f->is_band && lent != NULL) {
        DNNL_TRY(dnnl_memory_get_memory_desc(lent, &first));
        if (dnnl_memory_desc_equal(first, wanted)) {
            part->memory[WEIGHTS] = lent;
            part->lends_weights = true;
            return TARE_OK;
        }
    }
    const weights_request request = {layer->shared, f, wanted};
    TARE_TRY(get_weights(&request, &part->weights, err));
    DNNL_TRY(dnnl_memory_create(&part->memory[WEIGHTS], wanted, layer->shared->engine,
                                part->weights->data));
    return TARE_OK;
}

// --- layers in parts ---

static tare_status reserve(work_memory *work, const dnnl_memory_desc_t *desc, tare_error *err) {
    const size_t size = dnnl_memory_desc_get_size(desc);
    if (size <= work->size) return TARE_OK;
    void *data = tare__alloc_aligned(size, 64);
    if (data == NULL) return tare__out_of_memory(err);
    tare__free_aligned(work->data);
    *work = (work_memory){data, size};
    return TARE_OK;
}

static tare_status narrow_input(float_layers *l, size_t index, float_part *part, const form *f,
                                tare_error *err) {
    dnnl_memory_desc_t wide = f->given[SRC];
    dnnl_primitive_desc_t pd = NULL;
    wide.data_type = dnnl_f32; // in the same dense order
    TARE_TRY(create_memory(l, &part->wide, &wide, NULL, err));
    TARE_TRY(reserve(&l->narrow[index], &f->given[SRC], err));
    DNNL_TRY(
        dnnl_reorder_primitive_desc_create(&pd, &wide, l->engine, &f->given[SRC], l->engine, NULL));
    const dnnl_status_t status = dnnl_primitive_create(&part->narrowing, pd);
    dnnl_primitive_desc_destroy(pd);
    DNNL_TRY(status);
    return TARE_OK;
}

static tare_status fill(float_layer *layer, size_t index, const form *f,
                        const_dnnl_primitive_desc_t pd, tare_error *err) {
    float_layers *l = layer->shared;
    float_part *part = &layer->parts[index];
    const dnnl_memory_desc_t *work = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    TARE_TRY(create_memory(l, &part->memory[SRC], &f->given[SRC], NULL, err));
    if (f->is_bf16) TARE_TRY(narrow_input(l, index, part, f, err));
    TARE_TRY(create_memory(l, &part->memory[DST], &f->given[DST], NULL, err));
    TARE_TRY(fill_weights(layer, part, f,
                          dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0), err));
    if (work != NULL && dnnl_memory_desc_get_size(work) > 0) {
        TARE_TRY(reserve(&l->work[index], work, err));
        TARE_TRY(create_memory(l, &part->memory[WORK], work, NULL, err));
    }
    if (f->bias == NULL) return TARE_OK;
    TARE_TRY(create_memory(l, &part->memory[BIAS], &f->given[BIAS], &part->bias, err));
    return pack(l, &f->given[BIAS], f->bias, part->memory[BIAS], err);
}

static const char *implementation(const_dnnl_primitive_desc_t pd) {
    const char *name = "";
    return dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name) == dnnl_success
               ? name
               : "ref";
}

static void destroy_part(float_part *part) {
    for (int i = 0; i < MEMORIES; i++)
        if (part->memory[i] != NULL && !(i == WEIGHTS && part->lends_weights))
            dnnl_memory_destroy(part->memory[i]);
    if (part->primitive != NULL) dnnl_primitive_destroy(part->primitive);
    if (part->narrowing != NULL) dnnl_primitive_destroy(part->narrowing);
    if (part->wide != NULL) dnnl_memory_destroy(part->wide);
    release_weights(part->weights);
    tare__free_aligned(part->bias);
}

// What a form left behind that does not fit.
static void clear_part(float_part *part) {
    destroy_part(part);
    *part = (float_part){.x_first = part->x_first,
                         .y_first = part->y_first,
                         .times = part->times,
                         .x_step = part->x_step,
                         .y_step = part->y_step};
}

// The reference implementations of oneDNN are slower than ours.
static bool is_fast(const_dnnl_primitive_desc_t pd) {
    return strncmp(implementation(pd), "ref", 3) != 0;
}

// desc: of a convolution or a product. *fits false: there is no fast form of it.
static tare_status compile(float_layer *layer, size_t index, const form *f, const void *desc,
                           const float_epilogue *e, bool *fits, tare_error *err) {
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t pd = NULL;
    *fits = false;
    tare_status status = create_attributes(e, &attributes, err);
    if (status == TARE_OK)
        status = status_of(
            dnnl_primitive_desc_create(&pd, desc, attributes, layer->shared->engine, NULL), err);
    if (attributes != NULL) dnnl_primitive_attr_destroy(attributes);
    if (status == TARE_OK && is_fast(pd)) {
        status = status_of(dnnl_primitive_create(&layer->parts[index].primitive, pd), err);
        if (status == TARE_OK) status = fill(layer, index, f, pd, err);
        *fits = status == TARE_OK;
    }
    if (pd != NULL) dnnl_primitive_desc_destroy(pd);
    return status == TARE_UNSUPPORTED ? TARE_OK : status;
}

static tare_status create_layer(float_layers *l, size_t part_count, float_layer **out,
                                tare_error *err) {
    float_layer *layer = tare__alloc_zeroed(1, sizeof *layer + part_count * sizeof *layer->parts);
    if (layer == NULL) return tare__out_of_memory(err);
    tare__use_one_thread();
    layer->shared = l;
    layer->part_count = part_count;
    for (size_t i = 0; i < part_count; i++) layer->parts[i].times = 1;
    *out = layer;
    return TARE_OK;
}

// A layer that failed, or has a part without a fast form, is none.
static tare_status finish(float_layer *layer, tare_status status, bool fits, float_layer **out) {
    if (status == TARE_OK && fits) {
        *out = layer;
        return TARE_OK;
    }
    tare__float_layer_destroy(layer);
    return status;
}

static size_t count_parts(const float_layers *l, double macs, int64_t pieces) {
    if (macs < LEAST_SHARED_MACS || pieces < 1) return 1;
    const size_t most = l->thread_count < MOST_PARTS ? l->thread_count : MOST_PARTS;
    return (uint64_t)pieces < most ? (size_t)pieces : most;
}

// --- convolution ---

typedef struct sizes {
    int first, spatial; // dimensions: all three of them, or the last two
    dnnl_dims_t src, weights, dst, stride, dilation, before, after;
    dnnl_dims_t bias;
    bool grouped;
} sizes;

static sizes sizes_of(const float_conv *c) {
    sizes s = {.first = 1, .grouped = c->groups > 1};
    if (c->in[0] != 1 || c->out[0] != 1 || c->kernel[0] != 1) s.first = 0;
    s.spatial = 3 - s.first;
    s.src[0] = s.dst[0] = c->batch;
    s.src[1] = c->in_channels;
    s.bias[0] = s.dst[1] = c->out_channels;
    int w = 0;
    if (s.grouped) s.weights[w++] = c->groups;
    s.weights[w++] = c->out_channels / c->groups;
    s.weights[w++] = c->in_channels / c->groups;
    for (int d = 0; d < s.spatial; d++) {
        const int k = s.first + d;
        s.src[2 + d] = c->in[k];
        s.dst[2 + d] = c->out[k];
        s.weights[w + d] = c->kernel[k];
        s.stride[d] = c->stride[k];
        s.dilation[d] = c->dilation[k] - 1;
        s.before[d] = c->pad[k];
        s.after[d] = (c->out[k] - 1) * c->stride[k] + c->dilation[k] * (c->kernel[k] - 1) + 1 -
                     c->in[k] - c->pad[k];
    }
    return s;
}

static tare_status describe_conv(const sizes *s, form *f, dnnl_convolution_desc_t *out,
                                 tare_error *err) {
    const bool deep = s->spatial == 3;
    const int n = s->spatial + 2, weight_dims = n + (s->grouped ? 1 : 0);
    const dnnl_format_tag_t image = deep ? dnnl_ndhwc : dnnl_nhwc;
    const dnnl_format_tag_t filter =
        s->grouped ? (deep ? dnnl_goidhw : dnnl_goihw) : (deep ? dnnl_oidhw : dnnl_oihw);
    const dnnl_data_type_t type = f->is_bf16 ? dnnl_bf16 : dnnl_f32;
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&f->given[SRC], n, s->src, type, image));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&f->given[DST], n, s->dst, dnnl_f32, image));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&f->given[BIAS], 1, s->bias, dnnl_f32, dnnl_a));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&f->given[WEIGHTS], weight_dims, s->weights, dnnl_f32,
                                          filter));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&f->wanted_weights, weight_dims, s->weights, type,
                                          dnnl_format_tag_any));
    DNNL_TRY(dnnl_dilated_convolution_forward_desc_init(
        out, dnnl_forward_inference, dnnl_convolution_direct, &f->given[SRC], &f->wanted_weights,
        f->bias != NULL ? &f->given[BIAS] : NULL, &f->given[DST], s->stride, s->dilation, s->before,
        s->after));
    return TARE_OK;
}

// Rows [first, last) of the output, and the rows of the input, from *begin on, that they see.
static float_conv slice_rows(const float_conv *c, int64_t first, int64_t last, int64_t *begin) {
    float_conv part = *c;
    const int64_t start = first * c->stride[1] - c->pad[1];
    const int64_t end =
        (last - 1) * c->stride[1] - c->pad[1] + c->dilation[1] * (c->kernel[1] - 1) + 1;
    *begin = start < 0 ? 0 : start;
    part.pad[1] = start < 0 ? -start : 0;
    part.in[1] = (end < c->in[1] ? end : c->in[1]) - *begin;
    part.out[1] = last - first;
    return part;
}

static form form_of(const float_weights *w) {
    return (form){
        .w = tare__f32(w->w), .bias = w->bias, .model_weights = w->is_model ? w->w : NULL};
}

static double conv_macs(const float_conv *c) {
    double macs = (double)c->batch * (double)c->out_channels;
    for (int d = 0; d < 3; d++) macs *= (double)c->out[d] * (double)c->kernel[d];
    return macs * (double)c->in_channels / (double)c->groups;
}

static int64_t image_elements(int64_t channels, const int64_t size[3]) {
    return channels * size[0] * size[1] * size[2];
}

static tare_status compile_conv_as(float_layer *layer, size_t index, const float_conv *c,
                                   const float_epilogue *e, form f, bool *fits, tare_error *err) {
    const sizes s = sizes_of(c);
    dnnl_convolution_desc_t desc;
    *fits = false;
    const tare_status status = describe_conv(&s, &f, &desc, err);
    if (status != TARE_OK) return status == TARE_UNSUPPORTED ? TARE_OK : status;
    return compile(layer, index, &f, &desc, e, fits, err);
}

static bool is_worth_bf16(const float_layers *l, double macs, double elements) {
    return l->uses_bf16 && macs >= LEAST_BF16_MACS * elements;
}

static tare_status compile_conv(float_layer *layer, size_t index, const float_conv *c,
                                const float_epilogue *e, const float_weights *w, bool *fits,
                                tare_error *err) {
    form f = form_of(w);
    f.is_band = true;
    f.is_bf16 = is_worth_bf16(layer->shared, conv_macs(c),
                              (double)(c->batch * image_elements(c->in_channels, c->in)));
    TARE_TRY(compile_conv_as(layer, index, c, e, f, fits, err));
    if (*fits || !f.is_bf16) return TARE_OK;
    clear_part(&layer->parts[index]);
    f.is_bf16 = false;
    return compile_conv_as(layer, index, c, e, f, fits, err);
}

// A part sees at least one row of the input: bands that lie in the padding are not worth a case.
static bool can_slice_rows(const float_conv *c) {
    return c->batch == 1 && c->in[0] == 1 && c->out[0] == 1 && c->kernel[0] == 1 &&
           c->pad[1] < c->dilation[1] * (c->kernel[1] - 1) + 1;
}

static float_conv slice(const float_conv *c, size_t index, size_t count, float_part *part) {
    if (count == 1) return *c;
    const int64_t n = (int64_t)count, i = (int64_t)index;
    const int64_t first = i * c->out[1] / n, last = (i + 1) * c->out[1] / n;
    int64_t begin = first;
    const float_conv band = slice_rows(c, first, last, &begin);
    part->x_first = begin * c->in[2] * c->in_channels;
    part->y_first = first * c->out[2] * c->out_channels;
    return band;
}

static tare_status conv_of_bands(float_layers *l, const float_conv *c, const float_epilogue *e,
                                 const float_weights *w, float_layer **out, tare_error *err) {
    const size_t count = count_parts(l, conv_macs(c), can_slice_rows(c) ? c->out[1] : 1);
    float_layer *layer = NULL;
    TARE_TRY(create_layer(l, count, &layer, err));
    tare_status status = TARE_OK;
    bool fits = true;
    for (size_t i = 0; i < count && fits && status == TARE_OK; i++) {
        const float_conv part = slice(c, i, count, &layer->parts[i]);
        status = compile_conv(layer, i, &part, e, w, &fits, err);
    }
    return finish(layer, status, fits, out);
}

// So many images at a time are worth a call. It does not depend on the threads, so that neither do
// the bits.
static int64_t images_at_once(const float_conv *c) {
    const double images = LEAST_SHARED_MACS / (conv_macs(c) / (double)c->batch + 1);
    return images < 1 ? 1 : images < (double)c->batch ? (int64_t)images : c->batch;
}

// One primitive of some images runs many times, and one more takes the rest: what an image needs
// stays in cache from layer to layer, however many there are.
static tare_status conv_of_images(float_layers *l, const float_conv *c, const float_epilogue *e,
                                  const float_weights *w, float_layer **out, tare_error *err) {
    const int64_t images = images_at_once(c), all = c->batch / images, rest = c->batch % images;
    const size_t shares = count_parts(l, conv_macs(c), all), count = shares + (rest > 0);
    const int64_t x_step = images * image_elements(c->in_channels, c->in);
    const int64_t y_step = images * image_elements(c->out_channels, c->out);
    float_layer *layer = NULL;
    tare_status status = TARE_OK;
    bool fits = true;
    TARE_TRY(create_layer(l, count, &layer, err));
    for (size_t i = 0; i < count && fits && status == TARE_OK; i++) {
        float_part *part = &layer->parts[i];
        float_conv few = *c;
        const bool is_rest = i == shares;
        const int64_t first = is_rest ? all : all * (int64_t)i / (int64_t)shares;
        const int64_t last = is_rest ? all + 1 : all * ((int64_t)i + 1) / (int64_t)shares;
        few.batch = is_rest ? rest : images;
        part->times = (size_t)(last - first);
        part->x_first = first * (part->x_step = x_step);
        part->y_first = first * (part->y_step = y_step);
        status = compile_conv(layer, i, &few, e, w, &fits, err);
    }
    return finish(layer, status, fits, out);
}

tare_status tare__float_layer_conv(float_layers *l, const float_conv *c, const float_epilogue *e,
                                   const float_weights *w, float_layer **out, tare_error *err) {
    *out = NULL;
    return (c->batch > 1 ? conv_of_images : conv_of_bands)(l, c, e, w, out, err);
}

// --- product ---

static tare_status describe_product(const float_product *p, form *f, dnnl_matmul_desc_t *out,
                                    tare_error *err) {
    const dnnl_dims_t src = {p->rows, p->inner}, weights = {p->inner, p->columns};
    const dnnl_dims_t bias = {1, p->columns}, dst = {p->rows, p->columns};
    const dnnl_data_type_t type = f->is_bf16 ? dnnl_bf16 : dnnl_f32;
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&f->given[SRC], 2, src, type, dnnl_ab));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&f->given[DST], 2, dst, dnnl_f32, dnnl_ab));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&f->given[BIAS], 2, bias, dnnl_f32, dnnl_ab));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&f->given[WEIGHTS], 2, weights, dnnl_f32,
                                          p->transposed ? dnnl_ba : dnnl_ab));
    DNNL_TRY(
        dnnl_memory_desc_init_by_tag(&f->wanted_weights, 2, weights, type, dnnl_format_tag_any));
    DNNL_TRY(dnnl_matmul_desc_init(out, &f->given[SRC], &f->wanted_weights,
                                   f->bias != NULL ? &f->given[BIAS] : NULL, &f->given[DST]));
    return TARE_OK;
}

static tare_status compile_product(float_layer *layer, size_t index, const float_product *p,
                                   const float_epilogue *e, form f, bool *fits, tare_error *err) {
    dnnl_matmul_desc_t desc;
    *fits = false;
    const tare_status status = describe_product(p, &f, &desc, err);
    if (status != TARE_OK) return status == TARE_UNSUPPORTED ? TARE_OK : status;
    return compile(layer, index, &f, &desc, e, fits, err);
}

// Rows are cut; of one row alone its columns, which lie in a row as the rows of the weights do.
tare_status tare__float_layer_product(float_layers *l, const float_product *p,
                                      const float_epilogue *e, const float_weights *w,
                                      float_layer **out, tare_error *err) {
    const bool by_columns = p->rows == 1 && p->transposed;
    const int64_t pieces = by_columns ? p->columns : p->rows;
    const double macs = (double)p->rows * (double)p->columns * (double)p->inner;
    const size_t count = count_parts(l, macs, pieces);
    float_layer *layer = NULL;
    *out = NULL;
    TARE_TRY(create_layer(l, count, &layer, err));
    tare_status status = TARE_OK;
    bool fits = true;
    for (size_t i = 0; i < count && fits && status == TARE_OK; i++) {
        const int64_t first = (int64_t)i * pieces / (int64_t)count;
        const int64_t size = ((int64_t)i + 1) * pieces / (int64_t)count - first;
        const int64_t row = by_columns ? 0 : first, column = by_columns ? first : 0;
        float_product part = *p;
        part.rows = by_columns ? 1 : size;
        part.columns = by_columns ? size : p->columns;
        layer->parts[i].x_first = row * p->inner;
        layer->parts[i].y_first = row * p->columns + column;
        form f = form_of(w);
        f.w += column * p->inner;
        f.bias = f.bias != NULL ? f.bias + column : NULL;
        f.is_band = !by_columns;
        f.is_bf16 = is_worth_bf16(l, macs, (double)p->rows * (double)p->inner);
        status = compile_product(layer, i, &part, e, f, &fits, err);
        if (status != TARE_OK || fits || !f.is_bf16) continue;
        clear_part(&layer->parts[i]);
        f.is_bf16 = false;
        status = compile_product(layer, i, &part, e, f, &fits, err);
    }
    return finish(layer, status, fits, out);
}

// --- running ---

typedef struct layer_run {
    float_layer *layer;
    const float *x;
    float *y;
    dnnl_status_t *statuses; // by part
} layer_run;

// x itself, or x in bfloat16.
static dnnl_status_t hand_input(const float_layers *l, size_t index, const float_part *part,
                                const float *x) {
    if (part->narrowing == NULL) return dnnl_memory_set_data_handle(part->memory[SRC], (void *)x);
    dnnl_status_t status = dnnl_memory_set_data_handle(part->wide, (void *)x);
    if (status == dnnl_success)
        status = dnnl_memory_set_data_handle(part->memory[SRC], l->narrow[index].data);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, part->wide}, {DNNL_ARG_TO, part->memory[SRC]}};
    return status == dnnl_success ? dnnl_primitive_execute(part->narrowing, l->stream, 2, args)
                                  : status;
}

static dnnl_status_t run_once(const float_layer *layer, size_t index, const float *x, float *y) {
    static const int names[MEMORIES] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST,
                                        DNNL_ARG_SCRATCHPAD};
    const float_part *part = &layer->parts[index];
    const float_layers *l = layer->shared;
    dnnl_exec_arg_t args[MEMORIES];
    int count = 0;
    dnnl_status_t status = hand_input(l, index, part, x);
    if (status == dnnl_success) status = dnnl_memory_set_data_handle(part->memory[DST], y);
    if (status == dnnl_success && part->memory[WORK] != NULL)
        status = dnnl_memory_set_data_handle(part->memory[WORK], l->work[index].data);
    for (int i = 0; i < MEMORIES; i++)
        if (part->memory[i] != NULL) args[count++] = (dnnl_exec_arg_t){names[i], part->memory[i]};
    if (status == dnnl_success)
        status = dnnl_primitive_execute(part->primitive, l->stream, count, args);
    return status;
}

static dnnl_status_t run_part(const float_layer *layer, size_t index, const float *x, float *y) {
    const float_part *part = &layer->parts[index];
    dnnl_status_t status = dnnl_success;
    tare__use_one_thread();
    x += part->x_first;
    y += part->y_first;
    for (size_t i = 0; i < part->times && status == dnnl_success; i++)
        status =
            run_once(layer, index, x + (int64_t)i * part->x_step, y + (int64_t)i * part->y_step);
    return status;
}

static void run_task(void *user, size_t part, size_t worker) {
    const layer_run *run = user;
    (void)worker;
    run->statuses[part] = run_part(run->layer, part, run->x, run->y);
}

tare_status tare__float_layer_run(float_layer *layer, const float *x, float *y, tare_error *err) {
    dnnl_status_t statuses[MOST_PARTS + 1];
    layer_run run = {layer, x, y, statuses};
    if (layer->part_count == 1)
        statuses[0] = run_part(layer, 0, x, y);
    else
        tare__thread_pool_run(layer->shared->pool, layer->part_count, run_task, &run);
    for (size_t i = 0; i < layer->part_count; i++) DNNL_TRY(statuses[i]);
    return TARE_OK;
}

const char *tare__float_layer_kernel(const float_layer *layer, size_t *weight_bytes) {
    const dnnl_memory_desc_t *weights = NULL;
    const_dnnl_primitive_desc_t pd = NULL;
    *weight_bytes = 0;
    for (size_t i = 0; i < layer->part_count; i++)
        if (!layer->parts[i].lends_weights &&
            dnnl_memory_get_memory_desc(layer->parts[i].memory[WEIGHTS], &weights) == dnnl_success)
            *weight_bytes += dnnl_memory_desc_get_size(weights);
    return dnnl_primitive_get_primitive_desc(layer->parts[0].primitive, &pd) == dnnl_success
               ? implementation(pd)
               : "";
}

void tare__float_layer_destroy(float_layer *layer) {
    if (layer == NULL) return;
    for (size_t i = 0; i < layer->part_count; i++) destroy_part(&layer->parts[i]);
    tare__free(layer);
}

tare_status tare__float_layers_multiply(float_layers *l, const float_block *p, const float *x,
                                        const float *w, float *y, tare_error *err) {
    (void)l;
    tare__use_one_thread();
    DNNL_TRY(dnnl_sgemm('N', p->transposed ? 'T' : 'N', p->rows, p->columns, p->inner, p->scale, x,
                        p->x_step, w, p->w_step, 0.0F, y, p->y_step));
    return TARE_OK;
}
#else
// Without a library no layer has a fast form.
tare_status tare__float_layers_create(thread_pool *pool, bool uses_bf16, float_layers **out,
                                      tare_error *err) {
    (void)pool;
    *out = NULL;
    if (!uses_bf16) return TARE_OK;
    return tare__fail(err, TARE_UNSUPPORTED, "bfloat16: this build has no library for it (oneDNN)");
}
void tare__float_layers_destroy(float_layers *l) {
    (void)l;
}
tare_status tare__float_layer_conv(float_layers *l, const float_conv *c, const float_epilogue *e,
                                   const float_weights *w, float_layer **out, tare_error *err) {
    (void)l, (void)c, (void)e, (void)w, (void)err;
    *out = NULL;
    return TARE_OK;
}
tare_status tare__float_layer_product(float_layers *l, const float_product *p,
                                      const float_epilogue *e, const float_weights *w,
                                      float_layer **out, tare_error *err) {
    (void)l, (void)p, (void)e, (void)w, (void)err;
    *out = NULL;
    return TARE_OK;
}
tare_status tare__float_layer_run(float_layer *layer, const float *x, float *y, tare_error *err) {
    (void)layer, (void)x, (void)y;
    return tare__fail(err, TARE_INTERNAL, "there are no float layers in this build");
}
const char *tare__float_layer_kernel(const float_layer *layer, size_t *weight_bytes) {
    (void)layer;
    *weight_bytes = 0;
    return "";
}
void tare__float_layer_destroy(float_layer *layer) {
    (void)layer;
}
tare_status tare__float_layers_multiply(float_layers *l, const float_block *p, const float *x,
                                        const float *w, float *y, tare_error *err) {
    (void)l, (void)p, (void)x, (void)w, (void)y;
    return tare__fail(err, TARE_INTERNAL, "there are no float layers in this build");
}
#endif
