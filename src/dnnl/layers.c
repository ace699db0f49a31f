// SPDX-License-Identifier: Apache-2.0
// Float layers by oneDNN 2.x, through its C API. Everything is compiled for channels last: on the
// processors measured its kernels for that order are as fast as those for its own blocks of
// channels, and elementwise neighbours, pooling and views need no special form of it.
//
// Threads are ours: a layer is divided into primitives, each for one thread. Debian's oneDNN would
// take libgomp's threads, which spin while they wait and slow down all others where no core is
// idle.
#include "dnnl/float_layers.h"

#ifdef TARE_HAVE_DNNL
#include "core/memory/alloc.h"
#include "dnnl/one_thread.h"
#include "dnnl/primitive.h"

// Dividing a layer of fewer multiply-accumulates costs more than it saves: some five microseconds.
// Threads that wait for longer fall asleep.
enum { LEAST_SHARED_COST = 1 << 18 };

// Fewer multiply-accumulates with an element are not worth rounding it to bfloat16 first.
enum { LEAST_BF16_MACS = 32 };

// oneDNN also emulates it, slower than it computes float32.
static tare_status check_bf16(bool uses_bf16, tare_error *err) {
    const unsigned has = (unsigned)dnnl_get_effective_cpu_isa();
    const unsigned needed = (unsigned)dnnl_cpu_isa_avx512_core_bf16;
    if (!uses_bf16 || (has & needed) == needed) return TARE_OK;
    return tare__fail(err, TARE_UNSUPPORTED,
                      "bfloat16: this machine lacks its instructions (AVX512-BF16)");
}

static tare_status create(size_t thread_count, bool uses_bf16, float_layers **out,
                          tare_error *err) {
    float_layers *l = tare__alloc_zeroed(1, sizeof *l);
    if (l == NULL) return tare__out_of_memory(err);
    l->uses_bf16 = uses_bf16;
    l->thread_count = thread_count;
    l->memory = tare__alloc_zeroed(l->thread_count + 1, sizeof *l->memory);
    if (l->memory != NULL) {
        *out = l;
        return TARE_OK;
    }
    tare__free(l);
    return tare__out_of_memory(err);
}

tare_status tare__float_layers_create(thread_pool *pool, bool uses_bf16, float_layers **out,
                                      tare_error *err) {
    float_layers *l = NULL;
    TARE_TRY(check_bf16(uses_bf16, err));
    TARE_TRY(create(tare__thread_count(pool), uses_bf16, &l, err));
    l->pool = pool;
    const tare_status status = tare__dnnl_open(&l->dnnl, err);
    if (status == TARE_OK)
        *out = l;
    else
        tare__float_layers_destroy(l);
    return status;
}

// Its layers are cut as those of `of`, on whose engine they are compiled; one thread runs all
// primitives.
tare_status tare__float_layers_replica(const float_layers *of, float_layers **out,
                                       tare_error *err) {
    TARE_TRY(create(of->thread_count, of->uses_bf16, out, err));
    (*out)->dnnl = of->dnnl;
    (*out)->is_replica = true;
    return TARE_OK;
}

void tare__float_layers_destroy(float_layers *l) {
    if (l == NULL) return;
    if (!l->is_replica) tare__dnnl_close(&l->dnnl);
    for (size_t i = 0; l->memory != NULL && i <= l->thread_count; i++) {
        tare__free_aligned(l->memory[i].work.data);
        tare__free_aligned(l->memory[i].narrow.data);
        tare__free_aligned(l->memory[i].share.data);
        for (size_t k = 0; k < MOST_LINKS - 1; k++)
            tare__free_aligned(l->memory[i].windows[k].data);
    }
    tare__free(l->memory);
    tare__free(l);
}

bool tare__float_layers_use_bf16(const float_layers *l) {
    return l->uses_bf16;
}

// --- layers in primitives ---

primitive_form tare__primitive_form_of(const float_weights *w) {
    return (primitive_form){
        .w = tare__f32(w->w), .bias = w->bias, .model_weights = w->is_model ? w->w : NULL};
}

tare_status tare__float_layer_create(float_layers *l, size_t primitive_count, float_layer **out,
                                     tare_error *err) {
    float_layer *layer =
        tare__alloc_zeroed(1, sizeof *layer + primitive_count * sizeof *layer->primitives);
    if (layer == NULL) return tare__out_of_memory(err);
    tare__use_one_thread();
    layer->shared = l;
    layer->primitive_count = primitive_count;
    for (size_t i = 0; i < primitive_count; i++) {
        layer->primitives[i].at.times = 1;
        layer->primitives[i].at.memory = i;
    }
    *out = layer;
    return TARE_OK;
}

tare_status tare__float_layer_finish(float_layer *layer, tare_status status, bool fits,
                                     float_layer **out) {
    if (status == TARE_OK && fits) {
        *out = layer;
        return TARE_OK;
    }
    tare__float_layer_destroy(layer);
    return status;
}

