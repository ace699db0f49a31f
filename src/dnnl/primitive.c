// SPDX-License-Identifier: Apache-2.0
// Compiles primitives, provides their memory, and runs them.
#ifdef TARE_HAVE_DNNL
#include "dnnl/primitive.h"

#include <string.h>

#include "core/hash/hash.h"
#include "core/memory/alloc.h"
#include "dnnl/one_thread.h"

// Distinguishes packed weights from other data that is derived from a tensor.
#define WEIGHTS_TAG UINT64_C(0x646e6e6c666c6f61)

// --- what follows a layer ---

// oneDNN's functions. alpha, beta: where they are not the first two parameters.
typedef struct eltwise {
    dnnl_alg_kind_t algorithm; // dnnl_alg_kind_undef: there is none
    bool is_fixed;
    float alpha, beta;
} eltwise;
static const eltwise functions[ELEMENT_COUNT] = {
#define FUSED(kind, ...) [ELEMENT_##kind] = {__VA_ARGS__},
#include "core/math/elements.def"
};

bool tare__float_layer_applies(element_kind kind) {
    return functions[kind].algorithm != dnnl_alg_kind_undef;
}

static tare_status append_function(dnnl_post_ops_t ops, element_kind kind, const float *p,
                                   tare_error *err) {
    const eltwise *f = &functions[kind];
    DNNL_TRY(dnnl_post_ops_append_eltwise(ops, 1.0F, f->algorithm, f->is_fixed ? f->alpha : p[0],
                                          f->is_fixed ? f->beta : p[1]));
    return TARE_OK;
}

static tare_status append_epilogue(dnnl_post_ops_t ops, const float_epilogue *e, tare_error *err) {
    for (size_t i = 0; i < e->count; i++)
        if (e->steps[i].adds)
            DNNL_TRY(dnnl_post_ops_append_sum(ops, 1.0F));
        else
            TARE_TRY(append_function(ops, e->steps[i].kind, e->steps[i].p, err));
    return TARE_OK;
}

static tare_status create_attributes(const float_epilogue *e, dnnl_primitive_attr_t *out,
                                     tare_error *err) {
    dnnl_post_ops_t ops = NULL;
    TARE_TRY(tare__dnnl_create_attribute(out, err));
    tare_status status = tare__dnnl_status(dnnl_post_ops_create(&ops), err);
    if (status != TARE_OK) return status;
    status = append_epilogue(ops, e, err);
    if (status == TARE_OK)
        status = tare__dnnl_status(dnnl_primitive_attr_set_post_ops(*out, ops), err);
    dnnl_post_ops_destroy(ops);
    return status;
}

static bool adds(const float_epilogue *e) {
    for (size_t i = 0; i < e->count; i++)
        if (e->steps[i].adds) return true;
    return false;
}

// --- memories ---

static tare_status create_memory(const float_layers *l, dnnl_memory_t *memory,
                                 const dnnl_memory_desc_t *desc, void *data, tare_error *err) {
    TARE_TRY(tare__dnnl_expect(DNNL_RUN_BYTES, err)); // after allocations of ours
    DNNL_TRY(
        dnnl_memory_create(memory, desc, l->dnnl.engine, data != NULL ? data : DNNL_MEMORY_NONE));
    return TARE_OK;
}

static tare_status copy_bias(const float_layers *l, const primitive_form *f, void **out,
                             tare_error *err) {
    const dnnl_memory_desc_t *desc = &f->given[BIAS];
    *out = tare__alloc_aligned(dnnl_memory_desc_get_size(desc), 64);
    if (*out == NULL) return tare__out_of_memory(err);
    return tare__dnnl_pack(&l->dnnl, desc, f->bias, desc, *out, err);
}

// --- packed weights ---

static void destroy_weights(derived_item *item) {
    packed_weights *w = (packed_weights *)(void *)item;
    if (w->memory != NULL)
        tare__derived_memory_release(w->memory);
    else
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
    const primitive_form *form;
    const dnnl_memory_desc_t *wanted;
} weights_request;

// In large pages: a network reads all of its weights in every run, mostly from beyond the caches.
static tare_status pack_weights(const weights_request *r, packed_weights *w, tare_error *err) {
    const size_t size = dnnl_memory_desc_get_size(r->wanted);
    const tare_tensor *of = r->form->model_weights;
    w->data =
        of != NULL ? tare__derived_alloc(of->store, size, &w->memory) : tare__alloc_large(size);
    if (w->data == NULL) return tare__out_of_memory(err);
    return tare__dnnl_pack(&r->layers->dnnl, &r->form->given[WEIGHTS], r->form->w, r->wanted,
                           w->data, err);
}

