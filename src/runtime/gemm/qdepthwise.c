// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Depthwise convolution. An indirection buffer lists the addresses of the input columns that some
// output pixels of one or two rows cover; all blocks of channels use it. If an input channel has
// several output channels, it is repeated in copies of these columns. If channels are few, several
// pixels of a row are computed as one (pixel_groups.h).
#include "runtime/gemm/qdepthwise.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "core/memory/short_copy.h"
#include "runtime/gemm/depthwise_weights.h"
#include "runtime/gemm/pixel_groups.h"
#include "runtime/gemm/qconstants.h"
#include "runtime/gemm/qlayer.h"

enum {
    PIXELS = 64, // of a row, whose columns are listed together
    ALIGNMENT = 64,
};

struct qdepthwise {
    const depthwise_kernel *kernel;
    qconstants constants;
    subconvolution sub;
    conv_windows windows; // of the subconvolution
    depthwise_form form;  // of a group of pixels
    pixel_groups groups;
    size_t repeats; // output channels per input channel
    bool is_signed; // of the result
    packed_weights *weights;
    depthwise_constants *ordered; // [blocks]
};

// --- planning ---

static bool fits(const quantized_layer *layer, const subconvolution *sub) {
    return layer->weight->ndim > 2 && !layer->adds &&
           tare__depthwise_fits(&sub->taps, &sub->windows);
}

static void order_constants(qdepthwise *p, size_t channel) {
    const depthwise_form *f = &p->form;
    const size_t block = channel / f->block;
    const size_t index =
        tare__depthwise_index(tare__depthwise_block_quads(f, block), channel % f->block);
    const tile_epilogue e =
        tare__qconstants_epilogue(&p->constants, (int64_t)(channel % p->groups.channels));
    depthwise_constants *own = &p->ordered[block];
    own->start[index] =
        tare__wrap_int32((int64_t)e.start[0] + (int64_t)p->kernel->moved * e.weight_sums[0]);
    own->multiplier[index] = e.multiplier[0];
    own->bias[index] = e.bias[0];
}

static tare_status plan_layer(qdepthwise *p, const quantized_layer *layer,
                              const subconvolution *sub, const tare_tensor *x, const tare_tensor *y,
                              tare_error *err) {
    p->sub = *sub;
    p->windows = sub->windows;
    p->repeats = sub->taps.outs / sub->taps.ins;
    p->form = tare__depthwise_form_of(p->kernel, &p->windows, sub->taps.outs);
    p->groups = (pixel_groups){.channels = p->form.channels, .pixels = 1};
    if (p->repeats == 1 && sub->apart[W] == 1)
        p->groups = tare__pixel_groups_of(&p->windows, &p->form);
    p->form = tare__depthwise_form_repeat(&p->form, p->groups.pixels);
    p->is_signed = y->dtype == TARE_QINT8;
    p->ordered = tare__alloc_lines(p->form.blocks, sizeof *p->ordered);
    if (p->ordered == NULL) return tare__out_of_memory(err);
    TARE_TRY(tare__depthwise_weights_get(layer->weight, &p->form, &sub->taps, &p->weights, err));
    TARE_TRY(tare__qconstants_create_of(layer, p->weights->sums, x->q, y->q, &p->constants, err));
    for (size_t c = 0; c < p->form.channels; c++) order_constants(p, c);
    return TARE_OK;
}

tare_status tare__qdepthwise_create(const quantized_layer *layer, const subconvolution *sub,
                                    const tare_tensor *x, const tare_tensor *y, isa_level isa,
                                    qdepthwise **out, tare_error *err) {
    *out = NULL;
    if (!fits(layer, sub)) return TARE_OK;
    qdepthwise *p = tare__alloc_zeroed(1, sizeof *p);
    if (p == NULL) return tare__out_of_memory(err);
    p->kernel = tare__depthwise_choose(isa);
    const tare_status status = plan_layer(p, layer, sub, x, y, err);
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
    tare__packed_weights_release(p->weights);
    tare__free_aligned(p->ordered);
    tare__free(p);
}

