// SPDX-License-Identifier: Apache-2.0
// Data sources, as specified by DATA on the command line: batches of model inputs, with labels if
// there are any.
//
// - FILE.npz, FILE.safetensors: arrays by input name; one called labels, label or y holds labels
// - FILE.npy: the one input of a model that has one
// - FOLDER: such files, in order of their names, one after the other
// - FILE.csv, FILE.csv.gz: rows `feature,..,label` for a model of one input; a first line of words
//   is skipped
// - images, which the model's preprocessing converts to tensors: FILE.png, FILE.jpg; a FOLDER of
//   them; a FOLDER of folders, one per class, numbered in the order of their names; FILE.txt with
//   lines `PATH [LABEL]` and FILE.csv with rows `path[,label]`, relative to that file
// - NAME=DATA,NAME=DATA,..: the data of each input by its name; labels=FILE: the labels
// - random:N[:SEED[:SHAPE]]: N standard-normal samples; SHAPE (of one sample, "3x32x32", inputs
//   separated by ',') if the model does not state its inputs' shapes. Integers and bools are
//   uniform; integers lie below the bound that the model states
//
// A model of one input also takes an array called x, input, input.0 or arr_0; one of several takes
// input.I and arr_I by position. Any other name is an error, and so are NaNs and mismatched sizes.
// float64 and float16 arrays are converted to float32 unless the model requires these dtypes.
// Dimension 0 is the batch.
#ifndef IO_DATA_DATA_H
#define IO_DATA_DATA_H

#include "core/error.h"
#include "core/tensor/tensor.h"
#include "io/images/preprocess.h"

/// A model's requirements on an input.
typedef struct data_input {
    const char *name;
    const char *argument;         // its name in the graph, which data may use, too; NULL: none
    int ndim;                     // -1: unknown
    int64_t shape[TARE_MAX_DIMS]; // -1: unknown; shape[0] is the batch and is ignored
    int64_t usual[TARE_MAX_DIMS]; // random data's size where `shape` has none; 0: none
    tare_dtype dtype;             // unset: unknown
    bool is_example; // the shape is an example: random data and CSV rows use it, files may differ
    bool is_finite;  // infinities are refused like NaNs
    int64_t bound;   // integers are from 0 to below this; 0: unknown
} data_input;

/// True if the input has this name (either of its two).
bool tare__data_input_is(const data_input *input, const char *name);

struct node; // ir/graph.h
/// The model's description of an input. Data must agree with `val` in the placeholder's meta;
/// `example` is only what the exporter or calibration used.
tare_status tare__describe_input(const struct node *placeholder, data_input *out, tare_error *err);
/// Sets the usual sizes of open dimensions but the first: the size of the exporter's example;
/// without one that of a dimension with the same name, else 224 for height and width and 32 for
/// others. inputs: `count` described ones, in the order of the placeholders from `first` on.
tare_status tare__choose_open_sizes(const struct node *first, data_input *inputs, size_t count,
                                    tare_error *err);

typedef struct data_batch {
    tare_tensor **inputs; // in the order of the model's inputs; references owned
    size_t input_count;
    tare_tensor *labels; // same first dimension as the inputs; NULL: none
    int64_t size;        // samples
} data_batch;
void tare__data_batch_release(data_batch *batch); // fine twice

typedef struct data_source data_source;

/// Opens `spec`. `inputs` are copied. batch_size: samples per batch (the last one of a file may
/// have fewer); 0: all samples of a file, 256 rows of CSV, or 32 images. pictures: the
/// preprocessing of images, copied; NULL: images are refused.
tare_status tare__data_open(const char *spec, const data_input *inputs, size_t input_count,
                            int64_t batch_size, const preprocess *pictures, data_source **out,
                            tare_error *err);
/// The arrays of a file become the inputs unchanged and unchecked, as a single sample. To be called
/// before the first batch; only for files of arrays.
tare_status tare__data_take_as_is(data_source *source, tare_error *err);
/// Limits the bytes that a compressed file may inflate to (0: see tare__file_budget) and those of a
/// batch of random numbers (0: see tare__run_budget). To be called before the first batch.
void tare__data_limit(data_source *source, uint64_t memory_limit);
/// The next batch, or *done. Errors name file and array. The caller releases *out.
tare_status tare__data_next(data_source *source, data_batch *out, bool *done, tare_error *err);
/// Skips a batch; *samples: its number of samples, 0 at the end.
tare_status tare__data_skip(data_source *source, int64_t *samples, tare_error *err);
/// Batches have so many samples from the next rewind on.
void tare__data_set_batch_size(data_source *source, int64_t batch_size);
/// The number of samples; 0 if it is unknown without reading all data.
int64_t tare__data_sample_count(const data_source *source);
/// Starts again; the batches are the same.
tare_status tare__data_rewind(data_source *source, tare_error *err);
void tare__data_close(data_source *source); // NULL is fine

#endif
