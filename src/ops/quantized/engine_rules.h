// SPDX-License-Identifier: Apache-2.0
// The rounding rule (core/math/requant.h) of a layer under an engine. Lowering stores the rule in
// the model.
#ifndef OPS_QUANTIZED_ENGINE_RULES_H
#define OPS_QUANTIZED_ENGINE_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/math/requant.h"
#include "core/tensor/tensor.h"
#include "tare/quantize.h"

/// The properties of a layer that its rule depends on, besides the engine. The CPU is not among
/// them: results of torch's x86 engine depend on it, those of tare do not.
typedef struct engine_query {
    bool is_conv;
    int64_t groups;
    bool has_weight_zero_points; // any that is not 0
    bool has_output_padding;     // of transposed convolutions
    bool is_onednn_only;         // fused with more than a relu: no other engine has such layers
} engine_query;

requant_rule tare__engine_rule(tare_engine engine, const engine_query *query);
/// True if a zero point of a quantized weight is not 0.
bool tare__has_zero_points(const tare_tensor *weight);
/// True if quantized::add rounds as in QNNPACK in a model whose linear layers use this rule.
bool tare__rule_adds_in_fixed_point(requant_rule linear_rule);

#endif
