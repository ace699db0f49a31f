// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Ranges, histograms and errors of quantized tensors.
#include "debug/analyze/ranges.h"

#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "flow/layer_bias.h"
#include "model/pass.h"
#include "ops/op.h"
#include "ops/rules.h"

// --- entries ---

static bool reads_rows(const op_info *op) {
    return op != NULL && (op->traits & OP_WEIGHTED) != 0 &&
           (op->traits & (OP_CONVOLUTION | OP_TRANSPOSED)) == 0;
}

static const op_info *row_of(const tare_model *model, const node *n) {
    const module *m = tare__called_module(model, n);
    if (m != NULL && m->class->role == ROLE_FUSED && m->child_count > 0) m = m->children[0].module;
    return m != NULL ? tare__class_row(m->class) : tare__node_row(n);
}

// The channel axis of a layer's input; -1: the last one.
static int input_axis(const tare_model *model, const node *layer) {
    const op_info *op = row_of(model, layer);
    if (op != NULL && (op->traits & (OP_CONVOLUTION | OP_TRANSPOSED)) != 0) return 1;
    return reads_rows(op) || tare__op_has(op, OP_NORMALIZES) ? -1 : 0;
}

static int weight_axis(const tare_model *model, const node *layer) {
    const op_info *op = row_of(model, layer);
    return op != NULL && (op->traits & OP_TRANSPOSED) != 0 ? 1 : 0;
}

void tare__range_begin(range_entry *e, const node *n, const char *layer) {
    *e = (range_entry){.node = n};
    e->shown = (tare_tensor_range){.struct_size = sizeof e->shown,
                                   .node = n->name,
                                   .value = "",
                                   .layer = layer,
                                   .seen_low = INFINITY,
                                   .seen_high = -INFINITY};
}

static tare_status add_entry(range_table *t, const node *n, size_t layer, range_entry **out,
                             tare_error *err) {
    if (!tare__grow((void **)&t->items, &t->capacity, t->count, sizeof *t->items))
        return tare__out_of_memory(err);
    range_entry *e = &t->items[t->count++];
    tare__range_begin(e, n, t->probe->layers[layer].node->name);
    e->layer = layer;
    *out = e;
    return TARE_OK;
}

void tare__range_set_qparams(range_entry *e, const tare_node_qparams *q) {
    tare_tensor_range *r = &e->shown;
    r->has_qparams = true;
    r->scale = q->scale;
    r->zero_point = q->zero_point;
    r->quant_min = q->quant_min;
    r->quant_max = q->quant_max;
    r->low = (double)(q->quant_min - q->zero_point) * q->scale;
    r->high = (double)(q->quant_max - q->zero_point) * q->scale;
}

static void read_qparams(const probe *p, const node *n, range_entry *e) {
    tare_node_qparams q = {.struct_size = sizeof q};
    if (tare_node_get_qparams(p->model, (const tare_node *)n, &q)) tare__range_set_qparams(e, &q);
}

static const char *value_behind(const probe *p, const node *quantize) {
    const node *from = tare__node_arg(quantize, 0);
    const char *origin = from != NULL && tare__node_is_call(from)
                             ? tare_model_float_node(p->model, from->name)
                             : NULL;
    return origin != NULL ? origin : "";
}

static tare_status add_quantize(range_table *t, const node *dequantize, tare_error *err) {
    const probe_fact *about = &t->probe->facts[dequantize->id];
    const node *quantize = tare__node_arg(dequantize, 0);
    if (about->layer == PROBE_NONE || t->by_id[quantize->id] != 0) return TARE_OK;
    range_entry *e = NULL;
    TARE_TRY(add_entry(t, quantize, about->layer, &e, err));
    t->by_id[quantize->id] = t->count;
    const node *layer = t->probe->layers[about->layer].node;
    e->shown.is_weight = about->is_weight;
    e->channel_axis =
        about->is_weight ? weight_axis(t->probe->model, layer) : input_axis(t->probe->model, layer);
    if (about->is_weight) return TARE_OK;
    e->shown.value = value_behind(t->probe, quantize);
    read_qparams(t->probe, quantize, e);
    return TARE_OK;
}

static tare_status add_weight_of_module(range_table *t, size_t layer, tare_error *err);

