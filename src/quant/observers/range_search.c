// SPDX-License-Identifier: Apache-2.0
// Ranges on a histogram. The expected squared error of a bin is an integral that has a closed form,
// so that one candidate costs one evaluation per edge of a bin, however many levels there are.
#include "quant/observers/range_search.h"

#include <math.h>

#include "core/alloc.h"

// The values of one or more bins; from == to: all of them are one value.
typedef struct piece {
    double from, to;
    double density; // count / (to - from), or the count
} piece;

typedef struct search {
    const uniform *u;
    piece *pieces;
    size_t count;
} search;

typedef struct bounds {
    float min, max;
} bounds;

// --- the error of a range ---

// What a quantizer makes of the axis: whole multiples of `scale` from `least` to `most`.
typedef struct levels {
    double scale, least, most;
} levels;

static double clamp(const levels *q, double x) {
    return x < q->least ? q->least : x > q->most ? q->most : x;
}

// The number of the level; a tie has the same error either way.
static double nearest(const levels *q, double x) {
    const double place = x / q->scale;
    return (double)(int64_t)(place < 0 ? place - 0.5 : place + 0.5);
}

// The integral of (x - quantized x)^2 from 0 to x. Zero is a level, and so is each bound; between
// them every whole step adds scale^3 / 12.
static double integral(const levels *q, double x) {
    const double inside = clamp(q, x), beyond = x - inside, step = nearest(q, inside);
    const double rest = inside - step * q->scale;
    return step * (q->scale * q->scale * q->scale / 12) +
           (rest * rest * rest + beyond * beyond * beyond) / 3;
}

static double point_error(const levels *q, double x) {
    const double inside = x < q->least  ? q->least
                          : x > q->most ? q->most
                                        : x,
                 place = inside / q->scale;
    const double step = (double)(int64_t)(place < 0 ? place - 0.5 : place + 0.5);
    const double error = x - step * q->scale;
    return error * error;
}

static double range_error(const search *s, bounds range) {
    double scale = 0, zero_point = 0;
    tare__uniform_range(s->u, range.min, range.max, &scale, &zero_point);
    if (!(scale > 0) || isinf(scale)) return INFINITY; // eps of 0; a range beyond float32
    const levels q = {scale, ((double)s->u->quant_min - zero_point) * scale,
                      ((double)s->u->quant_max - zero_point) * scale};
    double sum = 0, last_place = NAN, last = 0; // neighbours share an edge
    for (size_t i = 0; i < s->count; i++) {
        const piece *p = &s->pieces[i];
        if (p->from == p->to) {
            sum += p->density * point_error(&q, p->from);
            continue;
        }
        const double before = p->from == last_place ? last : integral(&q, p->from);
        last = integral(&q, p->to);
        last_place = p->to;
        sum += p->density * (last - before);
    }
    return sum;
}

// --- the pieces ---

static void add_bin(search *s, const centred_histogram *h, int64_t bin) {
    const int64_t count = h->counts[bin];
    if (count == 0) return;
    const int64_t place = bin - h->bins / 2;
    double from = (double)place * h->width, to = (double)(place + 1) * h->width;
    if (from < (double)h->min) from = (double)h->min;
    if (to > (double)h->max) to = (double)h->max;
    if (from > to) from = to; // the greatest value stands on an edge
    s->pieces[s->count++] =
        (piece){from, to, from < to ? (double)count / (to - from) : (double)count};
}

static tare_status collect(const centred_histogram *h, const uniform *u, search *out,
                           tare_error *err) {
    *out = (search){.u = u, .pieces = tare__alloc_zeroed((size_t)h->bins, sizeof(piece))};
    if (out->pieces == NULL) return tare__out_of_memory(err);
    for (int64_t bin = 0; bin < h->bins; bin++) add_bin(out, h, bin);
    return TARE_OK;
}

// --- the search ---

typedef enum end { END_BOTH, END_MAX, END_MIN } end;

typedef struct best {
    bounds range;
    double error;
} best;

static bounds shrink(bounds from, end which, double factor) {
    if (which != END_MIN) from.max = (float)((double)from.max * factor);
    if (which != END_MAX) from.min = (float)((double)from.min * factor);
    return from;
}

static bool try_range(const search *s, bounds range, best *found) {
    const double error = range_error(s, range);
    if (!(error < found->error)) return false;
    *found = (best){range, error};
    return true;
}

// From `whole` inwards over eight octaves in eighths, then in finer steps around the best, twice.
// Where errors are equal the wider range wins. Products only: exp2 may differ between machines.
static void search_end(const search *s, bounds whole, end which, best *found) {
    enum { STEPS = 64, FINER = 6 };
    const double eighth = 0x1.d5818dcfba487p-1; // of an octave down: 2^(-1/8)
    double factor = 1, at = 1;
    best here = {whole, INFINITY};
    for (int i = 0; i <= STEPS; i++, factor *= eighth)
        if (try_range(s, shrink(whole, which, factor), &here)) at = factor;
    double reach = at * (1 - eighth);
    for (int round = 0; round < 2; round++, reach /= FINER) {
        const double middle = at;
        for (int i = 1 - FINER; i < FINER; i++) {
            factor = middle - reach * i / FINER;
            if (i != 0 && factor <= 1 && try_range(s, shrink(whole, which, factor), &here))
                at = factor;
        }
    }
    if (here.error < found->error) *found = here;
}

static bool is_symmetric(const uniform *u) {
    return u->qscheme == TARE_PER_TENSOR_SYMMETRIC;
}

// Both ends together, then each by itself, until nothing is won.
static bounds least_error(const search *s, bounds whole) {
    best found = {whole, range_error(s, whole)};
    search_end(s, whole, END_BOTH, &found);
    if (is_symmetric(s->u) || whole.min >= 0 || whole.max <= 0) return found.range;
    for (int round = 0; round < 3; round++) {
        const double before = found.error;
        search_end(s, (bounds){found.range.min, whole.max}, END_MAX, &found);
        search_end(s, (bounds){whole.min, found.range.max}, END_MIN, &found);
        if (!(found.error < before)) break;
    }
    return found.range;
}

tare_status tare__search_least_error(const centred_histogram *h, const uniform *u, float *out_min,
                                     float *out_max, tare_error *err) {
    search s;
    TARE_TRY(collect(h, u, &s, err));
    const bounds found = least_error(&s, (bounds){h->min, h->max});
    tare__free(s.pieces);
    *out_min = found.min;
    *out_max = found.max;
    return TARE_OK;
}

// --- shares of the values ---

// The first bin, from `bin` on in the direction of `step`, at which more than `most` are passed.
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
