// SPDX-License-Identifier: Apache-2.0
// A histogram whose state does not depend on the order of the data or on how it is split, so that
// states merge bit-exactly. The range is [-2^e, 2^e] with the smallest e that includes all values;
// bins have equal width, and counts are integers. When e grows by one, each pair of neighbouring
// bins becomes one. A value's bin depends only on the value and e, so counting first and growing
// later gives the same counts as growing first. NaN is refused; infinities are counted separately.
#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "observe/classes/builtin.h"
#include "observe/classes/extremes.h"
#include "observe/classes/range_search.h"

enum {
    LEAST_EXPONENT = -100, // smaller values count as zero: no scale is below 2^-23
    MOST_EXPONENT = 128,
    LEAST_BINS = 16,
    MOST_BINS = 1 << 16,
    CHUNK = 1 << 14, // values per block: first their extremes, then counts, while in cache
};

typedef struct state {
    uniform base;
    double percentile; // 0: use the range with the least squared error
    bool by_entropy;   // use the range with the least relative entropy instead
    int64_t bins;      // a power of two
    int64_t *counts;   // [bins], see centred_histogram
    int64_t infinities;
    int exponent;   // LEAST_EXPONENT before any data
    float min, max; // of the finite values; min > max: none
} state;

// --- creation ---

static tare_status check_scheme(const uniform *u, tare_error *err) {
    if (tare__qscheme_is_per_channel(u->qscheme))
        return tare__fail(err, TARE_UNSUPPORTED,
                          "takes per_tensor_affine and per_tensor_symmetric, found %s",
                          tare_qscheme_name(u->qscheme));
    if (u->is_dynamic) return tare__fail(err, TARE_UNSUPPORTED, "is not for dynamic quantization");
    return tare__uniform_refuse_reduced_symmetric(u, " ", err);
}

static tare_status read_arguments(const tare_observer_args *args, state *s, tare_error *err) {
    s->bins = 4096;
    const bool has_percentile = tare_observer_args_double(args, "percentile", &s->percentile);
    tare_observer_args_bool(args, "entropy", &s->by_entropy);
    tare_observer_args_int(args, "bins", &s->bins);
    TARE_TRY(tare__uniform_read(args, TARE_PER_TENSOR_AFFINE, &s->base, err));
    TARE_TRY(check_scheme(&s->base, err));
    if (s->bins < LEAST_BINS || s->bins > MOST_BINS || (s->bins & (s->bins - 1)) != 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "bins must be a power of two from %d to %d, found %lld", LEAST_BINS,
                          MOST_BINS, (long long)s->bins);
    if (has_percentile && !(s->percentile > 50 && s->percentile <= 100))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "percentile must be above 50 and at most 100, found %g", s->percentile);
    if (has_percentile && s->by_entropy)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "takes a percentile or entropy=True, not both");
    s->exponent = LEAST_EXPONENT;
    s->min = INFINITY;
    s->max = -INFINITY;
    return TARE_OK;
}

static tare_status copy_of(const state *from, state **out, tare_error *err) {
    state *s = tare__alloc_zeroed(1, sizeof *s);
    int64_t *counts = tare__alloc_zeroed((size_t)from->bins, sizeof *counts);
    if (s == NULL || counts == NULL) {
        tare__free(s);
        tare__free(counts);
        return tare__out_of_memory(err);
    }
    *s = *from;
    s->counts = counts;
    if (from->counts != NULL) memcpy(counts, from->counts, (size_t)from->bins * sizeof *counts);
    *out = s;
    return TARE_OK;
}

static tare_status create(void *user, const tare_observer_args *args, void **out,
                          tare_observer_info *info, tare_error *err) {
    (void)user;
    state read = {0}, *s = NULL;
    TARE_TRY(read_arguments(args, &read, err));
    TARE_TRY(copy_of(&read, &s, err));
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
    state *s = NULL;
    TARE_TRY(copy_of(user_state, &s, err));
    *out = s;
    return TARE_OK;
}

// --- the range ---

static bool is_empty(const state *s) {
    return s->min > s->max;
}