static tare_status make_weights(void *user, derived_offer offer, derived_item **out,
                                tare_error *err) {
    const weights_request *r = user;
    (void)offer; // files hold weights in the order of our kernels only
    packed_weights *w = tare__alloc_zeroed(1, sizeof *w);
    if (w == NULL) return tare__out_of_memory(err);
    w->base.destroy = destroy_weights;
    w->desc = *r->wanted;
    const tare_status status = pack_weights(r, w, err);
    if (status != TARE_OK) {
        destroy_weights(&w->base);
        return status;
    }
    if (r->form->model_weights != NULL) tare__tensor_forget(r->form->model_weights);
    *out = &w->base;
    return TARE_OK;
}

static uint64_t hash_of(const dnnl_memory_desc_t *desc) {
    return tare__hash_bytes(desc, sizeof *desc);
}

// Equal keys may hide different orders, as unlikely as that is.
static tare_status get_weights(const weights_request *r, packed_weights **out, tare_error *err) {
    const primitive_form *f = r->form;
    derived_item *item = NULL;
    *out = NULL;
    if (f->model_weights != NULL) {
        const derived_key key = {
            .data = f->w,
            .numbers = {WEIGHTS_TAG, hash_of(&f->given[WEIGHTS]), hash_of(r->wanted)}};
        TARE_TRY(tare__derive(f->model_weights->store, &key, make_weights, (void *)r, &item, err));
        packed_weights *found = (packed_weights *)(void *)item;
        if (dnnl_memory_desc_equal(&found->desc, r->wanted)) {
            *out = found;
            return TARE_OK;
        }
        tare__derived_release(item);
    }
    primitive_form own = *f; // outside of the table
    own.model_weights = NULL;
    weights_request alone = {r->layers, &own, r->wanted};
    TARE_TRY(make_weights(&alone, (derived_offer){NULL, 0}, &item, err));
    *out = (packed_weights *)(void *)item;
    return TARE_OK;
}

// Row blocks of one image have the same weights, mostly in the same order.
static tare_status fill_weights(float_layer *layer, float_primitive *p, const primitive_form *f,
                                const dnnl_memory_desc_t *wanted, tare_error *err) {
    const dnnl_memory_desc_t *first = NULL;
    dnnl_memory_t lent = f->lender != NULL ? f->lender->memory[WEIGHTS] : NULL;
    if (lent != NULL) {
        DNNL_TRY(dnnl_memory_get_memory_desc(lent, &first));
        if (dnnl_memory_desc_equal(first, wanted)) {
            p->memory[WEIGHTS] = lent;
            p->lends_weights = true;
            return TARE_OK;
        }
    }
    const weights_request request = {layer->shared, f, wanted};
    TARE_TRY(get_weights(&request, &p->weights, err));
    DNNL_TRY(dnnl_memory_create(&p->memory[WEIGHTS], wanted, layer->shared->dnnl.engine,
                                p->weights->data));
    return TARE_OK;
}

// --- compiling ---

tare_status tare__work_reserve(work_memory *work, size_t size, tare_error *err) {
    if (size <= work->size) return TARE_OK;
    void *data = tare__alloc_aligned(size, 64);
    if (data == NULL) return tare__out_of_memory(err);
    tare__free_aligned(work->data);
    *work = (work_memory){data, size};
    return TARE_OK;
}

static tare_status narrow_input(float_layers *l, float_primitive *p, const primitive_form *f,
                                tare_error *err) {
    dnnl_memory_desc_t wide = f->given[SRC];
    wide.data_type = dnnl_f32; // in the same dense order
    TARE_TRY(create_memory(l, &p->wide, &wide, NULL, err));
    TARE_TRY(tare__work_reserve(&l->memory[p->at.memory].narrow,
                                dnnl_memory_desc_get_size(&f->given[SRC]), err));
    return tare__dnnl_create_reorder(&l->dnnl, &wide, &f->given[SRC], &p->narrowing, err);
}

