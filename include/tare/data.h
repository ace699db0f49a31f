// SPDX-License-Identifier: Apache-2.0
/// Data: reads batches of a model's inputs, and labels, from files; writes arrays to files.
#ifndef TARE_DATA_H
#define TARE_DATA_H

#include <stdbool.h>

#include "tare/model.h"
#include "tare/preprocess.h"
#include "tare/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A source of batches. One thread at a time may use it.
typedef struct tare_data tare_data;

/// Zero means the default; struct_size as in tare/status.h.
typedef struct tare_data_options {
    uint32_t struct_size;
    /// Samples per batch; the last batch of a file may have fewer. A model that was exported for a
    /// fixed batch size gets batches of that size, whatever this says. 0: all samples of the file.
    int64_t batch_size;
    int64_t sample_limit; // the data ends after this many samples; 0: no limit
    /// The preprocessing of pictures. NULL: the one that the model declares.
    const tare_preprocess *preprocess;
    /// Reads only every shard_count-th batch, starting with the shard_index-th. Shards of the same
    /// data, batch size and limit are disjoint and together have all its batches. shard_count 0:
    /// all batches.
    int64_t shard_index, shard_count;
    /// For array files: each file is one batch of one sample. Its arrays are passed as they are, of
    /// any shape and with any values; dimension 0 is not the batch.
    bool as_is;
    /// Refuses infinities in arrays and rows, as NaNs always are, with the file, the sample and the
    /// element. For calibration data.
    bool is_finite;
    /// Limits for reading each file; a batch of random numbers counts as one file. NULL: the limits
    /// that the model was read with, or else the defaults.
    const tare_read_limits *limits;
    /// The number of samples to hold out from calibration, for a check on unseen samples; 0: none.
    /// They are the samples after sample_limit, or else the last ones, at most an eighth of all.
    /// There are fewer, or none, where the data is short, its end is not known (standard input), or
    /// the batch size is fixed; tare_data_held_out_count tells. TARE_INVALID_ARGUMENT together with
    /// shards.
    int64_t hold_out;
    /// Reads the held-out samples instead of the others, one per batch unless the model's batch
    /// size is fixed. TARE_INVALID_ARGUMENT if none is held out.
    bool is_held_out;
} tare_data_options;

/// One batch, lent until the next call on its tare_data.
typedef struct tare_batch {
    uint32_t struct_size;
    const tare_tensor *const *inputs; // [input_count], in the model's order; [size][..] each
    size_t input_count;
    const tare_tensor *labels; // [size]; NULL if the data has none
    int64_t size;              // samples
} tare_batch;

/// Opens a source of batches for the inputs of `model`. options may be NULL. The caller closes
/// *out. spec:
/// - FILE.npz, FILE.safetensors: arrays by input name; one called labels, label or y holds labels
/// - FILE.npy: the input of a model with one input
/// - "-": an .npz on standard input
/// - FOLDER: such files, in order of their names
/// - FILE.csv, FILE.csv.gz: rows `feature,..,label`, for a model of one input
/// - pictures, which the model's preprocessing turns into its input (tare/preprocess.h):
///   FILE.png, FILE.jpg, FILE.jpeg; a FOLDER of such files; a FOLDER of one folder per class, which
///   are numbered in the order of their names (torchvision's ImageFolder); FILE.txt with lines
///   `PATH [LABEL]`, FILE.csv with rows `path[,label]`, paths relative to that file
/// - NAME=DATA,NAME=DATA,..: the data of each input by its name; labels=FILE brings labels, an
///   array or a FILE.txt with a whole number a line
/// - random:N[:SEED[:SHAPE]]: N samples of standard-normal numbers; SHAPE is the shape of one
///   sample ("3x32x32", inputs separated by ','), needed where the model does not state it. Integer
///   inputs that an embedding reads are drawn below its number of rows, bools as 0 or 1; other
///   integer inputs are TARE_UNSUPPORTED
///
/// A model with one input also takes an array called x, input, input.0 or arr_0; a model with
/// several takes input.I and arr_I by position. Wrong names, NaNs, sizes that disagree and files
/// without samples are errors that name the file and the array. float64 and float16 arrays are
/// converted to float32 unless the model states that dtype.
TARE_API tare_status tare_data_open(const char *spec, const tare_model *model,
                                    const tare_data_options *options, tare_data **out,
                                    tare_error *err);
/// Closes a source and frees its batch. NULL is allowed.
TARE_API void tare_data_close(tare_data *data);
/// Reads the next batch. At the end *done is true and *out is unchanged. *out is lent until the
/// next call on `data`. Errors name the file, and the array or sample.
TARE_API tare_status tare_data_next(tare_data *data, tare_batch *out, bool *done, tare_error *err);
/// Skips up to `batch_count` batches of this shard without reading their contents (pictures are not
/// decoded). *sample_count becomes the number of skipped samples, also when the call fails. Files
/// that cannot be opened fail as in tare_data_next.
TARE_API tare_status tare_data_skip(tare_data *data, int64_t batch_count, int64_t *sample_count,
                                    tare_error *err);
/// The number of samples in all batches of this shard; 0 where it is not known without reading
/// everything.
TARE_API int64_t tare_data_sample_count(const tare_data *data);
/// The number of samples that are held out (see hold_out).
TARE_API int64_t tare_data_held_out_count(const tare_data *data);
/// From here on `data`, opened with hold_out, gives the samples that it held out, from the first one,
/// as data opened with is_held_out does; files that are open are not read again.
/// TARE_INVALID_ARGUMENT if none is held out.
TARE_API tare_status tare_data_turn_to_held_out(tare_data *data, tare_error *err);
/// Starts over with the first batch. The batches are the same again.
TARE_API tare_status tare_data_rewind(tare_data *data, tare_error *err);

/// Writes `count` tensors under their names. The extension of `path` selects the format: .npz,
/// .safetensors, or .npy for a single tensor. "-" writes .npz to standard output. The file is
/// written as by tare_file_write.
TARE_API tare_status tare_arrays_write(const char *path, const char *const *names,
                                       const tare_tensor *const *tensors, size_t count,
                                       tare_error *err);
/// Checks before a computation that tare_arrays_write knows the extension of `path`.
/// TARE_INVALID_ARGUMENT if not.
TARE_API tare_status tare_arrays_check_path(const char *path, tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