// The smallest e with |x| < 2^e, not less than LEAST_EXPONENT.
static int exponent_of(float x) {
    int e = LEAST_EXPONENT;
    if (x != 0) (void)frexpf(x, &e);
    return e < LEAST_EXPONENT ? LEAST_EXPONENT : e;
}

// The new index of bin m, relative to the middle, after the range has doubled `times` times.
static int64_t bin_after(int64_t m, int times) {
    return times < 62 ? m >> times : 0;
}

static void grow(state *s, int exponent) {
    int64_t *up = s->counts + s->bins / 2, *down = up - 1;
    const int times = exponent - s->exponent;
    if (times <= 0) return;
    for (int64_t m = 0; m < s->bins / 2; m++) {
        const int64_t to = bin_after(m, times), above = up[m], below = down[-m];
        up[m] = down[-m] = 0;
        up[to] += above;
        down[-to] += below;
    }
    s->exponent = exponent;
}

// Zeros become +0, because the result must not depend on the order of the data.
static void widen(state *s, float min, float max) {
    s->min = tare__least(min, s->min) + 0.0F;
    s->max = tare__most(max, s->max) + 0.0F;
    const int low = exponent_of(s->min), high = exponent_of(s->max);
    grow(s, low > high ? low : high);
}

static double bin_width(const state *s) {
    return ldexp(2, s->exponent) / (double)s->bins;
}

// --- counting ---

static centred_bins bins_of(const state *s) {
    return (centred_bins){(float)(1 / bin_width(s)), (int32_t)(s->bins / 2)};
}

static void count_few(state *s, const float *values, int64_t count) {
    const centred_bins bins = bins_of(s);
    for (int64_t i = 0; i < count; i++) s->counts[tare__bin_about_zero(&bins, values[i])]++;
}

// 32-bit counters of one update. They hold counts for the state's present range that are not yet in
// the state.
typedef struct counting {
    state *s;
    const float_scan *scan;
    uint32_t *counters; // [SCAN_SETS][bins]; NULL: too few values to need them
    int64_t pending;    // number of values in them
} counting;

static void flush(counting *c) {
    const int64_t bins = c->s->bins;
    if (c->pending == 0) return;
    for (int64_t b = 0; b < bins; b++)
        for (int k = 0; k < SCAN_SETS; k++) {
            c->s->counts[b] += c->counters[k * bins + b];
            c->counters[k * bins + b] = 0;
        }
    c->pending = 0;
}

static void count_chunk(counting *c, const float *values) {
    const centred_bins bins = bins_of(c->s);
    c->scan->kernels->count_centred(&bins, values, CHUNK, (size_t)c->s->bins, c->counters);
    c->pending += CHUNK;
}

// --- update ---

static tare_status observe_one_by_one(state *s, const float *values, int64_t count,
                                      tare_error *err) {
    for (int64_t i = 0; i < count; i++) {
        if (isnan(values[i])) return tare__fail(err, TARE_INVALID_ARGUMENT, "found NaN");
        if (isinf(values[i])) {
            s->infinities++;
            continue;
        }
        widen(s, values[i], values[i]);
        count_few(s, values + i, 1);
    }
    return TARE_OK;
}

static tare_status observe_chunk(counting *c, const float *values, int64_t count, tare_error *err) {
    state *s = c->s;
    float min = 0, max = 0;
    tare__scan_extremes(c->scan, values, count, &min, &max);
    const bool is_plain = isfinite(min) && isfinite(max);
    if (!is_plain || exponent_of(min) > s->exponent || exponent_of(max) > s->exponent ||
        c->pending > INT32_MAX - CHUNK)
        flush(c);
    if (!is_plain) return observe_one_by_one(s, values, count, err);
    widen(s, min, max);
    if (count == CHUNK && c->counters != NULL)
        count_chunk(c, values);
    else
        count_few(s, values, count);
    return TARE_OK;
}

