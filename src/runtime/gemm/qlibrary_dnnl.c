// SPDX-License-Identifier: Apache-2.0
// Computes a convolution's integer sums with oneDNN 2.x (its C API), one row block of the output at
// a time, and applies the epilogue of the product kernels to them.
#include "runtime/gemm/qlibrary.h"

#if defined(TARE_HAVE_DNNL) && defined(TARE_HAVE_X86_KERNELS)
#include <string.h>

#include "core/memory/alloc.h"
#include "dnnl/calls.h"
#include "dnnl/one_thread.h"
#include "ops/quantized/engine_rules.h"
#include "runtime/gemm/conv_shape.h"
#include "runtime/gemm/qconstants.h"

enum {
    CACHED_SUMS = 256 << 10, // bytes of a row block's sums
    ROW_BLOCKS_PER_THREAD = 2,
    MOST_ROW_BLOCKS = 128,
    ALIGNMENT = 64,
};
enum { SRC, WEIGHTS, DST, WORK, MEMORIES };

// Rows [first, first + rows) of the output, and the input row at which their windows begin.
typedef struct row_block {
    size_t first, rows, begin;
    dnnl_primitive_t primitive;
    size_t work_bytes;
} row_block;

struct qlibrary {
    qconstants constants;
    conv_geometry g;
    conv_shape shape;
    size_t ins, outs, thread_count;
    dnnl_context dnnl;
    dnnl_memory_desc_t packed; // of the packed weights
    void *weights;
    size_t weight_bytes, sum_bytes, work_bytes; // sums and work: of a thread
    size_t row_block_count;
    row_block row_blocks[MOST_ROW_BLOCKS];
    dnnl_memory_t *memories; // [thread][row block][MEMORIES]
};

// --- which layers ---

static bool is_covered(const quantized_layer *layer, const tare_tensor *x, const tare_tensor *y) {
    const conv_geometry *g = &layer->conv;
    if (layer->weight->ndim != 4 || g->dims != 2 || x->ndim != 4 || x->count == 0) return false;
    if (g->is_transposed || g->reflects || g->groups != 1 || y->q == NULL) return false;
    return x->dtype == TARE_QUINT8 && layer->weight->dtype == TARE_QINT8 &&
           tare__qconstants_fit(layer, x) && !tare__has_zero_points(layer->weight);
}

static bool has_padding(const qlibrary *l) {
    return l->shape.staged_height != l->shape.height || l->shape.staged_width != l->shape.width;
}

// --- row blocks ---

static void choose_row_blocks(qlibrary *l) {
    const size_t height = l->shape.out_height, row_bytes = l->shape.out_width * l->outs * 4;
    size_t rows = CACHED_SUMS / row_bytes;
    const size_t shared = height / (l->thread_count * ROW_BLOCKS_PER_THREAD);
    if (l->thread_count > 1 && shared < rows) rows = shared;
    if (rows < tare__ceil_div(height, MOST_ROW_BLOCKS))
        rows = tare__ceil_div(height, MOST_ROW_BLOCKS);
    if (rows < 1) rows = 1;
    l->row_block_count = tare__ceil_div(height, rows);
    rows = tare__ceil_div(height, l->row_block_count);
    l->row_block_count = tare__ceil_div(height, rows);
    for (size_t i = 0; i < l->row_block_count; i++) {
        l->row_blocks[i].first = i * rows;
        l->row_blocks[i].rows = height - i * rows < rows ? height - i * rows : rows;
    }
    l->sum_bytes = tare__round_up(rows * row_bytes, ALIGNMENT);
}

typedef struct row_block_sizes {
    dnnl_dims_t src, weights, dst, stride, dilation, before, after;
} row_block_sizes;

