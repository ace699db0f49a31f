// SPDX-License-Identifier: Apache-2.0
/// Calibration over a data set, as a step between prepare and convert. It can be divided among
/// machines, and its state can be kept in a file.
///
/// A state file holds the statistics of the observers of one prepared model and says which shards
/// of the data they cover. It can be read only with that model: graph, weights and observers are
/// compared.
#ifndef TARE_CALIBRATION_H
#define TARE_CALIBRATION_H

#include "tare/data.h"
#include "tare/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Called after every batch with the number of samples done and their total (0: not known). A
/// failure ends the work; the call that reports progress returns it.
typedef tare_status (*tare_progress)(void *user, int64_t done, int64_t total, tare_error *err);

/// Zero means the default; struct_size as in tare/status.h.
typedef struct tare_calibrate_options {
    uint32_t struct_size;
    tare_progress progress; // NULL: none is called
    void *progress_user;
    int thread_count; // including the caller; 0: 1
    /// A file for checkpoints, written after every checkpoint_samples samples (0: 512). If it
    /// exists and belongs to the same model and data, the work continues from it; a finished state
    /// is taken as it is. At the end it holds what tare_calibration_write writes. NULL: none.
    const char *resume_path;
    int64_t checkpoint_samples;
    /// Accepts infinities in the data, which the masks of some models have; convert may refuse the
    /// resulting parameters. false: an infinity is TARE_INVALID_ARGUMENT, with the sample and the
    /// element. A NaN always is.
    bool is_lenient;
    /// Observers of activations without data count a histogram beside their own statistics, so that
    /// tare_improve tries other ranges without calibrating again. Files do not have it.
    bool keeps_histograms;
} tare_calibrate_options;

#define TARE_CALIBRATION_DATA_RULE "calibration data" // of decisions about the data itself

/// Runs a prepared model over all data; its observers collect statistics. sample_count may be NULL;
/// otherwise *sample_count becomes the number of samples. options may be NULL.
///
/// Each sample runs by itself if all observers merge exactly (tare_calibration_check_mergeable) and
/// samples are independent. The statistics then are the same to the bit for any batch size, any
/// shards and any number of threads. Samples are independent if dimension 0 of every input and
/// output counts samples, no other size depends on their number, and a run of the second sample
/// alone gives what a run of the first two gives for it. Otherwise batches run as the data cuts
/// them, as with tare_calibrate, and the number of threads may change the last bits of float
/// layers.
///
/// TARE_INVALID_ARGUMENT if the data has no samples. A shard may have none, when the data is short;
/// its state merges like any other. What the observers have seen before counts for the first shard;
/// the others begin with nothing.
///
/// If all data that the observers have seen is one sample again and again, or an input has one
/// value in all of it, the model's record says so, by the rule TARE_CALIBRATION_DATA_RULE.
TARE_API tare_status tare_calibrate_data(tare_model *prepared, tare_data *data,
                                         const tare_calibrate_options *options,
                                         int64_t *sample_count, tare_error *err);

/// Makes the observers of a prepared model forget what they have seen; fake quantizers keep it. For
/// what is calibrated in shards without tare_calibrate_data: all but the first.
TARE_API tare_status tare_calibration_clear(tare_model *prepared, tare_error *err);

/// The data that a state covers.
typedef struct tare_calibration_info {
    uint32_t struct_size;
    int64_t sample_count;
    int64_t shard_count;      // 1: the data was not divided
    int64_t done_shard_count; // equal to shard_count when all data was seen
} tare_calibration_info;

/// Checks that statistics of the model can be kept in a state file. TARE_UNSUPPORTED, with the path
/// of one, if it has fake quantizers: training changes the layers, too, so the model itself must be
/// kept instead.
TARE_API tare_status tare_calibration_check(const tare_model *prepared, tare_error *err);
/// Writes the statistics of a prepared model to `path`. sample_count: the samples that it was
/// calibrated with. data: the source of these samples, whose shard the file records; NULL: data
/// without shards. Equal statistics give equal bytes. Fails as tare_calibration_check.
TARE_API tare_status tare_calibration_write(const tare_model *prepared, const tare_data *data,
                                            int64_t sample_count, const char *path,
                                            tare_error *err);
/// Replaces the statistics of the model by those of a state file. out may be NULL.
/// TARE_INVALID_ARGUMENT if the file belongs to another model, with the first node, module, tensor
/// or observer that differs, and for a checkpoint that is not finished. Fails as
/// tare_calibration_check.
TARE_API tare_status tare_calibration_read(tare_model *prepared, const char *path,
                                           tare_calibration_info *out, tare_error *err);
/// Merges state files of one model into one file. For observers that merge (MinMaxObserver,
/// PerChannelMinMaxObserver, tare.MergeableHistogramObserver) the result equals one pass over all
/// data to the bit, for any order and grouping of the files; once all shards are merged, the file
/// has the bytes that data without shards gives. context: as for tare_model_read. out may be NULL;
/// otherwise it describes the merged state. TARE_UNSUPPORTED if the statistics of an observer
/// depend on the order of the batches (moving averages, HistogramObserver). TARE_INVALID_ARGUMENT
/// for states of different models or of data cut differently, for a shard that is in two of them,
/// and for checkpoints that are not finished.
TARE_API tare_status tare_calibration_merge(const tare_context *context, const char *const *paths,
                                            size_t count, const char *out_path,
                                            tare_calibration_info *out, tare_error *err);
/// Checks before calibration that states of this model can be merged. TARE_UNSUPPORTED, with the
/// observer's name, if not. Fails as tare_calibration_check.
TARE_API tare_status tare_calibration_check_mergeable(const tare_model *prepared, tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