static tare_status observe(void *user_state, const tare_tensor *x, const float_scan *scan,
                           tare_error *err) {
    state *s = user_state;
    counting c = {.s = s, .scan = scan};
    tare_status status = TARE_OK;
    if (x->count >= CHUNK) {
        c.counters = tare__alloc_zeroed((size_t)s->bins, SCAN_SETS * sizeof *c.counters);
        if (c.counters == NULL) return tare__out_of_memory(err);
    }
    for (int64_t i = 0; i < x->count && status == TARE_OK; i += CHUNK)
        status =
            observe_chunk(&c, tare__f32(x) + i, x->count - i < CHUNK ? x->count - i : CHUNK, err);
    flush(&c);
    tare__free(c.counters);
    return status;
}

// Runs on one thread: each block is counted while it is in that thread's cache.
tare_status tare__mergeable_histogram_update(void *user_state, const tare_tensor *x,
                                             const float_scan *scan, tare_error *err) {
    const float_scan alone = {scan->kernels, NULL};
    return tare__observe_floats(user_state, x, &alone, observe, err);
}

static tare_status update(void *user_state, const tare_tensor *x, tare_error *err) {
    return tare__mergeable_histogram_update(user_state, x, &tare__scan_alone, err);
}

// --- parameters, text and files ---

