// SPDX-License-Identifier: Apache-2.0
// Rewrites of dequantize - operator - quantize that both modes use. The mode chooses the operators:
// FX mode by torch's tables, export mode by the rows of operators.
// Private to flow.
#ifndef FLOW_LOWER_REWRITE_H
#define FLOW_LOWER_REWRITE_H

#include "flow/function_call.h"
#include "model/pass.h"

/// True for per-tensor quantize, and dequantize, of quantized tensors.
bool tare__is_quantize_node(const node *n);
bool tare__is_dequantize_node(const node *n);

/// Inserts a dequantize of `quantized` before a node (NULL: at the end).
tare_status tare__insert_dequantize(pass *p, node *quantized, node *before, node **out);
/// Replaces each input of n that is a dequantize and that `takes` accepts (NULL: all) by its
/// quantized input.
tare_status tare__bypass_dequantize(pass *p, node *n,
                                    bool (*takes)(const void *user, const node *dequantize),
                                    const void *user);
/// The quantized function of an operator; NULL: there is none. *has_relu: a requested ReLU is
/// included.
const op_info *tare__quantized_form(const op_info *op, bool wants_relu, bool *has_relu);
/// Can the call's arguments be given to another row of the operator? It has no parameter for some
/// of torch's, which must not matter for the values then.
bool tare__form_takes(const function_call *call, const op_info *form);
/// The call's argument for the form's i-th parameter; NULL: it gives none.
const value *tare__form_argument(const function_call *call, const op_info *form, size_t i);
/// Do the i-th parameters of both rows share a name?
bool tare__form_keeps_place(const op_info *op, const op_info *form, size_t i);
/// Changes n to a call of the row's function with these arguments. Its name stays.
tare_status tare__retarget(pass *p, node *n, const op_info *form, const value *args, size_t count);
/// Lets n return the quantized values of `quantize`, which is erased.
tare_status tare__replace_quantize(pass *p, node *quantize, node *n);
/// Erases `bound`, the only user of n, which only clamps its value; n must clamp it itself.
tare_status tare__absorb_bound(pass *p, node *bound, node *n);
/// The same for a ReLU that is included in n's function; the record says so.
tare_status tare__absorb_relu(pass *p, node *relu, node *n);

/// A node that becomes a call with packed weights, by tare__retarget.
typedef struct packed_call {
    node *n;      // the layer, or a sum that is fused with it
    node *before; // the weights are read before this node
    const op_info *form;
    value args[7];
    size_t arg_count;
    size_t weights; // index of the argument for the weights
} packed_call;
/// Replaces the call by a function with packed weights. Takes `packed` over, also on failure.
tare_status tare__call_packed(pass *p, const function_call *layer, module *packed,
                              packed_call *call);

#endif