// The part of the image and of the padding that the windows of a row block cover.
static row_block_sizes sizes_of(const qlibrary *l, row_block *b) {
    const conv_geometry *g = &l->g;
    const int64_t height = (int64_t)l->shape.height, width = (int64_t)l->shape.width;
    const int64_t reach = g->dilation[H] * (g->kernel[H] - 1) + 1;
    int64_t from = (int64_t)b->first * g->stride[H] - (int64_t)l->shape.above;
    int64_t to = from + ((int64_t)b->rows - 1) * g->stride[H] + reach;
    const int64_t above = from < 0 ? -from : 0, below = to > height ? to - height : 0;
    const int64_t columns =
        ((int64_t)l->shape.out_width - 1) * g->stride[W] + g->dilation[W] * (g->kernel[W] - 1) + 1;
    from += above;
    to -= below;
    b->begin = (size_t)from;
    return (row_block_sizes){
        .src = {1, (int64_t)l->ins, to - from, width},
        .weights = {(int64_t)l->outs, (int64_t)l->ins, g->kernel[H], g->kernel[W]},
        .dst = {1, (int64_t)l->outs, (int64_t)b->rows, (int64_t)l->shape.out_width},
        .stride = {g->stride[H], g->stride[W]},
        .dilation = {g->dilation[H] - 1, g->dilation[W] - 1},
        .before = {above, (int64_t)l->shape.before},
        .after = {below, columns - width - (int64_t)l->shape.before},
    };
}

static tare_status describe(const qlibrary *l, row_block *b, dnnl_memory_desc_t memory[MEMORIES],
                            dnnl_convolution_desc_t *out, tare_error *err) {
    const row_block_sizes s = sizes_of(l, b);
    if (s.src[2] < 1)
        return tare__fail(err, TARE_UNSUPPORTED, "a row block sees the padding alone");
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&memory[SRC], 4, s.src, dnnl_u8, dnnl_nhwc));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&memory[DST], 4, s.dst, dnnl_s32, dnnl_nhwc));
    DNNL_TRY(
        dnnl_memory_desc_init_by_tag(&memory[WEIGHTS], 4, s.weights, dnnl_s8, dnnl_format_tag_any));
    DNNL_TRY(dnnl_dilated_convolution_forward_desc_init(
        out, dnnl_forward_inference, dnnl_convolution_direct, &memory[SRC], &memory[WEIGHTS], NULL,
        &memory[DST], s.stride, s.dilation, s.before, s.after));
    return TARE_OK;
}

// --- weights ---

static tare_status pack(qlibrary *l, const tare_tensor *weight, tare_error *err) {
    const dnnl_dims_t dims = {weight->shape[0], weight->shape[1], weight->shape[2],
                              weight->shape[3]};
    dnnl_memory_desc_t given;
    l->weight_bytes = dnnl_memory_desc_get_size(&l->packed);
    l->weights = tare__alloc_aligned(l->weight_bytes, ALIGNMENT);
    if (l->weights == NULL) return tare__out_of_memory(err);
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&given, 4, dims, dnnl_s8, dnnl_oihw));
    return tare__dnnl_pack(&l->dnnl, &given, weight->data, &l->packed, l->weights, err);
}

// --- compiling ---

// Only these instructions add four products at once without saturating.
static bool is_exact(const_dnnl_primitive_desc_t pd) {
    const char *name = tare__dnnl_implementation(pd);
    return strstr(name, "avx512_core_vnni") != NULL || strstr(name, "avx512_core_amx") != NULL;
}

static tare_status create_memories(qlibrary *l, size_t index,
                                   const dnnl_memory_desc_t memory[MEMORIES], tare_error *err) {
    for (size_t t = 0; t < l->thread_count; t++) {
        dnnl_memory_t *m = l->memories + (t * l->row_block_count + index) * MEMORIES;
        for (int i = 0; i < MEMORIES; i++)
            DNNL_TRY(dnnl_memory_create(&m[i], &memory[i], l->dnnl.engine,
                                        i == WEIGHTS ? l->weights : DNNL_MEMORY_NONE));
    }
    return TARE_OK;
}

static tare_status fill(qlibrary *l, size_t index, const_dnnl_primitive_desc_t pd,
                        dnnl_memory_desc_t memory[MEMORIES], const tare_tensor *weight,
                        tare_error *err) {
    row_block *b = &l->row_blocks[index];
    memory[WEIGHTS] = *dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    memory[WORK] = *dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    if (index == 0) {
        l->packed = memory[WEIGHTS];
        TARE_TRY(pack(l, weight, err));
    } else if (!dnnl_memory_desc_equal(&l->packed, &memory[WEIGHTS])) {
        return tare__fail(err, TARE_UNSUPPORTED, "row blocks want weights in different orders");
    }
    b->work_bytes = dnnl_memory_desc_get_size(&memory[WORK]);
    if (b->work_bytes > l->work_bytes) l->work_bytes = tare__round_up(b->work_bytes, ALIGNMENT);
    DNNL_TRY(dnnl_primitive_create(&b->primitive, pd));
    return create_memories(l, index, memory, err);
}

