// SPDX-License-Identifier: Apache-2.0
// Outputs of batches, put together into one array per output.
#ifndef CLI_GATHER_H
#define CLI_GATHER_H

#include "tare/tare.h"

enum { GATHER_CAPACITY = 64 }; // outputs of a model

/// The parts of one output, in order.
typedef struct gathered_output {
    tare_tensor **parts;
    size_t count, capacity;
} gathered_output;

typedef struct gathered {
    gathered_output outputs[GATHER_CAPACITY];
    size_t count;
} gathered;

/// Quantized tensors among `tensors` become float32, in place.
tare_status gather_plain(tare_tensor **tensors, size_t count, tare_error *err);
/// Keeps a reference to each.
tare_status gather_add(gathered *g, tare_tensor **tensors, size_t count, tare_error *err);
/// Joins the parts along dimension 0 and writes them as `output`, or `output.0`, ..
tare_status gather_write(gathered *g, const char *path, tare_error *err);
void gather_release(gathered *g);

#endif
