// SPDX-License-Identifier: Apache-2.0
// Batches of images, which are decoded and preprocessed when their batch is requested.
#include <string.h>

#include "core/memory/alloc.h"
#include "io/data/picture_list.h"

enum { DEFAULT_BATCH = 32 };

static size_t batch_end(const data_source *s, const picture_list *l) {
    const size_t wanted = s->batch_size > 0 ? (size_t)s->batch_size : DEFAULT_BATCH;
    return l->count - l->position < wanted ? l->count : l->position + wanted;
}

static tare_status load(const data_source *s, const char *path, tare_tensor **out,
                        tare_error *err) {
    image picture = {0};
    TARE_TRY(tare__image_read(path, &picture, err));
    return tare__at(err, tare__preprocess_apply(&s->pictures, &picture, out, err), "%s", path);
}

static tare_status make_room(const tare_tensor *sample, size_t count, tare_tensor **out,
                             tare_error *err) {
    const int64_t shape[] = {(int64_t)count, sample->shape[0], sample->shape[1], sample->shape[2]};
    return tare_tensor_create(sample->dtype, 4, shape, out, err);
}

// Copies a preprocessed image into the batch's tensor. All images of a batch must have equal sizes.
static tare_status put(const tare_tensor *sample, const tare_tensor *batch, size_t at,
                       tare_error *err) {
    if (memcmp(sample->shape, batch->shape + 1, 3 * sizeof *sample->shape) != 0) {
        char found[100], first[100];
        tare__shape_text(3, sample->shape, found, sizeof found);
        tare__shape_text(3, batch->shape + 1, first, sizeof first);
        tare__fail(err, TARE_INVALID_ARGUMENT,
                   "the picture becomes %s, the first one of its batch %s", found, first);
        return tare__hint(err, TARE_INVALID_ARGUMENT, "preprocess with resize and crop");
    }
    memcpy((char *)batch->data + at * tare__tensor_bytes(sample), sample->data,
           tare__tensor_bytes(sample));
    return TARE_OK;
}

static tare_status add(const data_source *s, const picture_list *l, size_t index, size_t end,
                       data_batch *out, tare_error *err) {
    const char *path = l->items[index].path;
    tare_tensor *sample = NULL;
    TARE_TRY(load(s, path, &sample, err));
    tare_status status = TARE_OK;
    if (out->inputs[0] == NULL) status = make_room(sample, end - l->position, &out->inputs[0], err);
    if (status == TARE_OK)
        status = tare__at(err, put(sample, out->inputs[0], index - l->position, err), "%s", path);
    tare_tensor_release(sample);
    return status;
}

static tare_status add_labels(const picture_list *l, size_t end, data_batch *out, tare_error *err) {
    if (!l->has_labels) return TARE_OK;
    const int64_t count = (int64_t)(end - l->position);
    TARE_TRY(tare_tensor_create(TARE_INT64, 1, &count, &out->labels, err));
    for (int64_t i = 0; i < count; i++)
        ((int64_t *)out->labels->data)[i] = l->items[l->position + (size_t)i].label;
    return TARE_OK;
}

static tare_status next(data_source *s, data_batch *out, bool *done, tare_error *err) {
    picture_list *l = s->state;
    const size_t end = batch_end(s, l);
    *done = end == l->position;
    if (*done) return TARE_OK;
    TARE_TRY(tare__data_batch_create(s, out, err));
    for (size_t i = l->position; i < end; i++) TARE_TRY(add(s, l, i, end, out, err));
    TARE_TRY(add_labels(l, end, out, err));
    const char *first = l->items[l->position].path;
    TARE_TRY(tare__data_check(s, 0, out->inputs[0], first, s->inputs[0].name, err));
    out->size = (int64_t)(end - l->position);
    l->position = end;
    return TARE_OK;
}

static tare_status skip(data_source *s, int64_t *samples, tare_error *err) {
    (void)err;
    picture_list *l = s->state;
    const size_t end = batch_end(s, l);
    *samples = (int64_t)(end - l->position);
    l->position = end;
    return TARE_OK;
}

static tare_status rewind_pictures(data_source *s, tare_error *err) {
    (void)err;
    ((picture_list *)s->state)->position = 0;
    return TARE_OK;
}

static int64_t count(const data_source *s) {
    return (int64_t)((const picture_list *)s->state)->count;
}

static void close_pictures(data_source *s) {
    tare__free(((picture_list *)s->state)->items);
    tare__free(s->state);
}

static tare_status check_use(const data_source *s, tare_error *err) {
    if (s->input_count != 1) {
        tare__fail(err, TARE_INVALID_ARGUMENT, "pictures for a model of %zu inputs",
                   s->input_count);
        return tare__hint(err, TARE_INVALID_ARGUMENT, "say which is which: NAME=DATA,NAME=DATA");
    }
    if (s->takes_pictures) return TARE_OK;
    tare__fail(err, TARE_INVALID_ARGUMENT,
               "the model does not say how a picture becomes its input");
    return tare__hint(err, TARE_INVALID_ARGUMENT,
                      "declare it with --preprocess imagenet, or with tare preprocess");
}

tare_status tare__data_open_pictures(data_source *s, tare_error *err) {
    static const data_kind kind = {.next = next,
                                   .rewind = rewind_pictures,
                                   .close = close_pictures,
                                   .skip = skip,
                                   .count = count};
    picture_list *l = tare__alloc_zeroed(1, sizeof *l);
    if (l == NULL) return tare__out_of_memory(err);
    s->state = l;
    s->kind = &kind;
    tare_status status = check_use(s, err);
    if (status == TARE_OK) status = tare__picture_list_find(s, l, err);
    return tare__at(err, status, "%s", s->spec);
}
