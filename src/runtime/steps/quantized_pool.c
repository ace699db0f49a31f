// SPDX-License-Identifier: Apache-2.0
// Pooling of quantized values: they are ordered like the values that they represent, and their sums
// are exact. In channels last a pixel is a row of channels; in the plain layout each plane is an
// image with one channel.
#include <string.h>

#include "ops/layer_call.h"
#include "ops/memory_order.h"
#include "ops/quantized/layer.h"
#include "ops/rules.h"
#include "runtime/plan/records.h"
#include "runtime/steps/steps.h"

enum {
    AVERAGED_CHANNELS = 256, // per task: if there are few windows, threads divide the channels
    TASKS_PER_THREAD = 4,    // of a window, if there are fewer windows than threads
    SCRATCH_STEP = 64,
};

// How an average is rounded: as torch does for this call.
typedef struct average_rule {
    int64_t zero_point, least, most;
    bool rounds_with_zero_point;
} average_rule;

typedef struct quantized_pool {
    pool_call call;
    plan_pixels x, y;
    size_t scratch;                  // a buffer with a part for each thread
    size_t scratch_bytes, row_bytes; // of such a part, and of the row of pixels at its beginning
    size_t channels;
    bool is_of_planes;
    int64_t batch; // images
    bool is_signed;
    int64_t inner,
        inner_count; // the first window of a row that covers no padding columns, and their number
    average_rule average;
} quantized_pool;

typedef struct pool_job {
    const quantized_pool *s;
    const elementwise_kernels *kernels;
    const uint8_t *x;
    uint8_t *y;
    unsigned char *scratch;
} pool_job;

static const uint8_t *pixel_at(const quantized_pool *s, const uint8_t *image, int64_t i, int64_t j,
                               int64_t l) {
    const pool_call *p = &s->call;
    return image + (size_t)((i * p->in[1] + j) * p->in[2] + l) * s->x.pitch;
}

static const uint8_t *image_at(const pool_job *job, int64_t n) {
    const int64_t *in = job->s->call.in;
    return job->x + (size_t)(n * in[0] * in[1] * in[2]) * job->s->x.pitch;
}

// A window can consist of padding only (dilated windows step over a small image). Its maximum is
// the quantized value of negative infinity.
static void fill_least(const quantized_pool *s, size_t pixels, uint8_t *y) {
    memset(y, (uint8_t)s->average.least, pixels * s->channels);
}

static size_t taps_of(const pool_call *p, const pool_window *w, int d) {
    if (w->begin[d] >= w->end[d]) return 0;
    return tare__ceil_div((size_t)(w->end[d] - w->begin[d]), (size_t)p->dilation[d]);
}

// Contiguous rows are handled as one.
static void take_windows(const pool_job *job, quantized_windows w, const uint8_t *x, uint8_t *y) {
    if (w.x_step == w.count && w.y_step == w.count) {
        w.count *= w.windows;
        w.windows = 1;
    }
    job->kernels->greatest(&w, x, y);
}

// A row of pixels: `pitch` bytes from one to the next.
typedef struct pixel_row {
    const uint8_t *x;
    size_t pitch;
} pixel_row;

// Computes the maximum of the rows of pixels that a window covers, in `room`. A single row is used
// where it is.
static pixel_row take_rows(const pool_job *job, const uint8_t *image, const pool_window *w,
                           uint8_t *room) {
    const quantized_pool *s = job->s;
    const pool_call *p = &s->call;
    const pixel_row row = {room, s->channels};
    const size_t pixels = (size_t)p->in[2], bytes = pixels * s->x.pitch;
    const quantized_windows rows = {
        .is_signed = s->is_signed,
        .taps = {taps_of(p, w, 0), taps_of(p, w, 1)},
        .tap_stride = {(size_t)(p->dilation[0] * p->in[1]) * bytes, (size_t)p->dilation[1] * bytes},
        .windows = pixels,
        .x_step = s->x.pitch,
        .y_step = s->channels,
        .count = s->channels};
    if (rows.taps[0] * rows.taps[1] == 0) {
        fill_least(s, pixels, room);
        return row;
    }
    const uint8_t *x = pixel_at(s, image, w->begin[0], w->begin[1], 0);
    if (rows.taps[0] * rows.taps[1] == 1) return (pixel_row){x, s->x.pitch};
    take_windows(job, rows, x, room);
    return row;
}

