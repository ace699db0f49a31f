// SPDX-License-Identifier: Apache-2.0
// torch's HistogramObserver: a fixed number of bins over a range that grows with the data. The
// parameters come from the subrange with the least squared error. When the range grows, old counts
// are redistributed over the new bins; therefore the result depends on the order of the batches,
// and two states cannot be merged exactly. Source: torch/ao/quantization/observer.py,
// HistogramObserver (PyTorch 2.15).
#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "observe/classes/builtin.h"
#include "observe/classes/extremes.h"
#include "observe/classes/histogram_search.h"
#include "observe/classes/uniform.h"

enum { UPSAMPLE_RATE = 16 };
static const int64_t most_bins = 1 << 24; // float32 indices are not exact beyond this

typedef struct state {
    uniform base;
    int64_t bins;
    double levels; // 2^bits of the dtype
    float min, max;
    float *counts; // [bins]
} state;

static bool is_uninitialized(const state *s) {
    return s->min == INFINITY && s->max == -INFINITY;
}

// --- creation ---

static tare_status check_scheme(const tare_observer_args *args, tare_error *err) {
    tare_qscheme scheme = TARE_PER_TENSOR_AFFINE;
    bool is_dynamic = false;
    tare_observer_args_qscheme(args, "qscheme", &scheme);
    tare_observer_args_bool(args, "is_dynamic", &is_dynamic);
    if (tare__qscheme_is_per_channel(scheme))
        return tare__fail(err, TARE_UNSUPPORTED,
                          "HistogramObserver's qscheme only support torch.per_tensor_symmetric"
                          "                     and torch.per_tensor_affine.");
    if (is_dynamic)
        return tare__fail(err, TARE_UNSUPPORTED,
                          "HistogramObserver doesn't support dynamic quantization");
    return TARE_OK;
}

static tare_status read_arguments(const tare_observer_args *args, state *s, tare_error *err) {
    s->bins = 2048;
    tare_observer_args_int(args, "bins", &s->bins);
    TARE_TRY(check_scheme(args, err));
    TARE_TRY(tare__uniform_read(args, TARE_PER_TENSOR_AFFINE, &s->base, err));
    if (s->bins < 1 || s->bins > most_bins)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "bins must be from 1 to %lld, found %lld",
                          (long long)most_bins, (long long)s->bins);
    s->levels = ldexp(1, 8 * (int)tare_dtype_size(s->base.dtype));
    s->min = INFINITY;
    s->max = -INFINITY;
    return TARE_OK;
}

static tare_status create(void *user, const tare_observer_args *args, void **out,
                          tare_observer_info *info, tare_error *err) {
    (void)user;
    state read = {0};
    TARE_TRY(read_arguments(args, &read, err));
    read.counts = tare__alloc_zeroed((size_t)read.bins, sizeof *read.counts);
    state *s = read.counts != NULL ? tare__alloc_zeroed(1, sizeof *s) : NULL;
    if (s == NULL) {
        tare__free(read.counts);
        return tare__out_of_memory(err);
    }
    *s = read;
    tare__uniform_info(&s->base, info);
    *out = s;
    return TARE_OK;
}

static void destroy(void *user_state) {
    state *s = user_state;
    if (s != NULL) tare__free(s->counts);
    tare__free(s);
}

static tare_status clone(const void *user_state, void **out, tare_error *err) {
    const state *s = user_state;
    state *made = tare__alloc_zeroed(1, sizeof *made);
    float *counts = tare__alloc_zeroed((size_t)s->bins, sizeof *counts);
    if (made == NULL || counts == NULL) {
        tare__free(made);
        tare__free(counts);
        return tare__out_of_memory(err);
    }
    memcpy(counts, s->counts, (size_t)s->bins * sizeof *counts);
    *made = *s;
    made->counts = counts;
    *out = made;
    return TARE_OK;
}

// --- counting ---

static range_bins bins_of(int64_t bins, float min, float max) {
    if (min == max) { // torch.histc widens an empty range
        min -= 1;
        max += 1;
    }
    return (range_bins){min, max - min, (float)bins, (float)(bins - 1)};
}

// Counts like torch.histc into out[bins]. All values are in [min, max].
static tare_status count_values(const tare_tensor *x, const float_scan *scan, int64_t bins,
                                float min, float max, float *out, tare_error *err) {
    const range_bins m = bins_of(bins, min, max);
    uint64_t *counts = tare__alloc_zeroed((size_t)bins, sizeof *counts);
    if (counts == NULL) return tare__out_of_memory(err);
    const tare_status status =
        tare__scan_range(scan, &m, tare__f32(x), x->count, bins, counts, err);
    // Torch counts in float32, where 2^24 + 1 rounds to 2^24.
    for (int64_t b = 0; b < bins; b++)
        out[b] = (float)(counts[b] < (1U << 24) ? counts[b] : (1U << 24));
    tare__free(counts);
    return status;
}

