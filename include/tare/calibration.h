// SPDX-License-Identifier: Apache-2.0
/// Calibration as a step of its own: over a data set, in shares on several machines, and kept in a
/// file between prepare and convert.
///
/// A state file holds what the observers of one prepared model have seen, and which shards of the
/// data that was. It goes with that model only: graph, weights and observers are compared.
#ifndef TARE_CALIBRATION_H
#define TARE_CALIBRATION_H

#include "tare/data.h"
#include "tare/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Told after every batch how many samples are through. total: of all; 0 where it is not known. A
/// failure ends the work and is what the working call returns.
typedef tare_status (*tare_progress)(void *user, int64_t done, int64_t total, tare_error *err);

typedef struct tare_calibrate_options {
    uint32_t struct_size;
    tare_progress progress; // NULL: nobody is told
    void *progress_user;
} tare_calibrate_options;

/// Runs a prepared model over all batches of data (tare_calibrate with each). sample_count may be
/// NULL; else *sample_count becomes how many there were. options may be NULL.
/// TARE_INVALID_ARGUMENT if there were none: a shard may be empty when the data is short.
TARE_API tare_status tare_calibrate_data(tare_model *prepared, tare_data *data,
                                         const tare_calibrate_options *options,
                                         int64_t *sample_count, tare_error *err);

/// What a state has seen.
typedef struct tare_calibration_info {
    uint32_t struct_size;
    int64_t sample_count;
    int64_t shard_count;      // 1: the data was not divided
    int64_t done_shard_count; // of them; equal to shard_count when the data is complete
} tare_calibration_info;

/// TARE_UNSUPPORTED if the model has fake quantizers, with the path of one: in training the layers
/// change with what they see, so that the model itself has to be kept.
TARE_API tare_status tare_calibration_check(const tare_model *prepared, tare_error *err);
/// Writes the statistics of a prepared model to PATH, as shard `shard_index` of `shard_count` with
/// sample_count samples (0, 1 for undivided data). The bytes depend on the content only. Fails as
/// tare_calibration_check.
TARE_API tare_status tare_calibration_write(const tare_model *prepared, int64_t shard_index,
                                            int64_t shard_count, int64_t sample_count,
                                            const char *path, tare_error *err);
/// The statistics of a state file take the place of the model's. TARE_INVALID_ARGUMENT where the
/// file belongs to another model; fails as tare_calibration_check. out may be NULL.
TARE_API tare_status tare_calibration_read(tare_model *prepared, const char *path,
                                           tare_calibration_info *out, tare_error *err);
/// Joins state files of one model into one. For observers of extremes (MinMaxObserver,
/// PerChannelMinMaxObserver) the result is, to the bit, what one pass over all data gives, for any
/// order and grouping; TARE_UNSUPPORTED where an observer's statistics depend on the order of the
/// batches (moving averages, histograms). TARE_INVALID_ARGUMENT for states of different models, of
/// data divided differently, and for a shard that is in two of them. context: as of
/// tare_model_read. out may be NULL.
TARE_API tare_status tare_calibration_merge(const tare_context *context, const char *const *paths,
                                            size_t count, const char *out_path,
                                            tare_calibration_info *out, tare_error *err);
/// TARE_UNSUPPORTED, with the observer's name, if states of this model could not be merged: so that
/// it is said before the work. Fails as tare_calibration_check.
TARE_API tare_status tare_calibration_check_mergeable(const tare_model *prepared, tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