qlayer_form tare__qdepthwise_form(const qdepthwise *p) {
    return (qlayer_form){
        .kernel = p->kernel->name,
        .is_depthwise = true,
        .weight_bytes = p->form.blocks * tare__depthwise_block_words(&p->form) * sizeof(uint32_t),
        .pixels = p->groups.pixels,
        .macs = tare__conv_window_pixels(&p->windows) * p->groups.channels *
                tare__conv_window_taps(&p->windows),
    };
}

// --- running ---

// The input columns that some pixels of an output row cover.
static size_t columns_of(const qdepthwise *p, size_t pixels) {
    const conv_windows *w = &p->windows;
    return (pixels - 1) * w->stride[W] + (w->columns - 1) * w->step[W] + 1;
}

static bool has_groups(const qdepthwise *p) {
    return p->groups.pixels > 1;
}

static size_t most_addresses(const qdepthwise *p) {
    if (has_groups(p)) return tare__pixel_groups_addresses(&p->groups, &p->form);
    const size_t width = p->windows.out_width;
    return columns_of(p, width < PIXELS ? width : PIXELS) * p->form.words * DEPTHWISE_WORD;
}

static size_t address_bytes(const qdepthwise *p) {
    return tare__round_up(most_addresses(p) * sizeof(uint8_t *), ALIGNMENT);
}
static size_t line_bytes(const qdepthwise *p) {
    return tare__round_up(p->form.channels, ALIGNMENT);
}

// Rows of results whose pixels are going to have gaps between them.
static size_t result_bytes(const qdepthwise *p) {
    const size_t row = p->windows.out_width * p->groups.channels * sizeof(float);
    return has_groups(p) ? tare__round_up(p->form.rows * row, ALIGNMENT) : 0;
}

// Scratch of a thread: addresses, results, and copies of the columns or rows.
static size_t thread_bytes(const qdepthwise *p) {
    size_t copies = p->repeats > 1 ? most_addresses(p) * line_bytes(p) : 0;
    if (has_groups(p)) copies = tare__pixel_groups_bytes(&p->groups, &p->form);
    return address_bytes(p) + result_bytes(p) + tare__round_up(copies, ALIGNMENT);
}

size_t tare__qdepthwise_scratch_bytes(const qdepthwise *p, size_t thread_count) {
    return line_bytes(p) + thread_count * thread_bytes(p);
}

typedef struct depthwise_job {
    const qdepthwise *p;
    const qlayer_run *run;
    conv_windows windows; // in images whose pixels may have gaps between them
    size_t y_stride;
    unsigned char *memory; // a row of zero points, and scratch for each thread
    size_t row_blocks;     // of a plane
} depthwise_job;

// Pixels of an output row, and of the row below it.
typedef struct depthwise_row_block {
    size_t plane, row, rows; // plane: of all images
    size_t first, pixels;    // of a row
} depthwise_row_block;

// What blocks of channels have in common, for pixels without groups.
static depthwise_tile tile_of(const depthwise_job *job, const depthwise_row_block *at,
                              const uint8_t *const *addresses) {
    const qdepthwise *p = job->p;
    const conv_windows *w = &p->windows;
    const size_t row = at->plane * w->out_height + at->row;
    const size_t pixel = tare__subconvolution_pixel(&p->sub, row * w->out_width + at->first);
    const size_t offset = pixel * job->y_stride;
    return (depthwise_tile){
        .x = addresses,
        .words = p->form.words,
        .columns = w->columns,
        .stride = w->stride[W],
        .dilation = w->step[W],
        .rows = at->rows,
        .pixels = at->pixels,
        .flip = p->constants.flip ^ p->kernel->moved,
        .requant = p->constants.requant,
        .is_signed = p->is_signed,
        .is_small = p->constants.is_small,
        .y = job->run->y != NULL ? job->run->y + offset : NULL,
        .real = job->run->real != NULL ? job->run->real + offset : NULL,
        .y_row = p->sub.apart[H] * p->sub.out[W] * job->y_stride,
        .y_stride = p->sub.apart[W] * job->y_stride,
    };
}

