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
/// Refuses another dtype than the model states. Shapes are left to the nodes, and so is what the
/// model knows from an example only.
tare_status tare__session_inputs_check(const session_inputs *s, const tare_tensor *const *inputs,
                                       size_t count, tare_error *err);
/// The end of a run, whose status it returns: where a node refused what it was given, and an input
/// has another number of dimensions than the model states, err names that input instead.
tare_status tare__session_inputs_blame(const session_inputs *s, const tare_tensor *const *inputs,
                                       size_t count, tare_status status, tare_error *err);

#endif