static tare_status reserve_work(float_layers *l, float_primitive *p, const dnnl_memory_desc_t *desc,
                                tare_error *err) {
    const size_t size = desc != NULL ? dnnl_memory_desc_get_size(desc) : 0;
    const size_t share = (size_t)(p->at.pixels * p->at.width) * sizeof(float);
    TARE_TRY(tare__work_reserve(&l->memory[p->at.memory].share, share, err));
    if (size == 0) return TARE_OK;
    TARE_TRY(tare__work_reserve(&l->memory[p->at.memory].work, size, err));
    return create_memory(l, &p->memory[WORK], desc, NULL, err);
}

static tare_status fill(float_layer *layer, size_t index, const primitive_form *f,
                        const_dnnl_primitive_desc_t pd, tare_error *err) {
    float_layers *l = layer->shared;
    float_primitive *p = &layer->primitives[index];
    TARE_TRY(create_memory(l, &p->memory[SRC], &f->given[SRC], NULL, err));
    if (f->is_bf16) TARE_TRY(narrow_input(l, p, f, err));
    TARE_TRY(create_memory(l, &p->memory[DST], &f->given[DST], NULL, err));
    TARE_TRY(
        fill_weights(layer, p, f, dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0), err));
    TARE_TRY(
        reserve_work(l, p, dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0), err));
    if (f->bias == NULL) return TARE_OK;
    TARE_TRY(copy_bias(l, f, &p->bias, err));
    return create_memory(l, &p->memory[BIAS], &f->given[BIAS], p->bias, err);
}

static bool is_lent(const float_primitive *p, int memory) {
    return (memory == WEIGHTS && (p->lends_weights || p->is_replica)) ||
           (memory == BIAS && p->is_replica);
}

void tare__float_primitive_clear(float_primitive *p) {
    for (int i = 0; i < MEMORIES; i++)
        if (p->memory[i] != NULL && !is_lent(p, i)) dnnl_memory_destroy(p->memory[i]);
    if (p->primitive != NULL && !p->is_replica) dnnl_primitive_destroy(p->primitive);
    if (p->narrowing != NULL && !p->is_replica) dnnl_primitive_destroy(p->narrowing);
    if (p->wide != NULL) dnnl_memory_destroy(p->wide);
    release_weights(p->weights);
    tare__free_aligned(p->bias);
    *p = (float_primitive){.at = p->at};
}

// The reference implementations of oneDNN are slower than ours.
static bool is_fast(const_dnnl_primitive_desc_t pd) {
    return strncmp(tare__dnnl_implementation(pd), "ref", 3) != 0;
}

tare_status tare__float_primitive_compile(float_layer *layer, size_t index, const primitive_form *f,
                                          const void *desc, const float_epilogue *e, bool *fits,
                                          tare_error *err) {
    float_primitive *p = &layer->primitives[index];
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t pd = NULL;
    *fits = false;
    TARE_TRY(tare__dnnl_expect(DNNL_COMPILE_BYTES, err));
    layer->shared->is_used = true;
    p->at.adds = adds(e);
    tare_status status = create_attributes(e, &attributes, err);
    if (status == TARE_OK)
        status = tare__dnnl_status(
            dnnl_primitive_desc_create(&pd, desc, attributes, layer->shared->dnnl.engine, NULL),
            err);
    if (attributes != NULL) dnnl_primitive_attr_destroy(attributes);
    if (status == TARE_OK && is_fast(pd)) {
        status = tare__dnnl_status(dnnl_primitive_create(&p->primitive, pd), err);
        if (status == TARE_OK) status = fill(layer, index, f, pd, err);
        *fits = status == TARE_OK;
    }
    if (pd != NULL) dnnl_primitive_desc_destroy(pd);
    return status == TARE_UNSUPPORTED ? TARE_OK : status;
}

// --- replicas ---

static tare_status create_alike(const float_layers *l, dnnl_memory_t of, dnnl_memory_t *out,
                                size_t *size, tare_error *err) {
    const dnnl_memory_desc_t *desc = NULL;
    *size = 0;
    if (of == NULL) return TARE_OK;
    DNNL_TRY(dnnl_memory_get_memory_desc(of, &desc));
    *size = dnnl_memory_desc_get_size(desc);
    return create_memory(l, out, desc, NULL, err);
}

