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
/// One array per output, with the names of the session's outputs.
typedef struct joined_outputs {
    tare_tensor *tensors[GATHER_CAPACITY];
    const char *names[GATHER_CAPACITY]; // lent by the session
    size_t count;
} joined_outputs;

/// Dequantizes quantized tensors among `tensors`, in place.
tare_status gather_plain(tare_tensor **tensors, size_t count, tare_error *err);
/// Retains each tensor.
tare_status gather_add(gathered *g, tare_tensor *const *tensors, size_t count, tare_error *err);
/// Concatenates the batches along dimension 0. *out must be released also after a failure.
tare_status gather_join(const gathered *g, const tare_session *session, joined_outputs *out,
                        tare_error *err);
/// The same for models without a session: a single output is named "output", several "output.0", ..
/// in `names` [GATHER_CAPACITY], each with GATHER_NAME bytes.
enum { GATHER_NAME = 24 };
tare_status gather_join_all(const gathered *g, char (*names)[GATHER_NAME], joined_outputs *out,
                            tare_error *err);
void joined_outputs_release(joined_outputs *joined);
void gather_release(gathered *g);

#endif