size_t tare__float_share_count(const float_layers *l, double cost, int64_t units) {
    if (cost < LEAST_SHARED_COST || units < 1) return 1;
    const size_t most = l->thread_count < MOST_PRIMITIVES ? l->thread_count : MOST_PRIMITIVES;
    return (uint64_t)units < most ? (size_t)units : most;
}

tare_status tare__float_layer_replica(const float_layer *of, float_layers *in, float_layer **out,
                                      tare_error *err) {
    float_layer *layer = NULL;
    TARE_TRY(tare__dnnl_expect(DNNL_COMPILE_BYTES, err));
    TARE_TRY(tare__float_layer_create(in, of->primitive_count, &layer, err));
    tare_status status = TARE_OK;
    for (size_t i = 0; i < of->primitive_count && status == TARE_OK; i++)
        status = tare__float_primitive_replica(&of->primitives[i], layer, i, err);
    layer->row_blocks = of->row_blocks;
    if (status == TARE_OK && of->row_blocks != NULL)
        status = tare__float_row_blocks_reserve(layer, err);
    return tare__float_layer_finish(layer, status, true, out);
}

bool tare__is_worth_bf16(const float_layers *l, double macs, double elements) {
    return l->uses_bf16 && macs >= LEAST_BF16_MACS * elements;
}

// --- product ---

static tare_status describe_product(const float_product *p, primitive_form *f,
                                    dnnl_matmul_desc_t *out, tare_error *err) {
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
                                   const float_epilogue *e, primitive_form f, bool *fits,
                                   tare_error *err) {
    dnnl_matmul_desc_t desc;
    *fits = false;
    const tare_status status = describe_product(p, &f, &desc, err);
    if (status != TARE_OK) return status == TARE_UNSUPPORTED ? TARE_OK : status;
    return tare__float_primitive_compile(layer, index, &f, &desc, e, fits, err);
}

// Rows are divided; of a single row the columns, which are the rows of the weights.
tare_status tare__float_layer_product(float_layers *l, const float_product *p,
                                      const float_epilogue *e, const float_weights *w,
                                      float_layer **out, tare_error *err) {
    const bool by_columns = p->rows == 1 && p->transposed;
    const int64_t units = by_columns ? p->columns : p->rows;
    const double macs = (double)p->rows * (double)p->columns * (double)p->inner;
    const size_t count = tare__float_share_count(l, macs, units);
    float_layer *layer = NULL;
    *out = NULL;
    TARE_TRY(tare__float_layer_create(l, count, &layer, err));
    tare_status status = TARE_OK;
    bool fits = true;
    for (size_t i = 0; i < count && fits && status == TARE_OK; i++) {
        const share_range share = tare__share_range(units, count, i);
        const int64_t first = share.first, size = share.end - first;
        const int64_t row = by_columns ? 0 : first, column = by_columns ? first : 0;
        float_product slice = *p;
        slice.rows = by_columns ? 1 : size;
        slice.columns = by_columns ? size : p->columns;
        layer->primitives[i].at.x_first = row * p->inner;
        layer->primitives[i].at.y_first = row * p->columns + column;
        primitive_form f = tare__primitive_form_of(w);
        f.w += column * p->inner;
        f.bias = f.bias != NULL ? f.bias + column : NULL;
        f.lender = by_columns ? NULL : &layer->primitives[0];
        f.is_bf16 = tare__is_worth_bf16(l, macs, (double)p->rows * (double)p->inner);
        status = compile_product(layer, i, &slice, e, f, &fits, err);
        if (status != TARE_OK || fits || !f.is_bf16) continue;
        tare__float_primitive_clear(&layer->primitives[i]);
        f.is_bf16 = false;
        status = compile_product(layer, i, &slice, e, f, &fits, err);
    }
    return tare__float_layer_finish(layer, status, fits, out);
}

// --- running ---

// Asked once in a run: what its layers take on their threads is little, and had before.
tare_status tare__float_layers_expect_run(const float_layers *l, bool others, tare_error *err) {
    return l->is_used || others ? tare__dnnl_expect(l->thread_count * DNNL_RUN_BYTES, err)
                                : TARE_OK;
}

typedef struct layer_run {
    float_layer *layer;
    const float *x;
    float *y;
    dnnl_status_t *statuses; // by primitive
} layer_run;

// Each task runs the primitive that was compiled for its share of the output.
static void run_task(void *user, size_t index, size_t worker) {
    const layer_run *run = user;
    (void)worker;
    run->statuses[index] = tare__float_primitive_run(run->layer, index, run->x, run->y);
}

tare_status tare__float_layer_run(float_layer *layer, const float *x, float *y, tare_error *err) {
    dnnl_status_t statuses[MOST_PRIMITIVES + 1];
    if (layer->row_blocks != NULL) {
        DNNL_TRY(tare__float_row_blocks_run(layer, x, y));
        return TARE_OK;
    }
    layer_run run = {layer, x, y, statuses};
    if (layer->primitive_count == 1)
        statuses[0] = tare__float_primitive_run(layer, 0, x, y);
    else
        tare__thread_pool_run(layer->shared->pool, layer->primitive_count, run_task, &run);
    for (size_t i = 0; i < layer->primitive_count; i++) DNNL_TRY(statuses[i]);
    return TARE_OK;
}