tare_status tare__ranges_begin(range_table *t, const probe *p, bool is_brief, tare_error *err) {
    *t = (range_table){.probe = p,
                       .is_brief = is_brief,
                       .by_id = tare__alloc_zeroed(p->id_count + 1, sizeof(size_t))};
    if (t->by_id == NULL) return tare__out_of_memory(err);
    for (int weights = 0; weights < 2; weights++)
        for (const node *n = p->g->first; n != NULL; n = n->next)
            if (p->facts[n->id].kind == PROBE_DEQUANTIZE &&
                p->facts[n->id].is_weight == (weights == 1))
                TARE_TRY(add_quantize(t, n, err));
    for (size_t i = 0; i < p->layer_count; i++)
        if (p->layers[i].weight != NULL) TARE_TRY(add_weight_of_module(t, i, err));
    return TARE_OK;
}

void tare__range_end(range_entry *e) {
    tare__free(e->channel_low);
    tare__free(e->channel_signal);
    tare__free(e->sample_peaks);
}

void tare__ranges_end(range_table *t) {
    for (size_t i = 0; i < t->count; i++) tare__range_end(&t->items[i]);
    tare__free(t->items);
    tare__free(t->by_id);
    *t = (range_table){0};
}

// --- channels ---

static int axis_of(const range_entry *e, const tare_tensor *x) {
    if (x->ndim == 0) return -1;
    if (e->channel_axis > 0 && e->channel_axis < x->ndim) return e->channel_axis;
    if (e->shown.is_weight) return 0;
    return e->channel_axis == 0 && x->ndim == 4 ? 1 : x->ndim - 1;
}

// Tensors with a varying number of channels have no ranges per channel.
static tare_status begin_channels(range_entry *e, int64_t count, tare_error *err) {
    if (e->channel_low != NULL || count <= 0) return TARE_OK;
    e->channel_low = tare__alloc_zeroed(2 * (size_t)count, sizeof(double));
    if (e->channel_low == NULL) return tare__out_of_memory(err);
    e->channel_high = e->channel_low + count;
    e->shown.channel_count = count;
    for (int64_t c = 0; c < count; c++) {
        e->channel_low[c] = INFINITY;
        e->channel_high[c] = -INFINITY;
    }
    return TARE_OK;
}

static inline void widen(double *low, double *high, double x) {
    if (x < *low) *low = x;
    if (x > *high) *high = x;
}

// --- activations ---

static void count_bins(range_entry *e, const tare_tensor *x) {
    tare_tensor_range *r = &e->shown;
    const double low = r->histogram_low, width = r->histogram_high - low;
    for (int64_t i = 0; i < x->count; i++) {
        const double v = (double)tare__f32(x)[i];
        if (!(fabs(v) < MASK_MAGNITUDE)) continue;
        const double at = width > 0 ? (v - low) / width * TARE_HISTOGRAM_BINS : 0;
        const int bin = at < 0 ? 0 : at >= TARE_HISTOGRAM_BINS ? TARE_HISTOGRAM_BINS - 1 : (int)at;
        e->histogram[bin]++;
    }
}

// To the nearest, ties to even: an addition does what nearbyint is called for.
static inline double round_to_even(double x) {
    const double bits = 0x1.8p52;
    return fabs(x) < 0x1p51 ? (x + bits) - bits : x;
}

// How an entry quantizes.
typedef struct levels {
    double low, high, least, most, scale; // beyond least and most a value is saturated
} levels;

enum { LANES = 8 }; // each has sums of its own, which do not wait for each other

// Of all elements. Masks count as such, and for nothing else.
typedef struct tally {
    double signal[LANES], noise[LANES];
    int64_t saturated[LANES], masked[LANES];
} tally;

// Of some of them.
typedef struct span {
    double low[LANES], high[LANES];
} span;

static levels levels_of(const range_entry *e) {
    const tare_tensor_range *r = &e->shown;
    return (levels){.low = r->low,
                    .high = r->high,
                    .least = r->low - r->scale / 2,
                    .most = r->high + r->scale / 2,
                    .scale = r->has_qparams ? r->scale : 1};
}