static void run_block(const qdepthwise *p, const depthwise_tile *whole, size_t block,
                      size_t channels) {
    depthwise_tile tile = *whole;
    tile.first = block * p->form.block;
    tile.w = p->weights->words + block * tare__depthwise_block_words(&p->form);
    tile.constants = &p->ordered[block];
    tile.channels = channels;
    tile.quads = tare__depthwise_block_quads(&p->form, block);
    if (tile.y != NULL) tile.y += tile.first;
    if (tile.real != NULL) tile.real += tile.first;
    p->kernel->run(&tile);
}

// --- groups of pixels ---

// Pixels of a row to one whose pixels have gaps between them. size: of an element.
static void spread(const qdepthwise *p, size_t size, const unsigned char *from, size_t y_stride,
                   unsigned char *to) {
    const size_t bytes = p->groups.channels * size;
    tare__short_copies(to, y_stride * size, from, bytes, p->windows.out_width, bytes);
}

// Groups with all their pixels, and the rest of the row.
static void run_whole_rows(const qdepthwise *p, const depthwise_tile *whole) {
    const size_t rest = p->windows.out_width % p->groups.pixels;
    depthwise_tile tile = *whole;
    tile.pixels = p->windows.out_width / p->groups.pixels;
    run_block(p, &tile, 0, p->form.channels);
    if (rest == 0) return;
    tile.x += tile.pixels * p->groups.columns * p->form.words * DEPTHWISE_WORD;
    if (tile.y != NULL) tile.y += tile.pixels * p->form.channels;
    if (tile.real != NULL) tile.real += tile.pixels * p->form.channels;
    tile.pixels = 1;
    run_block(p, &tile, 0, rest * p->groups.channels);
}

// One or two rows of groups, which are a block each.
static void run_groups(const depthwise_job *job, const depthwise_row_block *at,
                       const column_list *list, const uint8_t **addresses) {
    const qdepthwise *p = job->p;
    const size_t channels = p->groups.channels, row = p->windows.out_width * channels;
    unsigned char *result = (unsigned char *)addresses + address_bytes(p);
    tare__pixel_groups_list(&p->groups, &job->windows, list, *job->memory, result + result_bytes(p),
                            addresses);
    const depthwise_tile to = tile_of(job, at, addresses);
    const bool is_spread = to.y_stride != channels;
    depthwise_tile tile = to;
    tile.stride = p->groups.columns;
    tile.dilation = 1;
    tile.y_stride = p->form.channels;
    if (is_spread) {
        tile.y_row = row;
        if (to.y != NULL) tile.y = result;
        if (to.real != NULL) tile.real = (float *)(void *)result;
    }
    run_whole_rows(p, &tile);
    for (size_t r = 0; r < at->rows && is_spread; r++) {
        if (to.y != NULL)
            spread(p, 1, tile.y + r * row, to.y_stride, to.y + r * to.y_row);
        else if (to.real != NULL)
            spread(p, sizeof(float), (unsigned char *)(tile.real + r * row), to.y_stride,
                   (unsigned char *)(to.real + r * to.y_row));
    }
}

// --- repeated channels ---

static void repeat_channels(const uint8_t *restrict x, size_t repeats, size_t count,
                            uint8_t *restrict y) {
    if (repeats == 2)
        for (size_t c = 0; c < count; c++) y[2 * c] = y[2 * c + 1] = x[c];
    else
        for (size_t c = 0; c < count; c++) memset(y + c * repeats, x[c], repeats);
}

// Copies the channels of blocks [first, end) and lists the addresses of the copies.
static void repeat_columns(const qdepthwise *p, const uint8_t *padding, const uint8_t **addresses,
                           size_t count, size_t first, size_t end) {
    uint8_t *copy = (uint8_t *)addresses + address_bytes(p);
    const size_t from = first * p->form.block / p->repeats;
    const size_t last = tare__least(end * p->form.block, p->form.channels);
    const size_t channels = tare__ceil_div(last, p->repeats) - from;
    for (size_t i = 0; i < count; i++, copy += line_bytes(p)) {
        if (addresses[i] == padding) continue;
        repeat_channels(addresses[i] + from, p->repeats, channels, copy + from * p->repeats);
        addresses[i] = copy;
    }
}

