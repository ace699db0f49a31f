// SPDX-License-Identifier: Apache-2.0
// Linear layers and convolutions as products of quantized values in channels last. There is no
// im2col: an indirection buffer holds, for a tile of output pixels, the addresses of the input
// pixels that each tap of a window reads; a tap in the padding reads a row of zero points. Where a
// pixel has few channels (the first layer), a tap is a whole row of the window, and the image is
// first copied with its padding, so that the pixels of a row follow each other. Or a tap is the
// whole window, and each thread stages the windows that it reads (conv_stage.h). Kernels that load
// many pixels at once get rows with their padding (padded_rows.h).
#include "runtime/gemm/qproduct.h"

#include <assert.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/caches.h"
#include "runtime/gemm/conv_ranges.h"
#include "runtime/gemm/conv_stage.h"
#include "runtime/gemm/padded_rows.h"
#include "runtime/gemm/product_weights.h"
#include "runtime/gemm/qconstants.h"
#include "runtime/gemm/qlayer.h"
#include "runtime/kernels/saturation.h"

enum {
    OUTPUT_MACS = 32, // multiply-accumulates that take as long as the epilogue of an output
    MOST_BLOCKS = 16, // blocks of channels that are multiplied with one tile of rows
    LEAST_TILES = 4,  // tiles of a block that prefetch the next block's weights
    ALIGNMENT = 64,
};

struct qproduct {
    const product_kernel *kernel;
    const column_kernel *columns;
    qconstants constants;
    subconvolution sub;
    product_form form;
    bool needs_unsigned;  // signed inputs are converted before a run
    bool is_staged;       // taps are rows of windows in a copy of the image with its padding
    bool stages_windows;  // taps are whole windows, which each thread copies
    bool is_padded;       // each thread copies image rows with their padding
    bool is_flat;         // windows are consecutive single pixels
    bool is_scattered;    // the subconvolution's pixels are not contiguous in the output
    conv_windows windows; // in the images, or in staged ones
    conv_stage stage;
    padded_form padded;
    conv_ranges ranges;       // of pixels that cover the same taps
    size_t groups, ins, outs; // channels: per group
    size_t all_ins, all_outs;
    size_t taps, tap_size;      // number of taps, and quantized values of a tap
    size_t depth, group_words;  // words of a channel, and of a packed group
    size_t pixels;              // of an output image
    size_t rows;                // pixels that are computed at once
    size_t tile_rows, run_rows; // for full blocks: rows of a tile, and rows per call of a kernel
    size_t last_run_rows;       // as run_rows, for the last block, which may have fewer channels
    size_t shared_rows;         // unit that threads divide: rows of a tile, or image rows of ranges
    size_t address_count;       // addresses of the pixels in a run of rows
    size_t address_bytes;       // of a thread: addresses, and offsets of taps
    size_t thread_bytes;        // of a thread: these, and staged windows or rows
    size_t blocks;
    size_t cached_blocks; // blocks that stay in the cache beside quantized values
    packed_weights *weights;
    bool
        *never_saturates; // [groups][vectors of channels][chunks]; NULL: the kernel does not use it
};

// --- planning ---

const char *tare__qproduct_refusal(const quantized_layer *layer, const tare_tensor *x) {
    conv_split split;
    if (x->count == 0) return "there is nothing to compute";
    if (!tare__qconstants_fit(layer, x)) return "a rounding rule that kernels lack";
    return tare__conv_split_of(layer, x, &split) ? NULL : "its stride or kernel is too large";
}

static void read_subconvolution(qproduct *p, const subconvolution *sub) {
    p->sub = *sub;
    p->is_scattered = tare__subconvolution_is_scattered(sub);
    p->groups = sub->taps.groups;
    p->all_ins = sub->taps.ins;
    p->all_outs = sub->taps.outs;
    p->ins = p->all_ins / p->groups;
    p->outs = p->all_outs / p->groups;
    p->pixels = tare__conv_window_pixels(&sub->windows);
}

static size_t block_vectors(const qproduct *p, size_t block) {
    return tare__product_vectors(tare__product_block_channels(&p->form, block));
}

// If all taps are inside the image, only the first address of a window is listed.
static size_t listed_taps(const qproduct *p) {
    return p->ranges.is_inside ? 1 : p->taps;
}

