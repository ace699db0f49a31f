// SPDX-License-Identifier: Apache-2.0
// Shared by all kinds of DATA.
// Private to io/data.
#ifndef IO_DATA_SOURCE_H
#define IO_DATA_SOURCE_H

#include "core/memory/arena.h"
#include "io/data/data.h"

typedef struct data_kind {
    tare_status (*next)(data_source *s, data_batch *out, bool *done, tare_error *err);
    tare_status (*rewind)(data_source *s, tare_error *err);
    void (*close)(data_source *s);
    // Optional, as tare__data_skip and tare__data_sample_count.
    tare_status (*skip)(data_source *s, int64_t *samples, tare_error *err);
    int64_t (*count)(const data_source *s);
    void (*limit)(data_source *s); // hands memory_limit on; NULL: has no sources of its own
    bool takes_as_is;              // heeds the source's flag
} data_kind;

struct data_source {
    const data_kind *kind;
    void *state;  // the kind's own
    arena memory; // spec and inputs; lives as long as the source
    const char *spec;
    data_input *inputs;
    size_t input_count;
    int64_t batch_size;
    preprocess pictures; // their preprocessing
    bool takes_pictures;
    bool as_is;            // arrays are the inputs as they stand
    uint64_t memory_limit; // as of tare__file_budget
};

/// Each sets s->kind and s->state; on failure nothing is left.
tare_status tare__data_open_files(data_source *s, tare_error *err);
tare_status tare__data_open_csv(data_source *s, tare_error *err);
tare_status tare__data_open_random(data_source *s, tare_error *err);
tare_status tare__data_open_pictures(data_source *s, tare_error *err);
tare_status tare__data_open_named(data_source *s, tare_error *err);
/// Whether the spec refers to images, by looking at the disk; fails only if memory ran out.
tare_status tare__data_is_pictures(const char *spec, bool *out, tare_error *err);
/// The input of this name, or else the one of this argument.
bool tare__data_find(const data_source *s, const char *chars, size_t length, size_t *out);
/// Whether it names inputs.
bool tare__data_is_named(const data_source *s);
/// An array that holds labels may be called so: labels, label, y.
bool tare__data_is_label_name(const char *name, size_t length);

/// A batch with room for the inputs' tensors.
tare_status tare__data_batch_create(const data_source *s, data_batch *out, tare_error *err);
/// Samples [first, first + count) of t.
tare_status tare__data_slice(tare_tensor *t, int64_t first, int64_t count, tare_tensor **out,
                             tare_error *err);
/// Checks an array against input i: dimensions known, size of each sample, NaNs and, if
/// they are not wanted, infinities. `file` and `array`
/// are for messages.
tare_status tare__data_check(const data_source *s, size_t i, const tare_tensor *t, const char *file,
                             const char *array, tare_error *err);

#endif
