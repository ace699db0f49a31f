// SPDX-License-Identifier: Apache-2.0
// Prints the results of an analysis as text and as JSON.
#ifndef CLI_VERDICT_H
#define CLI_VERDICT_H

#include <stdio.h>

#include "accuracy/metric.h"
#include "support/json.h"
#include "tare/tare.h"

/// The values of --min-sqnr and --max-drop. Zero-initialized: defaults, which only warn.
typedef struct verdict_limits {
    const char *min_sqnr, *max_drop; // as they were written
} verdict_limits;

/// Refuses limits that are no numbers; returns the exit status.
int check_limits(const char *where, const verdict_limits *limits);

/// "accuracy on 8 held-out samples: 31.2 dB, cosine 0.9996, ..".
void print_verdict(const tare_verdict *v, const metric *m, const char *samples, FILE *stream);
void write_verdict(const tare_verdict *v, const metric *m, json_out *json);
/// Of tare_analysis_preparation_db: says so where more than roundings of floats were lost. by: what
/// changed the float model, "fusing and preparing".
void print_preparation(double db, const char *by, FILE *stream);

/// Prints the worst `count` layers with their causes.
void print_worst_layers(const tare_analysis *a, size_t count, FILE *stream);
void write_worst_layers(const tare_analysis *a, size_t count, json_out *json);

/// A layer of `tare_analysis_get_layer` as an object.
void write_layer(const tare_layer_error *layer, json_out *json);

/// Warns if the model is below a default, and fails if it violates a given limit.
tare_status judge_verdict(const tare_verdict *v, const metric *m, const verdict_limits *limits,
                          const char *where);
/// True if it is below a default or a given limit.
bool is_below_limits(const tare_verdict *v, const metric *m, const verdict_limits *limits);

#endif
