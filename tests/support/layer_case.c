// SPDX-License-Identifier: Apache-2.0
// Makes a layer's tensors from a seed, runs it, and requantizes expected sums one by one.
#include "support/layer_case.h"

#include "support/test.h"

#include "core/memory/alloc.h"
#include "runtime/kernels/schemes.h"
#include "support/models.h"

static uint32_t next(random_state *r) { // a linear congruential generator, upper bits
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(r->state >> 33);
}

static int64_t between(random_state *r, int64_t least, int64_t most) {
    return least + (int64_t)(next(r) % (uint32_t)(most - least + 1));
}

// Half of the quantized values are the extreme ones, where products are largest and 16-bit sums
// would saturate.
static void fill_quantized(random_state *r, tare_tensor *t) {
    uint8_t *bytes = t->data;
    const bool is_signed = t->dtype == TARE_QINT8;
    for (int64_t i = 0; i < t->count; i++) {
        const uint32_t kind = next(r) % 4;
        const int64_t low = is_signed ? -128 : 0, high = low + 255;
        bytes[i] = (uint8_t)(kind == 0 ? low : kind == 1 ? high : between(r, low, high));
    }
}

// A pool of each size, so that every row is tested with every number of threads; one thread has
// none.
static thread_pool *pools[MOST_THREADS + 1];

int start_layer_pools(void **state) {
    (void)state;
    for (int i = 1; i <= MOST_THREADS; i++) CHECK_OK(tare__thread_pool_create(i, &pools[i], NULL));
    return 0;
}

int end_layer_pools(void **state) {
    (void)state;
    for (int i = 1; i <= MOST_THREADS; i++) tare__thread_pool_destroy(pools[i]);
    return 0;
}

// Some fit int8 without their zero points.
static void fill_zero_points(random_state *r, int64_t count, double *zero_point, bool *are_small) {
    *are_small = next(r) % 3 == 0;
    const int64_t most = *are_small ? 90 : 128;
    for (int64_t c = 0; c < count; c++) zero_point[c] = (double)between(r, -most, most - 1);
}

// A weight with a scale per output channel, or one for all.
static tare_tensor *make_weight(layer_case *c, const int64_t *shape) {
    random_state *r = &c->random;
    const int ndim = c->layer.conv.dims + 2; // 0 dimensions: a linear layer
    const int axis = c->layer.conv.is_transposed ? 1 : 0;
    const bool per_channel = next(r) % 2 != 0 && shape[axis] == c->layer.out_channels;
    const int64_t count = per_channel ? shape[axis] : 1;
    double scale[192], zero_point[192] = {0};
    bool are_small = false;
    for (int64_t i = 0; i < count; i++) scale[i] = (double)between(r, 1, 1000) * 1e-5;
    if (c->has_zero_points) fill_zero_points(r, count, zero_point, &are_small);
    qparams *q =
        tare__qparams_create(per_channel ? TARE_PER_CHANNEL_AFFINE : TARE_PER_TENSOR_AFFINE,
                             TARE_QINT8, axis, count, scale, zero_point);
    assert_non_null(q);
    tare_tensor *t = NULL;
    CHECK_OK(tare__tensor_quantized(ndim, shape, q, &t, NULL));
    tare__qparams_release(q);
    fill_quantized(r, t);
    for (int64_t i = 0; are_small && i < t->count; i++) ((int8_t *)t->data)[i] /= 4;
    return t;
}

static tare_tensor *make_bias(random_state *r, int64_t count) {
    tare_tensor *t = NULL;
    CHECK_OK(tare_tensor_create(TARE_FLOAT32, 1, &count, &t, NULL));
    for (int64_t i = 0; i < count; i++) tare__f32(t)[i] = (float)between(r, -4000, 4000) / 1000;
    return t;
}

void begin_layer_case(layer_case *c, uint64_t seed, requant_rule rule, int64_t channels) {
    memset(c, 0, sizeof *c);
    c->random.state = seed * 977 + 13;
    c->layer = (quantized_layer){.out_channels = channels,
                                 .rule = rule,
                                 .relu = seed % 3 == 0,
                                 .is_plain = true,
                                 .quantized_min = INT8_MIN,
                                 .quantized_max = UINT8_MAX};
    c->layer.gives_floats = seed % 5 == 0;
}

