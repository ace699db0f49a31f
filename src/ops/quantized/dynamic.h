// SPDX-License-Identifier: Apache-2.0
// Products of a constant weight with a float input that is quantized at run time: the arithmetic of
// dynamic linear layers, and of every gate of dynamic recurrent layers.
#ifndef OPS_QUANTIZED_DYNAMIC_H
#define OPS_QUANTIZED_DYNAMIC_H

#include "ops/call.h"

/// The weight of a module of role DYNAMIC or PACKED. With a float16 weight the input is not
/// quantized.
typedef struct dynamic_weights {
    const tare_tensor *weight; // [O][I], qint8 or float16
    const tare_tensor *bias;   // float32 [O]; NULL: none
    requant_rule rule;         // of the config value `rule`; unset for float16
    bool reduce_range;         // the input gets 7 bits; torch's modules always ask for it
    bool is_decomposed;        // the input's parameters are those of choose_qparams; then:
    int32_t quant_min, quant_max, symmetric_zero_point;
    float eps;
    bool is_symmetric;
} dynamic_weights;

/// Reads and checks the tensors of these names; everything in the module may come from a file.
tare_status tare__dynamic_weights_read(const module *m, const char *weight, const char *bias,
                                       dynamic_weights *out, tare_error *err);

/// The weights of a recurrent module's gates: those for the input or the hidden state, by suffix.
tare_status tare__dynamic_gate_read(const module *m, const char *suffix, bool of_hidden,
                                    dynamic_weights *out, tare_error *err);
/// The weights of a call of a dynamic linear layer (module or function), and whether a ReLU
/// follows.
tare_status tare__dynamic_linear_read(op_call *call, dynamic_weights *out, bool *relu);
/// The parameters that data of this range gets, and the bounds of its quantized values.
dynamic_qparams tare__dynamic_choose(const dynamic_weights *w, float min, float max);
void tare__dynamic_bounds(const dynamic_weights *w, int32_t *least, int32_t *most);

/// The weights, converted for the multiplication; usable for any number of products. Borrows the
/// tensors.
typedef struct dynamic_operand {
    dynamic_weights w;
    int16_t *quantized; // of a qint8 weight, minus the zero point
    tare_tensor *real;  // a float16 weight as float32
} dynamic_operand;
tare_status tare__dynamic_operand_create(const dynamic_weights *w, dynamic_operand *out,
                                         tare_error *err);
void tare__dynamic_operand_release(dynamic_operand *o); // zeroed ones are fine
/// y [rows][O] = x [rows][I] * W^T + bias. The range of all of x gives its scale and zero point.
/// Source: torch.ops.quantized.linear_dynamic and linear_dynamic_fp16 (PyTorch 2.15).
tare_status tare__dynamic_multiply(const op_call *call, const dynamic_operand *o, const float *x,
                                   int64_t rows, float *y);

#endif
