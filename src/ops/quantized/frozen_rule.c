// SPDX-License-Identifier: Apache-2.0
// Looks up the rounding rule of a layer and stores it in its config.
#include "ops/quantized/frozen_rule.h"

#include "ops/op.h"
#include "ops/quantized/engine_rules.h"

tare_status tare__module_set_rule(module *m, tare_engine engine, const tare_tensor *weight,
                                  tare_error *err) {
    int64_t output_padding[3] = {0};
    (void)tare__module_ints(m, "output_padding", (size_t)m->class->dims, output_padding);
    const engine_query query = {
        .is_conv = tare__op_has(tare__class_row(m->class), OP_CONVOLUTION | OP_TRANSPOSED),
        .groups = tare__module_int(m, "groups", 1),
        .has_weight_zero_points = tare__has_zero_points(weight),
        .has_output_padding = (output_padding[0] | output_padding[1] | output_padding[2]) != 0,
        .is_onednn_only = m->class->fused != FUSED_NONE && m->class->fused != FUSED_RELU,
    };
    const value rule = tare__string(tare__requant_rule_name(tare__engine_rule(engine, &query)));
    return tare__module_set_config(m, "rule", &rule, err);
}

tare_status tare__module_complete_rule(module *m, tare_engine engine, tare_error *err) {
    const module_role role = m->class->role;
    if ((role != ROLE_QUANTIZED && role != ROLE_DYNAMIC && role != ROLE_PACKED) ||
        !tare__op_has(tare__class_row(m->class), OP_WEIGHTED) ||
        tare__module_config(m, "rule") != NULL)
        return TARE_OK;
    for (size_t i = 0; i < m->tensor_count; i++)
        if (tare__tensor_is_quantized(m->tensors[i].tensor))
            return tare__module_set_rule(m, engine, m->tensors[i].tensor, err);
    return TARE_OK;
}
