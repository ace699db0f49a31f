// SPDX-License-Identifier: Apache-2.0
// Float kernels from oneDNN 2.x, through its C API. A cache holds one compiled convolution per
// signature, and the packed weights of modules. Its calling thread keeps to one of OpenMP's threads
// for as long: going back and forth around each call made every second one three times slower.
#ifdef TARE_HAVE_DNNL
#include <string.h>

#include "core/memory/alloc.h"
#include "dnnl/calls.h"
#include "dnnl/float_kernels.h"
#include "dnnl/one_thread.h"

enum { KEPT_WEIGHTS = 512, SRC = 0, WEIGHTS, BIAS, DST, MEMORIES };

// A compiled convolution. Plain memories point to the caller's data; packed ones hold oneDNN's own
// order where that differs, else they are NULL.
typedef struct compiled {
    float_conv key;
    bool has_bias;
    dnnl_primitive_t primitive;
    dnnl_memory_t plain[MEMORIES], packed[MEMORIES];
    dnnl_primitive_t reorder[MEMORIES]; // plain to packed; for DST the other direction
    dnnl_memory_desc_t weights;         // as the primitive wants them
} compiled;

typedef struct kept_weights {
    tare_tensor *tensor; // reference owned, so that the address stays its own
    dnnl_memory_desc_t form;
    dnnl_memory_t memory;
} kept_weights;

typedef struct cache {
    dnnl_context dnnl;
    compiled **convs;
    size_t conv_count, conv_capacity;
    kept_weights kept[KEPT_WEIGHTS]; // a ring
    size_t next_kept;
    int thread_count; // of the creating thread, before
} cache;

// --- the cache ---

static void destroy_compiled(compiled *c) {
    for (int i = 0; i < MEMORIES; i++) {
        dnnl_memory_destroy(c->plain[i]);
        dnnl_memory_destroy(c->packed[i]);
        dnnl_primitive_destroy(c->reorder[i]);
    }
    dnnl_primitive_destroy(c->primitive);
    tare__free(c);
}

static void drop_kept(kept_weights *k) {
    if (k->memory != NULL) dnnl_memory_destroy(k->memory);
    tare_tensor_release(k->tensor);
    *k = (kept_weights){0};
}

static void destroy(void *state) {
    cache *s = state;
    for (size_t i = 0; i < s->conv_count; i++) destroy_compiled(s->convs[i]);
    for (size_t i = 0; i < KEPT_WEIGHTS; i++) drop_kept(&s->kept[i]);
    tare__free(s->convs);
    tare__dnnl_close(&s->dnnl);
    omp_set_num_threads(s->thread_count);
    tare__free(s);
}

static tare_status create(void **state, tare_error *err) {
    cache *s = tare__alloc_zeroed(1, sizeof *s);
    if (s == NULL) return tare__out_of_memory(err);
    s->thread_count = omp_get_max_threads();
    const tare_status status = tare__dnnl_open(&s->dnnl, err);
    if (status == TARE_OK)
        *state = s;
    else
        destroy(s);
    return status;
}

// --- compiling a convolution ---

// Depth is left out where it does not matter.
typedef struct layout {
    int first;   // spatial dimension: 0 with depth, else 1
    int spatial; // 3 or 2
    dnnl_dims_t src, weights, bias, dst;
    dnnl_format_tag_t image, filter;
    bool grouped;
} layout;

