// SPDX-License-Identifier: Apache-2.0
// Outputs of batches, concatenated into one array per output.
#ifndef CLI_GATHER_H
#define CLI_GATHER_H

#include "tare/tare.h"

enum { GATHER_CAPACITY = 64 }; // outputs of a model

/// One output of all batches, in order.
typedef struct gathered_output {
    tare_tensor **batches;
    size_t count, capacity;
} gathered_output;

typedef struct gathered {
    gathered_output outputs[GATHER_CAPACITY];
    size_t count;
} gathered;
/// One array per output, by the names of the session's outputs.
typedef struct joined_outputs {
    tare_tensor *tensors[GATHER_CAPACITY];
    const char *names[GATHER_CAPACITY]; // lent by the session
    size_t count;
} joined_outputs;

/// Quantized tensors among `tensors` become float32, in place.
tare_status gather_plain(tare_tensor **tensors, size_t count, tare_error *err);
/// Keeps a reference to each.
tare_status gather_add(gathered *g, tare_tensor *const *tensors, size_t count, tare_error *err);
/// Concatenates the batches along dimension 0. *out is to be released after failures, too.
tare_status gather_join(const gathered *g, const tare_session *session, joined_outputs *out,
                        tare_error *err);
/// The same for models without a session: one output is called "output", several "output.0", .. as
/// `names` [GATHER_CAPACITY] receives them, of which each has GATHER_NAME bytes.
enum { GATHER_NAME = 24 };
tare_status gather_join_all(const gathered *g, char (*names)[GATHER_NAME], joined_outputs *out,
                            tare_error *err);
void joined_outputs_release(joined_outputs *joined);
void gather_release(gathered *g);

#endif
