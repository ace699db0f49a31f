// SPDX-License-Identifier: Apache-2.0
// Random data: standard-normal floats, and uniform integers below a bound. A sample depends only on
// the seed, its index and its input, not on the batch size.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/math/f64.h"
#include "core/memory/alloc.h"
#include "core/memory/budget.h"
#include "io/data/source.h"

typedef struct random_state {
    int64_t sample_count, position;
    uint64_t seed;
} random_state;

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

// In (0, 1].
static double next_uniform(uint64_t *state) {
    return ((double)(next_random(state) >> 11) + 1) * 0x1p-53;
}

// The Box-Muller transform, of which only the cosine part is used.
static float next_normal(uint64_t *state) {
    const double radius = sqrt(-2 * tare__log(next_uniform(state)));
    return (float)(radius * tare__cos_of_turns(next_uniform(state)));
}

static void fill_sample(float *out, int64_t count, uint64_t state) {
    for (int64_t i = 0; i < count; i++) out[i] = next_normal(&state);
}

static void fill_integers(tare_tensor *t, int64_t first, int64_t count, uint64_t state,
                          uint64_t bound) {
    for (int64_t i = 0; i < count; i++)
        tare__tensor_set_int(t, first + i, (int64_t)(next_random(&state) % bound));
}

static uint64_t state_of(uint64_t seed, size_t input, int64_t sample) {
    uint64_t state = seed;
    state = next_random(&state) ^ (uint64_t)input;
    return next_random(&state) ^ (uint64_t)sample;
}

static tare_dtype dtype_of(const data_input *input) {
    if (input->dtype != TARE_DTYPE_UNSET) return input->dtype;
    return input->bound > 0 ? TARE_INT64 : TARE_FLOAT32;
}

static int64_t size_of(const data_input *input, int d) {
    return input->shape[d] < 0 && input->usual[d] > 0 ? input->usual[d] : input->shape[d];
}

static tare_status take_memory(const data_source *s, size_t i, const int64_t *shape,
                               memory_budget *budget, tare_error *err) {
    const data_input *input = &s->inputs[i];
    char what[128];
    int64_t elements = INT64_MAX / 4;
    (void)snprintf(what, sizeof what, "a batch of %" PRId64 " samples for input '%.64s'", shape[0],
                   input->name);
    (void)tare__shape_count(input->ndim, shape, &elements);
    return tare__budget_take(budget, (uint64_t)elements * tare_dtype_size(dtype_of(input)), what,
                             err);
}

static tare_status make_input(const data_source *s, size_t i, int64_t count, memory_budget *budget,
                              tare_tensor **out, tare_error *err) {
    const random_state *r = s->state;
    int64_t shape[TARE_MAX_DIMS];
    for (int d = 0; d < s->inputs[i].ndim; d++) shape[d] = size_of(&s->inputs[i], d);
    shape[0] = count;
    TARE_TRY(take_memory(s, i, shape, budget, err));
    const data_input *input = &s->inputs[i];
    const tare_dtype dtype = dtype_of(input);
    TARE_TRY(tare_tensor_create(dtype, input->ndim, shape, out, err));
    const int64_t elements = (*out)->count / count;
    const uint64_t bound = dtype == TARE_BOOL ? 2 : (uint64_t)input->bound;
    for (int64_t n = 0; n < count; n++) {
        const uint64_t state = state_of(r->seed, i, r->position + n);
        if (dtype == TARE_FLOAT32)
            fill_sample(tare__f32(*out) + n * elements, elements, state);
        else
            fill_integers(*out, n * elements, elements, state, bound);
    }
    return TARE_OK;
}

static tare_status next(data_source *s, data_batch *out, bool *done, tare_error *err) {
    random_state *r = s->state;
    const int64_t left = r->sample_count - r->position;
    *done = left == 0;
    if (left == 0) return TARE_OK;
    const int64_t count = s->batch_size > 0 && s->batch_size < left ? s->batch_size : left;
    memory_budget budget = tare__run_budget(s->memory_limit);
    TARE_TRY(tare__data_batch_create(s, out, err));
    for (size_t i = 0; i < s->input_count; i++)
        TARE_TRY(make_input(s, i, count, &budget, &out->inputs[i], err));
    out->size = count;
    r->position += count;
    return TARE_OK;
}

static tare_status rewind_random(data_source *s, tare_error *err) {
    (void)err;
    ((random_state *)s->state)->position = 0;
    return TARE_OK;
}

