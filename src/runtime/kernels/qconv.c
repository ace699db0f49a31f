// SPDX-License-Identifier: Apache-2.0
// Quantized convolution as a matrix product. An image of a group is first staged: its border padded
// with the zero point, and codes put into words of four along the depth of the sum. Then blocks of
// output pixels gather the words that they meet, one row per word of depth, and meet the weights of
// all channels while they lie in the first-level cache.
//
// A word holds four channels at one place, or, where a group has few channels (the first layer,
// depthwise), four neighbours in a row, so that few of its bytes are idle.
#include "runtime/kernels/qconv.h"

#include <string.h>

#include "core/alloc.h"
#include "runtime/kernels/conv_shape.h"
#include "runtime/kernels/qconstants.h"
#include "runtime/kernels/tile.h"

enum {
    CHUNK = 8, // words that are copied together
    PARTS_PER_THREAD = 4,
    SLACK = 64, // elements that may be read or written beyond a buffer's end
};

struct qconv_plan {
    const conv_kernel *kernel;
    qconstants constants;
    conv_geometry g;
    conv_shape shape;
    size_t ins, outs; // channels of a group
    bool by_width;    // a word holds neighbours in a row
    bool is_direct;   // the staged image is the matrix: 1x1, stride 1, no padding
    size_t depth;     // words
    size_t *offset;   // [depth] from the place of an output pixel in the staged image to its word
    size_t planes;    // of the staged image: of one channel, or of four
    size_t stage_bytes;
    size_t group_words; // of packed weights
    uint32_t *weights;
};

static const conv_kernel *find_kernel(isa_level isa) {
    const conv_kernel *k = tare__conv_kernels;
    while (k->needs > isa) k++; // ends: the last row needs nothing
    return k;
}

// --- weights ---

// The byte of word d that belongs to channel i and kernel element (h, w) of a group; false: it is
// idle.
static bool weight_at(const qconv_plan *p, size_t d, size_t byte, size_t *i, size_t *h, size_t *w) {
    const size_t kh = (size_t)p->g.kernel[H], kw = (size_t)p->g.kernel[W];
    const size_t columns = p->by_width ? (kw + 3) / 4 : kw;
    *h = d / columns % kh;
    *i = p->by_width ? d / columns / kh : d / columns / kh * 4 + byte;
    *w = p->by_width ? d % columns * 4 + byte : d % columns;
    return *i < p->ins && *w < kw;
}

static void pack_channel(qconv_plan *p, const int8_t *w, size_t group, size_t c) {
    const size_t tile = p->kernel->tile, words = p->kernel->words;
    const size_t kh = (size_t)p->g.kernel[H], kw = (size_t)p->g.kernel[W];
    uint32_t *to =
        p->weights + group * p->group_words + c / tile * tile * p->depth * words + c % tile * words;
    for (size_t d = 0; d < p->depth; d++) {
        int8_t bytes[4] = {0};
        for (size_t b = 0, i, h, x; b < 4; b++)
            if (weight_at(p, d, b, &i, &h, &x)) bytes[b] = w[(i * kh + h) * kw + x];
        tare__store_weights(bytes, words, to + d * tile * words);
    }
}

static tare_status pack_weights(qconv_plan *p, const tare_tensor *weight, tare_error *err) {
    size_t words;
    const size_t padded = tare__round_up(p->outs, p->kernel->tile) * p->kernel->words;
    if (!tare__mul_size(padded, p->depth, &p->group_words) ||
        !tare__mul_size(p->group_words, (size_t)p->g.groups, &words) ||
        words > SIZE_MAX / sizeof *p->weights)
        return tare__out_of_memory(err);
    p->weights = tare__alloc_aligned(words * sizeof *p->weights, 64);
    if (p->weights == NULL) return tare__out_of_memory(err);
    memset(p->weights, 0, words * sizeof *p->weights);
    const size_t per_channel = (size_t)(weight->count / weight->shape[0]);
    for (size_t o = 0; o < p->outs * (size_t)p->g.groups; o++)
        pack_channel(p, (const int8_t *)weight->data + o * per_channel, o / p->outs, o % p->outs);
    return TARE_OK;
}

// --- planning ---

static bool fits(const quantized_layer *layer, const tare_tensor *x) {
    const conv_geometry *g = &layer->conv;
    return tare__qconstants_fit(layer, x) && !g->is_transposed && !g->reflects && g->dims <= 2 &&
           x->count > 0;
}