void finish_layer_case(layer_case *c, int ndim, const int64_t *in, const int64_t *w,
                       const int64_t *out) {
    random_state *r = &c->random;
    const tare_dtype dtype = next(r) % 4 == 0 ? TARE_QINT8 : TARE_QUINT8;
    const int64_t low = dtype == TARE_QINT8 ? -128 : 0;
    c->weight = make_weight(c, w);
    c->bias = next(r) % 4 == 0 ? NULL : make_bias(r, c->layer.out_channels);
    // Borders of zeros, as behind a ReLU, may be left out.
    const int64_t zero_value = next(r) % 3 == 0 ? 0 : between(r, 0, 255);
    c->x = new_integers(dtype, ndim, in, 0.02, low + zero_value);
    // Odd and even zero points matter to rule O; a coarse scale keeps quantized values from
    // saturating. A tiny one takes floats beyond what integers hold before they are bounded.
    const bool is_tiny = between(r, 0, 7) == 0;
    const double scale = is_tiny ? 1e-12 : (double)between(r, 1, 400) * 1e-2;
    const int64_t zero_point = low + between(r, 0, 255);
    if (next(r) % 4 == 0) { // bounds of its own
        c->layer.quantized_min = zero_point - 10;
        c->layer.quantized_max = zero_point + 30;
    }
    if (c->layer.gives_floats)
        CHECK_OK(tare_tensor_create(TARE_FLOAT32, ndim, out, &c->y, NULL));
    else
        c->y = new_integers(dtype, ndim, out, scale, zero_point);
    if (c->layer.adds) {
        c->addend = new_integers(dtype, ndim, out, 0.3, low + between(r, 0, 255));
        fill_quantized(r, c->addend);
    }
    fill_quantized(r, c->x);
    c->layer.weight = c->weight;
    c->layer.bias = c->bias;
    CHECK_OK(tare__quantized_layer_requant(&c->layer, c->x->q, c->y->q, &c->r, NULL));
}

void end_layer_case(layer_case *c) {
    tare__requant_destroy(c->r);
    tare_tensor_release(c->weight);
    tare_tensor_release(c->bias);
    tare_tensor_release(c->x);
    tare_tensor_release(c->addend);
    tare_tensor_release(c->y);
}

void check_layer_integer(const layer_case *c, int64_t channel, int64_t sum, int64_t at,
                         const char *kernel) {
    if (c->layer.gives_floats) {
        const float wanted = tare__requant_o_value(c->r, channel, tare__wrap_int32(sum));
        if (wanted != tare__f32(c->y)[at])
            fail_msg("%s: expected %g, found %g at %lld", kernel, (double)wanted,
                     (double)tare__f32(c->y)[at], (long long)at);
        return;
    }
    const int32_t acc = tare__wrap_int32(sum);
    int32_t expected = tare__requantize(c->r, channel, acc);
    if (c->addend != NULL) {
        const qparams *q = c->addend->q;
        const int64_t less = (int64_t)q->zero_point[0];
        expected = tare__requantize_sum(c->r, channel, acc,
                                        (float)(tare__load_quantized(c->addend, at) - less),
                                        tare__addend_factor(c->r, (float)q->scale[0]));
    }
    const int32_t found = tare__load_quantized(c->y, at);
    if (expected != found)
        fail_msg("%s, rule %s: expected %d, found %d at %lld", kernel,
                 tare__requant_rule_name(c->layer.rule), expected, found, (long long)at);
}

// Images of a tensor that has no batch, or has one.
static int64_t batch_of(const layer_case *c, const tare_tensor *t) {
    return t->ndim == c->weight->ndim ? t->shape[0] : 1;
}

static int64_t channels_of(const layer_case *c, const tare_tensor *t) {
    return t->shape[t->ndim - c->weight->ndim + 1];
}

void move_layer_channels(const layer_case *c, const uint8_t *x, const tare_tensor *like,
                         bool to_last, uint8_t *y) {
    const int64_t batch = batch_of(c, like), channels = channels_of(c, like);
    const int64_t pixels = like->count / batch / channels;
    for (int64_t n = 0; n < batch; n++)
        for (int64_t o = 0; o < channels; o++)
            for (int64_t p = 0; p < pixels; p++) {
                const int64_t first = (n * channels + o) * pixels + p;
                const int64_t last = (n * pixels + p) * channels + o;
                y[to_last ? last : first] = x[to_last ? first : last];
            }
}

