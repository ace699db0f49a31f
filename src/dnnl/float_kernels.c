// SPDX-License-Identifier: Apache-2.0
// Portable float kernels: a matrix product in tiles. A convolution is the product of the weights
// with a matrix that is never built: its panels of eight columns are gathered from the image one by
// one. Every sum is in the order of the inner dimension, regardless of the shape, so a row's bits
// do not depend on the number of rows.
#include "dnnl/float_kernels.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"

enum { TILE_ROWS = 4, TILE_COLUMNS = 8 };

// One tile: sums[r][j] += a[r][k] * panel[k][j]. Each row has its own sums, so that compilers keep
// them in registers.
static void multiply_tile(const float *const a[TILE_ROWS], const float *panel, int64_t inner,
                          float sums[TILE_ROWS][TILE_COLUMNS]) {
    float s0[TILE_COLUMNS], s1[TILE_COLUMNS], s2[TILE_COLUMNS], s3[TILE_COLUMNS];
    memcpy(s0, sums[0], sizeof s0);
    memcpy(s1, sums[1], sizeof s1);
    memcpy(s2, sums[2], sizeof s2);
    memcpy(s3, sums[3], sizeof s3);
    for (int64_t k = 0; k < inner; k++) {
        const float *b = panel + k * TILE_COLUMNS;
        const float a0 = a[0][k], a1 = a[1][k], a2 = a[2][k], a3 = a[3][k];
        for (int j = 0; j < TILE_COLUMNS; j++) s0[j] += a0 * b[j];
        for (int j = 0; j < TILE_COLUMNS; j++) s1[j] += a1 * b[j];
        for (int j = 0; j < TILE_COLUMNS; j++) s2[j] += a2 * b[j];
        for (int j = 0; j < TILE_COLUMNS; j++) s3[j] += a3 * b[j];
    }
    memcpy(sums[0], s0, sizeof s0);
    memcpy(sums[1], s1, sizeof s1);
    memcpy(sums[2], s2, sizeof s2);
    memcpy(sums[3], s3, sizeof s3);
}

// A product with a panel of at most TILE_COLUMNS columns. The rows of y are y_stride apart.
typedef struct panel_product {
    const float *a, *panel;
    int64_t rows, inner, columns, y_stride;
    const float *row_bias, *column_bias; // each may be NULL
    float *y;
} panel_product;

static void multiply_panel(const panel_product *p) {
    for (int64_t r = 0; r < p->rows; r += TILE_ROWS) {
        const float *a[TILE_ROWS];
        float sums[TILE_ROWS][TILE_COLUMNS] = {{0}};
        const int64_t rows = p->rows - r < TILE_ROWS ? p->rows - r : TILE_ROWS;
        for (int64_t i = 0; i < TILE_ROWS; i++)
            a[i] = p->a + (r + (i < rows ? i : 0)) * p->inner; // missing rows repeat one
        multiply_tile(a, p->panel, p->inner, sums);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < p->columns; j++)
                p->y[(r + i) * p->y_stride + j] =
                    sums[i][j] + (p->row_bias != NULL      ? p->row_bias[r + i]
                                  : p->column_bias != NULL ? p->column_bias[j]
                                                           : 0.0f);
    }
}

static float *panel_create(int64_t inner) {
    size_t count = 0;
    if (!tare__mul_size((size_t)inner, TILE_COLUMNS, &count)) return NULL;
    return tare__alloc_zeroed(count > 0 ? count : 1, sizeof(float));
}

// --- matrix product ---

static void gather_columns(const float_product *p, const float *b, int64_t from, int64_t columns,
                           float *panel) {
    const int64_t along_k = p->transposed ? 1 : p->columns, along_j = p->transposed ? p->inner : 1;
    for (int64_t j = 0; j < columns; j++)
        for (int64_t k = 0; k < p->inner; k++)
            panel[k * TILE_COLUMNS + j] = b[k * along_k + (from + j) * along_j];
}

// Products of a short inner dimension ask for no memory: operators of a plan compute small ones.
enum { SHORT_INNER = 1024 };

static tare_status portable_product(void *state, const float_product *p, const float *a,
                                    const float *b, const float *bias, float *y, tare_error *err) {
    (void)state;
    float short_panel[SHORT_INNER * TILE_COLUMNS];
    const bool is_short = p->inner <= SHORT_INNER;
    float *panel = is_short ? short_panel : panel_create(p->inner);
    if (panel == NULL) return tare__out_of_memory(err);
    if (is_short) memset(panel, 0, (size_t)p->inner * TILE_COLUMNS * sizeof *panel);
    for (int64_t from = 0; from < p->columns; from += TILE_COLUMNS) {
        const int64_t left = p->columns - from, columns = left < TILE_COLUMNS ? left : TILE_COLUMNS;
        gather_columns(p, b, from, columns, panel);
        multiply_panel(&(panel_product){.a = a,
                                        .panel = panel,
                                        .rows = p->rows,
                                        .inner = p->inner,
                                        .columns = columns,
                                        .y_stride = p->columns,
                                        .column_bias = bias != NULL ? bias + from : NULL,
                                        .y = y + from});
    }
    if (!is_short) tare__free(panel);
    return TARE_OK;
}

// --- convolution ---

// The begin of an output position's window in the image, possibly before the image.
typedef struct window {
    int64_t at[3];
} window;

static window window_of(const float_conv *c, int64_t position) {
    window w;
    for (int d = 2; d >= 0; d--) {
        w.at[d] = position % c->out[d] * c->stride[d] - c->pad[d];
        position /= c->out[d];
    }
    return w;
}

