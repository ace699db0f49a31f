// SPDX-License-Identifier: Apache-2.0
// tare improve, and tare quantize --auto.
#ifndef CLI_QUANTIZE_IMPROVE_H
#define CLI_QUANTIZE_IMPROVE_H

#include "quantize/quantize.h"

/// Runs the ladder on the calibrated j->model; *out is the best model.
tare_status quantize_improve(quantize_job *j, tare_model **out);

void print_improvement(const quantize_improvement *m, FILE *stream);
void write_improvement(const quantize_improvement *m, json_out *json);
void release_improvement(quantize_improvement *m);

#endif