static tare_status compile(qlibrary *l, size_t index, const tare_tensor *weight, tare_error *err) {
    dnnl_memory_desc_t memory[MEMORIES];
    dnnl_convolution_desc_t desc;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t pd = NULL;
    TARE_TRY(tare__dnnl_expect(DNNL_COMPILE_BYTES, err));
    TARE_TRY(describe(l, &l->row_blocks[index], memory, &desc, err));
    TARE_TRY(tare__dnnl_create_attribute(&attributes, err));
    const dnnl_status_t status =
        dnnl_primitive_desc_create(&pd, &desc, attributes, l->dnnl.engine, NULL);
    dnnl_primitive_attr_destroy(attributes);
    DNNL_TRY(status);
    const tare_status done = is_exact(pd) ? fill(l, index, pd, memory, weight, err)
                                          : tare__fail(err, TARE_UNSUPPORTED, "sums may saturate");
    dnnl_primitive_desc_destroy(pd);
    return done;
}

static tare_status prepare(qlibrary *l, const quantized_layer *layer, const tare_tensor *x,
                           const tare_tensor *y, tare_error *err) {
    l->g = layer->conv;
    l->ins = (size_t)l->g.in_channels;
    l->outs = (size_t)l->g.out_channels;
    TARE_TRY(tare__conv_shape_of(&l->g, x, &l->shape, err));
    TARE_TRY(tare__qconstants_create(layer, x->q, y->q, &l->constants, err));
    // The library pads with zeros.
    if (has_padding(l) && l->constants.zero_value != 0)
        return tare__fail(err, TARE_UNSUPPORTED, "the padding is not of zeros");
    choose_row_blocks(l);
    l->memories =
        tare__alloc_zeroed(l->thread_count * l->row_block_count * MEMORIES, sizeof(dnnl_memory_t));
    if (l->memories == NULL) return tare__out_of_memory(err);
    tare__use_one_thread();
    TARE_TRY(tare__dnnl_open(&l->dnnl, err));
    for (size_t i = 0; i < l->row_block_count; i++) TARE_TRY(compile(l, i, layer->weight, err));
    return TARE_OK;
}

tare_status tare__qlibrary_create(const quantized_layer *layer, const tare_tensor *x,
                                  const tare_tensor *y, isa_level isa, size_t thread_count,
                                  qlibrary **out, tare_error *err) {
    *out = NULL;
    if (isa < ISA_AVX512VNNI || !is_covered(layer, x, y)) return TARE_OK;
    qlibrary *l = tare__alloc_zeroed(1, sizeof *l);
    if (l == NULL) return tare__out_of_memory(err);
    l->thread_count = thread_count;
    const tare_status status = prepare(l, layer, x, y, err);
    if (status == TARE_OK)
        *out = l;
    else
        tare__qlibrary_destroy(l);
    return status == TARE_UNSUPPORTED ? TARE_OK : status;
}

void tare__qlibrary_destroy(qlibrary *l) {
    if (l == NULL) return;
    for (size_t i = 0; l->memories != NULL && i < l->thread_count * l->row_block_count * MEMORIES;
         i++)
        dnnl_memory_destroy(l->memories[i]);
    for (size_t i = 0; i < l->row_block_count; i++)
        dnnl_primitive_destroy(l->row_blocks[i].primitive);
    tare__dnnl_close(&l->dnnl);
    tare__qconstants_release(&l->constants);
    tare__free_aligned(l->weights);
    tare__free(l->memories);
    tare__free(l);
}

qlayer_form tare__qlibrary_form(const qlibrary *l) {
    return (qlayer_form){.kernel = "oneDNN, qu8_product_finish__avx512vnni",
                         .tile_rows = l->row_blocks[0].rows * l->shape.out_width,
                         .tile_channels = l->outs,
                         .weight_bytes = l->weight_bytes,
                         .macs = l->shape.out_height * l->shape.out_width * l->outs * l->ins *
                                 (size_t)l->g.kernel[H] * (size_t)l->g.kernel[W]};
}