static layout layout_of(const float_conv *c) {
    layout l = {.first = 1, .grouped = c->groups > 1};
    if (c->in[0] != 1 || c->out[0] != 1 || c->kernel[0] != 1) l.first = 0;
    l.spatial = 3 - l.first;
    l.src[0] = l.dst[0] = c->batch;
    l.src[1] = c->in_channels;
    l.bias[0] = l.dst[1] = c->out_channels;
    int w = 0;
    if (l.grouped) l.weights[w++] = c->groups;
    l.weights[w++] = c->out_channels / c->groups;
    l.weights[w++] = c->in_channels / c->groups;
    for (int d = 0; d < l.spatial; d++) {
        l.src[2 + d] = c->in[l.first + d];
        l.dst[2 + d] = c->out[l.first + d];
        l.weights[w + d] = c->kernel[l.first + d];
    }
    l.image = l.spatial == 3 ? dnnl_ncdhw : dnnl_nchw;
    if (l.spatial == 3)
        l.filter = l.grouped ? dnnl_goidhw : dnnl_oidhw;
    else
        l.filter = l.grouped ? dnnl_goihw : dnnl_oihw;
    return l;
}

static tare_status describe(const layout *l, bool plain, dnnl_memory_desc_t out[MEMORIES],
                            tare_error *err) {
    const dnnl_format_tag_t image = plain ? l->image : dnnl_format_tag_any;
    const dnnl_format_tag_t filter = plain ? l->filter : dnnl_format_tag_any;
    const int n = l->spatial + 2;
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&out[SRC], n, l->src, dnnl_f32, image));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&out[WEIGHTS], n + (l->grouped ? 1 : 0), l->weights,
                                          dnnl_f32, filter));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&out[BIAS], 1, l->bias, dnnl_f32, dnnl_a));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&out[DST], n, l->dst, dnnl_f32, image));
    return TARE_OK;
}

// The padding at the end follows from the output's size.
static tare_status describe_conv(const float_conv *c, const layout *l, bool has_bias,
                                 dnnl_convolution_desc_t *out, tare_error *err) {
    dnnl_memory_desc_t any[MEMORIES];
    dnnl_dims_t stride, dilation, before, after;
    TARE_TRY(describe(l, false, any, err));
    for (int d = 0; d < l->spatial; d++) {
        const int k = l->first + d;
        stride[d] = c->stride[k];
        dilation[d] = c->dilation[k] - 1;
        before[d] = c->pad[k];
        after[d] = (c->out[k] - 1) * c->stride[k] + c->dilation[k] * (c->kernel[k] - 1) + 1 -
                   c->in[k] - c->pad[k];
    }
    DNNL_TRY(dnnl_dilated_convolution_forward_desc_init(
        out, dnnl_forward_inference, dnnl_convolution_auto, &any[SRC], &any[WEIGHTS],
        has_bias ? &any[BIAS] : NULL, &any[DST], stride, dilation, before, after));
    return TARE_OK;
}

static tare_status create_memories(cache *s, compiled *c, const layout *l,
                                   const_dnnl_primitive_desc_t pd, tare_error *err) {
    static const dnnl_query_t queries[] = {dnnl_query_src_md, dnnl_query_weights_md,
                                           dnnl_query_weights_md, dnnl_query_dst_md};
    dnnl_memory_desc_t plain[MEMORIES];
    TARE_TRY(describe(l, true, plain, err));
    for (int i = 0; i < MEMORIES; i++) {
        if (i == BIAS && !c->has_bias) continue;
        const dnnl_memory_desc_t *wanted =
            dnnl_primitive_desc_query_md(pd, queries[i], i == BIAS ? 1 : 0);
        DNNL_TRY(dnnl_memory_create(&c->plain[i], &plain[i], s->dnnl.engine, DNNL_MEMORY_NONE));
        if (i == WEIGHTS) c->weights = *wanted;
        if (dnnl_memory_desc_equal(wanted, &plain[i])) continue;
        DNNL_TRY(dnnl_memory_create(&c->packed[i], wanted, s->dnnl.engine, DNNL_MEMORY_ALLOCATE));
        TARE_TRY(tare__dnnl_create_reorder(&s->dnnl, i == DST ? wanted : &plain[i],
                                           i == DST ? &plain[i] : wanted, &c->reorder[i], err));
    }
    return TARE_OK;
}

