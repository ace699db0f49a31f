// SPDX-License-Identifier: Apache-2.0
// Writes an analysis as JSON.
#ifndef CLI_ANALYSIS_JSON_H
#define CLI_ANALYSIS_JSON_H

#include "accuracy/verdict.h"

/// Writes the output of tare analyze --json into an open object.
void analysis_write(const tare_analysis *a, const tare_verdict *v, const metric *m, json_out *json);

/// Writes one of its tensors into an open array.
void range_write(const tare_tensor_range *r, json_out *json);

#endif