// Computes blocks of channels [first, end) of a row block.
static void run_blocks(void *user, size_t number, size_t first, size_t end, size_t worker) {
    const depthwise_job *job = user;
    const qdepthwise *p = job->p;
    const conv_windows *w = &job->windows;
    const uint8_t **addresses =
        (const uint8_t **)(void *)(job->memory + line_bytes(p) + worker * thread_bytes(p));
    depthwise_row_block at = {.plane = number / job->row_blocks,
                              .row = number % job->row_blocks * p->form.rows};
    at.rows = tare__remaining(w->out_height, at.row, p->form.rows);
    const size_t image = at.plane / w->out_depth;
    column_list list = {.image = job->run->x + image * tare__conv_image_quantized(w),
                        .padding = job->memory,
                        .plane = at.plane % w->out_depth,
                        .row = at.row,
                        .row_count = p->form.taps + at.rows - 1,
                        .column_step = p->form.words * DEPTHWISE_WORD};
    if (has_groups(p)) {
        run_groups(job, &at, &list, addresses);
        return;
    }
    for (; at.first < w->out_width; at.first += PIXELS) {
        at.pixels = tare__remaining(w->out_width, at.first, PIXELS);
        list.first = at.first;
        list.column_count = columns_of(p, at.pixels);
        tare__conv_columns_list(w, &list, addresses);
        if (p->repeats > 1)
            repeat_columns(p, list.padding, addresses, list.column_count * list.column_step, first,
                           end);
        const depthwise_tile tile = tile_of(job, &at, addresses);
        for (size_t b = first; b < end; b++)
            run_block(p, &tile, b, tare__depthwise_block_channels(&p->form, b));
    }
}

static void begin_groups(const depthwise_job *job, size_t threads) {
    const qdepthwise *p = job->p;
    for (size_t i = 0; i < threads; i++)
        tare__pixel_groups_begin(&p->form, job->memory + line_bytes(p) + i * thread_bytes(p) +
                                               address_bytes(p) + result_bytes(p));
}

// Threads divide row blocks, and also channels if there are few row blocks. Returns the blocks of a
// task.
static size_t grain_of(size_t blocks, size_t row_blocks, size_t tasks) {
    return row_blocks < tasks ? tare__share(blocks, tare__ceil_div(tasks, row_blocks), 1) : blocks;
}

void tare__qdepthwise_run(const qdepthwise *p, const qlayer_run *run) {
    depthwise_job job = {.p = p,
                         .run = run,
                         .windows = p->windows,
                         .y_stride = run->y_stride != 0 ? run->y_stride : p->groups.channels,
                         .memory = run->scratch,
                         .row_blocks = tare__ceil_div(p->windows.out_height, p->form.rows)};
    const size_t planes = run->batch * p->windows.out_depth;
    const size_t pixels = planes * p->windows.out_height * p->windows.out_width;
    // A word of a channel takes about as long as 8 multiply-accumulates of a product.
    const size_t macs = pixels * p->groups.channels * p->windows.columns * p->form.words * 8;
    thread_pool *pool = tare__workspace_pool(run->space, macs);
    if (pixels == 0) return;
    if (run->x_stride != 0) job.windows.channels = run->x_stride;
    const size_t row_blocks = planes * job.row_blocks, blocks = p->form.blocks;
    const size_t grain =
        grain_of(blocks, row_blocks, tare__task_count(macs, tare__thread_count(pool)));
    memset(run->scratch, p->constants.zero_value ^ p->constants.flip, line_bytes(p));
    if (has_groups(p)) begin_groups(&job, tare__thread_count(pool));
    tare__parallel_nest(pool, row_blocks, blocks, grain, run_blocks, &job);
}
