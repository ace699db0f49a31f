// SPDX-License-Identifier: Apache-2.0
// The statistics of a prepared model's observers, separate from the model.
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
    char *name; // name of the float model's operator
    int64_t macs;
} counted_macs;

typedef struct calibration {
    model_identity identity;
    int64_t sample_count, shard_count;
    int64_t *shards; // finished ones, ascending
    size_t done_count, shard_capacity;
    bool has_cut; // the data is incomplete, and divided like this
    int64_t batch_size, sample_limit;
    char *data; // digest of the data of an unfinished state; else NULL
    int64_t batch_count;
    watched *items; // in the order of the module tree
    size_t count, capacity;
    counted_macs *macs;
    size_t macs_count, macs_capacity;
    char **examples; // the meta that calibration wrote for each input; NULL: none
    size_t example_count;
} calibration;

void tare__calibration_release(calibration *c); // may be called twice
/// Copies or retains path and spec; takes observer over on success.
tare_status tare__calibration_add(calibration *c, const char *path, tare_observer_spec *spec,
                                  module *observer, tare_error *err);
tare_status tare__calibration_add_macs(calibration *c, const char *name, int64_t macs,
                                       tare_error *err);
tare_status tare__calibration_add_shard(calibration *c, int64_t shard, tare_error *err);

/// Collects the statistics of a prepared model. data: what was observed (NULL: all of some data);
/// batch_count: how many batches, or 0 for all.
tare_status tare__calibration_write(const tare_model *prepared, const tare_data *data,
                                    int64_t batch_count, int64_t sample_count, const char *path,
                                    tare_error *err);
/// Applies the state at PATH to the model, if it belongs to the same model and data. *batch_count:
/// as written; 0: calibration is finished.
tare_status tare__calibration_resume(tare_model *prepared, const tare_data *data, const char *path,
                                     int64_t *batch_count, int64_t *sample_count, tare_error *err);

/// Writes `c` to a state file; reads one, also from an open file. Files are untrusted.
tare_status tare__calibration_save(const calibration *c, const char *path, tare_error *err);
tare_status tare__calibration_load(const char *path, const observer_classes *classes,
                                   calibration *out, tare_error *err);
tare_status tare__calibration_from_file(const safetensors *file, const observer_classes *classes,
                                        calibration *out, tare_error *err);

#endif
