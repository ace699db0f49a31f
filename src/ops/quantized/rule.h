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
/// The same for a quantized module, whose tensors are in `tensors`, lent; and for a function of
/// torch.ops.quantized with such a row. For code that runs or writes them in another way.
typedef struct module_rule {
    rule_call rule;
    value tensors[OP_MAX_PARAMS];
} module_rule;
tare_status tare__module_rule_bind(op_call *call, module_rule *out);
/// *known false: the row's function has no such rule.
tare_status tare__function_rule_bind(op_call *call, rule_call *out, bool *known);
/// The float operator's call, with the parameters that the module or the function has for it;
/// *known false: it has no such rule. `bound` reads `rule`.
tare_status tare__rule_bind(const op_call *call, module_rule *rule, op_call *bound, bool *known);
/// The call of floats that the reference of a call on quantized values makes, on meta tensors, with
/// its result.
typedef struct through_float {
    float_call f;
    const tare_tensor
        *quantized[OP_MAX_PARAMS]; // what parameter i is a float copy of; NULL: of none
} through_float;
/// *known false: it computes otherwise, or takes lists. A known one must be ended, by
/// tare__float_call_end, after a failure too.
tare_status tare__through_float_begin(const op_call *call, through_float *out, bool *known);
/// The float operator of such a function; NULL: it is none.
const op_info *tare__quantized_rule_op(const op_info *op);
/// Inside a shape rule; q: of the result.
tare_status tare__rule_shape(op_call *call, const rule_call *rule, const qparams *q);
/// Inside a reference.
tare_status tare__rule_compute(op_call *call, const rule_call *rule);

#endif
