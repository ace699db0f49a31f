// SPDX-License-Identifier: Apache-2.0
// The float outputs that a quantized model is held against: of the float model as it was given, or
// of a reference form with nothing quantized. Private to debug.
#ifndef DEBUG_ANALYZE_EXACT_H
#define DEBUG_ANALYZE_EXACT_H

#include "debug/analyze/probe.h"
#include "tare/data.h"
#include "tare/session.h"

typedef struct exact_model {
    probe probe;           // without a session; else all zero
    tare_session *session; // of a float model that runs often; else NULL
} exact_model;

/// False: no model whose floats are exact.
bool tare__exact_takes(const tare_model *model);
/// Begins runs of a float model, or of a reference form. kernels: those of a probe that ends later,
/// for a run or two, for which it does not pay to fold batch norms and to pack weights; NULL: for
/// more.
tare_status tare__exact_begin(exact_model *e, const tare_model *model, float_kernels *kernels,
                              int thread_count, tare_error *err);
tare_status tare__exact_run(const exact_model *e, const tare_batch *batch, probe_outputs *out,
                            tare_error *err);
void tare__exact_end(exact_model *e);

/// The outputs of a session that are values, as floats; the caller releases them, on failure too.
tare_status tare__session_outputs(tare_session *session, const tare_batch *batch,
                                  probe_outputs *out, tare_error *err);

#endif