static void choose_words(qconv_plan *p) {
    const size_t kh = (size_t)p->g.kernel[H], kw = (size_t)p->g.kernel[W];
    const size_t by_channel = (p->ins + 3) / 4 * kh * kw, by_width = p->ins * kh * ((kw + 3) / 4);
    p->by_width = p->g.dilation[W] == 1 && by_width < by_channel;
    p->depth = p->by_width ? by_width : by_channel;
}

static tare_status choose_sizes(qconv_plan *p, tare_error *err) {
    const conv_shape *s = &p->shape;
    size_t elements;
    p->planes = p->by_width ? p->ins : (p->ins + 3) / 4;
    if (!tare__mul_size(p->planes * s->staged_height, s->staged_width, &elements) ||
        elements > SIZE_MAX / 64 - SLACK || p->depth > SIZE_MAX / 1024)
        return tare__out_of_memory(err);
    p->stage_bytes =
        tare__round_up((elements + SLACK) * (p->by_width ? 1 : sizeof(uint32_t)), SLACK);
    const bool is_pointwise = p->depth == p->planes && p->g.stride[H] == 1 && p->g.stride[W] == 1;
    p->is_direct = is_pointwise && !p->by_width && !tare__conv_shape_is_padded(s);
    return TARE_OK;
}

static tare_status list_offsets(qconv_plan *p, tare_error *err) {
    p->offset = tare__alloc_zeroed(p->depth, sizeof *p->offset);
    if (p->offset == NULL) return tare__out_of_memory(err);
    for (size_t d = 0; d < p->depth; d++) {
        size_t i, h, w;
        weight_at(p, d, 0, &i, &h, &w);
        const size_t plane = p->by_width ? i : i / 4;
        const size_t y = h * (size_t)p->g.dilation[H], x = w * (size_t)p->g.dilation[W];
        p->offset[d] = (plane * p->shape.staged_height + y) * p->shape.staged_width + x;
    }
    return TARE_OK;
}

static tare_status plan_layer(qconv_plan *p, const quantized_layer *layer, const tare_tensor *x,
                              const tare_tensor *y, tare_error *err) {
    p->g = layer->conv;
    p->ins = (size_t)(p->g.in_channels / p->g.groups);
    p->outs = (size_t)(p->g.out_channels / p->g.groups);
    TARE_TRY(tare__conv_shape_of(&p->g, x, &p->shape, err));
    choose_words(p);
    TARE_TRY(choose_sizes(p, err));
    TARE_TRY(list_offsets(p, err));
    TARE_TRY(tare__qconstants_create(layer, x->q, y->q, &p->constants, err));
    return pack_weights(p, layer->weight, err);
}