// Padded rows of a run stay in the second-level cache.
static size_t padded_run_rows(const qproduct *p, size_t rows) {
    const size_t most = tare__l2_bytes() / 4;
    while (rows > p->tile_rows && tare__padded_rows_bytes(&p->padded, rows) > most)
        rows = tare__round_up(rows / 2, p->tile_rows);
    return rows;
}

static size_t run_rows_of(const qproduct *p, size_t block) {
    const size_t rows =
        tare__product_run_rows(p->kernel, block_vectors(p, block), listed_taps(p), p->rows);
    return p->is_padded ? padded_run_rows(p, rows) : rows;
}

// Bytes that stay in the second-level cache beside quantized values: 384 KiB of 1 MiB. Larger ones
// than those of servers are shared among several cores.
static size_t cached_weights(void) {
    enum { MOST_OF_ONE_CORE = 2 << 20 };
    return tare__least(tare__l2_bytes(), MOST_OF_ONE_CORE) / 8 * 3;
}

static void choose_runs(qproduct *p) {
    const size_t cached = cached_weights() / (PRODUCT_BLOCK * p->depth * 4);
    p->run_rows = run_rows_of(p, 0);
    p->last_run_rows = run_rows_of(p, p->blocks - 1);
    p->address_count = listed_taps(p) * tare__most(p->run_rows, p->last_run_rows);
    p->address_bytes =
        tare__round_up(p->address_count * sizeof(uint8_t *) + p->taps * sizeof(size_t), ALIGNMENT);
    p->thread_bytes = p->address_bytes;
    if (p->stages_windows) p->thread_bytes += tare__staged_rows_bytes(&p->stage, p->address_count);
    if (p->is_padded) p->thread_bytes += tare__padded_rows_bytes(&p->padded, p->address_count);
    p->cached_blocks = cached < 1 ? 1 : tare__least(cached, MOST_BLOCKS);
}

// Kernels that want it get padded rows where windows reach into the padding, if those that a tile
// reads fit the second-level cache.
static bool wants_padding(const qproduct *p) {
    const conv_windows *w = &p->windows;
    const bool is_plane = w->addends * w->planes * w->depth == 1 && w->out_depth == 1;
    return p->kernel->wants_padding && is_plane && w->front == 0 &&
           !tare__conv_windows_are_inside(w) &&
           tare__padded_rows_fit(w, p->tile_rows, tare__l2_bytes() / 4);
}

static void pad_rows(qproduct *p) {
    const bool joins = p->groups == 1 && p->ins % 4 == 0 && p->windows.step[W] == 1;
    p->padded = tare__padded_form_of(&p->windows, joins);
    // Rows have all groups: one after the other, these would copy them again if they did not stay.
    if (p->groups > 1 &&
        (p->rows > p->tile_rows * p->kernel->tiles || padded_run_rows(p, p->rows) < p->rows))
        return;
    p->is_padded = true;
    p->windows = p->padded.stage.to;
    if (!joins) return;
    // The pixels of a window's row become one tap, which changes no word of the weights.
    p->tap_size *= p->form.width;
    p->taps /= p->form.width;
}

static void choose_taps(qproduct *p, const tare_tensor *y) {
    p->form = tare__product_form_of_subconvolution(&p->sub);
    p->is_staged = p->form.tap == TAP_IS_ROW;
    p->stages_windows = p->form.tap == TAP_IS_WINDOW;
    p->taps = tare__product_taps(&p->form);
    p->tap_size = tare__product_tap_size(&p->form);
    p->depth = tare__product_depth(&p->form);
    p->group_words = tare__product_group_words(&p->form);
    p->blocks = tare__product_block_count(&p->form);
    p->tile_rows = p->kernel->rows[block_vectors(p, 0) - 1];
    p->rows = p->is_staged || p->is_scattered ? p->pixels : (size_t)y->count / p->all_outs;
    p->windows = p->sub.windows;
    p->is_flat = tare__conv_windows_are_flat(&p->windows);
    if (p->form.tap == TAP_IS_PIXEL && wants_padding(p)) pad_rows(p);
    if (p->form.tap == TAP_IS_PIXEL) return;
    // Words are read whole: values beyond a tap are multiplied by weights of 0.
    p->tap_size = tare__round_up(p->tap_size, 4);
    p->stage = p->is_staged ? tare__conv_stage_of_rows(&p->windows)
                            : tare__conv_stage_of_windows(&p->windows, p->columns);
    p->windows = p->stage.to;
}