// One thread runs all primitives of a replica, one after the other.
tare_status tare__float_primitive_replica(const float_primitive *of, float_layer *layer,
                                          size_t index, tare_error *err) {
    float_layers *l = layer->shared;
    primitive_memory *memory = &l->memory[of->at.memory];
    float_primitive *p = &layer->primitives[index];
    size_t src, dst, work, wide;
    *p = (float_primitive){.primitive = of->primitive,
                           .narrowing = of->narrowing,
                           .lends_weights = of->lends_weights,
                           .is_replica = true,
                           .at = of->at};
    p->memory[WEIGHTS] = of->memory[WEIGHTS];
    p->memory[BIAS] = of->memory[BIAS];
    TARE_TRY(create_alike(l, of->memory[SRC], &p->memory[SRC], &src, err));
    TARE_TRY(create_alike(l, of->memory[DST], &p->memory[DST], &dst, err));
    TARE_TRY(create_alike(l, of->memory[WORK], &p->memory[WORK], &work, err));
    TARE_TRY(create_alike(l, of->wide, &p->wide, &wide, err));
    if (of->narrowing != NULL) TARE_TRY(tare__work_reserve(&memory->narrow, src, err));
    const size_t share = (size_t)(of->at.pixels * of->at.width) * sizeof(float);
    TARE_TRY(tare__work_reserve(&memory->share, share, err));
    return tare__work_reserve(&memory->work, work, err);
}

// --- running ---

// x itself, or x in bfloat16.
static dnnl_status_t hand_input(const float_layers *l, const float_primitive *p, const float *x) {
    if (p->narrowing == NULL) return dnnl_memory_set_data_handle(p->memory[SRC], (void *)x);
    dnnl_status_t status = dnnl_memory_set_data_handle(p->wide, (void *)x);
    if (status == dnnl_success)
        status = dnnl_memory_set_data_handle(p->memory[SRC], l->memory[p->at.memory].narrow.data);
    return status == dnnl_success
               ? tare__dnnl_reorder(&l->dnnl, p->narrowing, p->wide, p->memory[SRC])
               : status;
}

static dnnl_status_t run_dense(const float_layer *layer, size_t index, const float *x, float *y) {
    static const int names[MEMORIES] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST,
                                        DNNL_ARG_SCRATCHPAD};
    const float_primitive *p = &layer->primitives[index];
    const float_layers *l = layer->shared;
    dnnl_exec_arg_t args[MEMORIES];
    int count = 0;
    dnnl_status_t status = hand_input(l, p, x);
    if (status == dnnl_success) status = dnnl_memory_set_data_handle(p->memory[DST], y);
    if (status == dnnl_success && p->memory[WORK] != NULL)
        status = dnnl_memory_set_data_handle(p->memory[WORK], l->memory[p->at.memory].work.data);
    for (int i = 0; i < MEMORIES; i++)
        if (p->memory[i] != NULL) args[count++] = (dnnl_exec_arg_t){names[i], p->memory[i]};
    if (status == dnnl_success)
        status = dnnl_primitive_execute(p->primitive, l->dnnl.stream, count, args);
    return status;
}

// The library writes dense memory only.
static dnnl_status_t run_channels(const float_layer *layer, size_t index, const float *x,
                                  float *y) {
    const float_primitive *p = &layer->primitives[index];
    float *share = layer->shared->memory[p->at.memory].share.data;
    const int64_t width = p->at.width, step = p->at.y_width;
    const size_t bytes = (size_t)width * sizeof *y;
    for (int64_t i = 0; p->at.adds && i < p->at.pixels; i++)
        memcpy(share + i * width, y + i * step, bytes);
    const dnnl_status_t status = run_dense(layer, index, x, share);
    for (int64_t i = 0; i < p->at.pixels; i++) memcpy(y + i * step, share + i * width, bytes);
    return status;
}

dnnl_status_t tare__float_primitive_run(const float_layer *layer, size_t index, const float *x,
                                        float *y) {
    const float_primitive *p = &layer->primitives[index];
    dnnl_status_t status = dnnl_success;
    tare__use_one_thread();
    x += p->at.x_first;
    y += p->at.y_first;
    for (size_t i = 0; i < p->at.times && status == dnnl_success; i++) {
        status = (p->at.pixels > 0 ? run_channels : run_dense)(layer, index, x, y);
        x += p->at.x_step;
        y += p->at.y_step;
    }
    return status;
}
#else
typedef int tare__no_dnnl_primitives; // a file must not be empty
#endif
