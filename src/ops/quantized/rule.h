// SPDX-License-Identifier: Apache-2.0
// The general rule for quantized operators with output parameters of their own:
//   y = quantize(op(dequantize(x)), scale, zero point)
#ifndef OPS_QUANTIZED_RULE_H
#define OPS_QUANTIZED_RULE_H

#include "ops/op.h"

/// Per-tensor parameters of `dtype`, if it can have such. The caller releases *out.
tare_status tare__make_output_qparams(op_call *call, tare_dtype dtype, double scale,
                                      double zero_point, const qparams **out);
/// The same from two number parameters of a call.
tare_status tare__output_qparams(op_call *call, tare_dtype dtype, size_t scale, size_t zero_point,
                                 const qparams **out);

/// The rule on float operator `op`, whose parameter i is param[i] (NULL: not given); with `relu` a
/// ReLU follows it.
typedef struct rule_call {
    const op_info *op;
    const value *param[OP_MAX_PARAMS];
    bool relu;
} rule_call;
/// The rule of a quantized module or of a function of torch.ops.quantized, for code that runs or
/// exports them in another way. `tensors` holds values of the module's tensors, lent.
typedef struct module_rule {
    rule_call rule;
    value tensors[OP_MAX_PARAMS];
} module_rule;
tare_status tare__module_rule_bind(op_call *call, module_rule *out);
/// *known false: the function has no such rule.
tare_status tare__function_rule_bind(op_call *call, rule_call *out, bool *known);
/// The call of the float operator with the parameters of the module or function. `bound` points
/// into `rule`. *known false: there is no such rule.
tare_status tare__rule_bind(const op_call *call, module_rule *rule, op_call *bound, bool *known);
/// The float call that the reference of a call on quantized values makes. Its arguments and result
/// are meta tensors.
typedef struct through_float {
    float_call f;
    const tare_tensor
        *quantized[OP_MAX_PARAMS]; // the quantized original of parameter i; NULL: not quantized
} through_float;
/// *known false: the reference computes otherwise, or the call takes lists. If *known, the caller
/// must call tare__float_call_end, also after a failure.
tare_status tare__through_float_begin(const op_call *call, through_float *out, bool *known);
/// The float operator of a function with such a rule; NULL: it has none.
const op_info *tare__quantized_rule_op(const op_info *op);
/// To be called in a shape rule; q: the result's parameters.
tare_status tare__rule_shape(op_call *call, const rule_call *rule, const qparams *q);
/// To be called in a reference.
tare_status tare__rule_compute(op_call *call, const rule_call *rule);

#endif