static const uint32_t *block_weights(const qproduct *p, size_t group, size_t block) {
    return p->weights->words + group * p->group_words + block * PRODUCT_BLOCK * p->depth;
}

static size_t chunks_of_group(const qproduct *p) {
    return tare__product_vectors(p->outs) * tare__product_chunks(p->depth);
}

static size_t first_chunk(const qproduct *p, size_t group, size_t block) {
    return group * chunks_of_group(p) + block * PRODUCT_VECTORS * tare__product_chunks(p->depth);
}

static tare_status prove_unsaturated(qproduct *p, tare_error *err) {
    if (!p->kernel->asks_saturation) return TARE_OK;
    p->never_saturates = tare__alloc_zeroed(p->groups, chunks_of_group(p));
    if (p->never_saturates == NULL) return tare__out_of_memory(err);
    for (size_t g = 0; g < p->groups; g++)
        for (size_t b = 0; b < p->blocks; b++)
            tare__product_prove_unsaturated(block_weights(p, g, b),
                                            tare__product_block_channels(&p->form, b), p->depth,
                                            p->never_saturates + first_chunk(p, g, b));
    return TARE_OK;
}

// Kernels that count words of weights from the first tap on cannot leave taps out.
static tare_status find_ranges(qproduct *p, tare_error *err) {
    const bool leaves_out = p->constants.zero_value == 0 && p->never_saturates == NULL;
    // The rows of a tile of scattered pixels must have one distance, that within an image row.
    TARE_TRY(tare__conv_ranges_create(&p->windows, leaves_out, p->is_scattered, &p->ranges, err));
    choose_runs(p);
    p->shared_rows = p->ranges.column_groups != NULL ? p->ranges.width : p->tile_rows;
    return TARE_OK;
}

static tare_status plan_layer(qproduct *p, const quantized_layer *layer, const subconvolution *sub,
                              const tare_tensor *x, const tare_tensor *y, tare_error *err) {
    const conv_windows *w = &sub->windows;
    read_subconvolution(p, sub);
    if (p->ins > SIZE_MAX / 64 / tare__conv_window_taps(w)) return tare__out_of_memory(err);
    choose_taps(p, y);
    TARE_TRY(tare__product_weights_of_subconvolution(layer->weight, &p->form, &sub->taps,
                                                     &p->weights, err));
    TARE_TRY(prove_unsaturated(p, err));
    TARE_TRY(tare__qconstants_create_of(layer, p->weights->sums, x->q, y->q, &p->constants, err));
    p->needs_unsigned = p->constants.flip != 0 && !p->kernel->takes_signed;
    if (p->needs_unsigned) p->constants.flip = 0;
    return find_ranges(p, err);
}

tare_status tare__qproduct_create(const quantized_layer *layer, const subconvolution *sub,
                                  const tare_tensor *x, const tare_tensor *y, isa_level isa,
                                  qproduct **out, tare_error *err) {
    *out = NULL;
    qproduct *p = tare__alloc_zeroed(1, sizeof *p);
    if (p == NULL) return tare__out_of_memory(err);
    p->kernel = tare__product_choose(isa);
    p->columns = tare__columns_choose(isa);
    const tare_status status = plan_layer(p, layer, sub, x, y, err);
    if (status != TARE_OK) {
        tare__qproduct_destroy(p);
        return status;
    }
    *out = p;
    return TARE_OK;
}

void tare__qproduct_destroy(qproduct *p) {
    if (p == NULL) return;
    tare__qconstants_release(&p->constants);
    tare__packed_weights_release(p->weights);
    tare__conv_ranges_release(&p->ranges);
    tare__free(p->never_saturates);
    tare__free(p);
}

void tare__qproduct_set_input(qproduct *p, const qparams *weight, double scale,
                              int32_t zero_point) {
    tare__qconstants_set_input(&p->constants, weight, scale, zero_point);
}

