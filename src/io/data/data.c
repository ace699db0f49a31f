// SPDX-License-Identifier: Apache-2.0
// Chooses the kind of data source from the spec, and has the checks that all kinds share.
#include "io/data/data.h"

#include <inttypes.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/text/text.h"
#include "io/data/source.h"

static tare_status copy_options(data_source *s, const char *spec, const data_input *inputs,
                                size_t input_count, tare_error *err) {
    s->spec = tare__arena_strdup(&s->memory, spec);
    s->inputs = tare__arena_array(&s->memory, input_count + 1, sizeof *s->inputs);
    if (s->spec == NULL || s->inputs == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < input_count; i++) {
        s->inputs[i] = inputs[i];
        s->inputs[i].name = tare__arena_strdup(&s->memory, inputs[i].name);
        if (s->inputs[i].name == NULL ||
            !tare__arena_copy_text(&s->memory, inputs[i].argument, &s->inputs[i].argument))
            return tare__out_of_memory(err);
    }
    s->input_count = input_count;
    return TARE_OK;
}

static bool is_called(const char *name, const char *chars, size_t length) {
    return name != NULL && strlen(name) == length && memcmp(name, chars, length) == 0;
}

bool tare__data_find(const data_source *s, const char *chars, size_t length, size_t *out) {
    for (*out = 0; *out < s->input_count; ++*out)
        if (is_called(s->inputs[*out].name, chars, length)) return true;
    for (*out = 0; *out < s->input_count; ++*out)
        if (is_called(s->inputs[*out].argument, chars, length)) return true;
    return false;
}

bool tare__data_input_is(const data_input *input, const char *name) {
    const size_t length = strlen(name);
    return is_called(input->name, name, length) || is_called(input->argument, name, length);
}

static tare_status open_kind(data_source *s, tare_error *err) {
    if (tare__data_is_named(s)) return tare__data_open_named(s, err);
    if (tare__starts_with(s->spec, "random:")) return tare__data_open_random(s, err);
    bool is_pictures = false;
    TARE_TRY(tare__data_is_pictures(s->spec, &is_pictures, err));
    if (is_pictures) return tare__data_open_pictures(s, err);
    if (tare__ends_with(s->spec, ".csv") || tare__ends_with(s->spec, ".csv.gz"))
        return tare__data_open_csv(s, err);
    return tare__data_open_files(s, err);
}

tare_status tare__data_open(const char *spec, const data_input *inputs, size_t input_count,
                            int64_t batch_size, const preprocess *pictures, data_source **out,
                            tare_error *err) {
    if (batch_size < 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "a batch of %" PRId64 " samples", batch_size);
    data_source *s = tare__alloc_zeroed(1, sizeof *s);
    if (s == NULL) return tare__out_of_memory(err);
    s->batch_size = batch_size;
    s->takes_pictures = pictures != NULL;
    if (pictures != NULL) s->pictures = *pictures;
    tare_status status = copy_options(s, spec, inputs, input_count, err);
    if (status == TARE_OK) status = open_kind(s, err);
    if (status == TARE_OK)
        *out = s;
    else
        tare__data_close(s);
    return status;
}

tare_status tare__data_take_as_is(data_source *source, tare_error *err) {
    source->as_is = true;
    if (source->kind->takes_as_is) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT, "%s: only arrays can be taken as they are",
                      source->spec);
}

void tare__data_limit(data_source *source, uint64_t memory_limit) {
    source->memory_limit = memory_limit;
    if (source->kind->limit != NULL) source->kind->limit(source);
}

tare_status tare__data_next(data_source *source, data_batch *out, bool *done, tare_error *err) {
    data_batch batch = {0};
    bool is_done = false;
    const tare_status status = source->kind->next(source, &batch, &is_done, err);
    if (status == TARE_OK && !is_done) {
        *out = batch;
        *done = false;
        return TARE_OK;
    }
    tare__data_batch_release(&batch);
    if (status == TARE_OK) *done = true;
    return status;
}

tare_status tare__data_skip(data_source *source, int64_t *samples, tare_error *err) {
    if (source->kind->skip != NULL) return source->kind->skip(source, samples, err);
    data_batch batch = {0};
    bool done = false;
    TARE_TRY(tare__data_next(source, &batch, &done, err));
    *samples = done ? 0 : batch.size;
    tare__data_batch_release(&batch);
    return TARE_OK;
}

