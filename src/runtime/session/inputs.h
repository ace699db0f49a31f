// SPDX-License-Identifier: Apache-2.0
// Checks of a session's inputs against the model's description of them.
// Private to runtime/session.
#ifndef RUNTIME_SESSION_INPUTS_H
#define RUNTIME_SESSION_INPUTS_H

#include "io/data/data.h"
#include "tare/model.h"

typedef struct session_inputs {
    data_input *items; // in the model's order
    size_t count;
} session_inputs;

tare_status tare__session_inputs_describe(const tare_model *model, session_inputs *out,
                                          tare_error *err);
void tare__session_inputs_release(session_inputs *s);
/// Refuses an input with another dtype than the model states. Shapes are checked by the nodes; what
/// the model only knows from an example is not checked.
tare_status tare__session_inputs_check(const session_inputs *s, const tare_tensor *const *inputs,
                                       size_t count, tare_error *err);
/// Called at the end of a run with its status, which it returns. If a node failed and an input has
/// another number of dimensions than the model states, err names that input instead.
tare_status tare__session_inputs_blame(const session_inputs *s, const tare_tensor *const *inputs,
                                       size_t count, tare_status status, tare_error *err);

#endif