// --- growing ---

// Element i of torch.linspace(a, b, n): each half is computed from its own end, with one rounding.
static float linspace_at(float a, float b, int64_t n, int64_t i) {
    const float step = (b - a) / (float)(n - 1);
    return i < n / 2 ? fmaf(step, (float)i, a) : fmaf(-step, (float)(n - 1 - i), b);
}

// Divides each old bin into 16 equal parts, distributes their counts over the bins of [min, max],
// and adds them to `out`.
static void spread_counts(const state *s, float min, float max, float *out, float *spread) {
    const int64_t steps = s->bins * UPSAMPLE_RATE;
    const float half = 0.5F * ((s->max - s->min) / (float)steps);
    int64_t edge = 0; // number of edges at or below the step's middle
    for (int64_t i = 0; i < steps; i++) {
        const float middle = linspace_at(s->min, s->max, steps + 1, i) + half;
        while (edge <= s->bins && linspace_at(min, max, s->bins + 1, edge) <= middle) edge++;
        while (edge > 0 && linspace_at(min, max, s->bins + 1, edge - 1) > middle) edge--;
        const int64_t bin = edge - 1 < 0 ? 0 : edge - 1 < s->bins ? edge - 1 : s->bins - 1;
        spread[bin] += s->counts[i / UPSAMPLE_RATE] / (float)UPSAMPLE_RATE;
    }
    for (int64_t b = 0; b < s->bins; b++) out[b] += spread[b];
}

// If all old values were equal, their counts go to a single bin.
static void move_counts(const state *s, float min, float max, float *out) {
    const range_bins m = bins_of(s->bins, min, max);
    out[tare__bin_in_range(&m, s->min)] += tare__torch_sum(s->counts, s->bins);
}

// Adds the old counts to `found`, the counts of the new values over [min, max]; the sum becomes the
// histogram.
static void join_counts(state *s, float min, float max, float *found, float *scratch) {
    const bool is_same_range = min == s->min && max == s->max;
    if (is_same_range)
        for (int64_t b = 0; b < s->bins; b++) found[b] += s->counts[b];
    else if (s->min == s->max)
        move_counts(s, min, max, found);
    else
        spread_counts(s, min, max, found, scratch);
}

static tare_status count_into(state *s, const tare_tensor *x, const float_scan *scan, float min,
                              float max, tare_error *err) {
    const bool is_first = s->min == INFINITY || s->max == -INFINITY;
    const float new_min = is_first ? min : tare__least(min, s->min);
    const float new_max = is_first ? max : tare__most(max, s->max);
    if (!isfinite(new_min) || !isfinite(new_max)) // a NaN; torch.histc refuses it, too
        return tare__fail(err, TARE_INVALID_ARGUMENT, "range of [%g, %g] is not finite",
                          (double)new_min, (double)new_max);
    float *found = tare__alloc_zeroed((size_t)s->bins, sizeof *found);
    float *scratch = tare__alloc_zeroed((size_t)s->bins, sizeof *scratch);
    tare_status status = found != NULL && scratch != NULL ? TARE_OK : tare__out_of_memory(err);
    if (status == TARE_OK) status = count_values(x, scan, s->bins, new_min, new_max, found, err);
    if (status == TARE_OK) {
        if (!is_first) join_counts(s, new_min, new_max, found, scratch);
        memcpy(s->counts, found, (size_t)s->bins * sizeof *found);
        s->min = new_min;
        s->max = new_max;
    }
    tare__free(found);
    tare__free(scratch);
    return status;
}

// --- update ---

// Copies x without its infinities into a tensor of one dimension.
static tare_status drop_infinities(const tare_tensor *x, tare_tensor **out, tare_error *err) {
    const float *values = tare__f32(x);
    int64_t kept = 0;
    for (int64_t i = 0; i < x->count; i++) kept += !isinf(values[i]);
    tare_tensor *t = NULL;
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, 1, &kept, &t, err));
    float *to = tare__f32(t);
    for (int64_t i = 0; i < x->count; i++)
        if (!isinf(values[i])) *to++ = values[i];
    *out = t;
    return TARE_OK;
}

