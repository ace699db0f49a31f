// SPDX-License-Identifier: Apache-2.0
/// Data: batches of a model's inputs, and labels where there are any, from files; and arrays into
/// files.
#ifndef TARE_DATA_H
#define TARE_DATA_H

#include <stdbool.h>

#include "tare/model.h"
#include "tare/preprocess.h"
#include "tare/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A source of batches; one caller at a time.
typedef struct tare_data tare_data;

/// Zero means the default; struct_size as in tare/status.h.
typedef struct tare_data_options {
    uint32_t struct_size;
    int64_t batch_size; // samples of a batch; the last of a file may have fewer, and no batch has
                        // more than a model takes that was exported for one size. 0: as many as the
                        // file has
    int64_t sample_limit; // stop after so many samples. 0: no limit
    /// The preprocessing of pictures. NULL: the one that the model declares.
    const tare_preprocess *preprocess;
    /// Reads every shard_count-th batch only, starting with the shard_index-th. Shards of the same
    /// data, batch size and limit are disjoint, and together have the batches of the undivided
    /// data. 0: all batches.
    int64_t shard_index, shard_count;
    /// For array files: each file is one batch of one sample, and its arrays are the inputs as they
    /// are, of any shape and with any values; dimension 0 is not a batch.
    bool as_is;
    /// Infinities in arrays and rows are errors, as NaNs are, with the file, the sample and the
    /// element. For data that observers watch.
    bool is_finite;
    /// Limits for reading each file; a batch of random numbers counts as a file. NULL: those that
    /// the model was read with, or else the defaults.
    const tare_read_limits *limits;
    /// Samples to hold back from calibration, so that a check sees what calibration did not: those
    /// behind sample_limit, else the last ones, an eighth of all at most. Fewer, or none, where the
    /// data is short, has no known end (standard input), or comes in whole batches. 0: none. Not
    /// together with shards. See tare_data_held_out_count.
    int64_t hold_out;
    /// Reads the held-out samples instead of the others, one by one where the model takes that.
    bool is_held_out;
} tare_data_options;

/// One batch, lent until the next call on its tare_data.
typedef struct tare_batch {
    uint32_t struct_size;
    const tare_tensor *const
        *inputs; // one per model input, in their order; dimension 0 is the batch
    size_t input_count;
    const tare_tensor *labels; // as many as samples; NULL if the data has none
    int64_t size;              // samples
} tare_batch;

/// Opens a source of batches for the inputs of `model`. options may be NULL. The caller closes
/// *out. spec:
/// - FILE.npz, FILE.safetensors: arrays by input name; one called labels, label or y holds labels
/// - FILE.npy: the one input of a model that has one
/// - "-": an .npz on standard input
/// - FOLDER: such files, in order of their names
/// - FILE.csv, FILE.csv.gz: rows `feature,..,label`, for a model of one input
/// - pictures, which the model's preprocessing turns into its input (tare/preprocess.h):
///   FILE.png, FILE.jpg, FILE.jpeg; a FOLDER of such files; a FOLDER of one folder per class, which
///   are numbered in the order of their names (torchvision's ImageFolder); FILE.txt with lines
///   `PATH [LABEL]`, FILE.csv with rows `path[,label]`, paths relative to that file
/// - NAME=DATA,NAME=DATA,..: the data of each input by its name; labels=FILE brings labels, an
///   array or a FILE.txt with a whole number a line
/// - random:N[:SEED[:SHAPE]]: N standard-normal samples; SHAPE is one sample's ("3x32x32", inputs
///   separated by ','), needed where the model does not say it. Integers lie below the rows of the
///   embedding that reads them, bools are drawn; other integers are TARE_UNSUPPORTED
///
/// A model of one input also takes an array called x, input, input.0 or arr_0; one of several takes
/// input.I and arr_I by position. Wrong names, NaNs, sizes that disagree and files without samples
/// are errors that name the file and the array. float64 and float16 arrays become float32 where the
/// model does not ask for them.
TARE_API tare_status tare_data_open(const char *spec, const tare_model *model,
                                    const tare_data_options *options, tare_data **out,
                                    tare_error *err);
/// Closes a source and frees its batch. NULL is allowed.
TARE_API void tare_data_close(tare_data *data);
/// Reads the next batch. At the end *done is true and *out is unchanged. *out is lent until the
/// next call on `data`. Errors name the file, and the array or sample.
TARE_API tare_status tare_data_next(tare_data *data, tare_batch *out, bool *done, tare_error *err);
/// Skips up to `batch_count` batches of this shard without reading what they hold (pictures are not
/// decoded). *sample_count: the samples in them, also of those before an error. Files that cannot
/// be opened fail as in tare_data_next.
TARE_API tare_status tare_data_skip(tare_data *data, int64_t batch_count, int64_t *sample_count,
                                    tare_error *err);
/// The number of samples in all batches of this shard; 0 where it is not known without reading
/// everything.
TARE_API int64_t tare_data_sample_count(const tare_data *data);
/// How many samples options' hold_out holds back: those that is_held_out reads.
TARE_API int64_t tare_data_held_out_count(const tare_data *data);
/// Starts over with the first batch. The batches are the same again.
TARE_API tare_status tare_data_rewind(tare_data *data, tare_error *err);

/// Writes tensors under their names. The ending of `path` gives the format: .npz, .safetensors, or
/// .npy for a single tensor. "-" is an .npz on standard output. A file is written under a temporary
/// name and renamed at the end.
TARE_API tare_status tare_arrays_write(const char *path, const char *const *names,
                                       const tare_tensor *const *tensors, size_t count,
                                       tare_error *err);
/// TARE_INVALID_ARGUMENT for a path whose ending tare_arrays_write does not know. For programs that
/// want to fail before they compute.
TARE_API tare_status tare_arrays_check_path(const char *path, tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