// Without branches, which would depend on the data.
static inline void add_element(const levels *q, tally *t, span *s, int lane, double v) {
    const bool is_mask = !(fabs(v) < MASK_MAGNITUDE);
    const double x = is_mask ? 0 : v;
    const double rounded = round_to_even(x / q->scale) * q->scale;
    const double below = rounded < q->low ? q->low : rounded;
    const double error = is_mask ? 0 : x - (below > q->high ? q->high : below);
    const double least = is_mask ? (double)INFINITY : v, most = is_mask ? -(double)INFINITY : v;
    s->low[lane] = least < s->low[lane] ? least : s->low[lane];
    s->high[lane] = most > s->high[lane] ? most : s->high[lane];
    t->signal[lane] += x * x;
    t->noise[lane] += error * error;
    t->saturated[lane] += (int)!is_mask & ((v < q->least) | (v > q->most));
    t->masked[lane] += is_mask;
}

// Adds elements that lie side by side. Sets *low and *high to their range; *low > *high: they are
// masks.
static void add_run_of(const levels *q, tally *t, const float *x, int64_t count, double *low,
                       double *high) {
    const int used = count < LANES ? 1 : LANES;
    span s;
    for (int k = 0; k < used; k++) {
        s.low[k] = INFINITY;
        s.high[k] = -INFINITY;
    }
    for (; count >= LANES; count -= LANES, x += LANES)
        for (int k = 0; k < LANES; k++) add_element(q, t, &s, k, (double)x[k]);
    for (int64_t i = 0; i < count; i++) add_element(q, t, &s, 0, (double)x[i]);
    for (int k = 1; k < used; k++) {
        if (s.low[k] < s.low[0]) s.low[0] = s.low[k];
        if (s.high[k] > s.high[0]) s.high[0] = s.high[k];
    }
    *low = s.low[0];
    *high = s.high[0];
}

static tare_status add_peak(range_entry *e, double peak, tare_error *err) {
    if (!tare__grow((void **)&e->sample_peaks, &e->sample_capacity, e->sample_count,
                    sizeof *e->sample_peaks))
        return tare__out_of_memory(err);
    e->sample_peaks[e->sample_count++] = (float)peak;
    return TARE_OK;
}

static void add_tally(range_entry *e, const tally *t) {
    tare_tensor_range *r = &e->shown;
    for (int k = 0; k < LANES; k++) {
        r->masked_count += t->masked[k];
        if (!r->has_qparams) continue;
        e->signal += t->signal[k];
        e->noise += t->noise[k];
        r->saturated_count += t->saturated[k];
    }
}

static tare_status add_elements(range_entry *e, const tare_tensor *x, int64_t samples,
                                tare_error *err) {
    const int axis = axis_of(e, x);
    const int64_t each = samples > 0 ? x->count / samples : x->count;
    const int64_t inner = axis >= 0 ? tare__inner_count(x, axis) : each;
    const int64_t channels = axis >= 0 ? x->shape[axis] : 1;
    const bool has_channels = e->channel_low != NULL && channels == e->shown.channel_count;
    const levels q = levels_of(e);
    tally all = {.signal = {0}};
    int64_t channel = 0;
    for (int64_t i = 0, end = each; i < x->count; end += each) {
        double peak = 0, low = 0, high = 0;
        for (; i < end; i += inner) {
            add_run_of(&q, &all, tare__f32(x) + i, inner, &low, &high);
            const int64_t c = channel;
            channel = channel + 1 < channels ? channel + 1 : 0;
            if (low > high) continue;
            if (has_channels) widen(&e->channel_low[c], &e->channel_high[c], low);
            if (has_channels) widen(&e->channel_low[c], &e->channel_high[c], high);
            widen(&e->shown.seen_low, &e->shown.seen_high, low);
            widen(&e->shown.seen_low, &e->shown.seen_high, high);
            peak = fmax(peak, fmax(fabs(low), fabs(high)));
        }
        TARE_TRY(add_peak(e, peak, err));
    }
    add_tally(e, &all);
    e->shown.element_count += x->count;
    return TARE_OK;
}

tare_status tare__ranges_add(range_table *t, const node *quantize, const tare_tensor *x,
                             int64_t batch_size, tare_error *err) {
    const size_t index = t->by_id[quantize->id];
    return index == 0 ? TARE_OK
                      : tare__range_add(&t->items[index - 1], x, batch_size, t->is_brief, err);
}

