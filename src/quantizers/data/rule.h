// SPDX-License-Identifier: Apache-2.0
// Applies a rule of a rule file.
// Private to quantizers/data.
#ifndef QUANTIZERS_DATA_RULE_H
#define QUANTIZERS_DATA_RULE_H

#include "quantizers/annotate.h"
#include "quantizers/data/quantizer.h"

/// The setting in use and its config.
typedef struct data_level {
    annotating *a;
    const data_quantizer *q;
    const tare_quantizer_settings *settings;
    const setting *setting;
    level_kind kind;
    config_specs specs;
} data_level;
bool tare__data_level_accepts(const data_level *l, const node *n);

/// Annotates every match of the rule to which the setting applies.
tare_status tare__data_rule_run(const data_level *l, const data_rule *rule);

#endif