qlayer_form tare__qproduct_form(const qproduct *p) {
    const size_t rows = tare__least(p->run_rows, p->rows);
    return (qlayer_form){
        .kernel = tare__product_name(p->kernel, rows, p->taps, p->tap_size, p->constants.flip),
        .tile_rows = p->tile_rows,
        .tile_channels = tare__product_block_channels(&p->form, 0),
        .weight_bytes = p->group_words * p->groups * sizeof(uint32_t),
        .macs = p->pixels * p->all_outs * tare__product_taps(&p->form) *
                tare__product_tap_size(&p->form)};
}

bool tare__qproduct_needs_unsigned(const qproduct *p) {
    return p->needs_unsigned;
}

// --- memory of a run ---

static size_t line_bytes(const qproduct *p) {
    return tare__round_up(p->ins, ALIGNMENT);
}
static uint8_t padding_value(const qproduct *p) {
    return p->constants.zero_value ^ p->constants.flip;
}
static size_t stage_bytes(const qproduct *p) {
    return p->is_staged ? tare__conv_stage_bytes(&p->stage) : 0;
}

size_t tare__qproduct_scratch_bytes(const qproduct *p, size_t thread_count) {
    return line_bytes(p) + stage_bytes(p) + thread_count * p->thread_bytes;
}

// --- running ---

typedef struct product_job {
    const qproduct *p;
    const qlayer_run *run;
    const uint8_t *image; // of the first image
    conv_windows windows; // in images whose pixels may have gaps between them
    staging staging;      // if images, windows or rows are staged
    size_t y_stride;
    size_t first_row, row_count;  // rows are output pixels over all images
    const uint8_t *padding;       // a row of zero points
    unsigned char *thread_memory; // a part for each thread
    size_t tiles;                 // of rows
    size_t blocks, block_shares;  // blocks of channels over all groups; shares of them
} product_job;

// Sets the tile for a block of channels, except for the positions of rows.
static void begin_tile(const product_job *job, size_t group, size_t block, product_tile *tile) {
    const qproduct *p = job->p;
    const size_t channel = group * p->outs + block * PRODUCT_BLOCK;
    *tile = (product_tile){
        .tap_size = p->tap_size,
        .flip = p->constants.flip,
        .w = block_weights(p, group, block),
        .never_saturates =
            p->never_saturates != NULL ? p->never_saturates + first_chunk(p, group, block) : NULL,
        .channels = tare__product_block_channels(&p->form, block),
        .fuses = job->run->fuses,
    };
    tile->epilogue = tare__qconstants_epilogue(&p->constants, (int64_t)channel);
}

// Multiplies rows from `row` on, which are `apart` pixels from each other.
static void multiply(const product_job *job, product_tile *tile, size_t row, size_t apart,
                     size_t channel) {
    const qlayer_run *run = job->run;
    const qproduct *p = job->p;
    const size_t pixel = tare__subconvolution_pixel(&p->sub, job->first_row + row);
    const size_t at = pixel * job->y_stride + channel;
    product_addend addend;
    tile->y_stride = apart * job->y_stride;
    if (run->y != NULL) tile->y = run->y + at;
    if (run->real != NULL) tile->real = run->real + at;
    if (run->addend != NULL) {
        addend = *run->addend;
        if (addend.stride == 0) addend.stride = p->all_outs;
        addend.quantized += pixel * addend.stride + channel;
        addend.stride *= apart;
        tile->addend = &addend;
    }
    p->kernel->run(tile);
}

// Blocks of one group with equal numbers of vectors, `most` rows at a time.
typedef struct block_run {
    const uint8_t **addresses;
    size_t *offsets;     // offsets of the taps, for ranges inside the image
    staged_rows *staged; // if windows are staged
    padded_rows *padded; // if rows are padded
    product_tile tiles[MOST_BLOCKS];
    size_t count, vectors; // number of blocks; vectors of channels of each
    size_t group, channel; // first channel of the first block
    size_t tile_rows, run_tiles;
} block_run;

