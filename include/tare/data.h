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
    /// What is done to pictures. NULL: what the model declares.
    const tare_preprocess *preprocess;
    /// Every shard_count-th batch only, from the shard_index-th on: of several shards of the same
    /// data, batch size and limit, each batch is in exactly one, and is the batch that it would be
    /// without shards. 0: all batches.
    int64_t shard_index, shard_count;
    /// Of array files: each file is one batch of one sample, and its arrays are the inputs as they
    /// stand, of any shapes and with any values; dimension 0 is no batch.
    bool as_is;
    /// Infinities in arrays and rows are errors as NaNs are, with the file, the sample and the
    /// element: for data that observers watch.
    bool is_finite;
    /// What reading each file may take; a batch of random numbers may have as many bytes. NULL: as
    /// the model was read, or else the defaults.
    const tare_read_limits *limits;
} tare_data_options;

/// One batch. Lent until the next call on its tare_data.
typedef struct tare_batch {
    uint32_t struct_size;
    const tare_tensor *const
        *inputs; // one per model input, in their order; dimension 0 is the batch
    size_t input_count;
    const tare_tensor *labels; // as many as samples; NULL if the data has none
    int64_t size;              // samples
} tare_batch;

/// spec, for the inputs of `model`:
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
///   separated by ','), needed where the model does not say it
///
/// A model of one input also takes an array called x, input, input.0 or arr_0; one of several takes
/// input.I and arr_I by position. Wrong names, NaNs, sizes that disagree and files without samples
/// are errors that name file and array. options may be NULL. float64 and float16 arrays become
/// float32 where the model does not ask for them.
TARE_API tare_status tare_data_open(const char *spec, const tare_model *model,
                                    const tare_data_options *options, tare_data **out,
                                    tare_error *err);
TARE_API void tare_data_close(tare_data *data); // NULL is fine
/// The next batch, or *done (*out is then as it was).
TARE_API tare_status tare_data_next(tare_data *data, tare_batch *out, bool *done, tare_error *err);
/// Goes past so many batches of this shard, as far as there are, without reading what they hold
/// (pictures are not decoded). *sample_count: the samples in them, also of those before an error.
/// Fails as reading does for files that cannot be opened.
TARE_API tare_status tare_data_skip(tare_data *data, int64_t batch_count, int64_t *sample_count,
                                    tare_error *err);
/// Samples there are in all, of this shard; 0 where that is not known without reading everything.
TARE_API int64_t tare_data_sample_count(const tare_data *data);
/// Begins again, with the same batches.
TARE_API tare_status tare_data_rewind(tare_data *data, tare_error *err);

/// Writes tensors under their names to PATH, by its ending: .npz, .safetensors, or .npy for a
/// single tensor. "-" is an .npz on standard output. A temporary file is renamed when all is
/// written.
TARE_API tare_status tare_arrays_write(const char *path, const char *const *names,
                                       const tare_tensor *const *tensors, size_t count,
                                       tare_error *err);
/// Refuses a path whose ending tare_arrays_write does not know, so that it is said before the work.
TARE_API tare_status tare_arrays_check_path(const char *path, tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
