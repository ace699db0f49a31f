// SPDX-License-Identifier: Apache-2.0
// What lowering does in both modes to dequantize - operator - quantize. Which operators it does
// that to is each mode's own: torch has tables of them, exported programs go by the rows of
// operators. Private to flow.
#ifndef FLOW_LOWER_REWRITE_H
#define FLOW_LOWER_REWRITE_H

#include "flow/function_call.h"
#include "model/pass.h"

/// Quantize with parameters for the whole tensor, and dequantize, of quantized tensors.
bool tare__is_quantize_node(const node *n);
bool tare__is_dequantize_node(const node *n);

/// Dequantizes the result of `quantized`, before a node (NULL: at the end).
tare_status tare__insert_dequantize(pass *p, node *quantized, node *before, node **out);
/// Replaces each input of n that is a dequantize, and that `takes` accepts (NULL: every one), by
/// what it dequantizes.
tare_status tare__bypass_dequantize(pass *p, node *n,
                                    bool (*takes)(const void *user, const node *dequantize),
                                    const void *user);
/// The quantized function of an operator; NULL: there is none. *has_relu: it has a ReLU at its end,
/// which is wanted.
const op_info *tare__quantized_form(const op_info *op, bool wants_relu, bool *has_relu);
/// n computes the row's function with these arguments now. Its name stays.
tare_status tare__retarget(pass *p, node *n, const op_info *form, const value *args, size_t count);
/// n gives the quantized values of `quantize`, which goes.
tare_status tare__replace_quantize(pass *p, node *quantize, node *n);
/// Erases `bound`, the only reader of n, which only bounds its value: n does that now.
tare_status tare__absorb_bound(pass *p, node *bound, node *n);
/// The same of a bound that the function of n computes; the record says so.
tare_status tare__absorb_relu(pass *p, node *relu, node *n);

/// A node that becomes a function of packed weights, by tare__retarget.
typedef struct packed_call {
    node *n;      // the layer, or a sum that is computed with it
    node *before; // the weights are read before this node
    const op_info *form;
    value args[7];
    size_t arg_count;
    size_t weights; // the argument that they become
} packed_call;
/// The layer's packed weights, and the function that takes them. Takes `packed` over, on failure
/// too.
tare_status tare__call_packed(pass *p, const function_call *layer, module *packed,
                              packed_call *call);

#endif