static void list_tile(const product_job *job, block_run *b, const conv_range *range, size_t row,
                      size_t rows) {
    const qproduct *p = job->p;
    const uint8_t **to = b->addresses;
    if (p->stages_windows) {
        tare__staged_rows_list(b->staged, row, rows, to);
        return;
    }
    if (p->is_padded) {
        tare__padded_rows_list(b->padded, row, rows, to);
        for (size_t r = 0; b->group > 0 && r < rows; r++) to[r] += b->group * p->ins;
        return;
    }
    const uint8_t *images = job->image + b->group * p->ins;
    if (p->is_flat) {
        const size_t stride = job->windows.channels;
        const uint8_t *at = images + row * stride;
        for (size_t r = 0; r < rows; r++, at += stride) to[r] = at;
        return;
    }
    if (range->is_inside) {
        tare__conv_range_list(&job->windows, range, images, row, rows, to);
        return;
    }
    const window_list list = {
        .images = images, .padding = job->padding, .first = row, .count = rows, .tap_step = rows};
    tare__conv_windows_list(&job->windows, &list, to);
}

// Divides the rows evenly into as few runs as possible: for a run of few rows weights would be
// loaded as often as for many. If a run has several tiles, they are full ones.
static size_t rows_of_run(const block_run *b, size_t left) {
    const size_t runs = tare__ceil_div(left, b->tile_rows * b->run_tiles);
    if (b->run_tiles == 1) return tare__ceil_div(left, runs);
    const size_t rows = tare__ceil_div(tare__ceil_div(left, b->tile_rows), runs) * b->tile_rows;
    return tare__least(rows, left);
}

// The blocks are multiplied with one run of rows after the other.
static void multiply_image_row(const product_job *job, block_run *b, const conv_range *range,
                               size_t image_row) {
    const qproduct *p = job->p;
    const size_t first = range->first + image_row * range->image_row_stride;
    const size_t apart = range->pixel_stride * p->sub.apart[W];
    // Lists of pixels that are not all inside have all taps.
    const size_t before = range->is_inside ? 0 : range->row * range->columns;
    for (size_t done = 0, rows; done < range->count; done += rows) {
        const size_t row = first + done * range->pixel_stride;
        rows = rows_of_run(b, range->count - done);
        if (range->rows * range->columns > 0) list_tile(job, b, range, row, rows);
        for (size_t i = 0; i < b->count; i++) {
            product_tile *tile = &b->tiles[i];
            tile->x = b->addresses + before * rows;
            tile->rows = rows;
            multiply(job, tile, row, apart, b->channel + i * PRODUCT_BLOCK);
            tile->pass += tare__ceil_div(rows, b->tile_rows);
        }
    }
}

static void multiply_range(const product_job *job, block_run *b, size_t block,
                           const conv_range *range) {
    const qproduct *p = job->p;
    const size_t words =
        tare__ceil_div(p->tap_size, 4) * b->vectors * PRODUCT_LANES; // words of a tap
    const size_t left_out = p->ranges.columns - range->columns; // taps left out in each row of taps
    const size_t first = range->row * p->ranges.columns + range->column;
    const size_t taps = range->rows * range->columns;
    // Prefetch the next block; after the last one the weights of the next layer usually follow.
    // With few tiles it would wait for these instead of its own weights.
    const bool looks_ahead =
        taps == p->taps && range->image_rows * range->count >= LEAST_TILES * b->tile_rows;
    if (p->is_padded)
        tare__padded_rows_offsets(b->padded, b->offsets);
    else if (range->is_inside)
        tare__conv_range_offsets(&job->windows, range, b->offsets);
    for (size_t i = 0; i < b->count; i++) {
        product_tile *tile = &b->tiles[i];
        begin_tile(job, b->group, block + i, tile);
        tile->taps = taps;
        if (range->is_inside) tile->offsets = b->offsets;
        tile->w += first * words;
        if (left_out > 0) {
            tile->row_taps = range->columns;
            tile->gap = left_out * words;
        }
        if (taps != p->taps) tile->epilogue.weight_sums = NULL; // the sums are those of all taps
        if (looks_ahead) tile->ahead = b->vectors * PRODUCT_LANES * p->depth * sizeof(uint32_t);
    }
    for (size_t i = 0; i < range->image_rows; i++) multiply_image_row(job, b, range, i);
}

