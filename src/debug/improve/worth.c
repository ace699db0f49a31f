// SPDX-License-Identifier: Apache-2.0
// Measures a quantized model: how close its outputs are to the float ones, the time of a run, the
// bytes of its tensors.
#include <math.h>
#include <stdlib.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "debug/improve/ladder.h"
#include "runtime/tune/race.h"

#define RACE_SECONDS 0.3
enum { TIMED_RUNS = 5, MOST_RACERS = 2 };

// --- time ---

static int by_time(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static tare_status time_alone(const ladder *l, const tare_model *model, const tare_batch *batch,
                              double *ms) {
    const tare_session_options options = {.struct_size = sizeof options,
                                          .thread_count = l->options.thread_count};
    tare_session *session = NULL;
    double times[TIMED_RUNS];
    TARE_TRY(tare_session_create(model, &options, &session, l->err));
    tare_status status = TARE_OK;
    for (int i = -1; i < TIMED_RUNS && status == TARE_OK;
         i++) { // the first run plans and is not counted
        tare_tensor *out[RACE_OUTPUTS];
        size_t count = 0;
        const uint64_t begin = tare__now_ns();
        status = tare_session_run(session, batch->inputs, batch->input_count, out, RACE_OUTPUTS,
                                  &count, l->err);
        if (i >= 0) times[i] = (double)(tare__now_ns() - begin) * 1e-6;
        for (size_t k = 0; k < count && status == TARE_OK; k++) tare_tensor_release(out[k]);
    }
    tare_session_destroy(session);
    TARE_TRY(status);
    qsort(times, TIMED_RUNS, sizeof *times, by_time);
    *ms = times[TIMED_RUNS / 2];
    return TARE_OK;
}

static tare_status race(const ladder *l, const tare_model *const *models, size_t count,
                        const race_setting *setting, double *ms) {
    racer racers[MOST_RACERS] = {{0}}, *all[MOST_RACERS];
    tare_status status = TARE_OK;
    for (size_t i = 0; i < count && status == TARE_OK; i++) {
        all[i] = &racers[i];
        status = tare__racer_create(models[i], setting, &racers[i], l->err);
    }
    if (status == TARE_OK) status = tare__race(all, count, setting, l->err);
    for (size_t i = 0; i < count; i++) {
        ms[i] = (double)racers[i].median_ns * 1e-6;
        tare__racer_release(&racers[i]);
    }
    return status;
}

// Models without a plan are timed separately.
tare_status tare__ladder_time(const ladder *l, const tare_model *const *models, size_t count,
                              double *ms) {
    tare_batch batch = {.struct_size = sizeof batch};
    bool done = false;
    TARE_TRY(tare_data_rewind(l->check, l->err));
    TARE_TRY(tare_data_next(l->check, &batch, &done, l->err));
    const race_setting setting = {batch.inputs, batch.input_count, l->options.thread_count,
                                  RACE_SECONDS};
    const tare_status status = race(l, models, count, &setting, ms);
    if (status != TARE_UNSUPPORTED) return status;
    for (size_t i = 0; i < count; i++) TARE_TRY(time_alone(l, models[i], &batch, &ms[i]));
    return TARE_OK;
}

// --- outputs and bytes ---

typedef struct byte_count {
    int64_t bytes;
} byte_count;

static tare_status count_module(void *user, const char *path, module *m, tare_error *err) {
    byte_count *c = user;
    (void)path, (void)err;
    for (size_t i = 0; i < m->tensor_count; i++)
        if (m->tensors[i].tensor != NULL)
            c->bytes += (int64_t)tare__tensor_bytes(m->tensors[i].tensor);
    return TARE_OK;
}

static tare_status keep_floats_of(ladder *l, const tare_model *model) {
    exact_model exact;
    bool done = false;
    tare_status status = tare__exact_begin(&exact, model, l->options.thread_count, l->err);
    if (status == TARE_OK) status = tare_data_rewind(l->check, l->err);
    while (status == TARE_OK) {
        tare_batch batch = {.struct_size = sizeof batch};
        status = tare_data_next(l->check, &batch, &done, l->err);
        if (status != TARE_OK || done) break;
        if (!tare__grow((void **)&l->floats, &l->float_capacity, l->float_count, sizeof *l->floats))
            status = tare__out_of_memory(l->err);
        if (status != TARE_OK) break;
        probe_outputs *floats = &l->floats[l->float_count++];
        *floats = (probe_outputs){.count = 0};
        status = tare__exact_run(&exact, &batch, floats, l->err);
    }
    tare__exact_end(&exact);
    return status;
}

tare_status tare__ladder_keep_floats(ladder *l) {
    const recipe first = {.prepared = (tare_model *)l->prepared}; // NOLINT: only read
    tare_model *reference = NULL;
    if (l->options.exact == NULL) TARE_TRY(tare__ladder_make(l, &first, true, &reference));
    const tare_status status = keep_floats_of(l, reference != NULL ? reference : l->options.exact);
    tare_model_destroy(reference);
    if (status != TARE_OK || l->float_count > 0) return status;
    return tare__fail(l->err, TARE_INVALID_ARGUMENT, "there are no samples to check with");
}

static tare_status add_output(const ladder *l, const tare_tensor *x, const tare_tensor *y,
                              double *signal, double *noise) {
    const bool is_alike = tare__same_shape(x, y);
    for (int64_t i = 0; i < y->count && is_alike; i++) {
        const double a = (double)tare__f32(x)[i], error = a - (double)tare__f32(y)[i];
        *signal += a * a;
        *noise += error * error;
    }
    return is_alike ? TARE_OK
                    : tare__fail(l->err, TARE_INVALID_ARGUMENT,
                                 "the quantized model has outputs of other shapes");
}

static tare_status compare_batch(const ladder *l, tare_session *session, const tare_batch *batch,
                                 const probe_outputs *floats, double *signal, double *noise) {
    probe_outputs given = {.count = 0};
    tare_status status = tare__session_outputs(session, batch, &given, l->err);
    for (size_t i = 0; status == TARE_OK && i < given.count && i < floats->count; i++)
        status = add_output(l, floats->tensors[i], given.tensors[i], signal, noise);
    tare__probe_outputs_release(&given);
    return status;
}

static tare_status run_checks(const ladder *l, tare_session *session, worth *out) {
    double signal = 0, noise = 0;
    TARE_TRY(tare_data_rewind(l->check, l->err));
    for (size_t i = 0; i < l->float_count; i++) {
        tare_batch batch = {.struct_size = sizeof batch};
        bool done = false;
        TARE_TRY(tare_data_next(l->check, &batch, &done, l->err));
        if (done) break;
        TARE_TRY(compare_batch(l, session, &batch, &l->floats[i], &signal, &noise));
    }
    out->db = isnan(noise) ? -INFINITY : noise > 0 ? 10 * log10(signal / noise) : 200;
    return TARE_OK;
}

tare_status tare__ladder_measure(const ladder *l, tare_model *model, worth *out) {
    tare_session *session = NULL;
    byte_count c = {0};
    const tare_session_options options = {.struct_size = sizeof options,
                                          .thread_count = l->options.thread_count};
    TARE_TRY(tare_session_create(model, &options, &session, l->err));
    const tare_status status = run_checks(l, session, out);
    tare_session_destroy(session);
    TARE_TRY(status);
    TARE_TRY(tare__module_walk(model->root, count_module, &c, l->err));
    out->bytes = c.bytes;
    return TARE_OK;
}