// With one channel: computes all positions of the window, which is faster with vectors than only
// those that are needed.
static void take_neighbours(const pool_job *job, quantized_windows w, const uint8_t *x,
                            uint8_t *all, uint8_t *y) {
    const size_t stride = w.x_step, windows = w.windows;
    w.windows = (windows - 1) * stride + 1;
    w.x_step = 1;
    take_windows(job, w, x, all);
    for (size_t i = 0; i < windows; i++) y[i] = all[i * stride];
}

// The maximum over the columns that `w` and the following windows cover.
static void take_columns(const pool_job *job, const pixel_row *row, const pool_window *w,
                         size_t windows, uint8_t *all, uint8_t *y) {
    const quantized_pool *s = job->s;
    const pool_call *p = &s->call;
    const quantized_windows columns = {.is_signed = s->is_signed,
                                       .taps = {1, taps_of(p, w, 2)},
                                       .tap_stride = {0, (size_t)p->dilation[2] * row->pitch},
                                       .windows = windows,
                                       .x_step = (size_t)p->stride[2] * row->pitch,
                                       .y_step = s->y.pitch,
                                       .count = s->channels};
    const uint8_t *x = row->x + (size_t)w->begin[2] * row->pitch;
    if (columns.taps[1] == 0)
        fill_least(s, 1, y);
    else if (s->is_of_planes && windows > 1)
        take_neighbours(job, columns, x, all, y);
    else
        take_windows(job, columns, x, y);
}

// A row of windows: first the maximum over rows of pixels, then over columns.
static void take_greatest(const pool_job *job, size_t row_index, uint8_t *room) {
    const quantized_pool *s = job->s;
    const pool_call *p = &s->call;
    const int64_t index = (int64_t)row_index;
    int64_t at[] = {index / p->out[1] % p->out[0], index % p->out[1], 0};
    const uint8_t *image = image_at(job, index / p->out[1] / p->out[0]);
    uint8_t *y = job->y + row_index * (size_t)p->out[2] * s->y.pitch;
    pool_window w = tare__pool_window_at(p, at);
    const pixel_row row = take_rows(job, image, &w, room);
    while (at[2] < p->out[2]) {
        const int64_t windows = at[2] == s->inner && s->inner_count > 0 ? s->inner_count : 1;
        w = tare__pool_window_at(p, at);
        take_columns(job, &row, &w, (size_t)windows, room + s->row_bytes, y);
        at[2] += windows;
        y += (size_t)windows * s->y.pitch;
    }
}

static void take_some_greatest(void *user, size_t first, size_t end, size_t worker) {
    const pool_job *job = user;
    for (size_t i = first; i < end; i++)
        take_greatest(job, i, job->scratch + worker * job->s->scratch_bytes);
}

// A task of an average: some channels of a window.
typedef struct averaged {
    pool_window w;
    const uint8_t *image; // at the first of the channels
    uint8_t *y;
    size_t channels, width; // width: number of sums, for several contiguous pixels at a time
    int64_t rows;           // rows of pixels
} averaged;

static averaged averaged_at(const pool_job *job, size_t window, size_t first, size_t end) {
    const quantized_pool *s = job->s;
    const pool_call *p = &s->call;
    const int64_t pixel = (int64_t)window, out_row = pixel / p->out[2];
    const int64_t at[] = {out_row / p->out[1] % p->out[0], out_row % p->out[1], pixel % p->out[2]};
    averaged a = {.w = tare__pool_window_at(p, at),
                  .image = image_at(job, out_row / p->out[1] / p->out[0]) + first,
                  .y = job->y + (size_t)pixel * s->y.pitch + first,
                  .channels = end - first};
    const size_t fit = AVERAGED_CHANNELS / a.channels, row = (size_t)(a.w.end[2] - a.w.begin[2]);
    const bool has_gaps = s->x.pitch != a.channels;
    a.width = has_gaps ? a.channels : tare__least(fit, row) * a.channels;
    a.rows = (a.w.end[0] - a.w.begin[0]) * (a.w.end[1] - a.w.begin[1]);
    return a;
}

