// SPDX-License-Identifier: Apache-2.0
// Searches clipping ranges on a histogram. The expected squared error of a bin is an integral with
// a closed form, so a candidate range costs one evaluation per bin edge, independent of the number
// of levels.
#include "observe/classes/range_search.h"

#include <math.h>

#include "core/memory/alloc.h"

// The values of one or more bins, assumed uniform in [from, to]; from == to: all values are equal.
typedef struct segment {
    double from, to;
    double density; // count / (to - from), or the count
} segment;

typedef struct search {
    const uniform *u;
    float min, max;    // of the values
    segment *segments; // ascending
    size_t count;
} search;

// --- the error of a range ---

// The levels of a quantizer: integer multiples of `scale` from `least` to `most`.
typedef struct levels {
    double scale, per_scale, least, most;
} levels;

// The index of the nearest level. The choice in a tie does not affect the error.
static double nearest(const levels *q, double x) {
    const double position = x * q->per_scale;
    return (double)(int64_t)(position < 0 ? position - 0.5 : position + 0.5);
}

// The integral of (t - quantized t)^2 over t from 0 to x, where x is within the levels. Zero is a
// level, so every whole step contributes scale^3 / 12.
static double integral(const levels *q, double x) {
    const double step = nearest(q, x), rest = x - step * q->scale;
    return step * (q->scale * q->scale * q->scale / 12) + rest * rest * rest / 3;
}

static double inside_error(const levels *q, const segment *p) {
    if (p->from < p->to) return p->density * (integral(q, p->to) - integral(q, p->from));
    const double rest = p->from - nearest(q, p->from) * q->scale;
    return p->density * rest * rest;
}

// The error of a segment outside of `bound`: all its values are clipped to `bound`.
static double outside_error(const segment *p, double bound) {
    const double from = p->from - bound, to = p->to - bound;
    if (p->from == p->to) return p->density * from * from;
    return p->density * (to * to * to - from * from * from) / 3;
}

static double error_beyond(const search *s, const levels *q) {
    double sum = 0;
    for (size_t i = 0; i < s->count && s->segments[i].from < q->least; i++) {
        segment p = s->segments[i];
        if (p.to > q->least) p.to = q->least;
        sum += outside_error(&p, q->least);
    }
    for (size_t i = s->count; i > 0 && s->segments[i - 1].to > q->most; i--) {
        segment p = s->segments[i - 1];
        if (p.from < q->most) p.from = q->most;
        sum += outside_error(&p, q->most);
    }
    return sum;
}

static double error_within(const search *s, const levels *q) {
    double sum = 0;
    for (size_t i = 0; i < s->count; i++) {
        segment p = s->segments[i];
        if (p.to < q->least || p.from > q->most) continue;
        if (p.from < q->least) p.from = q->least;
        if (p.to > q->most) p.to = q->most;
        if (p.from < p.to || s->segments[i].from == s->segments[i].to) sum += inside_error(q, &p);
    }
    return sum;
}

static levels levels_of(const uniform *u, float min, float max) {
    double scale = 0, zero_point = 0;
    tare__uniform_range(u, min, max, &scale, &zero_point);
    return (levels){scale, 1 / scale, ((double)u->quant_min - zero_point) * scale,
                    ((double)u->quant_max - zero_point) * scale};
}

// --- segments ---

static void add_bin(search *s, const centred_histogram *h, int64_t bin) {
    const int64_t count = h->counts[bin];
    if (count == 0) return;
    const int64_t position = bin - h->bins / 2;
    double from = (double)position * h->width, to = (double)(position + 1) * h->width;
    if (from < (double)h->min) from = (double)h->min;
    if (to > (double)h->max) to = (double)h->max;
    if (from > to) from = to; // the greatest value is on the edge of a bin
    s->segments[s->count++] =
        (segment){from, to, from < to ? (double)count / (to - from) : (double)count};
}

static tare_status collect(const centred_histogram *h, const uniform *u, search *out,
                           tare_error *err) {
    *out = (search){.u = u,
                    .min = h->min,
                    .max = h->max,
                    .segments = tare__alloc_zeroed((size_t)h->bins, sizeof(segment))};
    if (out->segments == NULL) return tare__out_of_memory(err);
    for (int64_t bin = 0; bin < h->bins; bin++) add_bin(out, h, bin);
    return TARE_OK;
}

// --- the search ---

typedef enum end { END_BOTH, END_MAX, END_MIN } end;

// The best range so far, as factors applied to the extremes of the values.
typedef struct best {
    double min_factor, max_factor, error;
} best;