static tare_status skip_random(data_source *s, int64_t *samples, tare_error *err) {
    (void)err;
    random_state *r = s->state;
    const int64_t left = r->sample_count - r->position;
    *samples = s->batch_size > 0 && s->batch_size < left ? s->batch_size : left;
    r->position += *samples;
    return TARE_OK;
}

static int64_t count_random(const data_source *s) {
    return ((const random_state *)s->state)->sample_count;
}

static void close_random(data_source *s) {
    tare__free(s->state);
}

// --- the spec ---

static bool read_number(const char **at, uint64_t most, uint64_t *out) {
    uint64_t number = 0;
    const char *begin = *at;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        const uint64_t digit = (uint64_t)(**at - '0');
        if (number > (most - digit) / 10) return false;
        number = number * 10 + digit;
    }
    *out = number;
    return *at != begin;
}

// "3x32x32": the shape of one sample.
static bool read_sample_shape(const char **at, data_input *input) {
    for (input->ndim = 1;; ++*at) {
        uint64_t size = 0;
        if (input->ndim == TARE_MAX_DIMS || !read_number(at, INT32_MAX, &size) || size == 0)
            return false;
        input->shape[input->ndim++] = (int64_t)size;
        if (**at != 'x') return true;
    }
}

static bool read_shapes(const char *at, data_source *s) {
    for (size_t i = 0; i < s->input_count; i++) {
        if (i > 0 && *at++ != ',') return false;
        if (!read_sample_shape(&at, &s->inputs[i])) return false;
    }
    return *at == '\0';
}

static bool read_spec(data_source *s, random_state *r) {
    const char *at = s->spec + strlen("random:");
    uint64_t count = 0;
    if (!read_number(&at, INT32_MAX, &count) || count == 0) return false;
    r->sample_count = (int64_t)count;
    if (*at == '\0') return true;
    if (*at++ != ':' || !read_number(&at, UINT64_MAX, &r->seed)) return false;
    return *at == '\0' || (*at == ':' && read_shapes(at + 1, s));
}

static tare_status check_input(const data_input *input, tare_error *err) {
    bool is_known = input->ndim > 0;
    for (int d = 1; d < input->ndim; d++) is_known = is_known && size_of(input, d) >= 0;
    if (!is_known) {
        tare__fail(err, TARE_INVALID_ARGUMENT, "the model does not say the shape of input '%s'",
                   input->name);
        return tare__hint(err, TARE_INVALID_ARGUMENT,
                          "give it, without the batch: random:N:SEED:3x32x32");
    }
    const tare_dtype dtype = dtype_of(input);
    const bool is_integer = dtype == TARE_INT64 || dtype == TARE_INT32;
    if (dtype == TARE_FLOAT32 || dtype == TARE_BOOL || (is_integer && input->bound > 0))
        return TARE_OK;
    tare__fail(err, TARE_UNSUPPORTED,
               is_integer
                   ? "input '%s' has dtype %s, and no embedding reads it, so its range is unknown"
                   : "input '%s' is of %s; random data is float32, integers or bools",
               input->name, tare_dtype_name(dtype));
    return tare__hint(err, TARE_UNSUPPORTED, "give an array for it: %s=FILE.npy,NAME=random:N",
                      input->name);
}

static tare_status open_random(data_source *s, random_state *r, tare_error *err) {
    if (!read_spec(s, r)) {
        tare__fail(err, TARE_INVALID_ARGUMENT,
                   "expected random:N[:SEED[:SHAPE[,SHAPE ..]]], found '%s'", s->spec);
        return tare__hint(err, TARE_INVALID_ARGUMENT,
                          "N from 1 to %d, SEED from 0 up, SHAPE of one sample as in 3x32x32, at "
                          "most %d sizes from 1 up",
                          INT32_MAX, TARE_MAX_DIMS - 1);
    }
    for (size_t i = 0; i < s->input_count; i++) TARE_TRY(check_input(&s->inputs[i], err));
    return TARE_OK;
}

tare_status tare__data_open_random(data_source *s, tare_error *err) {
    static const data_kind kind = {.next = next,
                                   .rewind = rewind_random,
                                   .close = close_random,
                                   .skip = skip_random,
                                   .count = count_random};
    random_state *r = tare__alloc_zeroed(1, sizeof *r);
    if (r == NULL) return tare__out_of_memory(err);
    s->state = r;
    s->kind = &kind;
    const tare_status status = open_random(s, r, err);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "%s", s->spec);
}