static int32_t *sums_of(const pool_job *job, size_t worker) {
    return (int32_t *)(void *)(job->scratch + worker * job->s->scratch_bytes);
}

static void add_rows(const pool_job *job, const averaged *a, int64_t first, int64_t last,
                     int32_t *sums) {
    const quantized_pool *s = job->s;
    const int64_t height = a->w.end[1] - a->w.begin[1], l = a->w.begin[2];
    const size_t pixels = (size_t)(a->w.end[2] - l), step = a->width / a->channels;
    for (int64_t row = first; row < last; row++) {
        const uint8_t *x =
            pixel_at(s, a->image, a->w.begin[0] + row / height, a->w.begin[1] + row % height, l);
        for (size_t i = 0; i < pixels; i += step)
            job->kernels->sum(s->is_signed, x + i * s->x.pitch,
                              tare__remaining(pixels, i, step) * a->channels, sums);
    }
}

// The average of a sum of `count` quantized values, divided by `divisor`.
static quantized_average average_of(const average_rule *r, int64_t count, double divisor) {
    const bool before = r->rounds_with_zero_point;
    return (quantized_average){.divisor = (float)divisor,
                               .less = (int32_t)(count * r->zero_point),
                               .before = before ? (float)r->zero_point : 0.0F,
                               .after = before ? 0 : (int32_t)r->zero_point,
                               .least = (int32_t)r->least,
                               .most = (int32_t)r->most};
}

static void finish_average(const pool_job *job, const averaged *a, int32_t *sums) {
    const pool_call *p = &job->s->call;
    const int64_t count = a->rows * (a->w.end[2] - a->w.begin[2]);
    for (size_t i = a->channels; i < a->width; i += a->channels)
        for (size_t c = 0; c < a->channels; c++) sums[c] += sums[i + c];
    const quantized_average average = average_of(
        &job->s->average, count, p->is_adaptive ? (double)count : tare__pool_divisor(p, &a->w));
    job->kernels->average(&average, sums, a->channels, a->y);
}

static void take_average(void *user, size_t window, size_t first, size_t end, size_t worker) {
    const pool_job *job = user;
    const averaged a = averaged_at(job, window, first, end);
    int32_t *sums = sums_of(job, worker);
    memset(sums, 0, a.width * sizeof *sums);
    add_rows(job, &a, 0, a.rows, sums);
    finish_average(job, &a, sums);
}

// --- windows that threads share ---

typedef struct shared_window {
    const pool_job *job;
    averaged a;
} shared_window;

static void add_some_rows(void *user, size_t first, size_t end, size_t worker) {
    const shared_window *s = user;
    add_rows(s->job, &s->a, (int64_t)first, (int64_t)end, sums_of(s->job, worker));
}

// Threads sum separately; the sums are exact, so their order does not matter.
static void share_average(const pool_job *job, averaged a, thread_pool *pool) {
    const size_t threads = tare__thread_count(pool), rows = (size_t)a.rows;
    shared_window s = {job, a};
    int32_t *sums = sums_of(job, 0);
    for (size_t i = 0; i < threads; i++) memset(sums_of(job, i), 0, s.a.width * sizeof *sums);
    tare__parallel(pool, rows, tare__share(rows, threads * TASKS_PER_THREAD, 1), add_some_rows, &s);
    for (size_t i = 1; i < threads; i++)
        for (size_t k = 0; k < s.a.width; k++) sums[k] += sums_of(job, i)[k];
    finish_average(job, &s.a, sums);
}

static void take_averages(pool_job *job, size_t windows, thread_pool *pool) {
    const size_t channels = job->s->channels, each = AVERAGED_CHANNELS;
    if (windows * tare__ceil_div(channels, each) >= tare__thread_count(pool)) {
        tare__parallel_nest(pool, windows, channels, each, take_average, job);
        return;
    }
    for (size_t i = 0; i < windows; i++)
        for (size_t first = 0; first < channels; first += each) {
            const size_t end = first + tare__remaining(channels, first, each);
            share_average(job, averaged_at(job, i, first, end), pool);
        }
}

