// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Ranges and equality of a model's inputs over the samples of calibration.
#include "observe/seen_inputs.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash/hash.h"
#include "core/memory/alloc.h"
#include "core/tensor/tensor.h"

static seen_input *find(const seen_inputs *s, const char *name) {
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->items[i].name, name) == 0) return &s->items[i];
    return NULL;
}

const seen_input *tare__seen_find(const seen_inputs *s, const char *name) {
    return s->is_partial ? NULL : find(s, name);
}

static tare_status find_or_add(seen_inputs *s, const char *name, seen_input **out,
                               tare_error *err) {
    *out = find(s, name);
    if (*out != NULL) return TARE_OK;
    if (!tare__grow((void **)&s->items, &s->capacity, s->count, sizeof *s->items))
        return tare__out_of_memory(err);
    const char *copy = tare__strdup(name);
    if (copy == NULL) return tare__out_of_memory(err);
    *out = &s->items[s->count++];
    **out = (seen_input){.name = copy, .low = INFINITY, .high = -INFINITY};
    return TARE_OK;
}

// The range of the finite values.
static void add_range(seen_input *s, const float *x, int64_t count) {
    float low = INFINITY, high = -INFINITY;
    int64_t finite = 0;
    for (int64_t i = 0; i < count; i++) {
        const bool is_finite = fabsf(x[i]) <= FLT_MAX;
        low = is_finite && x[i] < low ? x[i] : low;
        high = is_finite && x[i] > high ? x[i] : high;
        finite += is_finite;
    }
    s->has_other |= finite < count;
    if (!(low <= high)) return;
    s->low = fmin(s->low, (double)low);
    s->high = fmax(s->high, (double)high);
    s->peaks[s->count] = fmaxf(fabsf(low), fabsf(high));
}

static void compare(seen_input *s, const void *x, size_t bytes) {
    if (s->differs) return;
    const uint64_t hash = tare__hash_bytes(x, bytes);
    s->differs = s->count > 0 && hash != s->first;
    s->first = hash;
}

static tare_status add_sample(seen_input *s, const tare_tensor *x, int64_t at, int64_t count,
                              tare_error *err) {
    const size_t size = tare__tensor_bytes(x) / (size_t)x->count;
    if (!tare__grow((void **)&s->peaks, &s->capacity, s->count, sizeof *s->peaks))
        return tare__out_of_memory(err);
    s->peaks[s->count] = 0;
    compare(s, (const char *)x->data + (size_t)at * size, (size_t)count * size);
    if (x->dtype == TARE_FLOAT32) add_range(s, tare__f32(x) + at, count);
    s->count++;
    return TARE_OK;
}

tare_status tare__seen_add(seen_inputs *s, const char *name, const tare_tensor *x,
                           int64_t batch_size, tare_error *err) {
    if (s->is_partial || x->count == 0 || x->data == NULL) return TARE_OK;
    seen_input *input = NULL;
    TARE_TRY(find_or_add(s, name, &input, err));
    const bool has_samples = x->ndim > 0 && batch_size > 0 && x->shape[0] == batch_size;
    const int64_t samples = has_samples ? batch_size : 1, each = x->count / samples;
    for (int64_t i = 0; i < samples; i++) TARE_TRY(add_sample(input, x, i * each, each, err));
    return TARE_OK;
}

bool tare__seen_one_sample(const seen_inputs *s) {
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].differs || s->items[i].count < 2) return false;
    return s->count > 0 && !s->is_partial;
}

bool tare__seen_one_value(const seen_input *s) {
    return s->count > 1 && s->low == s->high && !s->has_other;
}

static int by_size(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

tare_status tare__seen_median(const seen_input *s, double *out, tare_error *err) {
    float *sorted = tare__alloc_zeroed(s->count + 1, sizeof *sorted);
    if (sorted == NULL) return tare__out_of_memory(err);
    memcpy(sorted, s->peaks, s->count * sizeof *sorted);
    qsort(sorted, s->count, sizeof *sorted, by_size);
    *out = (double)sorted[s->count / 2];
    tare__free(sorted);
    return TARE_OK;
}

bool tare__seen_spans(const seen_input *s, double magnitude) {
    bool is_below = false, is_above = false;
    for (size_t i = 0; i < s->count; i++) {
        is_below |= (double)s->peaks[i] <= magnitude;
        is_above |= (double)s->peaks[i] >= magnitude;
    }
    return is_below && is_above;
}

static tare_status copy_one(seen_input *to, const seen_input *from, tare_error *err) {
    *to = *from;
    to->capacity = from->count;
    to->name = tare__strdup(from->name);
    to->peaks = tare__alloc_zeroed(from->count + 1, sizeof *to->peaks);
    if (to->name == NULL || to->peaks == NULL) return tare__out_of_memory(err);
    memcpy(to->peaks, from->peaks, from->count * sizeof *to->peaks);
    return TARE_OK;
}

tare_status tare__seen_copy(seen_inputs *to, const seen_inputs *from, tare_error *err) {
    to->is_partial = from->is_partial;
    to->seconds = from->seconds;
    if (from->count == 0) return TARE_OK;
    to->items = tare__alloc_zeroed(from->count, sizeof *to->items);
    if (to->items == NULL) return tare__out_of_memory(err);
    to->capacity = from->count;
    for (; to->count < from->count; to->count++) {
        const tare_status status = copy_one(&to->items[to->count], &from->items[to->count], err);
        if (status == TARE_OK) continue;
        to->count++; // what there is of it is released
        return status;
    }
    return TARE_OK;
}

void tare__seen_release(seen_inputs *s) {
    for (size_t i = 0; i < s->count; i++) {
        tare__free((char *)s->items[i].name); // NOLINT: owned
        tare__free(s->items[i].peaks);
    }
    tare__free(s->items);
    *s = (seen_inputs){0};
}