tare_status tare__qconv_plan_create(const quantized_layer *layer, const tare_tensor *x,
                                    const tare_tensor *y, isa_level isa, qconv_plan **out,
                                    tare_error *err) {
    *out = NULL;
    if (!fits(layer, x)) return TARE_OK;
    qconv_plan *plan = tare__alloc_zeroed(1, sizeof *plan);
    if (plan == NULL) return tare__out_of_memory(err);
    plan->kernel = find_kernel(isa);
    const tare_status status = plan_layer(plan, layer, x, y, err);
    if (status != TARE_OK) {
        tare__qconv_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return TARE_OK;
}

void tare__qconv_plan_destroy(qconv_plan *plan) {
    if (plan == NULL) return;
    tare__qconstants_release(&plan->constants);
    tare__free_aligned(plan->weights);
    tare__free(plan->offset);
    tare__free(plan);
}

const char *tare__qconv_kernel_name(const qconv_plan *plan) {
    return plan->kernel->name;
}

// --- staging ---

// Four planes of bytes into one of words.
static void stage_words(const qconv_plan *p, const uint8_t *image, size_t plane, uint32_t *to) {
    const conv_shape *s = &p->shape;
    const size_t size = s->height * s->width;
    // Rows of an image without a border follow each other, so that they can be taken as one.
    const bool is_padded = tare__conv_shape_is_padded(s);
    const size_t rows = is_padded ? s->height : 1, length = is_padded ? s->width : size;
    if (is_padded)
        memset(to, p->constants.zero_code, s->staged_height * s->staged_width * sizeof *to);
    to += s->above * s->staged_width + s->before;
    for (size_t h = 0; h < rows; h++, to += s->staged_width) {
        const uint8_t *from[4];
        for (size_t b = 0; b < 4; b++) { // idle bytes meet weights of 0
            const size_t channel = 4 * plane + b < p->ins ? 4 * plane + b : 4 * plane;
            from[b] = image + channel * size + h * length;
        }
        p->kernel->interleave(from, length, p->constants.flip, to);
    }
}

static void stage_image(const qconv_plan *p, const uint8_t *image, unsigned char *stage) {
    const size_t size = p->shape.staged_height * p->shape.staged_width;
    for (size_t i = 0; i < p->planes; i++) {
        if (p->by_width)
            tare__stage_plane(&p->shape, image + i * p->shape.height * p->shape.width,
                              p->constants.flip, p->constants.zero_code, stage + i * size);
        else
            stage_words(p, image, i, (uint32_t *)(void *)stage + i * size);
    }
}

// --- gathering ---

// Output pixels of one row, and where the first of them lies in the staged image.
typedef struct pixel_run {
    size_t at, count;
} pixel_run;

static size_t list_runs(const qconv_plan *p, size_t first, size_t count,
                        pixel_run runs[CONV_PIXELS]) {
    size_t row = first / p->shape.out_width, column = first % p->shape.out_width, n = 0;
    for (; count > 0; row++, column = 0) {
        const size_t left = p->shape.out_width - column;
        pixel_run *run = &runs[n++];
        run->count = left < count ? left : count;
        run->at =
            row * (size_t)p->g.stride[H] * p->shape.staged_width + column * (size_t)p->g.stride[W];
        count -= run->count;
    }
    return n;
}

// `count` words from every stride-th place. Whole chunks are copied: what lies beyond `count` is
// written over by the row that follows, and the buffers are that much larger.
static void gather_words(const uint32_t *from, size_t stride, size_t count, uint32_t *to) {
    if (stride == 1) {
        for (size_t i = 0; i < count; i += CHUNK) memcpy(to + i, from + i, CHUNK * sizeof *to);
        return;
    }
    for (size_t i = 0; i < count; i++) to[i] = from[i * stride];
}

// The words that output pixels [first, first + count) meet, to [depth][CONV_PIXELS].
static void gather_block(const qconv_plan *p, const unsigned char *stage, size_t first,
                         size_t count, uint32_t *matrix) {
    const size_t stride = (size_t)p->g.stride[W];
    pixel_run runs[CONV_PIXELS];
    const size_t run_count = list_runs(p, first, count, runs);
    for (size_t d = 0; d < p->depth; d++, matrix += CONV_PIXELS) {
        uint32_t *to = matrix;
        for (size_t r = 0; r < run_count; r++) {
            const size_t at = p->offset[d] + runs[r].at;
            if (p->by_width)
                p->kernel->slide(stage + at, stride, runs[r].count, to);
            else
                gather_words((const uint32_t *)(const void *)stage + at, stride, runs[r].count, to);
            to += runs[r].count;
        }
    }
}

// --- running ---

// A run. An image is one group's part of a sample. Where there are enough of them, each thread
// takes whole images; else all threads share each image, by blocks of pixels and by channels.
typedef struct conv_job {
    const qconv_plan *plan;
    const uint8_t *x;
    uint8_t *y; // codes, or
    float *real;
    tile_addend addend;
    unsigned char *memory; // a slice for each thread: a stage, and a matrix behind it
    size_t slice_bytes;
    // of shared images
    size_t image, block_step, channel_step, channel_parts;
} conv_job;

static unsigned char *slice_of(const conv_job *job, size_t worker) {
    return job->memory + worker * job->slice_bytes;
}

static const uint8_t *image_of(const conv_job *job, size_t image) {
    return job->x + image * job->plan->ins * job->plan->shape.height * job->plan->shape.width;
}

static size_t pixel_count(const qconv_plan *p) {
    return p->shape.out_height * p->shape.out_width;
}

static size_t block_count(const qconv_plan *p) {
    return tare__ceil_div(pixel_count(p), CONV_PIXELS);
}

// A block of pixels meets the weights of the channels from `channel` on, `channels` at most.
static void multiply_block(const conv_job *job, size_t image, size_t block, size_t channel,
                           size_t channels, const unsigned char *stage, size_t worker) {
    const qconv_plan *p = job->plan;
    const size_t pixels = pixel_count(p), first = block * CONV_PIXELS;
    const size_t group = image % (size_t)p->g.groups, left = p->outs - channel;
    const size_t at = (image * p->outs + channel) * pixels + first;
    uint32_t *matrix = (uint32_t *)(void *)(slice_of(job, worker) + p->stage_bytes);
    tile_addend addend = job->addend;
    if (addend.codes != NULL) addend.codes += at;
    const conv_tile tile = {
        .x = p->is_direct ? (const uint32_t *)(const void *)stage + first : matrix,
        .x_stride = p->is_direct ? pixels : CONV_PIXELS,
        .w = p->weights + group * p->group_words + channel * p->depth * p->kernel->words,
        .depth = p->depth,
        .pixels = pixels - first < CONV_PIXELS ? pixels - first : CONV_PIXELS,
        .channels = left < channels ? left : channels,
        .epilogue = tare__qconstants_epilogue(&p->constants, (int64_t)(group * p->outs + channel)),
        .addend = addend,
        .y = job->y != NULL ? job->y + at : NULL,
        .real = job->real != NULL ? job->real + at : NULL,
        .y_stride = pixels,
    };
    if (!p->is_direct) gather_block(p, stage, first, tile.pixels, matrix);
    p->kernel->run(&tile);
}

static void run_image(void *user, size_t image, size_t worker) {
    const conv_job *job = user;
    const qconv_plan *p = job->plan;
    unsigned char *stage = slice_of(job, worker);
    stage_image(p, image_of(job, image), stage);
    for (size_t i = 0; i < block_count(p); i++)
        multiply_block(job, image, i, 0, p->outs, stage, worker);
}

static void multiply_part(void *user, size_t part, size_t worker) {
    const conv_job *job = user;
    const size_t first = part / job->channel_parts * job->block_step;
    const size_t last = first + job->block_step, blocks = block_count(job->plan);
    const size_t channel = part % job->channel_parts * job->channel_step;
    for (size_t i = first; i < last && i < blocks; i++)
        multiply_block(job, job->image, i, channel, job->channel_step, slice_of(job, 0), worker);
}

// The caller stages alone: that takes less than waking threads. A few parts for each thread even
// out what else the machine does. Few blocks are divided by channels too; each part gathers its
// block anew, which is little next to what it multiplies.
static void share_image(conv_job *job, size_t image, thread_pool *pool) {
    const qconv_plan *p = job->plan;
    const size_t threads = tare__thread_count(pool), blocks = block_count(p);
    job->image = image;
    job->block_step = tare__share(blocks, PARTS_PER_THREAD * threads, 1);
    job->channel_step = tare__share(p->outs, tare__ceil_div(threads, blocks), p->kernel->tile);
    job->channel_parts = tare__ceil_div(p->outs, job->channel_step);
    stage_image(p, image_of(job, image), slice_of(job, 0));
    tare__thread_pool_run(pool, tare__ceil_div(blocks, job->block_step) * job->channel_parts,
                          multiply_part, job);
}

static tare_status reserve(conv_job *job, size_t threads, scratch *memory, tare_error *err) {
    const qconv_plan *p = job->plan;
    const size_t matrix = p->is_direct ? 0 : p->depth * CONV_PIXELS + SLACK;
    size_t bytes;
    job->slice_bytes = tare__round_up(p->stage_bytes + matrix * sizeof(uint32_t), 64);
    if (!tare__mul_size(job->slice_bytes, threads, &bytes)) return tare__out_of_memory(err);
    job->memory = tare__scratch_reserve(memory, bytes);
    return job->memory != NULL ? TARE_OK : tare__out_of_memory(err);
}

static tile_addend addend_of(const tare_tensor *t) {
    if (t == NULL) return (tile_addend){0};
    return (tile_addend){.codes = t->data,
                         .scale = (float)t->q->scale[0],
                         .zero_point = (int32_t)t->q->zero_point[0],
                         .is_signed = t->dtype == TARE_QINT8};
}

tare_status tare__qconv_run(const qconv_plan *p, const tare_tensor *x, const tare_tensor *addend,
                            tare_tensor *y, workspace *space, tare_error *err) {
    const size_t images = (size_t)x->count / (p->ins * p->shape.height * p->shape.width);
    const size_t macs = (size_t)y->count * p->depth * 4;
    thread_pool *pool = tare__workspace_pool(space, macs);
    const size_t threads = tare__thread_count(pool);
    const bool gives_floats = y->dtype == TARE_FLOAT32;
    conv_job job = {.plan = p,
                    .x = x->data,
                    .addend = addend_of(addend),
                    .y = gives_floats ? NULL : y->data,
                    .real = gives_floats ? tare__f32(y) : NULL};
    if (y->count == 0) return TARE_OK;
    TARE_TRY(reserve(&job, threads, &space->memory, err));
    if (images >= threads) {
        tare__thread_pool_run(pool, images, run_image, &job);
        return TARE_OK;
    }
    for (size_t i = 0; i < images; i++) share_image(&job, i, pool);
    return TARE_OK;
}