static tare_status run_pool(const plan_run_state *run, void *state) {
    const quantized_pool *s = state;
    const pool_call *p = &s->call;
    const size_t rows = (size_t)(s->batch * p->out[0] * p->out[1]);
    pool_job job = {.s = s,
                    .kernels = run->kernels->elementwise,
                    .x = tare__buffer_data(run, s->x.buffer),
                    .y = tare__buffer_data(run, s->y.buffer),
                    .scratch = tare__buffer_data(run, s->scratch)};
    thread_pool *pool =
        tare__threads_for(run, s->batch * p->in[0] * p->in[1] * p->in[2] * (int64_t)s->channels);
    if (p->is_max)
        tare__parallel(pool, rows, 1, take_some_greatest, &job);
    else
        take_averages(&job, rows * (size_t)p->out[2], pool);
    return TARE_OK;
}

static void describe(const plan *p, const void *state, step_note *out) {
    const quantized_pool *s = state;
    (void)p;
    tare__step_say(out, s->is_of_planes ? "integers: plane by plane"
                                        : "integers: pixels as rows of channels");
    tare__step_say_slice(out, &s->y);
}

// Pool rows read floats: a float tensor takes the place of the quantized one.
static tare_status read_pool(op_call *call, const tare_tensor *x, pool_call *out, bool *known) {
    value in = {.kind = VALUE_TENSOR};
    TARE_TRY(tare__tensor_meta(TARE_FLOAT32, x->ndim, x->shape, NULL, &in.as.tensor, call->err));
    call->param[0] = &in;
    const tare_status status = tare__pool_read(call, out, known);
    tare_tensor_release(in.as.tensor);
    out->x = x;
    return status;
}

// References add floats, which is exact while sums stay below 2^24.
static bool is_exact(const pool_call *p) {
    const int64_t *size = p->is_adaptive ? p->in : p->kernel;
    const int64_t most = ((int64_t)1 << 24) / 255;
    return tare__size_product(size[0], tare__size_product(size[1], size[2])) <= most;
}

// References divide sums of adaptive windows in one or three dimensions by one size after the
// other, which rounds differently, except for a single window (plan_mean).
static bool is_known(const quantized_pool *s, const tare_tensor *y) {
    const pool_call *p = &s->call;
    const bool divides_once = !p->is_adaptive || p->dims == 2;
    return tare__is_byte_quantized(p->x) && tare__is_byte_quantized(y) && y->count > 0 &&
           (p->is_max || (divides_once && is_exact(p)));
}

// Small windows over many planes are averaged faster channels last, unless rows of a plane may
// stand for channels.
static bool pools_planes(const plan_builder *b, const pool_call *p, size_t v) {
    const bool has_channels = p->x->ndim == p->dims + 2;
    return !has_channels || (tare__plan_layout(b, v) == LAYOUT_PLAIN &&
                             (p->is_max || p->is_adaptive || tare__pool_keeps_last(p)));
}

// Adaptive windows have different sizes.
static void find_inner(quantized_pool *s) {
    const pool_call *p = &s->call;
    s->inner = s->inner_count = 0;
    if (!p->is_max || p->is_adaptive) return;
    const int64_t room = p->in[2] + p->pad[2] - p->dilation[2] * (p->kernel[2] - 1) - 1;
    const int64_t end = room < 0 ? 0 : room / p->stride[2] + 1;
    s->inner = (int64_t)tare__ceil_div((size_t)p->pad[2], (size_t)p->stride[2]);
    s->inner_count = (end < p->out[2] ? end : p->out[2]) - s->inner;
}

static tare_status place_planes(plan_builder *b, size_t x, size_t y, quantized_pool *s) {
    s->batch = s->call.planes;
    s->channels = s->x.pitch = s->y.pitch = 1;
    TARE_TRY(tare__plan_read(b, x, LAYOUT_PLAIN, &s->x.buffer));
    return tare__plan_write(b, y, LAYOUT_PLAIN, &s->y.buffer);
}