static void multiply_rows(const product_job *job, unsigned char *memory, size_t first, size_t last,
                          size_t first_block, size_t block_count) {
    const qproduct *p = job->p;
    const size_t block = first_block % p->blocks;
    range_walk walk = {&p->ranges, first, last, 0};
    conv_range range;
    block_run b; // initialized lazily, because most of its arrays stay unused
    b.addresses = (const uint8_t **)(void *)memory;
    b.offsets = (size_t *)(void *)(b.addresses + p->address_count);
    void *staged = memory + p->address_bytes;
    b.staged = p->stages_windows ? staged : NULL;
    b.padded = p->is_padded ? staged : NULL;
    b.count = block_count;
    b.vectors = block_vectors(p, block);
    b.group = first_block / p->blocks;
    b.tile_rows = p->kernel->rows[b.vectors - 1];
    b.run_tiles = (block + 1 < p->blocks ? p->run_rows : p->last_run_rows) / b.tile_rows;
    b.channel = b.group * p->outs + block * PRODUCT_BLOCK;
    while (tare__conv_ranges_next(&walk, &range)) multiply_range(job, &b, block, &range);
}

// The number of consecutive blocks that are full, or 1 for the last one, whose tiles may be larger.
static size_t alike_blocks(const qproduct *p, size_t block) {
    const size_t left = p->blocks - block;
    const bool is_alike = block_vectors(p, p->blocks - 1) == PRODUCT_VECTORS;
    return is_alike || left == 1 ? left : left - 1;
}

// Tiles have equally many rows except one. Of those passed to a kernel together, all but the last
// are full.
static size_t first_row_of(const product_job *job, size_t tile) {
    const qproduct *p = job->p;
    if (p->run_rows == p->shared_rows) return tare__share_begin(job->row_count, job->tiles, tile);
    return tare__least(tile * p->shared_rows, job->row_count);
}

// If weights stay in the cache, a tile is multiplied with all its channels before the next tile.
// Otherwise weights are read once, block by block.
static void multiply_tiles(const product_job *job, size_t block_share, size_t first, size_t last,
                           size_t worker) {
    const qproduct *p = job->p;
    const size_t row = first_row_of(job, first), last_row = first_row_of(job, last);
    const size_t first_block = tare__share_begin(job->blocks, job->block_shares, block_share);
    const size_t last_block = tare__share_begin(job->blocks, job->block_shares, block_share + 1);
    unsigned char *memory = job->thread_memory + worker * p->thread_bytes;
    for (size_t i = first_block, count; i < last_block; i += count) {
        count = tare__least(tare__least(p->cached_blocks, last_block - i),
                            alike_blocks(p, i % p->blocks));
        multiply_rows(job, memory, row, last_row, i, count);
    }
}

// Tasks are the tiles for the first share of the blocks, then those for the next share.
static void multiply_all(void *user, size_t first, size_t end, size_t worker) {
    const product_job *job = user;
    while (first < end) {
        const size_t block_share = first / job->tiles, before = block_share * job->tiles;
        const size_t last = tare__least(end - before, job->tiles);
        multiply_tiles(job, block_share, first - before, last, worker);
        first = before + last;
    }
}

// Bytes that the windows cover.
static size_t bytes_read(const product_job *job) {
    const qproduct *p = job->p;
    const conv_windows *w = &p->sub.windows;
    const size_t images = p->is_staged ? 1 : job->run->batch; // of the job's rows
    const size_t image = images * w->depth * w->height * w->width;
    return tare__least(image, job->row_count * tare__conv_window_taps(w)) * p->all_ins;
}

// The time of one of several threads in picoseconds, measured on a Xeon with two cores. By rows, a
// thread reads all weights, mostly rows that it wrote itself, and the last tiles leave some threads
// idle. By blocks it reads its share of the weights, but also what the other threads wrote, and
// writes where they wrote.
static double time_of_thread(const product_job *job, size_t threads, bool by_blocks) {
    enum { FOREIGN_READ = 300, FOREIGN_WRITE = 150 }; // of a byte
    const qproduct *p = job->p;
    const double weights = (double)(p->group_words * p->groups * sizeof(uint32_t));
    const double macs = (double)job->row_count * (double)(p->taps * p->tap_size) *
                        (double)p->all_outs * p->kernel->mac_time;
    const double share = 1 / (double)threads;
    if (by_blocks) {
        const double foreign = FOREIGN_READ * (double)bytes_read(job) +
                               FOREIGN_WRITE * (double)(job->row_count * p->all_outs);
        return share * (macs + weights * p->kernel->weight_time + (1 - share) * foreign);
    }
    const double most = (double)tare__ceil_div(job->tiles, threads) / (double)job->tiles;
    return most * macs + weights * p->kernel->weight_time;
}

