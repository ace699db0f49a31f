// SPDX-License-Identifier: Apache-2.0
// Times several models on the same inputs, one run of each after the other, so that changes of the
// machine's speed affect all alike.
#ifndef RUNTIME_TUNE_RACE_H
#define RUNTIME_TUNE_RACE_H

#include "tare/session.h"

enum { RACE_OUTPUTS = 256 }; // of a model, at most

typedef struct race_setting {
    const tare_tensor *const *inputs;
    size_t input_count;
    int thread_count;
    double seconds; // of a race, more where a few runs take longer
} race_setting;

typedef struct racer {
    const tare_model *model; // lent
    tare_session *session;
    uint64_t median_ns; // of the whole runs of the latest race
} racer;

/// TARE_UNSUPPORTED where the session has no plan of the model. The caller releases *out.
tare_status tare__racer_create(const tare_model *model, const race_setting *setting, racer *out,
                               tare_error *err);
void tare__racer_release(racer *r); // of one that is all zero, too
/// Times them; their sessions then know the times of their steps in this race.
tare_status tare__race(racer *const *racers, size_t count, const race_setting *setting,
                       tare_error *err);

#endif