static tare_status observe(void *user_state, const tare_tensor *x, const float_scan *scan,
                           tare_error *err) {
    state *s = user_state;
    float min = 0, max = 0;
    tare__scan_extremes(scan, tare__f32(x), x->count, &min, &max);
    if (min != -INFINITY && max != INFINITY) return count_into(s, x, scan, min, max, err);
    tare_tensor *finite = NULL;
    TARE_TRY(drop_infinities(x, &finite, err));
    tare_status status = TARE_OK;
    if (finite->count > 0) {
        tare__scan_extremes(scan, tare__f32(finite), finite->count, &min, &max);
        status = count_into(s, finite, scan, min, max, err);
    }
    tare_tensor_release(finite);
    return status;
}

tare_status tare__histogram_update(void *user_state, const tare_tensor *x, const float_scan *scan,
                                   tare_error *err) {
    return tare__observe_floats(user_state, x, scan, observe, err);
}

static tare_status update(void *user_state, const tare_tensor *x, tare_error *err) {
    return tare__histogram_update(user_state, x, &tare__scan_alone, err);
}

// --- parameters, text and files ---

static tare_status qparams_of(const void *user_state, tare_qparams_sink sink, void *sink_user,
                              bool *is_calibrated, tare_error *err) {
    const state *s = user_state;
    *is_calibrated = !is_uninitialized(s);
    if (!*is_calibrated) return tare__default_qparams(sink, sink_user, err);
    const histogram_view h = {s->counts, s->bins, s->min, s->max, s->levels};
    float min = 0, max = 0;
    TARE_TRY(tare__histogram_search(&h, &min, &max, err));
    return tare__uniform_qparams(&s->base, 1, &min, &max, sink, sink_user, err);
}

static tare_status describe(const void *user_state, tare_writer write, void *write_user,
                            tare_error *err) {
    const state *s = user_state;
    text t = {0};
    tare__text_append(&t, "min_val=");
    tare__text_double(&t, (double)s->min);
    tare__text_append(&t, ", max_val=");
    tare__text_double(&t, (double)s->max);
    return tare__text_write(&t, TARE_OK, write, write_user, err);
}

static tare_status save_state(const void *user_state, tare_state_save save, void *io,
                              tare_error *err) {
    const state *s = user_state;
    TARE_TRY(tare__save_eps(&s->base, save, io, err));
    TARE_TRY(tare__save_floats("histogram", 1, (size_t)s->bins, s->counts, save, io, err));
    TARE_TRY(tare__save_floats("min_val", 0, 1, &s->min, save, io, err));
    return tare__save_floats("max_val", 0, 1, &s->max, save, io, err);
}

static tare_status check_counts(const tare_tensor *counts, tare_error *err) {
    for (int64_t b = 0; b < counts->count; b++)
        if (!(tare__f32(counts)[b] >= 0) || isinf(tare__f32(counts)[b]))
            return tare__fail(err, TARE_MALFORMED_FILE, "bin %lld of the histogram holds %g values",
                              (long long)b, (double)tare__f32(counts)[b]);
    return TARE_OK;
}

static tare_status load_state(void *user_state, tare_state_load load, void *io, tare_error *err) {
    state *s = user_state;
    const tare_tensor *counts = NULL, *min = NULL, *max = NULL;
    TARE_TRY(tare__load_floats(load, io, "histogram", &counts, err));
    TARE_TRY(tare__load_floats(load, io, "min_val", &min, err));
    TARE_TRY(tare__load_floats(load, io, "max_val", &max, err));
    if (counts->count != s->bins || min->count != 1 || max->count != 1)
        return tare__fail(err, TARE_MALFORMED_FILE,
                          "a histogram of %lld bins over one range, found %lld bins",
                          (long long)s->bins, (long long)counts->count);
    TARE_TRY(check_counts(counts, err));
    TARE_TRY(tare__range_check(tare__f32(min), tare__f32(max), 1, false, err));
    TARE_TRY(tare__load_eps(&s->base, load, io, err));
    memcpy(s->counts, tare__f32(counts), (size_t)s->bins * sizeof *s->counts);
    s->min = tare__f32(min)[0];
    s->max = tare__f32(max)[0];
    return TARE_OK;
}

static const char *const arguments[] = {"bins", UNIFORM_ARGUMENTS, NULL};
const tare_observer_class tare__histogram_observer = {
    .struct_size = sizeof(tare_observer_class),
    .name = "HistogramObserver",
    .arguments = arguments,
    .create = create,
    .destroy = destroy,
    .clone = clone,
    .update = update,
    .qparams = qparams_of,
    .describe = describe,
    .save = save_state,
    .load = load_state,
    .ignores_order = true,
};
