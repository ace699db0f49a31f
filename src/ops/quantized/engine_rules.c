// SPDX-License-Identifier: Apache-2.0
// Engines and their rules, one row per engine.
#include "ops/quantized/engine_rules.h"

typedef struct engine_row {
    requant_rule linear, conv;
    requant_rule awkward_conv; // what conv falls back to where the fast library refuses the layer
} engine_row;

static const engine_row engines[] = {
    [TARE_ENGINE_DEFAULT] = {REQUANT_F, REQUANT_O, REQUANT_F},
    [TARE_ENGINE_X86] = {REQUANT_F, REQUANT_O, REQUANT_F},
    [TARE_ENGINE_FBGEMM] = {REQUANT_F, REQUANT_F, REQUANT_F},
    [TARE_ENGINE_QNNPACK] = {REQUANT_Q, REQUANT_Q, REQUANT_Q},
    [TARE_ENGINE_ONEDNN] = {REQUANT_O, REQUANT_O, REQUANT_O},
};
enum { ENGINE_COUNT = sizeof engines / sizeof *engines };

// torch's x86 engine hands a convolution to oneDNN only within these limits.
static bool is_awkward(const engine_query *q) {
    return q->groups > 100 || q->has_weight_zero_points || q->has_output_padding;
}

requant_rule tare__engine_rule(tare_engine engine, const engine_query *query) {
    if (query->is_onednn_only) return REQUANT_O;
    const unsigned index = (unsigned)engine;
    const engine_row *row = &engines[index < ENGINE_COUNT ? index : TARE_ENGINE_DEFAULT];
    if (!query->is_conv) return row->linear;
    return is_awkward(query) ? row->awkward_conv : row->conv;
}

bool tare__has_zero_points(const tare_tensor *weight) {
    for (int64_t c = 0; weight->q != NULL && c < weight->q->count; c++)
        if (weight->q->zero_point[c] != 0) return true;
    return false;
}

bool tare__rule_adds_in_fixed_point(requant_rule linear_rule) {
    return linear_rule == REQUANT_Q || linear_rule == REQUANT_FIXED_POINT;
}
