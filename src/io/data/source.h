// SPDX-License-Identifier: Apache-2.0
// Shared by all kinds of data sources.
// Private to io/data.
#ifndef IO_DATA_SOURCE_H
#define IO_DATA_SOURCE_H

#include "core/memory/arena.h"
#include "io/data/data.h"

typedef struct data_kind {
    tare_status (*next)(data_source *s, data_batch *out, bool *done, tare_error *err);
    tare_status (*rewind)(data_source *s, tare_error *err);
    void (*close)(data_source *s);
    // Optional; see tare__data_skip and tare__data_sample_count.
    tare_status (*skip)(data_source *s, int64_t *samples, tare_error *err);
    int64_t (*count)(const data_source *s);
    void (*limit)(data_source *s); // passes memory_limit on to inner sources; NULL: has none
    bool takes_as_is;              // supports as_is
} data_kind;

struct data_source {
    const data_kind *kind;
    void *state;  // the kind's own
    arena memory; // spec and inputs; lives as long as the source
    const char *spec;
    data_input *inputs;
    size_t input_count;
    int64_t batch_size;
    preprocess pictures; // the preprocessing of images
    bool takes_pictures;
    bool as_is;            // arrays are the inputs, unchanged
    uint64_t memory_limit; // see tare__data_limit
};

/// Each sets s->kind and s->state, which tare__data_close releases, also after a failure.
tare_status tare__data_open_files(data_source *s, tare_error *err);
tare_status tare__data_open_csv(data_source *s, tare_error *err);
tare_status tare__data_open_random(data_source *s, tare_error *err);
tare_status tare__data_open_pictures(data_source *s, tare_error *err);
tare_status tare__data_open_named(data_source *s, tare_error *err);
/// *out: the spec refers to images, according to file names and contents on disk. Fails only if
/// there is not enough memory or a folder cannot be read.
tare_status tare__data_is_pictures(const char *spec, bool *out, tare_error *err);
/// Finds the input with this name, or else the one with this argument; false: there is none.
bool tare__data_find(const data_source *s, const char *chars, size_t length, size_t *out);
/// True if the spec has the form NAME=DATA,NAME=DATA,..
bool tare__data_is_named(const data_source *s);
/// True for the names that an array of labels may have: labels, label, y.
bool tare__data_is_label_name(const char *name, size_t length);

/// An empty batch with space for the inputs' tensors.
tare_status tare__data_batch_create(const data_source *s, data_batch *out, tare_error *err);
/// Samples [first, first + count) of t.
tare_status tare__data_slice(tare_tensor *t, int64_t first, int64_t count, tare_tensor **out,
                             tare_error *err);
/// Checks an array against input i: its dtype, the shape of a sample, NaNs and, if is_finite,
/// infinities. `file` and `array` are for messages.
tare_status tare__data_check(const data_source *s, size_t i, const tare_tensor *t, const char *file,
                             const char *array, tare_error *err);

#endif
