// SPDX-License-Identifier: Apache-2.0
// Times several models on the same inputs, a run of each in turn, or predicts their times.
#include "runtime/tune/race.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "runtime/session/session.h"
#include "runtime/tune/step_costs.h"

enum { WARM_UP_RUNS = 3, LEAST_RUNS = 9, MOST_RUNS = 1001 };

static tare_status run_once(const racer *r, const race_setting *s, uint64_t *ns, tare_error *err) {
    tare_tensor *outputs[RACE_OUTPUTS] = {NULL};
    size_t count = 0;
    const uint64_t begin = tare__now_ns();
    TARE_TRY(tare_session_run(r->session, s->inputs, s->input_count, outputs, RACE_OUTPUTS, &count,
                              err));
    *ns = tare__now_ns() - begin;
    for (size_t i = 0; i < count; i++) tare_tensor_release(outputs[i]);
    return TARE_OK;
}

// A prediction needs the plan alone.
static tare_status warm_up(const racer *r, const race_setting *s, tare_error *err) {
    uint64_t unused;
    if (s->machine != NULL)
        TARE_TRY(tare__session_make_plan(r->session, s->inputs, s->input_count, err));
    for (int i = 0; i < WARM_UP_RUNS && s->machine == NULL; i++)
        TARE_TRY(run_once(r, s, &unused, err));
    if (tare_session_step_count(r->session) > 0) return TARE_OK;
    return tare__fail(err, TARE_UNSUPPORTED, "the model has no plan whose steps could be timed");
}

tare_status tare__racer_create(const tare_model *model, const race_setting *setting, racer *out,
                               tare_error *err) {
    const tare_session_options options = {.struct_size = sizeof options,
                                          .thread_count = setting->thread_count,
                                          // A prediction times no kernels.
                                          .tune_cache = setting->machine != NULL ? "" : NULL};
    racer r = {.model = model, .machine = setting->machine};
    TARE_TRY(tare_session_create(model, &options, &r.session, err));
    const tare_status status = warm_up(&r, setting, err);
    if (status == TARE_OK)
        *out = r;
    else
        tare__racer_release(&r);
    return status;
}

void tare__racer_release(racer *r) {
    tare_session_destroy(r->session);
    *r = (racer){0};
}

static int by_size(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static tare_status run_turns(racer *const *racers, size_t count, const race_setting *s,
                             uint64_t *times, size_t *turns, tare_error *err) {
    const uint64_t begin = tare__now_ns(), budget = (uint64_t)(s->seconds * 1e9);
    for (*turns = 0; *turns < MOST_RUNS; ++*turns) {
        if (*turns >= LEAST_RUNS && tare__now_ns() - begin > budget) break;
        for (size_t i = 0; i < count; i++)
            TARE_TRY(run_once(racers[i], s, &times[i * MOST_RUNS + *turns], err));
    }
    return TARE_OK;
}

uint64_t tare__racer_step_ns(const racer *r, const tare_step *step) {
    return r->machine != NULL ? tare__step_predict_ns(r->machine, step) : step->median_ns;
}

static void predict(racer *r) {
    tare_step step;
    r->median_ns = 0;
    for (size_t i = 0; tare_session_get_step(r->session, i, &step); i++)
        r->median_ns += tare__racer_step_ns(r, &step);
}

static tare_status time_all(racer *const *racers, size_t count, const race_setting *setting,
                            tare_error *err) {
    size_t turns = 0;
    uint64_t *times = tare__alloc_zeroed(count * MOST_RUNS, sizeof *times);
    tare_status status = times != NULL ? TARE_OK : tare__out_of_memory(err);
    for (size_t i = 0; i < count && status == TARE_OK; i++)
        status = tare_session_profile(racers[i]->session, true, err);
    if (status == TARE_OK) status = run_turns(racers, count, setting, times, &turns, err);
    for (size_t i = 0; i < count && status == TARE_OK; i++) {
        uint64_t *own = times + i * MOST_RUNS;
        qsort(own, turns, sizeof *own, by_size);
        racers[i]->median_ns = own[(turns - 1) / 2];
    }
    tare__free(times);
    return status;
}

tare_status tare__race(racer *const *racers, size_t count, const race_setting *setting,
                       tare_error *err) {
    if (setting->machine == NULL) return time_all(racers, count, setting, err);
    for (size_t i = 0; i < count; i++) predict(racers[i]);
    return TARE_OK;
}
