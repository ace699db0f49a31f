// SPDX-License-Identifier: Apache-2.0
// What the observers of a prepared model have seen, apart from the model.
#ifndef FLOW_CALIBRATE_CALIBRATION_H
#define FLOW_CALIBRATE_CALIBRATION_H

#include "flow/calibrate/calibration_identity.h"
#include "io/native/safetensors.h"
#include "model/data.h"
#include "model/model.h"
#include "tare/calibration.h"

enum { MOST_SHARDS = 1 << 20 };

typedef struct watched {
    char *path;
    tare_observer_spec *spec;
    module *observer; // with its statistics; a reference
} watched;

typedef struct counted_macs {
    char *name; // of the float model's operator
    int64_t macs;
} counted_macs;

typedef struct calibration {
    model_identity identity;
    int64_t sample_count, shard_count;
    int64_t *shards; // done ones, ascending
    size_t done_count, shard_capacity;
    bool has_cut; // of data that is not complete: how it is divided
    int64_t batch_size, sample_limit;
    char *data; // of an unfinished state: of which data it has seen so many batches; else NULL
    int64_t batch_count;
    watched *items; // in the order of the module tree
    size_t count, capacity;
    counted_macs *macs;
    size_t macs_count, macs_capacity;
    char **examples; // the meta of each input that calibration wrote; NULL where it wrote none
    size_t example_count;
} calibration;

void tare__calibration_release(calibration *c); // fine twice
/// path and spec are copied or retained, observer is taken over on success.
tare_status tare__calibration_add(calibration *c, const char *path, tare_observer_spec *spec,
                                  module *observer, tare_error *err);
tare_status tare__calibration_add_macs(calibration *c, const char *name, int64_t macs,
                                       tare_error *err);
tare_status tare__calibration_add_shard(calibration *c, int64_t shard, tare_error *err);

/// What a prepared model has seen of data (NULL: all of some data), with batch_count batches of it
/// if it is not all yet (0: it is).
tare_status tare__calibration_write(const tare_model *prepared, const tare_data *data,
                                    int64_t batch_count, int64_t sample_count, const char *path,
                                    tare_error *err);
/// The state at PATH becomes the model's, if it belongs to the same work. *batch_count: as written;
/// 0: the work is done.
tare_status tare__calibration_resume(tare_model *prepared, const tare_data *data, const char *path,
                                     int64_t *batch_count, int64_t *sample_count, tare_error *err);

/// Writes `c` to a state file; reads one, also from an open file. Files are hostile.
tare_status tare__calibration_save(const calibration *c, const char *path, tare_error *err);
tare_status tare__calibration_load(const char *path, const observer_classes *classes,
                                   calibration *out, tare_error *err);
tare_status tare__calibration_from_file(const safetensors *file, const observer_classes *classes,
                                        calibration *out, tare_error *err);

#endif
