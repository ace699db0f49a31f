// SPDX-License-Identifier: Apache-2.0
// Float convolutions by oneDNN, divided into row blocks, channels or images.
#ifdef TARE_HAVE_DNNL
#include <string.h>

#include "dnnl/primitive.h"

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

static tare_status describe_conv(const sizes *s, primitive_form *f, dnnl_convolution_desc_t *out,
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

static double conv_macs(const float_conv *c) {
    double macs = (double)c->batch * (double)c->out_channels;
    for (int d = 0; d < 3; d++) macs *= (double)c->out[d] * (double)c->kernel[d];
    return macs * (double)c->in_channels / (double)c->groups;
}

static int64_t image_elements(int64_t channels, const int64_t size[3]) {
    return channels * size[0] * size[1] * size[2];
}

static tare_status compile_conv_as(float_layer *layer, size_t index, const float_conv *c,
                                   const float_epilogue *e, primitive_form f, bool *fits,
                                   tare_error *err) {
    const sizes s = sizes_of(c);
    dnnl_convolution_desc_t desc;
    *fits = false;
    const tare_status status = describe_conv(&s, &f, &desc, err);
    if (status != TARE_OK) return status == TARE_UNSUPPORTED ? TARE_OK : status;
    return tare__float_primitive_compile(layer, index, &f, &desc, e, fits, err);
}

tare_status tare__float_conv_compile(float_layer *layer, size_t index, const float_conv *c,
                                     const float_epilogue *e, primitive_form f, bool *fits,
                                     tare_error *err) {
    f.is_bf16 = tare__is_worth_bf16(layer->shared, conv_macs(c),
                                    (double)(c->batch * image_elements(c->in_channels, c->in)));
    TARE_TRY(compile_conv_as(layer, index, c, e, f, fits, err));
    if (*fits || !f.is_bf16) return TARE_OK;
    tare__float_primitive_clear(&layer->primitives[index]);
    f.is_bf16 = false;
    return compile_conv_as(layer, index, c, e, f, fits, err);
}

// True if each pixel is computed alike, however many there are. General matrix products and linear
// layers, as which the library computes some forms, may add up in another order for more of them;
// its convolutions gave the same bits for any number of images in 15,000 random forms, with SSE4.1,
// AVX2 and AVX-512.
static bool are_pixels_alike(const float_layer *layer) {
    const char *first = tare__float_primitive_kernel(&layer->primitives[0]);
    for (size_t i = 1; i < layer->primitive_count; i++)
        if (strcmp(tare__float_primitive_kernel(&layer->primitives[i]), first) != 0) return false;
    return first[0] != '\0' && strstr(first, "gemm") == NULL && strncmp(first, "ip:", 3) != 0;
}

// *out is NULL if a primitive has no fast form.
static tare_status finish(float_layer *layer, tare_status status, bool fits, float_layer **out) {
    if (status == TARE_OK && fits) layer->images_are_alike = are_pixels_alike(layer);
    return tare__float_layer_finish(layer, status, fits, out);
}

// --- one image ---

float_conv tare__float_conv_rows(const float_conv *c, int64_t first, int64_t last, int64_t *begin) {
    float_conv rows = *c;
    const int64_t start = first * c->stride[1] - c->pad[1];
    const int64_t end =
        (last - 1) * c->stride[1] - c->pad[1] + c->dilation[1] * (c->kernel[1] - 1) + 1;
    *begin = start < 0 ? 0 : start;
    rows.pad[1] = start < 0 ? -start : 0;
    rows.in[1] = (end < c->in[1] ? end : c->in[1]) - *begin;
    rows.out[1] = last - first;
    return rows;
}

// A convolution with one tap has no row windows: its image can be divided anywhere. Outputs beyond
// the input are padding at the end.
static bool is_pointwise(const float_conv *c) {
    for (int d = 0; d < 3; d++)
        if (c->kernel[d] != 1 || c->stride[d] != 1 || c->pad[d] != 0 || c->in[d] != c->out[d])
            return false;
    return true;
}

static float_conv as_one_row(const float_conv *c) {
    float_conv row = *c;
    for (int d = 0; d < 2; d++) row.in[d] = row.out[d] = 1;
    row.in[2] = row.out[2] = image_elements(1, c->in);
    return row;
}

float_conv tare__float_conv_flat(const float_conv *c) {
    return is_pointwise(c) ? as_one_row(c) : *c;
}

static float_conv slice_pixels(const float_conv *c, size_t index, size_t count,
                               float_primitive *p) {
    const share_range pixels = tare__share_range(c->in[2], count, index);
    float_conv share = *c;
    share.in[2] = share.out[2] = pixels.end - pixels.first;
    p->at.x_first = pixels.first * c->in_channels;
    p->at.y_first = pixels.first * c->out_channels;
    return share;
}

// A row block reads at least one row of the input: row blocks within the padding are not worth a
// case.
bool tare__float_conv_has_rows(const float_conv *c) {
    return c->in[0] == 1 && c->out[0] == 1 && c->kernel[0] == 1 &&
           c->pad[1] < c->dilation[1] * (c->kernel[1] - 1) + 1 &&
           (c->out[1] - 1) * c->stride[1] - c->pad[1] < c->in[1];
}

// Costs in multiply-accumulates: reading or writing an element, reading a weight, and for shares of
// channels reading what another thread wrote and copying the results to their channels.
enum { ELEMENT_COST = 8, WEIGHT_COST = 5, FOREIGN_COST = 5, MOVE_COST = 10 };
enum { CHANNEL_BLOCK = 16 };

typedef struct conv_costs {
    double macs, in, out, weights;
} conv_costs;

static conv_costs costs_of(const float_conv *c) {
    return (conv_costs){.macs = conv_macs(c),
                        .in = (double)image_elements(c->in_channels, c->in),
                        .out = (double)image_elements(c->out_channels, c->out),
                        .weights = (double)image_elements(c->out_channels, c->kernel) *
                                   (double)c->in_channels / (double)c->groups};
}

// The largest of `count` shares, as a fraction of all units; units are not cut.
static double share_of(int64_t units, size_t count) {
    const int64_t n = (int64_t)count, most = (units + n - 1) / n;
    return (double)most / (double)units;
}

static double cost_by_rows(const conv_costs *k, int64_t rows, size_t count) {
    return share_of(rows, count) * (k->macs + ELEMENT_COST * (k->in + k->out)) +
           WEIGHT_COST * k->weights;
}

static double cost_by_channels(const conv_costs *k, int64_t blocks, size_t count) {
    return share_of(blocks, count) *
               (k->macs + (ELEMENT_COST + MOVE_COST) * k->out + WEIGHT_COST * k->weights) +
           (ELEMENT_COST + FOREIGN_COST) * k->in;
}

// How an image is divided: into row blocks, or blocks of channels.
typedef struct cut {
    size_t count;
    bool by_channels;
    int64_t blocks;
} cut;

static cut choose_cut(const float_layers *l, const float_conv *c) {
    const conv_costs k = costs_of(c);
    const double whole = k.macs + ELEMENT_COST * (k.in + k.out) + WEIGHT_COST * k.weights;
    const int64_t rows = is_pointwise(c) ? c->out[2] : tare__float_conv_has_rows(c) ? c->out[1] : 1;
    const int64_t blocks = c->groups == 1 ? c->out_channels / CHANNEL_BLOCK : 1;
    const size_t row_shares = tare__float_share_count(l, whole, rows);
    const size_t shares = tare__float_share_count(l, whole, blocks);
    if (shares > 1 && cost_by_channels(&k, blocks, shares) < cost_by_rows(&k, rows, row_shares))
        return (cut){shares, true, blocks};
    return (cut){row_shares, false, 0};
}

static float_conv slice(const float_conv *c, size_t index, size_t count, float_primitive *p) {
    if (count == 1) return *c;
    if (is_pointwise(c)) return slice_pixels(c, index, count, p);
    const share_range rows = tare__share_range(c->out[1], count, index);
    int64_t begin = rows.first;
    const float_conv block = tare__float_conv_rows(c, rows.first, rows.end, &begin);
    p->at.x_first = begin * c->in[2] * c->in_channels;
    p->at.y_first = rows.first * c->out[2] * c->out_channels;
    return block;
}

// The last one takes the channels that fill no block.
static float_conv slice_channels(const float_conv *c, size_t index, const cut *how,
                                 float_primitive *p, primitive_form *f) {
    const share_range blocks = tare__share_range(how->blocks, how->count, index);
    const int64_t first = blocks.first * CHANNEL_BLOCK;
    const int64_t last = index + 1 == how->count ? c->out_channels : blocks.end * CHANNEL_BLOCK;
    const int64_t pixels = image_elements(1, c->out);
    float_conv share = *c;
    share.out_channels = last - first;
    p->at.y_first = first;
    p->at.pixels = pixels > 1 ? pixels : 0; // those of one pixel are dense
    p->at.width = share.out_channels;
    p->at.y_width = c->out_channels;
    f->w += first * image_elements(c->in_channels, c->kernel);
    f->bias = f->bias != NULL ? f->bias + first : NULL;
    return share;
}

static tare_status conv_of_image(float_layers *l, const float_conv *given, const float_epilogue *e,
                                 const float_weights *w, float_layer **out, tare_error *err) {
    const float_conv flat = tare__float_conv_flat(given), *c = &flat;
    const cut how = choose_cut(l, c);
    float_layer *layer = NULL;
    TARE_TRY(tare__float_layer_create(l, how.count, &layer, err));
    tare_status status = TARE_OK;
    bool fits = true;
    for (size_t i = 0; i < how.count && fits && status == TARE_OK; i++) {
        primitive_form f = tare__primitive_form_of(w);
        f.lender = how.by_channels ? NULL : &layer->primitives[0];
        const float_conv share = how.by_channels
                                     ? slice_channels(c, i, &how, &layer->primitives[i], &f)
                                     : slice(c, i, how.count, &layer->primitives[i]);
        status = tare__float_conv_compile(layer, i, &share, e, f, &fits, err);
    }
    return finish(layer, status, fits, out);
}

// --- batches ---

// A call for many images is up to a tenth faster than one for each: a library's blocks of pixels
// meet the end of an image less often, and weights are read less often. More than 16 gain nothing,
// but where an image has few multiply-accumulates.
enum { LEAST_MACS = 1 << 20, MOST_IMAGES = 16 };

// Of so many images, which calls share evenly.
static int64_t images_at_once(const float_conv *c, int64_t of) {
    const double few = LEAST_MACS / (conv_macs(c) / (double)c->batch + 1);
    const int64_t most = few > MOST_IMAGES ? (int64_t)few : MOST_IMAGES;
    const int64_t calls = (of + most - 1) / most;
    return (of + calls - 1) / calls;
}

// Images of single pixels are one image, of one row: the last pixels of one fill a block with the
// first of the next.
static float_conv as_one_image(const float_conv *c) {
    if (!is_pointwise(c)) return *c;
    float_conv row = as_one_row(c);
    row.in[2] = row.out[2] *= c->batch;
    row.batch = 1;
    return row;
}

// One primitive of so many images runs many times, and one more takes the rest. parts: threads.
static tare_status compile_images(float_layers *l, const float_conv *c, const float_epilogue *e,
                                  const float_weights *w, int64_t images, int64_t parts,
                                  float_layer **out, tare_error *err) {
    const int64_t all = c->batch / images, rest = c->batch % images;
    const size_t shares = (size_t)(all < parts ? all : parts), count = shares + (rest > 0);
    const int64_t x_step = images * image_elements(c->in_channels, c->in);
    const int64_t y_step = images * image_elements(c->out_channels, c->out);
    float_layer *layer = NULL;
    tare_status status = TARE_OK;
    bool fits = true;
    TARE_TRY(tare__float_layer_create(l, count, &layer, err));
    for (size_t i = 0; i < count && fits && status == TARE_OK; i++) {
        float_primitive *p = &layer->primitives[i];
        float_conv few = *c;
        const bool is_rest = i == shares;
        const share_range share =
            is_rest ? (share_range){all, all + 1} : tare__share_range(all, shares, i);
        few.batch = is_rest ? rest : images;
        few = as_one_image(&few);
        p->at.times = (size_t)(share.end - share.first);
        p->at.x_first = share.first * (p->at.x_step = x_step);
        p->at.y_first = share.first * (p->at.y_step = y_step);
        primitive_form f = tare__primitive_form_of(w);
        f.lender = &layer->primitives[0];
        status = tare__float_conv_compile(layer, i, &few, e, f, &fits, err);
    }
    return finish(layer, status, fits, out);
}

// Threads divide the images.
static tare_status conv_of_images(float_layers *l, const float_conv *c, const float_epilogue *e,
                                  const float_weights *w, float_layer **out, tare_error *err) {
    const int64_t parts = (int64_t)tare__float_share_count(l, conv_macs(c), c->batch);
    const int64_t images = images_at_once(c, (c->batch + parts - 1) / parts);
    TARE_TRY(compile_images(l, c, e, w, images, parts, out, err));
    if (images == 1 || *out == NULL || (*out)->images_are_alike) return TARE_OK;
    tare__float_layer_destroy(*out);
    *out = NULL;
    return compile_images(l, c, e, w, 1, parts, out, err);
}

tare_status tare__float_layer_conv(float_layers *l, const float_conv *c, const float_epilogue *e,
                                   const float_weights *w, float_layer **out, tare_error *err) {
    *out = NULL;
    return (c->batch > 1 ? conv_of_images : conv_of_image)(l, c, e, w, out, err);
}
#else
typedef int tare__no_dnnl_convolutions; // a file must not be empty
#endif