tare_status tare__range_add(range_entry *e, const tare_tensor *x, int64_t batch_size, bool is_brief,
                            tare_error *err) {
    if (x->count == 0) return TARE_OK;
    const int axis = axis_of(e, x);
    const bool has_samples = x->ndim > 0 && batch_size > 0 && x->shape[0] == batch_size;
    if (axis >= 0) TARE_TRY(begin_channels(e, x->shape[axis], err));
    TARE_TRY(add_elements(e, x, has_samples ? batch_size : 0, err));
    if (!e->has_histogram && e->shown.seen_low <= e->shown.seen_high) {
        e->has_histogram = true;
        e->shown.histogram_low = e->shown.seen_low;
        e->shown.histogram_high = e->shown.seen_high;
    }
    if (e->has_histogram && !is_brief) count_bins(e, x);
    return TARE_OK;
}

// --- weights ---

// Adds contiguous elements of one channel.
static void add_run(range_entry *e, int64_t channel, const float *x, const float *y,
                    int64_t count) {
    double signal = 0, noise = 0, low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        const double v = (double)x[i], error = v - (double)y[i];
        if (!(fabs(v) < MASK_MAGNITUDE)) continue;
        widen(&low, &high, v);
        signal += v * v;
        noise += error * error;
    }
    if (!(low <= high)) return;
    widen(&e->channel_low[channel], &e->channel_high[channel], low);
    widen(&e->channel_low[channel], &e->channel_high[channel], high);
    widen(&e->shown.seen_low, &e->shown.seen_high, low);
    widen(&e->shown.seen_low, &e->shown.seen_high, high);
    e->channel_signal[channel] += signal;
    e->channel_noise[channel] += noise;
    e->signal += signal;
    e->noise += noise;
}

static tare_status add_weight(const range_table *t, range_entry *e, const tare_tensor *x,
                              const tare_tensor *y, tare_error *err) {
    const int axis = axis_of(e, x);
    const int64_t channels = axis >= 0 ? x->shape[axis] : 1;
    const int64_t inner = axis >= 0 ? tare__inner_count(x, axis) : 1;
    if (e->shown.element_count > 0 || !tare__same_shape(x, y) || channels == 0) return TARE_OK;
    TARE_TRY(begin_channels(e, channels, err));
    e->channel_signal = tare__alloc_zeroed(2 * (size_t)channels, sizeof(double));
    if (e->channel_signal == NULL) return tare__out_of_memory(err);
    e->channel_noise = e->channel_signal + channels;
    for (int64_t i = 0; i < x->count; i += inner)
        add_run(e, i / inner % channels, tare__f32(x) + i, tare__f32(y) + i, inner);
    e->shown.element_count = x->count;
    e->shown.histogram_low = e->shown.seen_low;
    e->shown.histogram_high = e->shown.seen_high;
    e->has_histogram = e->shown.seen_low <= e->shown.seen_high;
    if (e->has_histogram && !t->is_brief) count_bins(e, x);
    return TARE_OK;
}

static tare_status add_weight_of_module(range_table *t, size_t layer, tare_error *err) {
    const probe_layer *l = &t->probe->layers[layer];
    range_entry *e = NULL;
    TARE_TRY(add_entry(t, l->node, layer, &e, err));
    e->shown.is_weight = true;
    e->channel_axis = weight_axis(t->probe->model, l->node);
    t->by_id[l->node->id] = t->count;
    return TARE_OK;
}

tare_status tare__ranges_add_weight(range_table *t, const node *quantize, const tare_tensor *x,
                                    const tare_tensor *rounded, tare_error *err) {
    const size_t index = t->by_id[quantize->id];
    if (index == 0 || x->dtype != TARE_FLOAT32 || rounded->dtype != TARE_FLOAT32) return TARE_OK;
    return add_weight(t, &t->items[index - 1], x, rounded, err);
}

// --- what is shown ---

void tare__range_show(const range_entry *e, tare_tensor_range *out) {
    *out = e->shown;
    out->channel_low = e->channel_low;
    out->channel_high = e->channel_high;
    out->histogram = e->histogram;
    const bool is_measured = e->shown.is_weight || e->shown.has_qparams;
    out->sqnr_db = !is_measured   ? (double)NAN
                   : e->noise > 0 ? 10 * log10(e->signal / e->noise)
                                  : (double)INFINITY;
    if (!(out->seen_low <= out->seen_high)) out->seen_low = out->seen_high = 0;
}