// The same between floats.
static void move_floats(const layer_case *c, const float *x, const tare_tensor *like, float *y) {
    const int64_t channels = channels_of(c, like);
    const int64_t pixels = like->count / batch_of(c, like) / channels;
    for (int64_t i = 0; i < like->count; i++) {
        const int64_t n = i / channels / pixels, p = i / channels % pixels, o = i % channels;
        y[(n * channels + o) * pixels + p] = x[i];
    }
}

// Pixels that lie `gap` elements further apart than their channels take, up to the last one's end.
typedef struct pixel_lines {
    size_t count, bytes, stride;
} pixel_lines;

static pixel_lines lines_of(const layer_case *c, const tare_tensor *t, size_t gap) {
    const size_t channels = (size_t)channels_of(c, t), size = tare_dtype_size(t->dtype);
    return (pixel_lines){(size_t)t->count / channels, channels * size, (channels + gap) * size};
}

enum { UNTOUCHED = 0xA5 };

static uint8_t *new_lines(const pixel_lines *l) {
    const size_t bytes = (l->count - 1) * l->stride + l->bytes;
    uint8_t *lines = malloc(bytes);
    assert_non_null(lines);
    memset(lines, UNTOUCHED, bytes);
    return lines;
}

// Takes the pixels that follow each other.
static uint8_t *lay_apart(const pixel_lines *l, uint8_t *pixels) {
    uint8_t *lines = new_lines(l);
    for (size_t i = 0; i < l->count; i++)
        memcpy(lines + i * l->stride, pixels + i * l->bytes, l->bytes);
    free(pixels);
    return lines;
}

// Takes the lines, between which nobody may have written.
static void lay_beside(const pixel_lines *l, uint8_t *lines, uint8_t *pixels) {
    for (size_t i = 0; i < l->count; i++) {
        memcpy(pixels + i * l->bytes, lines + i * l->stride, l->bytes);
        for (size_t k = l->bytes; k < l->stride && i + 1 < l->count; k++)
            assert_int_equal(lines[i * l->stride + k], UNTOUCHED);
    }
    free(lines);
}

static uint8_t *new_layer_integers(const layer_case *c, const tare_tensor *t,
                                   const pixel_lines *l) {
    uint8_t *quantized = malloc((size_t)t->count);
    assert_non_null(quantized);
    move_layer_channels(c, t->data, t, true, quantized);
    return lay_apart(l, quantized);
}

void run_layer_case(const layer_case *c, const qlayer *p, int threads,
                    const product_addend *addend) {
    const bool is_linear = c->weight->ndim == 2, gives_floats = c->layer.gives_floats;
    const bool is_apart = threads % 2 == 0;
    const pixel_lines in = lines_of(c, c->x, is_apart ? 3 : 0);
    const pixel_lines out = lines_of(c, c->y, is_apart ? 5 : 0);
    workspace space = {.pool = pools[threads]};
    uint8_t *x = new_layer_integers(c, c->x, &in), *y = new_lines(&out), *other = NULL;
    uint8_t *beside = malloc(tare__tensor_bytes(c->y));
    const size_t batch = is_linear ? in.count : (size_t)batch_of(c, c->x);
    void *memory = tare__alloc_aligned(tare__qlayer_scratch_bytes(p, (size_t)threads, batch), 64);
    assert_true(beside != NULL && memory != NULL);
    product_addend own;
    if (c->addend != NULL) {
        const pixel_lines added = lines_of(c, c->addend, is_apart ? 2 : 0);
        own = tare__value_addend_of(c->addend);
        own.quantized = other = new_layer_integers(c, c->addend, &added);
        own.stride = is_apart ? added.stride : 0;
        addend = &own;
    }
    qlayer_run run = {.batch = batch,
                      .x = x,
                      .y = gives_floats ? NULL : y,
                      .real = gives_floats ? (float *)(void *)y : NULL,
                      .addend = addend,
                      .scratch = memory,
                      .space = &space};
    if (is_apart) {
        run.x_stride = in.stride;
        run.y_stride = out.stride / tare_dtype_size(c->y->dtype);
    }
    tare__qlayer_run(p, &run);
    lay_beside(&out, y, beside);
    if (gives_floats)
        move_floats(c, (const float *)(const void *)beside, c->y, tare__f32(c->y));
    else
        move_layer_channels(c, beside, c->y, false, c->y->data);
    tare__free_aligned(memory);
    free(x);
    free(other);
    free(beside);
}
