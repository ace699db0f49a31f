// SPDX-License-Identifier: Apache-2.0
// Recurrent modules: layers and time steps. The caller provides the gates' products (float weights,
// or dynamically quantized ones).
#ifndef OPS_CLASSES_RECURRENT_H
#define OPS_CLASSES_RECURRENT_H

#include "core/math/elements.h"
#include "ops/call.h"

/// y [rows][width] = x [rows][inner] * W^T + b, of the weights and bias named weight_ih SUFFIX and
/// bias_ih SUFFIX or, for the hidden state, with hh. Suffixes are "" for cells, else "_l0",
/// "_l0_reverse", .. A width holds all gates.
typedef struct gate_request {
    const char *suffix;
    bool of_hidden;
    const float *x;
    int64_t rows, inner, width;
    float *y;
} gate_request;

typedef struct gate_source {
    void *user;
    tare_status (*product)(void *user, const gate_request *request);
    const element_loop *functions; // by element_kind; NULL: in plain C
} gate_source;

/// Shape rule of every recurrent module: call->module is one of class op "lstm", "gru",
/// "rnn", "lstm_cell", "gru_cell", "rnn_cell", call->param[0] the input, call->param[1] the state
/// (may be absent).
tare_status tare__recurrent_shape(op_call *call);
/// Fills the result. Sequences: (output, state); LSTM states are pairs (h, c).
tare_status tare__recurrent_run(op_call *call, const gate_source *gates);
/// True for a recurrent function, or a module with float weights.
bool tare__recurrent_is_float(const op_call *call);
/// The reference of such a call, with these functions (NULL: plain C).
tare_status tare__recurrent_compute(op_call *call, const element_loop *functions);
/// Visits the suffix of every layer and direction in the module's config; stops at the first
/// failure.
tare_status tare__recurrent_each_suffix(const module *m,
                                        tare_status (*visit)(void *user, const char *suffix,
                                                             tare_error *err),
                                        void *user, tare_error *err);

#endif
