// SPDX-License-Identifier: Apache-2.0
// Internal interface of data: how it is split into batches and shards.
#ifndef MODEL_DATA_H
#define MODEL_DATA_H

#include "tare/data.h"

typedef struct data_cut {
    int64_t batch_size, sample_limit; // 0: all samples of a file; no limit
    int64_t shard_index, shard_count; // 0 of 1: not sharded
    int64_t fixed_batch;              // the batch size that the model requires; 0: any
    const char *spec;                 // as given to open; lent
    bool as_is;                       // each batch is one sample, regardless of its arrays' shapes
} data_cut;
data_cut tare__data_cut(const tare_data *data);

#endif
