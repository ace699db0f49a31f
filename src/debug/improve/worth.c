// SPDX-License-Identifier: Apache-2.0
// Measures a quantized model: how close its outputs are to the float ones, the time of a run, the
// bytes of its tensors.
#include <math.h>
#include <stdlib.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "debug/improve/ladder.h"
#include "runtime/tune/race.h"

#define LEAST_SAMPLE_DB 200.0 // what is not a number, or infinite, has -200 dB
enum {
    TIMED_RUNS = 5,
    MOST_RACERS = 2,
    FIT_SAMPLES = 16 // of the calibration, which measure besides the check samples
};

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
                              double seconds, double *ms) {
    tare_batch batch = {.struct_size = sizeof batch};
    bool done = false;
    TARE_TRY(tare_data_rewind(l->check, l->err));
    TARE_TRY(tare_data_next(l->check, &batch, &done, l->err));
    const race_setting setting = {batch.inputs, batch.input_count, l->options.thread_count,
                                  seconds};
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

static tare_status keep_batch(ladder *l, const exact_model *exact, const tare_batch *batch,
                              float_outputs *out) {
    if (!tare__grow((void **)&out->batches, &out->capacity, out->count, sizeof *out->batches))
        return tare__out_of_memory(l->err);
    probe_outputs *floats = &out->batches[out->count++];
    *floats = (probe_outputs){.count = 0};
    l->sample_count += (size_t)batch->size;
    return tare__exact_run(exact, batch, floats, l->err);
}

// Of whole batches, until there are so many samples.
static tare_status keep_data(ladder *l, const exact_model *exact, tare_data *data, size_t most,
                             float_outputs *out) {
    const size_t before = l->sample_count;
    bool done = false;
    TARE_TRY(tare_data_rewind(data, l->err));
    while (l->sample_count - before < most) {
        tare_batch batch = {.struct_size = sizeof batch};
        TARE_TRY(tare_data_next(data, &batch, &done, l->err));
        if (done) break;
        TARE_TRY(keep_batch(l, exact, &batch, out));
    }
    return TARE_OK;
}

static tare_status keep_floats_of(ladder *l, const tare_model *model) {
    exact_model exact;
    tare_status status = tare__exact_begin(&exact, model, NULL, l->options.thread_count, l->err);
    if (status == TARE_OK) status = keep_data(l, &exact, l->check, SIZE_MAX, &l->check_floats);
    if (status == TARE_OK)
        status = keep_data(l, &exact, l->calibration, FIT_SAMPLES, &l->fit_floats);
    tare__exact_end(&exact);
    return status;
}

tare_status tare__ladder_keep_floats(ladder *l) {
    const recipe first = {.prepared = (tare_model *)l->prepared}; // NOLINT: only read
    tare_model *reference = NULL;
    if (l->options.exact == NULL) TARE_TRY(tare__ladder_make(l, &first, true, &reference));
    const tare_status status = keep_floats_of(l, reference != NULL ? reference : l->options.exact);
    tare_model_destroy(reference);
    if (status != TARE_OK || l->check_floats.count > 0) return status;
    return tare__fail(l->err, TARE_INVALID_ARGUMENT, "there are no samples to check with");
}

static void release_floats(float_outputs *floats) {
    for (size_t i = 0; i < floats->count; i++) tare__probe_outputs_release(&floats->batches[i]);
    tare__free(floats->batches);
    *floats = (float_outputs){.count = 0};
}

void tare__ladder_release_floats(ladder *l) {
    release_floats(&l->check_floats);
    release_floats(&l->fit_floats);
}

// --- signal and noise ---

typedef struct power {
    double signal, noise;
} power;

typedef struct comparison {
    tare_session *session;
    power all;         // of the check samples
    double *sample_db; // of each sample so far, with room for all
    size_t count;
} comparison;

static double ratio_db(const power *p) {
    return isnan(p->noise) ? -INFINITY : p->noise > 0 ? 10 * log10(p->signal / p->noise) : 200;
}

// The samples of a batch lie one after the other in outputs of [size][..]; other outputs are all
// the samples'.
static void add_output(const tare_tensor *x, const tare_tensor *y, power *samples, int64_t size) {
    const int64_t rows = y->ndim > 0 && y->shape[0] == size ? size : 1, row = y->count / rows;
    for (int64_t k = 0; k < size; k++) {
        const int64_t first = rows == size ? k * row : 0;
        for (int64_t i = first; i < first + row; i++) {
            const double a = (double)tare__f32(x)[i], error = a - (double)tare__f32(y)[i];
            samples[k].signal += a * a;
            samples[k].noise += error * error;
        }
    }
}

static tare_status compare_outputs(const ladder *l, const probe_outputs *floats,
                                   const probe_outputs *given, power *samples, int64_t size) {
    for (size_t i = 0; i < given->count && i < floats->count; i++) {
        if (!tare__same_shape(floats->tensors[i], given->tensors[i]))
            return tare__fail(l->err, TARE_INVALID_ARGUMENT,
                              "the quantized model has outputs of other shapes");
        add_output(floats->tensors[i], given->tensors[i], samples, size);
    }
    return TARE_OK;
}

static tare_status compare_batch(const ladder *l, comparison *c, const tare_batch *batch,
                                 const probe_outputs *floats, bool is_check) {
    probe_outputs given = {.count = 0};
    power *samples = tare__alloc_zeroed((size_t)batch->size + 1, sizeof *samples);
    if (samples == NULL) return tare__out_of_memory(l->err);
    tare_status status = tare__session_outputs(c->session, batch, &given, l->err);
    if (status == TARE_OK) status = compare_outputs(l, floats, &given, samples, batch->size);
    for (int64_t k = 0; k < batch->size && status == TARE_OK; k++) {
        c->sample_db[c->count++] = fmax(ratio_db(&samples[k]), -LEAST_SAMPLE_DB);
        if (is_check) c->all.signal += samples[k].signal, c->all.noise += samples[k].noise;
    }
    tare__probe_outputs_release(&given);
    tare__free(samples);
    return status;
}

static tare_status compare_data(const ladder *l, comparison *c, tare_data *data,
                                const float_outputs *floats) {
    TARE_TRY(tare_data_rewind(data, l->err));
    for (size_t i = 0; i < floats->count; i++) {
        tare_batch batch = {.struct_size = sizeof batch};
        bool done = false;
        TARE_TRY(tare_data_next(data, &batch, &done, l->err));
        if (done || c->count + (size_t)batch.size > l->sample_count)
            return tare__fail(l->err, TARE_INVALID_ARGUMENT, "the data has changed on the way");
        TARE_TRY(compare_batch(l, c, &batch, &floats->batches[i], floats == &l->check_floats));
    }
    return TARE_OK;
}

tare_status tare__ladder_bytes(const ladder *l, const tare_model *model, int64_t *out) {
    byte_count b = {0};
    TARE_TRY(tare__module_walk(model->root, count_module, &b, l->err));
    *out = b.bytes;
    return TARE_OK;
}

tare_status tare__ladder_measure(ladder *l, tare_model *model, worth *out) {
    comparison c = {.count = 0};
    const tare_session_options options = {.struct_size = sizeof options,
                                          .thread_count = l->options.thread_count};
    c.sample_db = tare__arena_array(&l->memory, l->sample_count + 1, sizeof *c.sample_db);
    if (c.sample_db == NULL) return tare__out_of_memory(l->err);
    TARE_TRY(tare_session_create(model, &options, &c.session, l->err));
    tare_status status = compare_data(l, &c, l->check, &l->check_floats);
    if (status == TARE_OK) status = compare_data(l, &c, l->calibration, &l->fit_floats);
    tare_session_destroy(c.session);
    TARE_TRY(status);
    TARE_TRY(tare__ladder_bytes(l, model, &out->bytes));
    out->db = ratio_db(&c.all);
    out->sample_db = c.sample_db;
    return TARE_OK;
}
