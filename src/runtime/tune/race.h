// SPDX-License-Identifier: Apache-2.0
// Times several models on the same inputs, running them alternately, so that changes of the
// machine's speed affect all alike; or predicts their times from their plans, without running them.
#ifndef RUNTIME_TUNE_RACE_H
#define RUNTIME_TUNE_RACE_H

#include "tare/machine.h"
#include "tare/session.h"

enum { RACE_OUTPUTS = 256 }; // outputs of a model

typedef struct race_setting {
    const tare_tensor *const *inputs;
    size_t input_count;
    int thread_count;
    double seconds;                   // of a race; longer if a few runs take longer
    const tare_machine_peak *machine; // lent; from which times are predicted; NULL: measured
} race_setting;

typedef struct racer {
    const tare_model *model; // lent
    tare_session *session;
    const tare_machine_peak *machine; // as of the setting
    uint64_t median_ns; // of whole runs in the latest race; predicted: the sum of the steps
} racer;

/// TARE_UNSUPPORTED if the session has no plan for the model. The caller releases *out.
tare_status tare__racer_create(const tare_model *model, const race_setting *setting, racer *out,
                               tare_error *err);
void tare__racer_release(racer *r); // may be zero-initialized
/// Times the models, or predicts their times; tare__racer_step_ns then has those of their steps.
tare_status tare__race(racer *const *racers, size_t count, const race_setting *setting,
                       tare_error *err);
/// The time of a step of the racer's plan in the latest race.
uint64_t tare__racer_step_ns(const racer *r, const tare_step *step);

#endif
