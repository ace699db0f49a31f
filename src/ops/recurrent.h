// SPDX-License-Identifier: Apache-2.0
// Recurrent modules. What the layers and time steps do stands here once; where the gates' products
// come from (float weights, dynamically quantized ones) is the caller's.
#ifndef OPS_RECURRENT_H
#define OPS_RECURRENT_H

#include "ops/call.h"

/// y [rows][gates * hidden] = x [rows][inner] * W^T + b, of the weights and bias named weight_ih
/// SUFFIX or, for the hidden state, weight_hh SUFFIX. Suffixes are "" for cells, else "_l0",
/// "_l0_reverse", ..
typedef struct gate_source {
    void *user;
    tare_status (*product)(void *user, const char *suffix, bool of_hidden, const float *x,
                           int64_t rows, int64_t inner, float *y, tare_error *err);
} gate_source;

/// Shape rule of every recurrent module: call->module is one of class op "lstm", "gru",
/// "lstm_cell", "gru_cell", "rnn_cell", call->param[0] the input, call->param[1] the state (may be
/// absent).
tare_status tare__recurrent_shape(op_call *call);
/// Fills the result. Sequences: (output, state); LSTM states are pairs (h, c).
tare_status tare__recurrent_run(op_call *call, const gate_source *gates);

#endif
