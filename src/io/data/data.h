// SPDX-License-Identifier: Apache-2.0
// DATA, as the command line takes it: batches of model inputs, and labels where there are any.
//
// - FILE.npz, FILE.safetensors: arrays by input name; one called labels, label or y holds labels
// - FILE.npy: the one input of a model that has one
// - FOLDER: such files, in order of their names, one after the other
// - FILE.csv, FILE.csv.gz: rows `feature,..,label` for a model of one input; a first line of words
//   is skipped
// - pictures, which the model's preprocessing makes tensors of: FILE.png, FILE.jpg; a FOLDER of
//   them; a FOLDER of folders, one per class, numbered in the order of their names; FILE.txt with
//   lines `PATH [LABEL]` and FILE.csv with rows `path[,label]`, relative to that file
// - NAME=DATA,NAME=DATA,..: the data of each input by its name; labels=FILE brings labels
// - random:N[:SEED[:SHAPE]]: N standard-normal samples; SHAPE (one sample's, "3x32x32", inputs
//   separated by ',') where the model does not say its inputs' shapes. Integers lie below the bound
//   that the model tells, bools are drawn
//
// A model of one input also takes an array called x, input, input.0 or arr_0; one of several takes
// input.I and arr_I by position. Any other name is an error, and so are NaNs and sizes that
// disagree. float64 and float16 arrays become float32 unless the model asks for them. Dimension 0
// is the batch.
#ifndef IO_DATA_DATA_H
#define IO_DATA_DATA_H

#include "core/error.h"
#include "core/tensor/tensor.h"
#include "io/images/preprocess.h"

/// A model's requirements on an input.
typedef struct data_input {
    const char *name;
    const char *argument; // another name that data may have: the graph's; NULL: there is none
    int ndim;             // -1: unknown
    int64_t shape[TARE_MAX_DIMS]; // -1: unknown; shape[0] is the batch and not looked at
    tare_dtype dtype;             // unset: unknown
    bool is_example; // the shape was seen once: random data and rows take it, files need not
    bool is_finite;  // infinities are refused as NaNs are
    int64_t bound;   // integers are from 0 to below this; 0: unknown
} data_input;

/// True if the input has this name (either of its two).
bool tare__data_input_is(const data_input *input, const char *name);

struct node; // ir/graph.h
/// The model's description of an input: `val` of its meta is required, `example` was seen by the
/// exporter or by calibration.
tare_status tare__describe_input(const struct node *placeholder, data_input *out, tare_error *err);

typedef struct data_batch {
    tare_tensor **inputs; // in the order of the model's inputs; references owned
    size_t input_count;
    tare_tensor *labels; // first dimension as the inputs'; NULL if there are none
    int64_t size;        // samples
} data_batch;
void tare__data_batch_release(data_batch *batch); // fine twice

typedef struct data_source data_source;

/// Opens `spec`. `inputs` are copied. batch_size: samples per batch, the last one of a file may
/// have fewer; 0: all of a file (for rows of text 256, for images 32). pictures: their
/// preprocessing, copied; NULL: images are refused.
tare_status tare__data_open(const char *spec, const data_input *inputs, size_t input_count,
                            int64_t batch_size, const preprocess *pictures, data_source **out,
                            tare_error *err);
/// From now on the arrays of a file are the inputs as they stand, and one sample. Before the first
/// batch; of array files only.
tare_status tare__data_take_as_is(data_source *source, tare_error *err);
/// From now on no file may inflate to more bytes (0: as of tare__file_budget), and no batch of
/// random numbers have more (0: as of tare__run_budget). Before the first batch.
void tare__data_limit(data_source *source, uint64_t memory_limit);
/// The next batch, or *done. Errors name file and array. The caller releases *out.
tare_status tare__data_next(data_source *source, data_batch *out, bool *done, tare_error *err);
/// Goes on by a batch without handing it out; *samples are its, 0 at the end.
tare_status tare__data_skip(data_source *source, int64_t *samples, tare_error *err);
/// From the next rewind on batches have so many samples.
void tare__data_set_batch_size(data_source *source, int64_t batch_size);
/// All samples there are; 0 where that is not known without reading everything.
int64_t tare__data_sample_count(const data_source *source);
/// Begins again, with the same batches.
tare_status tare__data_rewind(data_source *source, tare_error *err);
void tare__data_close(data_source *source); // NULL is fine

#endif
