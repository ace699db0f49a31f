// SPDX-License-Identifier: Apache-2.0
// An analysis as JSON.
#ifndef CLI_ANALYSIS_JSON_H
#define CLI_ANALYSIS_JSON_H

#include "accuracy/verdict.h"

/// What tare analyze --json prints, into an open object.
void analysis_write(const tare_analysis *a, const tare_verdict *v, const metric *m, json_out *json);

/// One of its tensors, an object in an open array.
void range_write(const tare_tensor_range *r, json_out *json);

#endif
