// SPDX-License-Identifier: Apache-2.0
// Calls of float layers, read as their references read them, for executors that compute them their
// own way.
#ifndef OPS_LAYER_CALL_H
#define OPS_LAYER_CALL_H

#include "ops/call.h"
#include "ops/float_kernels.h"

/// A bound call of conv1d, conv2d or conv3d. Tensors are lent.
typedef struct conv_call {
    float_conv conv;
    const tare_tensor *x, *w, *bias; // bias: NULL if there is none
    bool is_plain;                   // x has a batch dimension, and zeros around it
} conv_call;
tare_status tare__conv_read(op_call *call, conv_call *out);

/// A bound call of linear: x [..][in], w [out][in], bias [out] or NULL.
typedef struct linear_call {
    const tare_tensor *x, *w, *bias;
} linear_call;
tare_status tare__linear_read(op_call *call, linear_call *out);

#endif