// The primitive's work memory is its own here.
static tare_status expect_compilation(const_dnnl_primitive_desc_t pd, tare_error *err) {
    int64_t work_bytes = 0;
    DNNL_TRY(
        dnnl_primitive_desc_query(pd, dnnl_query_memory_consumption_s64, 0, (void *)&work_bytes));
    return tare__dnnl_expect(DNNL_COMPILE_BYTES + (size_t)work_bytes, err);
}

static tare_status compile(cache *s, compiled *c, tare_error *err) {
    const layout l = layout_of(&c->key);
    dnnl_convolution_desc_t desc;
    dnnl_primitive_desc_t pd;
    TARE_TRY(describe_conv(&c->key, &l, c->has_bias, &desc, err));
    DNNL_TRY(dnnl_primitive_desc_create(&pd, &desc, NULL, s->dnnl.engine, NULL));
    tare_status status = expect_compilation(pd, err);
    if (status == TARE_OK)
        status = tare__dnnl_status(dnnl_primitive_create(&c->primitive, pd), err);
    if (status == TARE_OK) status = create_memories(s, c, &l, pd, err);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

static bool same_signature(const compiled *c, const float_conv *key, bool has_bias) {
    return c->has_bias == has_bias && memcmp(&c->key, key, sizeof *key) == 0;
}

// The key is the signature of the computation, without the weights. float_conv has no padding
// bytes.
static tare_status find_compiled(cache *s, const float_conv *conv, bool has_bias, compiled **out,
                                 tare_error *err) {
    float_conv key = *conv;
    key.constant = NULL;
    for (size_t i = 0; i < s->conv_count; i++)
        if (same_signature(s->convs[i], &key, has_bias)) {
            *out = s->convs[i];
            return TARE_OK;
        }
    compiled *c = tare__alloc_zeroed(1, sizeof *c);
    if (c == NULL) return tare__out_of_memory(err);
    c->key = key;
    c->has_bias = has_bias;
    tare_status status = compile(s, c, err);
    if (status == TARE_OK &&
        !tare__grow((void **)&s->convs, &s->conv_capacity, s->conv_count, sizeof *s->convs))
        status = tare__out_of_memory(err);
    if (status != TARE_OK) {
        destroy_compiled(c);
        return status;
    }
    *out = s->convs[s->conv_count++] = c;
    return TARE_OK;
}

// --- running ---

// A module's weights are packed once; others at every call.
static tare_status pack_weights(cache *s, compiled *c, tare_tensor *constant, dnnl_memory_t *out,
                                tare_error *err) {
    *out = c->packed[WEIGHTS];
    if (constant == NULL) {
        DNNL_TRY(tare__dnnl_reorder(&s->dnnl, c->reorder[WEIGHTS], c->plain[WEIGHTS], *out));
        return TARE_OK;
    }
    for (size_t i = 0; i < KEPT_WEIGHTS; i++)
        if (s->kept[i].tensor == constant &&
            dnnl_memory_desc_equal(&s->kept[i].form, &c->weights)) {
            *out = s->kept[i].memory;
            return TARE_OK;
        }
    kept_weights *slot = &s->kept[s->next_kept];
    drop_kept(slot);
    DNNL_TRY(dnnl_memory_create(&slot->memory, &c->weights, s->dnnl.engine, DNNL_MEMORY_ALLOCATE));
    TARE_TRY(tare__dnnl_expect(DNNL_RUN_BYTES, err));
    DNNL_TRY(tare__dnnl_reorder(&s->dnnl, c->reorder[WEIGHTS], c->plain[WEIGHTS], slot->memory));
    slot->tensor = tare_tensor_retain(constant);
    slot->form = c->weights;
    s->next_kept = (s->next_kept + 1) % KEPT_WEIGHTS;
    *out = slot->memory;
    return TARE_OK;
}

static tare_status execute(cache *s, compiled *c, tare_tensor *constant, tare_error *err) {
    static const int names[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST};
    dnnl_exec_arg_t args[MEMORIES];
    int count = 0;
    for (int i = 0; i < MEMORIES; i++) {
        dnnl_memory_t memory = c->packed[i] != NULL ? c->packed[i] : c->plain[i];
        if (memory == NULL) continue;
        if (i == WEIGHTS && c->packed[i] != NULL)
            TARE_TRY(pack_weights(s, c, constant, &memory, err));
        else if (i != DST && c->packed[i] != NULL)
            DNNL_TRY(tare__dnnl_reorder(&s->dnnl, c->reorder[i], c->plain[i], c->packed[i]));
        args[count++] = (dnnl_exec_arg_t){names[i], memory};
    }
    DNNL_TRY(dnnl_primitive_execute(c->primitive, s->dnnl.stream, count, args));
    if (c->packed[DST] != NULL)
        DNNL_TRY(tare__dnnl_reorder(&s->dnnl, c->reorder[DST], c->packed[DST], c->plain[DST]));
    DNNL_TRY(dnnl_stream_wait(s->dnnl.stream));
    return TARE_OK;
}

// oneDNN takes the data it only reads without const.
static tare_status lend(dnnl_memory_t memory, const float *data, tare_error *err) {
    if (memory == NULL) return TARE_OK;
    DNNL_TRY(dnnl_memory_set_data_handle(memory, (void *)data));
    return TARE_OK;
}

static tare_status run_conv(cache *s, const float_conv *key, const float *x, const float *w,
                            const float *bias, float *y, tare_error *err) {
    compiled *c = NULL;
    TARE_TRY(find_compiled(s, key, bias != NULL, &c, err));
    TARE_TRY(lend(c->plain[SRC], x, err));
    TARE_TRY(lend(c->plain[WEIGHTS], w, err));
    TARE_TRY(lend(c->plain[BIAS], bias, err));
    TARE_TRY(lend(c->plain[DST], y, err));
    TARE_TRY(
        tare__dnnl_expect(DNNL_RUN_BYTES, err)); // memory for packed data was allocated meanwhile
    return execute(s, c, key->constant, err);
}

// What oneDNN does not support (an empty batch, an odd stride) is computed by the portable kernel.
static tare_status conv(void *state, const float_conv *c, const float *x, const float *w,
                        const float *bias, float *y, tare_error *err) {
    TARE_TRY(tare__dnnl_expect(DNNL_COMPILE_BYTES, err));
    tare__use_one_thread();
    const tare_status status = run_conv(state, c, x, w, bias, y, err);
    if (status != TARE_UNSUPPORTED) return status;
    return tare__portable_floats.conv(NULL, c, x, w, bias, y, err);
}

static tare_status product(void *state, const float_product *p, const float *a, const float *b,
                           const float *bias, float *y, tare_error *err) {
    // The first call of dnnl_sgemm compiles for 30 ms (oneDNN 2.6, AVX-512).
    if (p->rows == 0 || p->columns == 0 || p->inner == 0 ||
        tare__float_product_is_small(p->rows, p->inner, p->columns))
        return tare__portable_floats.product(NULL, p, a, b, bias, y, err);
    (void)state;
    TARE_TRY(tare__dnnl_expect(DNNL_MULTIPLY_BYTES, err));
    tare__use_one_thread();
    DNNL_TRY(dnnl_sgemm('N', p->transposed ? 'T' : 'N', p->rows, p->columns, p->inner, 1.0f, a,
                        p->inner, b, p->transposed ? p->inner : p->columns, 0.0f, y, p->columns));
    for (int64_t r = 0; bias != NULL && r < p->rows; r++)
        for (int64_t j = 0; j < p->columns; j++) y[r * p->columns + j] += bias[j];
    return TARE_OK;
}

const float_provider tare__dnnl_floats = {
    .name = "oneDNN", .create = create, .destroy = destroy, .conv = conv, .product = product};
#else
typedef int tare__no_dnnl; // a file must not be empty
#endif
