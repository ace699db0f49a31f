// SPDX-License-Identifier: Apache-2.0
// Float layers by oneDNN 2.x, through its C API. Everything is compiled for channels last: on the
// processors measured its kernels for that order are as fast as those for its own blocks of
// channels, and elementwise neighbours, pooling and views need no special form of it.
#include "ops/float_layers.h"

#include "core/alloc.h"

#ifdef TARE_HAVE_DNNL
#include <oneapi/dnnl/dnnl.h>

// oneDNN runs on OpenMP's threads. The header is not at hand for every compiler.
int omp_get_max_threads(void);
void omp_set_num_threads(int count);

struct float_layers {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    int thread_count;
};

enum { SRC, WEIGHTS, BIAS, DST, MEMORIES };

struct float_layer {
    float_layers *shared;
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[MEMORIES]; // SRC and DST point to the caller's data
    void *weights, *bias;           // packed
};

static tare_status status_of(dnnl_status_t status, tare_error *err) {
    if (status == dnnl_success) return TARE_OK;
    if (status == dnnl_out_of_memory) return tare__out_of_memory(err);
    return tare__fail(err, TARE_UNSUPPORTED, "oneDNN refuses a float layer (status %d)",
                      (int)status);
}
#define DNNL_TRY(call) TARE_TRY(status_of((call), err))