static tare_status qparams_of(const void *user_state, tare_qparams_sink sink, void *sink_user,
                              bool *is_calibrated, tare_error *err) {
    const state *s = user_state;
    float min = 0, max = 0;
    *is_calibrated = !is_empty(s);
    if (!*is_calibrated) return tare__default_qparams(sink, sink_user, err);
    const centred_histogram h = {s->counts, s->bins, bin_width(s), s->min, s->max};
    if (s->percentile > 0)
        tare__search_percentile(&h, s->percentile, &min, &max);
    else if (s->by_entropy)
        TARE_TRY(tare__search_entropy(&h, &s->base, &min, &max, err));
    else
        TARE_TRY(tare__search_least_error(&h, &s->base, &min, &max, err));
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

// --- files ---

static tare_status save_integers(const char *name, int ndim, int64_t count, const int64_t *values,
                                 tare_state_save save, void *io, tare_error *err) {
    tare_tensor *t = NULL;
    TARE_TRY(tare_tensor_from_data(TARE_INT64, ndim, &count, values, &t, err));
    const tare_status status = save(io, name, t, err);
    tare_tensor_release(t);
    return status;
}

static tare_status save_state(const void *user_state, tare_state_save save, void *io,
                              tare_error *err) {
    const state *s = user_state;
    const int64_t exponent = s->exponent;
    TARE_TRY(tare__save_eps(&s->base, save, io, err));
    TARE_TRY(save_integers("counts", 1, s->bins, s->counts, save, io, err));
    TARE_TRY(save_integers("exponent", 0, 1, &exponent, save, io, err));
    TARE_TRY(save_integers("infinities", 0, 1, &s->infinities, save, io, err));
    TARE_TRY(tare__save_floats("min_val", 0, 1, &s->min, save, io, err));
    return tare__save_floats("max_val", 0, 1, &s->max, save, io, err);
}

static tare_status load_integers(tare_state_load load, void *io, const char *name, int64_t count,
                                 const int64_t **out, tare_error *err) {
    const tare_tensor *t = load(io, name);
    if (t == NULL)
        return tare__fail(err, TARE_MALFORMED_FILE, "the state lacks its tensor '%s'", name);
    if (t->dtype != TARE_INT64 || t->data == NULL || t->ndim > 1 || t->count != count)
        return tare__fail(err, TARE_MALFORMED_FILE,
                          "'%s' must be %lld whole numbers, found %lld of %s", name,
                          (long long)count, (long long)t->count, tare_dtype_name(t->dtype));
    *out = t->data;
    return TARE_OK;
}

static tare_status load_extreme(tare_state_load load, void *io, const char *name, float *out,
                                tare_error *err) {
    const tare_tensor *t = NULL;
    TARE_TRY(tare__load_floats(load, io, name, &t, err));
    if (t->count != 1)
        return tare__fail(err, TARE_MALFORMED_FILE, "'%s' must be one value, found %lld", name,
                          (long long)t->count);
    *out = tare__f32(t)[0];
    return TARE_OK;
}

// Refuses impossible states: negative counts, counts whose sum overflows, or a range that does not
// match the exponent.
static tare_status check_state(const state *s, const int64_t *counts, int64_t exponent,
                               tare_error *err) {
    int64_t left = INT64_MAX;
    for (int64_t b = 0; b < s->bins && left >= 0; b++) left = counts[b] < 0 ? -1 : left - counts[b];
    if (left < 0 || s->infinities < 0)
        return tare__fail(err, TARE_MALFORMED_FILE, "the counts cannot come from data");
    const bool has_values = left < INT64_MAX;
    const bool fits = has_values ? isfinite(s->min) && isfinite(s->max) && s->min <= s->max
                                 : s->min == INFINITY && s->max == -INFINITY;
    int least = LEAST_EXPONENT;
    if (fits && has_values) {
        least = exponent_of(s->min);
        if (exponent_of(s->max) > least) least = exponent_of(s->max);
    }
    if (fits && exponent == least) return TARE_OK;
    return tare__fail(err, TARE_MALFORMED_FILE,
                      "the range of %g to %g does not fit the histogram of exponent %lld",
                      (double)s->min, (double)s->max, (long long)exponent);
}

static tare_status load_state(void *user_state, tare_state_load load, void *io, tare_error *err) {
    state *s = user_state, read = *s;
    const int64_t *counts = NULL, *exponent = NULL, *infinities = NULL;
    TARE_TRY(load_integers(load, io, "counts", s->bins, &counts, err));
    TARE_TRY(load_integers(load, io, "exponent", 1, &exponent, err));
    TARE_TRY(load_integers(load, io, "infinities", 1, &infinities, err));
    TARE_TRY(load_extreme(load, io, "min_val", &read.min, err));
    TARE_TRY(load_extreme(load, io, "max_val", &read.max, err));
    TARE_TRY(tare__load_eps(&read.base, load, io, err));
    read.infinities = *infinities;
    TARE_TRY(check_state(&read, counts, *exponent, err));
    read.exponent = (int)*exponent;
    memcpy(read.counts, counts, (size_t)s->bins * sizeof *counts);
    *s = read;
    return TARE_OK;
}

// --- merging ---

static bool add_count(int64_t *to, int64_t more) {
    if (more > INT64_MAX - *to) return false;
    *to += more;
    return true;
}

static int64_t total_of(const state *s) {
    int64_t total = 0;
    for (int64_t b = 0; b < s->bins; b++) total += s->counts[b];
    return total;
}

static tare_status merge(void *into, const void *from, tare_error *err) {
    state *s = into;
    const state *other = from;
    int64_t total = total_of(s), infinities = s->infinities;
    if (s->bins != other->bins)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "one state has %lld bins, the other one %lld",
                          (long long)s->bins, (long long)other->bins);
    if (!add_count(&total, total_of(other)) || !add_count(&infinities, other->infinities))
        return tare__fail(err, TARE_INVALID_ARGUMENT, "there are too many values to count");
    s->infinities = infinities;
    if (is_empty(other)) return TARE_OK;
    widen(s, other->min, other->max);
    const int times = s->exponent - other->exponent;
    const int64_t middle = s->bins / 2;
    for (int64_t m = 0; m < middle; m++) {
        const int64_t to = bin_after(m, times);
        s->counts[middle + to] += other->counts[middle + m];
        s->counts[middle - 1 - to] += other->counts[middle - 1 - m];
    }
    return TARE_OK;
}

static const char *const arguments[] = {"bins", "percentile", "entropy", UNIFORM_ARGUMENTS, NULL};
const tare_observer_class tare__mergeable_histogram_observer = {
    .struct_size = sizeof(tare_observer_class),
    .name = "tare.MergeableHistogramObserver",
    .arguments = arguments,
    .create = create,
    .destroy = destroy,
    .clone = clone,
    .update = update,
    .qparams = qparams_of,
    .describe = describe,
    .save = save_state,
    .load = load_state,
    .merge = merge,
    .ignores_order = true,
};
