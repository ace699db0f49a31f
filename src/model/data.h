// SPDX-License-Identifier: Apache-2.0
// How data is divided, inside the library.
#ifndef MODEL_DATA_H
#define MODEL_DATA_H

#include "tare/data.h"

typedef struct data_cut {
    int64_t batch_size, sample_limit; // 0: as many as a file has; no limit
    int64_t shard_index, shard_count; // 0 of 1: undivided
    int64_t fixed_batch;              // the only size of a batch that the model takes; 0: any
    const char *spec;                 // as it was opened; lent
    bool as_is;                       // a batch is one sample, whatever its arrays' shapes
} data_cut;
data_cut tare__data_cut(const tare_data *data);

#endif