static void divide(product_job *job, size_t threads) {
    const qproduct *p = job->p;
    job->tiles = tare__ceil_div(job->row_count, p->shared_rows);
    job->blocks = p->blocks * p->groups;
    const bool by_blocks = threads > 1 && job->blocks >= threads &&
                           time_of_thread(job, threads, true) < time_of_thread(job, threads, false);
    job->block_shares = by_blocks ? job->blocks : 1;
}

// A task has many tiles, as kernels prefer, but takes so little time that waiting for the last
// thread hardly matters. Work too small to divide is not divided. Of image rows it has more,
// because columns beside padding should fill several tiles.
static thread_grain grain_of(const product_job *job) {
    enum { MOST_MACS = 8 << 20, MOST_OF_LINES = 16 << 20 };
    const qproduct *p = job->p;
    const size_t rows = tare__least(p->shared_rows, job->row_count);
    const size_t outputs = rows * (p->all_outs / job->block_shares);
    const size_t macs = outputs * (p->taps * p->tap_size + OUTPUT_MACS) + 1;
    const size_t most_macs = p->ranges.column_groups != NULL ? MOST_OF_LINES : MOST_MACS;
    size_t most = tare__most(most_macs / macs, 1);
    assert(job->tiles > 0);                           // what is empty has no plan
    if (most > job->tiles) most -= most % job->tiles; // full blocks
    const size_t least = job->run->space->least_shared_macs / macs + 1;
    return (thread_grain){tare__least(least, most), most};
}

// Threads usually continue where they were, with what they have staged already.
static void begin_staging(const product_job *job, size_t threads) {
    const qproduct *p = job->p;
    for (size_t i = 0; i < threads; i++) {
        void *memory = job->thread_memory + i * p->thread_bytes + p->address_bytes;
        if (p->stages_windows)
            (void)tare__staged_rows_begin(&job->staging, p->address_count, memory);
        if (p->is_padded)
            (void)tare__padded_rows_begin(&p->padded, &job->staging, p->address_count, memory);
    }
}

static void multiply_images(product_job *job, thread_pool *pool) {
    divide(job, tare__thread_count(pool));
    begin_staging(job, tare__thread_count(pool));
    tare__thread_pool_run_ranges(pool, job->tiles * job->block_shares, grain_of(job), multiply_all,
                                 job);
}

void tare__qproduct_run(const qproduct *p, const qlayer_run *run) {
    unsigned char *memory = run->scratch;
    uint8_t *staged = memory + line_bytes(p);
    const size_t macs = run->batch * p->pixels * p->all_outs * p->taps * p->tap_size;
    thread_pool *pool = tare__workspace_pool(run->space, macs);
    const size_t x_stride = run->x_stride != 0 ? run->x_stride : p->all_ins;
    product_job job = {.p = p,
                       .run = run,
                       .image = run->x,
                       .windows = p->windows,
                       .staging = {p->is_padded ? &p->padded.stage : &p->stage, run->x, x_stride,
                                   padding_value(p)},
                       .y_stride = run->y_stride != 0 ? run->y_stride : p->all_outs,
                       .row_count = run->batch * p->pixels,
                       .padding = memory,
                       .thread_memory = staged + stage_bytes(p)};
    memset(memory, padding_value(p), line_bytes(p));
    if (!p->is_staged) {
        if (!p->is_padded) job.windows.channels = x_stride;
        multiply_images(&job, pool);
        return;
    }
    job.image = staged;
    job.row_count = p->pixels;
    for (size_t n = 0; n < run->batch; n++, job.first_row += p->pixels) {
        tare__conv_stage_image(&job.staging, n, staged);
        multiply_images(&job, pool);
    }
}