bool tare__float_layer_images_are_alike(const float_layer *layer) {
    return layer->images_are_alike;
}

const char *tare__float_primitive_kernel(const float_primitive *p) {
    const_dnnl_primitive_desc_t pd = NULL;
    return dnnl_primitive_get_primitive_desc(p->primitive, &pd) == dnnl_success
               ? tare__dnnl_implementation(pd)
               : "";
}

const char *tare__float_layer_kernel(const float_layer *layer, size_t *weight_bytes) {
    const dnnl_memory_desc_t *weights = NULL;
    *weight_bytes = 0;
    for (size_t i = 0; i < layer->primitive_count; i++)
        if (!layer->primitives[i].lends_weights &&
            dnnl_memory_get_memory_desc(layer->primitives[i].memory[WEIGHTS], &weights) ==
                dnnl_success)
            *weight_bytes += dnnl_memory_desc_get_size(weights);
    return tare__float_primitive_kernel(&layer->primitives[0]);
}

void tare__float_layer_destroy(float_layer *layer) {
    if (layer == NULL) return;
    const bool is_replica = layer->primitive_count > 0 && layer->primitives[0].is_replica;
    for (size_t i = 0; i < layer->primitive_count; i++)
        tare__float_primitive_clear(&layer->primitives[i]);
    if (!is_replica) tare__float_row_blocks_destroy(layer->row_blocks);
    tare__free(layer);
}

tare_status tare__float_layers_multiply(float_layers *l, const float_block *b, const float *x,
                                        const float *w, float *y, tare_error *err) {
    (void)l;
    TARE_TRY(tare__dnnl_expect(DNNL_MULTIPLY_BYTES, err));
    tare__use_one_thread();
    DNNL_TRY(dnnl_sgemm('N', b->transposed ? 'T' : 'N', b->rows, b->columns, b->inner, 1.0F, x,
                        b->x_step, w, b->w_step, 0.0F, y, b->y_step));
    return TARE_OK;
}
#else
// Without a library no layer has a fast form.
tare_status tare__float_layers_create(thread_pool *pool, bool uses_bf16, float_layers **out,
                                      tare_error *err) {
    (void)pool;
    *out = NULL;
    if (!uses_bf16) return TARE_OK;
    return tare__fail(err, TARE_UNSUPPORTED,
                      "bfloat16: this build lacks oneDNN, which computes it");
}
void tare__float_layers_destroy(float_layers *l) {
    (void)l;
}
tare_status tare__float_layers_expect_run(const float_layers *l, bool others, tare_error *err) {
    (void)l, (void)others, (void)err;
    return TARE_OK;
}
bool tare__float_layers_use_bf16(const float_layers *l) {
    (void)l;
    return false;
}
tare_status tare__float_layer_conv(float_layers *l, const float_conv *c, const float_epilogue *e,
                                   const float_weights *w, float_layer **out, tare_error *err) {
    (void)l, (void)c, (void)e, (void)w, (void)err;
    *out = NULL;
    return TARE_OK;
}
tare_status tare__float_layer_chain(float_layers *l, const float_link *links, size_t count,
                                    float_layer **out, tare_error *err) {
    (void)l, (void)links, (void)count, (void)err;
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
tare_status tare__float_layers_replica(const float_layers *of, float_layers **out,
                                       tare_error *err) {
    (void)of, (void)err;
    *out = NULL;
    return TARE_OK;
}
bool tare__float_layer_applies(element_kind kind) {
    (void)kind;
    return false;
}
tare_status tare__float_layer_replica(const float_layer *of, float_layers *in, float_layer **out,
                                      tare_error *err) {
    (void)of, (void)in, (void)err;
    *out = NULL;
    return TARE_OK;
}
tare_status tare__float_layer_run(float_layer *layer, const float *x, float *y, tare_error *err) {
    (void)layer, (void)x, (void)y;
    return tare__fail(err, TARE_INTERNAL, "there are no float layers in this build");
}
bool tare__float_layer_images_are_alike(const float_layer *layer) {
    (void)layer;
    return false;
}
const char *tare__float_layer_kernel(const float_layer *layer, size_t *weight_bytes) {
    (void)layer;
    *weight_bytes = 0;
    return "";
}
void tare__float_layer_destroy(float_layer *layer) {
    (void)layer;
}
tare_status tare__float_layers_multiply(float_layers *l, const float_block *b, const float *x,
                                        const float *w, float *y, tare_error *err) {
    (void)l, (void)b, (void)x, (void)w, (void)y;
    return tare__fail(err, TARE_INTERNAL, "there are no float layers in this build");
}
#endif