static float scaled_by(float extreme, double factor) {
    return (float)((double)extreme * factor);
}

// Evaluates a factor for one end or both, and stores it if the error is smaller; returns true then.
// *is_hopeless: the clipping error alone is not below the best error, so no smaller range can be
// better.
static bool try_factor(const search *s, end which, double factor, best *found, bool *is_hopeless) {
    const double min_factor = which != END_MAX ? factor : found->min_factor;
    const double max_factor = which != END_MIN ? factor : found->max_factor;
    const levels q = levels_of(s->u, scaled_by(s->min, min_factor), scaled_by(s->max, max_factor));
    *is_hopeless = true;
    if (!(q.scale > 0) || isinf(q.scale)) return false; // eps of 0; a range beyond float32
    const double beyond = error_beyond(s, &q);
    *is_hopeless = beyond >= found->error;
    if (*is_hopeless) return false;
    const double error = beyond + error_within(s, &q);
    if (!(error < found->error)) return false;
    *found = (best){min_factor, max_factor, error};
    return true;
}

// The factor is a constant and only multiplied, because exp2 may differ between machines.
static const double eighth = 0x1.d5818dcfba487p-1; // 2^(-1/8): an eighth of an octave down

// Coarse search: shrinks the range over eight octaves in steps of an eighth. Of equal errors the
// wider range wins.
static void search_wide(const search *s, end which, best *found) {
    bool is_hopeless = false;
    double factor = 1;
    for (int i = 0; i <= 64 && !is_hopeless; i++, factor *= eighth)
        (void)try_factor(s, which, factor, found, &is_hopeless);
}

// Fine search in smaller steps around the best factor, twice.
static void search_near(const search *s, end which, best *found) {
    enum { STEPS = 6 };
    double at = which == END_MIN ? found->min_factor : found->max_factor, reach = at * (1 - eighth);
    bool unused;
    for (int round = 0; round < 2; round++, reach /= STEPS) {
        const double middle = at;
        for (int i = 1 - STEPS; i < STEPS; i++) {
            const double factor = middle - reach * i / STEPS;
            if (i != 0 && factor <= 1 && try_factor(s, which, factor, found, &unused)) at = factor;
        }
    }
}

static void search_end(const search *s, end which, best *found) {
    search_wide(s, which, found);
    search_near(s, which, found);
}

static bool has_one_end(const search *s) {
    return s->u->qscheme == TARE_PER_TENSOR_SYMMETRIC || s->min >= 0 || s->max <= 0;
}

// Searches a factor for both ends together, then for each end, and repeats until the error stops
// decreasing.
static best least_error(const search *s) {
    best found = {1, 1, INFINITY};
    search_end(s, END_BOTH, &found);
    if (has_one_end(s)) return found;
    search_end(s, END_MAX, &found);
    search_end(s, END_MIN, &found);
    for (int round = 0; round < 3; round++) {
        const double before = found.error;
        search_near(s, END_MAX, &found);
        search_near(s, END_MIN, &found);
        if (!(found.error < 0.999 * before)) break;
    }
    return found;
}

tare_status tare__search_least_error(const centred_histogram *h, const uniform *u, float *out_min,
                                     float *out_max, tare_error *err) {
    search s;
    TARE_TRY(collect(h, u, &s, err));
    const best found = least_error(&s);
    tare__free(s.segments);
    *out_min = scaled_by(h->min, found.min_factor);
    *out_max = scaled_by(h->max, found.max_factor);
    return TARE_OK;
}

// --- percentiles ---

// The first bin, from `bin` in the direction of `step`, where the cumulative count exceeds `most`.
static int64_t pass(const centred_histogram *h, int64_t bin, int step, double most) {
    double passed = 0;
    for (; bin >= 0 && bin < h->bins; bin += step) {
        passed += (double)h->counts[bin];
        if (passed > most) break;
    }
    return bin;
}

void tare__search_percentile(const centred_histogram *h, double percent, float *out_min,
                             float *out_max) {
    double total = 0;
    for (int64_t i = 0; i < h->bins; i++) total += (double)h->counts[i];
    const double left_out = total * (100 - percent) / 100;
    const int64_t first = pass(h, 0, 1, left_out), last = pass(h, h->bins - 1, -1, left_out);
    const int64_t middle = h->bins / 2;
    const double from = (double)(first - middle) * h->width;
    const double to = (double)(last + 1 - middle) * h->width;
    *out_min = from > (double)h->min ? (float)from : h->min;
    *out_max = to < (double)h->max ? (float)to : h->max;
}
