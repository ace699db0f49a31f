// SPDX-License-Identifier: Apache-2.0
// Packing: the constant weight of a linear function or convolution becomes a module of role PACKED,
// which a get_attr node passes to an integer function (ops/quantized/packed.h).
// Private to flow.
#ifndef FLOW_PACK_H
#define FLOW_PACK_H

#include "flow/function_call.h"
#include "model/pass.h"

/// Binds a call of a function whose quantized form takes packed weights; false if it is none.
bool tare__weighted_bind(arena *memory, node *n, function_call *out);
/// The quantized form of the function; NULL: there is none.
const op_info *tare__weighted_form(const function_call *w, op_form form);

/// Packs this weight (qint8, or float16 for dynamic functions) and bias (NULL: none), with the
/// convolution's geometry. A quantized weight rounds by `rule`; unset: by the model's engine. *out:
/// the caller's reference; NULL if there is no such integer layer.
tare_status tare__pack_weights(pass *p, const function_call *w, tare_tensor *weight,
                               tare_tensor *bias, requant_rule rule, module **out);
/// Binds packed weights under a free name (torch's fold_weight: {the function's
/// scope}_packed_weight_{N}) and reads them before a node. Takes m over, also on failure.
tare_status tare__insert_packed(pass *p, module *m, const node *function, node *before, node **out);

#endif
