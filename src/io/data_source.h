// SPDX-License-Identifier: Apache-2.0
// What the kinds of DATA have in common (io/data*.c only).
#ifndef IO_DATA_SOURCE_H
#define IO_DATA_SOURCE_H

#include "core/arena.h"
#include "io/data.h"

typedef struct data_kind {
    tare_status (*next)(data_source *s, data_batch *out, bool *done, tare_error *err);
    tare_status (*rewind)(data_source *s, tare_error *err);
    void (*close)(data_source *s);
} data_kind;

struct data_source {
    const data_kind *kind;
    void *state;  // the kind's own
    arena memory; // spec and inputs; lives as long as the source
    const char *spec;
    data_input *inputs;
    size_t input_count;
    int64_t batch_size;
};

/// Each sets s->kind and s->state; on failure nothing is left.
tare_status tare__data_open_files(data_source *s, tare_error *err);
tare_status tare__data_open_csv(data_source *s, tare_error *err);
tare_status tare__data_open_random(data_source *s, tare_error *err);

/// A batch with room for the inputs' tensors.
tare_status tare__data_batch_create(const data_source *s, data_batch *out, tare_error *err);
/// Checks an array against input i: dimensions known, size of each sample, NaNs. `file` and `array`
/// are for messages.
tare_status tare__data_check(const data_source *s, size_t i, const tare_tensor *t, const char *file,
                             const char *array, tare_error *err);

#endif