static tare_status place_pixels(plan_builder *b, size_t x, size_t y, quantized_pool *s) {
    s->batch = s->call.x->shape[0];
    s->channels = (size_t)s->call.x->shape[1];
    TARE_TRY(tare__plan_read_pixels(b, x, &s->x));
    return tare__plan_write_pixels(b, y, &s->y);
}

// Not where a pixel is a part of a wider one.
static void join_channels(quantized_pool *s) {
    if (s->x.pitch != s->channels || s->y.pitch != s->channels) return;
    tare__pool_join_channels(&s->call, &s->channels);
    s->x.pitch = s->y.pitch = s->channels;
    if (s->channels > 1) s->is_of_planes = false;
}

static tare_status add_pool(plan_builder *b, const plan_record *r, quantized_pool *s) {
    const tare_tensor *x = s->call.x;
    const size_t v = tare__plan_find_value(b, x);
    s->is_signed = x->dtype == TARE_QINT8;
    s->average =
        (average_rule){.zero_point = (int64_t)x->q->zero_point[0],
                       .least = x->q->quant_min,
                       .most = x->q->quant_max,
                       .rounds_with_zero_point = tare__rounds_with_zero_point(&r->call, x)};
    TARE_TRY(s->is_of_planes ? place_planes(b, v, r->result, s) : place_pixels(b, v, r->result, s));
    join_channels(s);
    find_inner(s);
    s->row_bytes =
        s->call.is_max ? (size_t)s->call.in[2] * s->channels : AVERAGED_CHANNELS * sizeof(int32_t);
    s->row_bytes = tare__round_up(s->row_bytes, SCRATCH_STEP);
    s->scratch_bytes = s->is_of_planes && s->call.is_max ? 2 * s->row_bytes : s->row_bytes;
    TARE_TRY(tare__plan_new_scratch(
        b, tare__thread_count(b->setting->kernels->space.pool) * s->scratch_bytes, &s->scratch));
    return tare__plan_add_step(b, &tare__quantized_pool_step, s, r->node);
}

static tare_status plan_pool(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    op_call call = r->call;
    bool known = false;
    quantized_pool *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    call.err = b->err;
    const tare_tensor *x = tare__plan_quantized_input(r);
    if (x == NULL) return TARE_OK;
    TARE_TRY(read_pool(&call, x, &s->call, &known));
    if (!known || !is_known(s, b->values[r->result].tensor)) return TARE_OK;
    const size_t v = tare__plan_find_value(b, x);
    if (v == NOTHING) return TARE_OK;
    s->is_of_planes = pools_planes(b, &s->call, v);
    *done = true;
    return add_pool(b, r, s);
}

// One window over all pixels, in any number of dimensions.
static tare_status plan_mean(plan_builder *b, size_t head, bool *done) {
    const plan_record *r = &b->records[head];
    const tare_tensor *x = tare__plan_quantized_input(r), *y = b->values[r->result].tensor;
    if (b->setting->kernels == NULL || x == NULL || tare__plan_find_value(b, x) == NOTHING ||
        !tare__is_byte_quantized(x) || !tare__is_byte_quantized(y) || x->ndim < 3 ||
        x->count == 0 || !tare__plan_is_over_pixels(r, x))
        return TARE_OK;
    quantized_pool *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    s->call = (pool_call){.x = x, .dims = x->ndim - 2, .is_adaptive = true};
    for (int d = 0; d < 3; d++) s->call.in[d] = s->call.out[d] = 1;
    s->call.in[2] = tare__inner_count(x, 1);
    if (!is_exact(&s->call)) return TARE_OK;
    *done = true;
    return add_pool(b, r, s);
}

static bool heads(const plan_builder *b, const plan_record *r) {
    return (tare__plan_is_pool(r) || tare__record_is(r, TARE_OP_MEAN)) &&
           tare__plan_is_own_quantized(b, r);
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    return tare__record_is(&b->records[head], TARE_OP_MEAN) ? plan_mean(b, head, done)
                                                            : plan_pool(b, head, done);
}

const step_class tare__quantized_pool_step = {
    .name = "quantized pool",
    .heads = heads,
    .plan = plan_chain,
    .run = run_pool,
    .describe = describe,
    .replicate = tare__step_share,
};