tare_status tare__float_layers_create(int thread_count, float_layers **out, tare_error *err) {
    float_layers *l = tare__alloc_zeroed(1, sizeof *l);
    if (l == NULL) return tare__out_of_memory(err);
    l->thread_count = thread_count;
    dnnl_status_t status = dnnl_engine_create(&l->engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = dnnl_stream_create(&l->stream, l->engine, dnnl_stream_default_flags);
    if (status != dnnl_success) {
        tare__float_layers_destroy(l);
        return status_of(status, err);
    }
    *out = l;
    return TARE_OK;
}

void tare__float_layers_destroy(float_layers *l) {
    if (l == NULL) return;
    if (l->stream != NULL) dnnl_stream_destroy(l->stream);
    if (l->engine != NULL) dnnl_engine_destroy(l->engine);
    tare__free(l);
}

// Kernels are compiled for the number of threads that runs them.
static void use_threads(const float_layers *l) {
    if (omp_get_max_threads() != l->thread_count) omp_set_num_threads(l->thread_count);
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
    bool has_bias;
} form;

static tare_status create_memory(float_layer *layer, int which, const dnnl_memory_desc_t *desc,
                                 void **data, tare_error *err) {
    if (data != NULL) {
        *data = tare__alloc_aligned(dnnl_memory_desc_get_size(desc), 64);
        if (*data == NULL) return tare__out_of_memory(err);
    }
    DNNL_TRY(dnnl_memory_create(&layer->memory[which], desc, layer->shared->engine,
                                data != NULL ? *data : DNNL_MEMORY_NONE));
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
static tare_status pack(float_layer *layer, int which, const dnnl_memory_desc_t *given,
                        const float *data, tare_error *err) {
    dnnl_memory_t from = NULL;
    DNNL_TRY(dnnl_memory_create(&from, given, layer->shared->engine, (void *)data));
    const tare_status status = reorder(layer->shared, from, layer->memory[which], err);
    dnnl_memory_destroy(from);
    return status;
}

static tare_status fill(float_layer *layer, const form *f, const_dnnl_primitive_desc_t pd,
                        const float *w, const float *bias, tare_error *err) {
    const dnnl_memory_desc_t *weights = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    TARE_TRY(create_memory(layer, SRC, &f->given[SRC], NULL, err));
    TARE_TRY(create_memory(layer, DST, &f->given[DST], NULL, err));
    TARE_TRY(create_memory(layer, WEIGHTS, weights, &layer->weights, err));
    TARE_TRY(pack(layer, WEIGHTS, &f->given[WEIGHTS], w, err));
    if (!f->has_bias) return TARE_OK;
    TARE_TRY(create_memory(layer, BIAS, &f->given[BIAS], &layer->bias, err));
    return pack(layer, BIAS, &f->given[BIAS], bias, err);
}

// The reference implementations of oneDNN are slower than ours.
static bool is_fast(const_dnnl_primitive_desc_t pd) {
    const char *name = "";
    if (dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name) != dnnl_success)
        return false;
    return name[0] != 'r' || name[1] != 'e' || name[2] != 'f';
}

static tare_status finish(float_layers *l, const form *f, const_dnnl_primitive_desc_t pd,
                          const float *w, const float *bias, float_layer **out, tare_error *err) {
    float_layer *layer = tare__alloc_zeroed(1, sizeof *layer);
    if (layer == NULL) return tare__out_of_memory(err);
    layer->shared = l;
    tare_status status = status_of(dnnl_primitive_create(&layer->primitive, pd), err);
    if (status == TARE_OK) status = fill(layer, f, pd, w, bias, err);
    if (status == TARE_OK)
        *out = layer;
    else
        tare__float_layer_destroy(layer);
    return status;
}

// desc: of a convolution or a product.
static tare_status compile(float_layers *l, const form *f, const void *desc,
                           const float_epilogue *e, const float *w, const float *bias,
                           float_layer **out, tare_error *err) {
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t pd = NULL;
    *out = NULL;
    use_threads(l);
    tare_status status = create_attributes(e, &attributes, err);
    if (status == TARE_OK)
        status = status_of(dnnl_primitive_desc_create(&pd, desc, attributes, l->engine, NULL), err);
    if (attributes != NULL) dnnl_primitive_attr_destroy(attributes);
    if (status == TARE_OK && is_fast(pd)) status = finish(l, f, pd, w, bias, out, err);
    if (pd != NULL) dnnl_primitive_desc_destroy(pd);
    return status == TARE_UNSUPPORTED ? TARE_OK : status;
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
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&f->given[SRC], n, s->src, dnnl_f32, image));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&f->given[DST], n, s->dst, dnnl_f32, image));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&f->given[BIAS], 1, s->bias, dnnl_f32, dnnl_a));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&f->given[WEIGHTS], weight_dims, s->weights, dnnl_f32,
                                          filter));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&f->wanted_weights, weight_dims, s->weights, dnnl_f32,
                                          dnnl_format_tag_any));
    DNNL_TRY(dnnl_dilated_convolution_forward_desc_init(
        out, dnnl_forward_inference, dnnl_convolution_direct, &f->given[SRC], &f->wanted_weights,
        f->has_bias ? &f->given[BIAS] : NULL, &f->given[DST], s->stride, s->dilation, s->before,
        s->after));
    return TARE_OK;
}

tare_status tare__float_layer_conv(float_layers *l, const float_conv *c, const float_epilogue *e,
                                   const float *w, const float *bias, float_layer **out,
                                   tare_error *err) {
    const sizes s = sizes_of(c);
    form f = {.has_bias = bias != NULL};
    dnnl_convolution_desc_t desc;
    *out = NULL;
    const tare_status status = describe_conv(&s, &f, &desc, err);
    if (status != TARE_OK) return status == TARE_UNSUPPORTED ? TARE_OK : status;
    return compile(l, &f, &desc, e, w, bias, out, err);
}

// --- product ---

static tare_status describe_product(const float_product *p, form *f, dnnl_matmul_desc_t *out,
                                    tare_error *err) {
    const dnnl_dims_t src = {p->rows, p->inner}, weights = {p->inner, p->columns};
    const dnnl_dims_t bias = {1, p->columns}, dst = {p->rows, p->columns};
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&f->given[SRC], 2, src, dnnl_f32, dnnl_ab));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&f->given[DST], 2, dst, dnnl_f32, dnnl_ab));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&f->given[BIAS], 2, bias, dnnl_f32, dnnl_ab));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&f->given[WEIGHTS], 2, weights, dnnl_f32,
                                          p->transposed ? dnnl_ba : dnnl_ab));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&f->wanted_weights, 2, weights, dnnl_f32,
                                          dnnl_format_tag_any));
    DNNL_TRY(dnnl_matmul_desc_init(out, &f->given[SRC], &f->wanted_weights,
                                   f->has_bias ? &f->given[BIAS] : NULL, &f->given[DST]));
    return TARE_OK;
}