static float pixel(const float_conv *c, const float *image, const window *w, int64_t d, int64_t h,
                   int64_t v) {
    const int64_t i = w->at[0] + d, j = w->at[1] + h, k = w->at[2] + v;
    if (i < 0 || i >= c->in[0] || j < 0 || j >= c->in[1] || k < 0 || k >= c->in[2]) return 0;
    return image[(i * c->in[1] + j) * c->in[2] + k];
}

// The columns [from, from + count) of the matrix whose product with the weights is the convolution.
static void gather_windows(const float_conv *c, const float *x, int64_t from, int64_t count,
                           float *panel) {
    window windows[TILE_COLUMNS];
    for (int64_t j = 0; j < count; j++) windows[j] = window_of(c, from + j);
    const int64_t image = c->in[0] * c->in[1] * c->in[2], channels = c->in_channels / c->groups;
    for (int64_t i = 0; i < channels; i++, x += image)
        for (int64_t d = 0; d < c->kernel[0]; d++)
            for (int64_t h = 0; h < c->kernel[1]; h++)
                for (int64_t v = 0; v < c->kernel[2]; v++, panel += TILE_COLUMNS)
                    for (int64_t j = 0; j < count; j++)
                        panel[j] = pixel(c, x, &windows[j], d * c->dilation[0], h * c->dilation[1],
                                         v * c->dilation[2]);
}

static tare_status portable_conv(void *state, const float_conv *c, const float *x, const float *w,
                                 const float *bias, float *y, tare_error *err) {
    (void)state;
    const int64_t in = c->in[0] * c->in[1] * c->in[2], out = c->out[0] * c->out[1] * c->out[2];
    const int64_t in_group = c->in_channels / c->groups, out_group = c->out_channels / c->groups;
    const int64_t inner = in_group * c->kernel[0] * c->kernel[1] * c->kernel[2];
    float *panel = panel_create(inner);
    if (panel == NULL) return tare__out_of_memory(err);
    for (int64_t i = 0; i < c->batch * c->groups; i++) {
        const int64_t group = i % c->groups;
        for (int64_t from = 0; from < out; from += TILE_COLUMNS) {
            const int64_t left = out - from, columns = left < TILE_COLUMNS ? left : TILE_COLUMNS;
            gather_windows(c, x + i * in_group * in, from, columns, panel);
            multiply_panel(
                &(panel_product){.a = w + group * out_group * inner,
                                 .panel = panel,
                                 .rows = out_group,
                                 .inner = inner,
                                 .columns = columns,
                                 .y_stride = out,
                                 .row_bias = bias != NULL ? bias + group * out_group : NULL,
                                 .y = y + i * out_group * out + from});
        }
    }
    tare__free(panel);
    return TARE_OK;
}

static tare_status portable_create(void **state, tare_error *err) {
    (void)err;
    *state = NULL;
    return TARE_OK;
}

static void portable_destroy(void *state) {
    (void)state;
}

const float_provider tare__portable_floats = {.name = "portable",
                                              .create = portable_create,
                                              .destroy = portable_destroy,
                                              .conv = portable_conv,
                                              .product = portable_product};

// --- choice ---

struct float_kernels {
    const float_provider *provider;
    void *state;
};

// Fastest first.
static const float_provider *const providers[] = {
#ifdef TARE_HAVE_DNNL
    &tare__dnnl_floats,
#endif
    &tare__portable_floats,
};
enum { PROVIDER_COUNT = sizeof providers / sizeof *providers };

tare_status tare__float_provider_choose(const float_provider **out, tare_error *err) {
    const char *wanted = getenv("TARE_FLOATS");
    *out = providers[0];
    if (wanted == NULL || wanted[0] == '\0') return TARE_OK;
    for (size_t i = 0; i < PROVIDER_COUNT; i++)
        if (strcmp(wanted, providers[i]->name) == 0) return *out = providers[i], TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT, "TARE_FLOATS: expected %s%s, found '%s'",
                      PROVIDER_COUNT > 1 ? "oneDNN or " : "", tare__portable_floats.name, wanted);
}

tare_status tare__float_kernels_create(const float_provider *provider, float_kernels **out,
                                       tare_error *err) {
    if (provider == NULL) TARE_TRY(tare__float_provider_choose(&provider, err));
    float_kernels *k = tare__alloc_zeroed(1, sizeof *k);
    if (k == NULL) return tare__out_of_memory(err);
    k->provider = provider;
    const tare_status status = k->provider->create(&k->state, err);
    if (status != TARE_OK)
        tare__free(k);
    else
        *out = k;
    return status;
}

void tare__float_kernels_destroy(float_kernels *k) {
    if (k == NULL) return;
    k->provider->destroy(k->state);
    tare__free(k);
}

tare_status tare__float_convolve(float_kernels *k, const float_conv *c, const float *x,
                                 const float *w, const float *bias, float *y, tare_error *err) {
    return k != NULL ? k->provider->conv(k->state, c, x, w, bias, y, err)
                     : portable_conv(NULL, c, x, w, bias, y, err);
}

tare_status tare__float_multiply(float_kernels *k, const float_product *p, const float *a,
                                 const float *b, const float *bias, float *y, tare_error *err) {
    return k != NULL ? k->provider->product(k->state, p, a, b, bias, y, err)
                     : portable_product(NULL, p, a, b, bias, y, err);
}