size_t tare__qlibrary_scratch_bytes(const qlibrary *l, size_t thread_count) {
    return thread_count * (l->sum_bytes + l->work_bytes);
}

// --- running ---

typedef struct library_job {
    const qlibrary *l;
    const qlayer_run *run;
} library_job;

static void finish(const library_job *job, const int32_t *sums, size_t pixel, size_t pixels) {
    const qlibrary *l = job->l;
    const qlayer_run *run = job->run;
    for (size_t c = 0; c < l->outs; c += PRODUCT_BLOCK) {
        const size_t stride = run->y_stride != 0 ? run->y_stride : l->outs;
        product_addend addend;
        if (run->addend != NULL) {
            addend = *run->addend;
            if (addend.stride == 0) addend.stride = l->outs;
            addend.quantized += pixel * addend.stride + c;
        }
        const product_tile tile = {
            .rows = pixels,
            .channels = l->outs - c < PRODUCT_BLOCK ? l->outs - c : PRODUCT_BLOCK,
            .epilogue = tare__qconstants_epilogue(&l->constants, (int64_t)c),
            .addend = run->addend != NULL ? &addend : NULL,
            .y = run->y + pixel * stride + c,
            .y_stride = stride,
        };
        qu8_product_finish__avx512vnni(&tile, sums + c, l->outs);
    }
}

// The library cannot fail here, because it uses memory that was allocated before.
static void sum_row_block(const library_job *job, size_t image, size_t index, size_t worker) {
    const qlibrary *l = job->l;
    const conv_shape *s = &l->shape;
    const row_block *b = &l->row_blocks[index];
    const size_t thread = job->run->space->number + worker;
    dnnl_memory_t *m = l->memories + (thread * l->row_block_count + index) * MEMORIES;
    unsigned char *memory =
        (unsigned char *)job->run->scratch + worker * (l->sum_bytes + l->work_bytes);
    const uint8_t *x = job->run->x + (image * s->height + b->begin) * s->width * l->ins;
    tare__use_one_thread();
    (void)dnnl_memory_set_data_handle(m[SRC], (void *)x);
    (void)dnnl_memory_set_data_handle(m[DST], memory);
    if (b->work_bytes > 0) (void)dnnl_memory_set_data_handle(m[WORK], memory + l->sum_bytes);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, m[SRC]},
                                    {DNNL_ARG_WEIGHTS, m[WEIGHTS]},
                                    {DNNL_ARG_DST, m[DST]},
                                    {DNNL_ARG_SCRATCHPAD, m[WORK]}};
    (void)dnnl_primitive_execute(b->primitive, l->dnnl.stream, 4, args);
    (void)dnnl_stream_wait(l->dnnl.stream);
    finish(job, (const int32_t *)(const void *)memory,
           (image * s->out_height + b->first) * s->out_width, b->rows * s->out_width);
}

static void sum_row_blocks(void *user, size_t image, size_t first, size_t end, size_t worker) {
    for (size_t i = first; i < end; i++) sum_row_block(user, image, i, worker);
}

void tare__qlibrary_run(const qlibrary *l, const qlayer_run *run) {
    library_job job = {l, run};
    thread_pool *pool = tare__workspace_pool(run->space, run->batch * tare__qlibrary_form(l).macs);
    if (tare__thread_count(pool) > l->thread_count) pool = NULL;
    tare__parallel_nest(pool, run->batch, l->row_block_count, 1, sum_row_blocks, &job);
}
#else
tare_status tare__qlibrary_create(const quantized_layer *layer, const tare_tensor *x,
                                  const tare_tensor *y, isa_level isa, size_t thread_count,
                                  qlibrary **out, tare_error *err) {
    (void)layer, (void)x, (void)y, (void)isa, (void)thread_count, (void)err;
    *out = NULL;
    return TARE_OK;
}
void tare__qlibrary_destroy(qlibrary *l) {
    (void)l;
}
qlayer_form tare__qlibrary_form(const qlibrary *l) {
    (void)l;
    return (qlayer_form){0};
}
size_t tare__qlibrary_scratch_bytes(const qlibrary *l, size_t thread_count) {
    (void)l, (void)thread_count;
    return 0;
}
void tare__qlibrary_run(const qlibrary *l, const qlayer_run *run) {
    (void)l, (void)run;
}
#endif
