// SPDX-License-Identifier: Apache-2.0
/// Calibration as a separate step: over a data set, divided among machines, and kept in a file
/// between prepare and convert.
///
/// A state file holds what the observers of one prepared model have seen, and which shards of the
/// data that was. It belongs to that model only: graph, weights and observers are compared.
#ifndef TARE_CALIBRATION_H
#define TARE_CALIBRATION_H

#include "tare/data.h"
#include "tare/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Called after every batch with the number of samples done. total: of all; 0 where it is not
/// known. A failure ends the work and is the result of the working call.
typedef tare_status (*tare_progress)(void *user, int64_t done, int64_t total, tare_error *err);

typedef struct tare_calibrate_options {
    uint32_t struct_size;
    tare_progress progress; // NULL: nobody is told
    void *progress_user;
    int thread_count; // at work, the caller among them; 0: 1
    /// The file for an unfinished state, written after every checkpoint_samples samples (0: 512).
    /// The work continues from it if it has one of the same model and data; a finished one is taken
    /// as it is. The state at the end is tare_calibration_write's. NULL: none.
    const char *resume_path;
    int64_t checkpoint_samples;
    /// Accepts infinities in the data, as the masks of some models have them; convert may refuse
    /// what observers make of them. false: TARE_INVALID_ARGUMENT, with the sample and the element.
    /// A NaN is always an error.
    bool is_lenient;
} tare_calibrate_options;

/// Runs a prepared model over all data, its observers watch. sample_count may be NULL; else
/// *sample_count becomes how many samples there were. options may be NULL.
///
/// Where all observers merge exactly (tare_calibration_check_mergeable) and samples are independent
/// (every input and output has them as dimension 0, nothing else follows their number, and the
/// second one of the data gives by itself what it gives beside the first), each sample runs by
/// itself: the statistics are the same to the bit for any cut into batches and
/// shards and any number of threads. Otherwise batches run as they are cut, as with tare_calibrate;
/// then the number of threads, too, may show in the last bits of float layers.
///
/// TARE_INVALID_ARGUMENT if there were none. A shard may have none, when the data is short; its
/// state then merges as any other.
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

/// TARE_UNSUPPORTED, with the path of one, if the model has fake quantizers: during training the
/// layers change with what they see, so the model itself has to be kept, not a state file.
TARE_API tare_status tare_calibration_check(const tare_model *prepared, tare_error *err);
/// Writes the statistics of a prepared model to PATH: of sample_count samples, all that `data` has
/// (or the shard that it was opened for; NULL: undivided data). The bytes depend on the content
/// only. Fails as tare_calibration_check.
TARE_API tare_status tare_calibration_write(const tare_model *prepared, const tare_data *data,
                                            int64_t sample_count, const char *path,
                                            tare_error *err);
/// Replaces the statistics of the model by those of a state file. out may be NULL.
/// TARE_INVALID_ARGUMENT where the file belongs to another model, with the first node, module,
/// tensor or observer that differs, and for a state that is not finished. Fails as
/// tare_calibration_check.
TARE_API tare_status tare_calibration_read(tare_model *prepared, const char *path,
                                           tare_calibration_info *out, tare_error *err);
/// Joins state files of one model into one. For observers that merge (MinMaxObserver,
/// PerChannelMinMaxObserver, tare.MergeableHistogramObserver) the result is, to the bit, what one
/// pass over all data gives, for any order and grouping; with all shards in it, the file has the
/// bytes that undivided data gives. TARE_UNSUPPORTED where an observer's statistics depend on the
/// order of the batches (moving averages, HistogramObserver). TARE_INVALID_ARGUMENT for states of
/// different models, of data cut differently, for a shard that is in two of them, and for one that
/// is not finished. context: as of tare_model_read. out may be NULL, else it tells of the shards
/// that were merged.
TARE_API tare_status tare_calibration_merge(const tare_context *context, const char *const *paths,
                                            size_t count, const char *out_path,
                                            tare_calibration_info *out, tare_error *err);
/// TARE_UNSUPPORTED, with the observer's name, if states of this model cannot be merged. For
/// programs that want to fail before they calibrate. Fails as tare_calibration_check.
TARE_API tare_status tare_calibration_check_mergeable(const tare_model *prepared, tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