tare_status tare__float_layer_product(float_layers *l, const float_product *p,
                                      const float_epilogue *e, const float *w, const float *bias,
                                      float_layer **out, tare_error *err) {
    form f = {.has_bias = bias != NULL};
    dnnl_matmul_desc_t desc;
    *out = NULL;
    const tare_status status = describe_product(p, &f, &desc, err);
    if (status != TARE_OK) return status == TARE_UNSUPPORTED ? TARE_OK : status;
    return compile(l, &f, &desc, e, w, bias, out, err);
}

// --- running ---

tare_status tare__float_layer_run(float_layer *layer, const float *x, float *y, tare_error *err) {
    static const int names[MEMORIES] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS,
                                        DNNL_ARG_DST};
    dnnl_exec_arg_t args[MEMORIES];
    int count = 0;
    use_threads(layer->shared);
    DNNL_TRY(dnnl_memory_set_data_handle(layer->memory[SRC], (void *)x));
    DNNL_TRY(dnnl_memory_set_data_handle(layer->memory[DST], y));
    for (int i = 0; i < MEMORIES; i++)
        if (layer->memory[i] != NULL) args[count++] = (dnnl_exec_arg_t){names[i], layer->memory[i]};
    DNNL_TRY(dnnl_primitive_execute(layer->primitive, layer->shared->stream, count, args));
    DNNL_TRY(dnnl_stream_wait(layer->shared->stream));
    return TARE_OK;
}

void tare__float_layer_destroy(float_layer *layer) {
    if (layer == NULL) return;
    for (int i = 0; i < MEMORIES; i++)
        if (layer->memory[i] != NULL) dnnl_memory_destroy(layer->memory[i]);
    if (layer->primitive != NULL) dnnl_primitive_destroy(layer->primitive);
    tare__free_aligned(layer->weights);
    tare__free_aligned(layer->bias);
    tare__free(layer);
}

tare_status tare__float_layers_multiply(float_layers *l, const float_block *p, const float *x,
                                        const float *w, float *y, tare_error *err) {
    use_threads(l);
    DNNL_TRY(dnnl_sgemm('N', p->transposed ? 'T' : 'N', p->rows, p->columns, p->inner, p->scale, x,
                        p->x_step, w, p->w_step, 0.0F, y, p->y_step));
    return TARE_OK;
}
#else
// Without a library no layer has a fast form.
tare_status tare__float_layers_create(int thread_count, float_layers **out, tare_error *err) {
    (void)thread_count;
    (void)err;
    *out = NULL;
    return TARE_OK;
}
void tare__float_layers_destroy(float_layers *l) {
    (void)l;
}
tare_status tare__float_layer_conv(float_layers *l, const float_conv *c, const float_epilogue *e,
                                   const float *w, const float *bias, float_layer **out,
                                   tare_error *err) {
    (void)l, (void)c, (void)e, (void)w, (void)bias, (void)err;
    *out = NULL;
    return TARE_OK;
}
tare_status tare__float_layer_product(float_layers *l, const float_product *p,
                                      const float_epilogue *e, const float *w, const float *bias,
                                      float_layer **out, tare_error *err) {
    (void)l, (void)p, (void)e, (void)w, (void)bias, (void)err;
    *out = NULL;
    return TARE_OK;
}
tare_status tare__float_layer_run(float_layer *layer, const float *x, float *y, tare_error *err) {
    (void)layer, (void)x, (void)y;
    return tare__fail(err, TARE_INTERNAL, "there are no float layers in this build");
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
