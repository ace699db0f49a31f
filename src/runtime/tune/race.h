// SPDX-License-Identifier: Apache-2.0
// Times several models on the same inputs, running them alternately, so that changes of the
// machine's speed affect all alike.
#ifndef RUNTIME_TUNE_RACE_H
#define RUNTIME_TUNE_RACE_H

#include "tare/session.h"

enum { RACE_OUTPUTS = 256 }; // outputs of a model

typedef struct race_setting {
    const tare_tensor *const *inputs;
    size_t input_count;
    int thread_count;
    double seconds; // of a race; longer if a few runs take longer
} race_setting;

typedef struct racer {
    const tare_model *model; // lent
    tare_session *session;
    uint64_t median_ns; // of whole runs in the latest race
} racer;

/// TARE_UNSUPPORTED if the session has no plan for the model. The caller releases *out.
tare_status tare__racer_create(const tare_model *model, const race_setting *setting, racer *out,
                               tare_error *err);
void tare__racer_release(racer *r); // may be zero-initialized
/// Times the models; afterwards their sessions have the times of their steps in this race.
tare_status tare__race(racer *const *racers, size_t count, const race_setting *setting,
                       tare_error *err);

#endif