void tare__data_set_batch_size(data_source *source, int64_t batch_size) {
    source->batch_size = batch_size; // of several inputs the smallest batch counts
}

int64_t tare__data_sample_count(const data_source *source) {
    return source->kind->count != NULL ? source->kind->count(source) : 0;
}

tare_status tare__data_rewind(data_source *source, tare_error *err) {
    return source->kind->rewind(source, err);
}

void tare__data_close(data_source *source) {
    if (source == NULL) return;
    if (source->kind != NULL) source->kind->close(source);
    tare__arena_release(&source->memory);
    tare__free(source);
}

tare_status tare__data_batch_create(const data_source *s, data_batch *out, tare_error *err) {
    tare_tensor **inputs = tare__alloc_zeroed(s->input_count + 1, sizeof(tare_tensor *));
    if (inputs == NULL) return tare__out_of_memory(err);
    *out = (data_batch){.inputs = inputs, .input_count = s->input_count};
    return TARE_OK;
}

void tare__data_batch_release(data_batch *batch) {
    for (size_t i = 0; i < batch->input_count; i++) tare_tensor_release(batch->inputs[i]);
    tare__free(batch->inputs);
    tare_tensor_release(batch->labels);
    *batch = (data_batch){0};
}

tare_status tare__data_slice(tare_tensor *t, int64_t first, int64_t count, tare_tensor **out,
                             tare_error *err) {
    if (count == t->shape[0]) {
        *out = tare_tensor_retain(t);
        return TARE_OK;
    }
    int64_t shape[TARE_MAX_DIMS];
    memcpy(shape, t->shape, sizeof shape);
    const size_t sample_bytes = tare__tensor_bytes(t) / (size_t)t->shape[0];
    const char *data = (const char *)t->data + (size_t)first * sample_bytes;
    shape[0] = count;
    const size_t offset = (size_t)(data - (const char *)tare__storage_data(t->store));
    return tare__tensor_view(t->store, offset, t->dtype, t->ndim, shape, t->q, out, err);
}

static tare_status check_shape(const data_input *input, const tare_tensor *t, const char *array,
                               tare_error *err) {
    const int ndim = input->is_example ? -1 : input->ndim; // -1: any
    bool fits = t->ndim > 0 && (ndim < 0 || ndim == t->ndim);
    for (int d = 1; fits && d < ndim; d++)
        fits = input->shape[d] < 0 || input->shape[d] == t->shape[d];
    if (fits) return TARE_OK;
    char found[200], expected[200] = "at least a batch dimension";
    tare__shape_text(t->ndim, t->shape, found, sizeof found);
    if (input->ndim >= 0) tare__shape_text(input->ndim, input->shape, expected, sizeof expected);
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "array '%s' has the shape %s, input '%s' wants %s (the first is the batch)",
                      array, found, input->name, expected);
}

static tare_status check_dtype(const data_input *input, const tare_tensor *t, const char *array,
                               tare_error *err) {
    if (input->is_example || input->dtype == TARE_DTYPE_UNSET || t->dtype == input->dtype)
        return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT, "array '%s' holds %s, input '%s' wants %s", array,
                      tare_dtype_name(t->dtype), input->name, tare_dtype_name(input->dtype));
}

static tare_status check_numbers(const data_input *input, const tare_tensor *t, const char *array,
                                 tare_error *err) {
    const tare_status nan = tare__tensor_refuse_nan(t, "array", array, err);
    if (nan != TARE_OK) return tare__hint(err, nan, "give it a number, or leave the sample out");
    if (!input->is_finite) return TARE_OK;
    const tare_status infinite = tare__tensor_refuse_infinite(t, "array", array, err);
    if (infinite == TARE_OK) return TARE_OK;
    return tare__hint(err, infinite,
                      "observers would include it in the range; --lenient accepts it");
}

tare_status tare__data_check(const data_source *s, size_t i, const tare_tensor *t, const char *file,
                             const char *array, tare_error *err) {
    tare_status status = check_dtype(&s->inputs[i], t, array, err);
    if (status == TARE_OK) status = check_shape(&s->inputs[i], t, array, err);
    if (status == TARE_OK) status = check_numbers(&s->inputs[i], t, array, err);
    if (status != TARE_OK) return tare__at(err, status, "%s", file);
    tare__tensor_forget(t); // a file may be larger than memory
    return TARE_OK;
}
