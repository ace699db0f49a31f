// SPDX-License-Identifier: Apache-2.0
// An analysis: runs of a probe over data, and the measures computed from them.
#include "tare/analyze.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "core/system/clock.h"
#include "debug/analyze/brief.h"
#include "debug/analyze/exact.h"
#include "debug/analyze/findings.h"
#include "model/data.h"

enum {
    DEFAULT_SAMPLES = 32,
    DEFAULT_SECONDS = 60,
    DEFAULT_MEMORY_MIB = 256,
    DEFAULT_DISK_GIB = 4,
    MIB_BITS = 20,
    GIB_BITS = 30
};

struct tare_analysis {
    probe probe;
    range_table ranges;
    layer_measure *measures; // [layer_count]
    size_t *ranking;         // [layer_count]: layers by descending error
    finding_list findings;
    tare_verdict verdict;
    double cosine_sum;
    int64_t cosine_count;
    double signal, noise;
    double exact_signal, preparation_noise; // of options.exact, and of `reference` in floats
    arena memory;                           // for sentences
};

typedef struct job {
    tare_analysis *a;
    tare_analyze_options options;
    tare_data *data;
    exact_model exact; // for options.exact; otherwise zero
    tare_session
        *session; // for the quantized model; NULL: the reference model's outputs are judged
    cache_budget budget;
    value_cache floats, all; // of the present batch
    tare_tensor **inputs;    // of the first batch, kept for tests of single layers
    size_t input_count;
    probe_outputs kept_floats; // of that batch
    const tare_batch *batch;
    int scope; // LOCAL_..: what the present run quantizes
    uint64_t begin_ns;
    brief_time brief;      // if is_brief
    double sample_seconds; // time of the last sample, without its layers
    tare_error *err;
} job;

static double elapsed(const job *j) {
    return (double)(tare__job_now_ns() - j->begin_ns) * 1e-9;
}

// --- sums ---

typedef struct sums {
    double signal, noise, reference, product, largest;
} sums;

static sums compare(const float *x, const float *y, int64_t count) {
    sums s = {0};
    for (int64_t i = 0; i < count; i++) {
        const double a = (double)x[i], b = (double)y[i];
        if (fabs(a) >= MASK_MAGNITUDE && fabs(b) >= MASK_MAGNITUDE) continue; // a mask in both
        const double error = fabs(a - b);
        s.signal += a * a;
        s.reference += b * b;
        s.product += a * b;
        s.noise += error * error;
        if (!(error <= s.largest)) s.largest = error;
    }
    return s;
}

// The float value of a node in the present batch.
static const tare_tensor *exact(const job *j, const node *n, const tare_tensor *like) {
    const tare_tensor *t = tare__value_cache_get(&j->floats, n->id);
    return t != NULL && tare__same_shape(t, like) ? t : NULL;
}

static layer_measure *measure_of(const job *j, const node *n) {
    const probe_fact *about = &j->a->probe.facts[n->id];
    return about->layer != PROBE_NONE ? &j->a->measures[about->layer] : NULL;
}

static tare_status add_cumulative(void *user, const node *n, const tare_tensor *t,
                                  tare_error *err) {
    const job *j = user;
    layer_measure *m = measure_of(j, n);
    const tare_tensor *x = m != NULL ? exact(j, n, t) : NULL;
    (void)err;
    if (x == NULL) return TARE_OK;
    const sums s = compare(tare__f32(x), tare__f32(t), t->count);
    m->signal += s.signal;
    m->noise += s.noise;
    m->reference += s.reference;
    m->product += s.product;
    return TARE_OK;
}

static tare_status add_local(void *user, const node *n, const tare_tensor *t, tare_error *err) {
    const job *j = user;
    layer_measure *m = measure_of(j, n);
    const tare_tensor *x = m != NULL ? exact(j, n, t) : NULL;
    (void)err;
    if (x == NULL) return TARE_OK;
    const sums s = compare(tare__f32(x), tare__f32(t), t->count);
    m->local_signal[j->scope] += s.signal;
    m->local_noise[j->scope] += s.noise;
    return TARE_OK;
}

static tare_status add_range(void *user, const node *n, const tare_tensor *x, tare_error *err) {
    job *j = user;
    return tare__ranges_add(&j->a->ranges, n, x, j->batch->size, err);
}

static tare_status add_weight(void *user, const node *n, const tare_tensor *x, const tare_tensor *y,
                              tare_error *err) {
    job *j = user;
    return tare__ranges_add_weight(&j->a->ranges, n, x, y, err);
}

static sums compare_outputs(const probe_outputs *x, const probe_outputs *y) {
    sums all = {0};
    for (size_t i = 0; i < x->count && i < y->count; i++) {
        const tare_tensor *a = x->tensors[i], *b = y->tensors[i];
        if (!tare__same_shape(a, b)) continue;
        const sums s = compare(tare__f32(a), tare__f32(b), a->count);
        all.signal += s.signal;
        all.noise += s.noise;
        if (!(s.largest <= all.largest)) all.largest = s.largest;
    }
    return all;
}

// --- the verdict ---

static void add_cosines(tare_analysis *a, const tare_tensor *x, const tare_tensor *y,
                        int64_t size) {
    const int64_t samples = x->ndim > 0 && x->shape[0] == size ? size : 1;
    const int64_t each = x->count / (samples > 0 ? samples : 1);
    for (int64_t i = 0; i < samples && each > 0; i++) {
        const sums s = compare(tare__f32(x) + i * each, tare__f32(y) + i * each, each);
        const double length = sqrt(s.signal) * sqrt(s.reference);
        a->cosine_sum += length > 0 ? s.product / length : s.noise > 0 ? 0 : 1;
        a->cosine_count++;
    }
}

static int64_t winner(const tare_tensor *scores, int64_t sample) {
    const int64_t count = scores->shape[1];
    const float *row = tare__f32(scores) + sample * count;
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

static void add_classes(tare_verdict *v, const tare_tensor *x, const tare_tensor *y,
                        const tare_batch *batch) {
    if (x->ndim != 2 || x->shape[0] != batch->size || x->shape[1] < 2) return;
    const tare_tensor *labels = batch->labels;
    v->has_classes = true;
    v->has_labels = labels != NULL && labels->count == batch->size;
    for (int64_t i = 0; i < batch->size; i++) {
        const int64_t of_x = winner(x, i), of_y = winner(y, i);
        v->agreeing_count += of_x == of_y;
        if (!v->has_labels) continue;
        v->float_correct += (double)of_x == tare__tensor_get(labels, i);
        v->quantized_correct += (double)of_y == tare__tensor_get(labels, i);
    }
}

static tare_status differ(const job *j) {
    return tare__fail(j->err, TARE_INVALID_ARGUMENT,
                      "the quantized model has other outputs than its reference form");
}

static tare_status judge(job *j, const probe_outputs *x, const probe_outputs *y) {
    tare_analysis *a = j->a;
    tare_verdict *v = &a->verdict;
    if (x->count != y->count) return differ(j);
    for (size_t i = 0; i < x->count; i++) {
        if (!tare__same_shape(x->tensors[i], y->tensors[i])) return differ(j);
        add_cosines(a, x->tensors[i], y->tensors[i], j->batch->size);
    }
    if (x->count > 0) add_classes(v, x->tensors[0], y->tensors[0], j->batch);
    const sums s = compare_outputs(x, y);
    a->signal += s.signal;
    a->noise += s.noise;
    if (!(s.largest <= v->max_abs_error))
        v->max_abs_error = isnan(s.largest) ? INFINITY : s.largest;
    v->sample_count += j->batch->size;
    if (j->options.predictions == NULL) return TARE_OK;
    return j->options.predictions(
        j->options.predictions_user, (const tare_tensor *const *)x->tensors,
        (const tare_tensor *const *)y->tensors, x->count, j->batch, j->err);
}

// --- one batch ---

static tare_status run_floats(job *j, probe_outputs *out) {
    probe_run r = {.probe = &j->a->probe,
                   .mode = PROBE_FLOATS,
                   .keep = &j->floats,
                   .keeps_layers = true,
                   .quantizes = add_range,
                   .user = j};
    return tare__probe_run(&r, j->batch->inputs, j->batch->input_count, out, j->err);
}

static tare_status run_all(job *j, probe_outputs *out) {
    probe_run r = {.probe = &j->a->probe, .mode = PROBE_ALL, .result = add_cumulative, .user = j};
    if (j->inputs == NULL && !j->options.is_brief) r.keep = &j->all;
    return tare__probe_run(&r, j->batch->inputs, j->batch->input_count, out, j->err);
}

static void add_last(const job *j, const probe_outputs *floats, const probe_outputs *out) {
    const probe *p = &j->a->probe;
    const size_t layer = p->facts[p->g->last->id].layer;
    if (layer == PROBE_NONE) return;
    const sums s = compare_outputs(floats, out);
    j->a->measures[layer].local_signal[j->scope] += s.signal;
    j->a->measures[layer].local_noise[j->scope] += s.noise;
}

static bool has_time_for_layer(const void *user) {
    const job *j = user;
    return tare__brief_has_time_for_layer(&j->brief, elapsed(j));
}

static tare_status run_local(job *j, int scope, const probe_outputs *floats) {
    probe_run r = {.probe = &j->a->probe,
                   .mode = PROBE_ALL,
                   .base = &j->floats,
                   .isolates = true,
                   .no_weights = scope == LOCAL_ACTIVATIONS,
                   .no_activations = scope == LOCAL_WEIGHTS,
                   .goes_on = j->options.is_brief ? has_time_for_layer : NULL,
                   .result = add_local,
                   .weight = scope == LOCAL_BOTH ? add_weight : NULL,
                   .user = j};
    probe_outputs out = {.count = 0};
    j->scope = scope;
    TARE_TRY(tare__probe_run(&r, j->batch->inputs, j->batch->input_count, &out, j->err));
    if (!r.is_over) add_last(j, floats, &out);
    tare__probe_outputs_release(&out);
    return TARE_OK;
}

static tare_status keep_inputs(job *j, probe_outputs *floats) {
    j->inputs = tare__alloc_zeroed(j->batch->input_count + 1, sizeof(tare_tensor *));
    if (j->inputs == NULL) return tare__out_of_memory(j->err);
    j->input_count = j->batch->input_count;
    for (size_t i = 0; i < j->input_count; i++) // NOLINTNEXTLINE: counted, not changed
        j->inputs[i] = tare_tensor_retain((tare_tensor *)j->batch->inputs[i]);
    j->kept_floats = *floats;
    floats->count = 0;
    return TARE_OK;
}

// Runs the batch in floats and quantized.
static tare_status run_forms(job *j, probe_outputs *floats, probe_outputs *quantized) {
    probe_outputs simulated = {.count = 0};
    TARE_TRY(run_floats(j, floats));
    if (!j->options.is_brief || j->session == NULL) TARE_TRY(run_all(j, &simulated));
    if (j->session == NULL) {
        *quantized = simulated;
        return TARE_OK;
    }
    tare__probe_outputs_release(&simulated);
    return tare__session_outputs(j->session, j->batch, quantized, j->err);
}

// Compares the outputs for the verdict.
static tare_status judge_batch(job *j, const probe_outputs *floats,
                               const probe_outputs *quantized) {
    probe_outputs exact_floats = {.count = 0};
    if (j->options.exact == NULL) return judge(j, floats, quantized);
    tare_status status = tare__exact_run(&j->exact, j->batch, &exact_floats, j->err);
    if (status == TARE_OK) {
        const sums s = compare_outputs(&exact_floats, floats);
        j->a->exact_signal += s.signal;
        j->a->preparation_noise += s.noise;
        status = judge(j, &exact_floats, quantized);
    }
    tare__probe_outputs_release(&exact_floats);
    return status;
}

// Measures each layer alone.
static tare_status run_layers(job *j, bool is_first, const probe_outputs *floats) {
    if (is_first)
        tare__brief_begin_layers(&j->brief, elapsed(j),
                                 tare__measure_db(j->a->signal, j->a->noise));
    for (int scope = LOCAL_BOTH; scope < LOCAL_SCOPES; scope++)
        if (!j->options.is_brief || (is_first && has_time_for_layer(j)))
            TARE_TRY(run_local(j, scope, floats));
    return TARE_OK;
}

static tare_status run_batch(job *j, probe_outputs *floats, probe_outputs *quantized) {
    const bool is_first = j->a->verdict.sample_count == 0;
    const double begin = elapsed(j);
    TARE_TRY(run_forms(j, floats, quantized));
    TARE_TRY(judge_batch(j, floats, quantized));
    j->sample_seconds = elapsed(j) - begin;
    return run_layers(j, is_first, floats);
}

static tare_status analyze_batch(job *j) {
    probe_outputs floats = {.count = 0}, quantized = {.count = 0};
    const tare_status run = run_batch(j, &floats, &quantized);
    const bool is_kept = run == TARE_OK && j->inputs == NULL && !j->options.is_brief;
    const tare_status status = is_kept ? keep_inputs(j, &floats) : run;
    if (!is_kept) tare__value_cache_clear(&j->floats);
    tare__probe_outputs_release(&floats);
    tare__probe_outputs_release(&quantized);
    return status;
}

static tare_status tell(const job *j, int64_t done, int64_t total) {
    return j->options.progress != NULL
               ? j->options.progress(j->options.progress_user, done, total, j->err)
               : TARE_OK;
}

// The values of the first batch are kept for tests of single layers; later batches use another
// cache.
static tare_status analyze_samples(job *j) {
    value_cache first = {0};
    tare_status status = TARE_OK;
    for (bool done = false; status == TARE_OK;) {
        tare_batch batch = {.struct_size = sizeof batch};
        status = tare_data_next(j->data, &batch, &done, j->err);
        if (status != TARE_OK || done) break;
        j->batch = &batch;
        const bool is_first = j->inputs == NULL && !j->options.is_brief;
        status = analyze_batch(j);
        if (is_first && status == TARE_OK) {
            first = j->floats;
            status = tare__value_cache_begin(&j->floats, j->a->probe.id_count, &j->budget, j->err);
        }
        const int64_t limit = j->options.sample_limit, at = j->a->verdict.sample_count;
        if (status == TARE_OK) status = tell(j, at, limit);
        if (at >= limit) break;
        if (!j->options.is_brief) continue;
        if (!tare__brief_has_time_for_sample(&j->brief, elapsed(j), j->sample_seconds)) break;
    }
    j->batch = NULL;
    if (first.items != NULL) {
        tare__value_cache_release(&j->floats);
        j->floats = first;
    }
    if (status != TARE_OK || j->a->verdict.sample_count > 0) return status;
    return tare__fail(j->err, TARE_INVALID_ARGUMENT, "there are no samples to analyze");
}

// --- single layers ---

static tare_status run_single(job *j, probe_mode mode, size_t layer, double *signal,
                              double *noise) {
    probe_run r = {.probe = &j->a->probe,
                   .mode = mode,
                   .layer = layer,
                   .base = mode == PROBE_ONLY ? &j->floats : &j->all};
    probe_outputs out = {.count = 0};
    TARE_TRY(
        tare__probe_run(&r, (const tare_tensor *const *)j->inputs, j->input_count, &out, j->err));
    const sums s = compare_outputs(&j->kept_floats, &out);
    *signal = s.signal;
    *noise = s.noise;
    tare__probe_outputs_release(&out);
    return TARE_OK;
}

typedef struct ranked {
    size_t layer;
    double db;
} ranked;

static int by_db(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    const double p = isnan(x->db) ? INFINITY : x->db, q = isnan(y->db) ? INFINITY : y->db;
    if (p != q) return (p > q) - (p < q);
    return (x->layer > y->layer) - (x->layer < y->layer);
}

// The error of the values that a layer reads; NaN if it was not measured.
static double reads_db(const tare_analysis *a, size_t layer) {
    double least = NAN;
    for (size_t i = 0; i < a->ranges.count; i++) {
        const range_entry *e = &a->ranges.items[i];
        if (e->layer != layer || e->shown.is_weight || !e->shown.has_qparams) continue;
        const double db = tare__measure_db(e->signal, e->noise);
        if (!(db >= least)) least = db;
    }
    return least;
}

static tare_status rank(const job *j) {
    tare_analysis *a = j->a;
    const size_t count = a->probe.layer_count;
    ranked *list = tare__alloc_zeroed(count + 1, sizeof *list);
    if (list == NULL) return tare__out_of_memory(j->err);
    for (size_t i = 0; i < count; i++) {
        const layer_measure *m = &a->measures[i];
        const double local = tare__measure_local_db(m, LOCAL_BOTH);
        list[i] = (ranked){i, m->is_alone_measured ? tare__measure_alone_db(m)
                              : isnan(local)       ? reads_db(a, i)
                                                   : local};
    }
    qsort(list, count, sizeof *list, by_db);
    for (size_t i = 0; i < count; i++) a->ranking[i] = list[i].layer;
    tare__free(list);
    return TARE_OK;
}

static tare_status test_layers(job *j) {
    const uint64_t begin = tare__job_now_ns();
    const size_t count = j->a->probe.layer_count;
    for (size_t i = 0; i < count; i++) {
        const size_t layer = j->a->ranking[i];
        layer_measure *m = &j->a->measures[layer];
        TARE_TRY(run_single(j, PROBE_ONLY, layer, &m->alone_signal, &m->alone_noise));
        TARE_TRY(run_single(j, PROBE_BUT, layer, &m->without_signal, &m->without_noise));
        m->is_alone_measured = true;
        TARE_TRY(tell(j, (int64_t)i + 1, (int64_t)count));
        if ((double)(tare__job_now_ns() - begin) * 1e-9 > j->options.seconds) break;
    }
    return rank(j);
}

// --- the whole ---

static tare_status open(job *j, const tare_model *reference) {
    tare_analysis *a = j->a;
    TARE_TRY(tare__probe_begin(&a->probe, reference, NULL, j->options.thread_count, j->err));
    TARE_TRY(tare__ranges_begin(&a->ranges, &a->probe, j->options.is_brief, j->err));
    const size_t count = a->probe.layer_count;
    a->measures = tare__alloc_zeroed(count + 1, sizeof *a->measures);
    a->ranking = tare__alloc_zeroed(count + 1, sizeof *a->ranking);
    if (a->measures == NULL || a->ranking == NULL) return tare__out_of_memory(j->err);
    TARE_TRY(tare__value_cache_begin(&j->floats, a->probe.id_count, &j->budget, j->err));
    TARE_TRY(tare__value_cache_begin(&j->all, a->probe.id_count, &j->budget, j->err));
    if (j->options.exact != NULL)
        TARE_TRY(tare__exact_begin(&j->exact, j->options.exact,
                                   j->options.is_brief ? a->probe.kernels : NULL,
                                   j->options.thread_count, j->err));
    if (j->options.quantized == NULL) return TARE_OK;
    const tare_session_options options = {.struct_size = sizeof options,
                                          .thread_count = j->options.thread_count};
    return tare_session_create(j->options.quantized, &options, &j->session, j->err);
}

static void finish_verdict(tare_analysis *a) {
    a->verdict.struct_size = sizeof a->verdict;
    a->verdict.sqnr_db = tare__measure_db(a->signal, a->noise);
    if (isnan(a->verdict.sqnr_db)) a->verdict.sqnr_db = INFINITY; // all outputs are zeros
    a->verdict.cosine = a->cosine_count > 0 ? a->cosine_sum / (double)a->cosine_count : 1;
}

static tare_status run(job *j, const tare_model *reference) {
    tare_analysis *a = j->a;
    TARE_TRY(open(j, reference));
    TARE_TRY(analyze_samples(j));
    finish_verdict(a);
    TARE_TRY(rank(j));
    if (!j->options.is_brief) TARE_TRY(test_layers(j));
    a->findings = (finding_list){.probe = &a->probe,
                                 .ranges = &a->ranges,
                                 .measures = a->measures,
                                 .verdict_db = a->verdict.sqnr_db,
                                 .memory = &a->memory,
                                 .err = j->err};
    const tare_status status = tare__findings_collect(&a->findings);
    a->findings.err = NULL;
    return status;
}

static void set_defaults(tare_analyze_options *o) {
    if (o->sample_limit <= 0) o->sample_limit = DEFAULT_SAMPLES;
    if (!(o->seconds > 0)) o->seconds = DEFAULT_SECONDS;
    if (o->memory_bytes == 0) o->memory_bytes = (uint64_t)DEFAULT_MEMORY_MIB << MIB_BITS;
    if (o->disk_bytes == 0) o->disk_bytes = (uint64_t)DEFAULT_DISK_GIB << GIB_BITS;
}

static void close_job(job *j) {
    tare__exact_end(&j->exact);
    tare_session_destroy(j->session);
    tare__value_cache_release(&j->floats);
    tare__value_cache_release(&j->all);
    tare__probe_outputs_release(&j->kept_floats);
    for (size_t i = 0; j->inputs != NULL && i < j->input_count; i++)
        tare_tensor_release(j->inputs[i]);
    tare__free(j->inputs);
}

tare_status tare_analyze(const tare_model *reference, tare_data *data,
                         const tare_analyze_options *options, tare_analysis **out,
                         tare_error *err) {
    job j = {.data = data, .begin_ns = tare__job_now_ns(), .err = err};
    if (reference == NULL || data == NULL || out == NULL ||
        reference->stage != TARE_STAGE_REFERENCE)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "analyze: expected the reference form of a quantized model, and data");
    if (options != NULL) tare__struct_copy(&j.options, sizeof j.options, options);
    if (j.options.exact != NULL && !tare__exact_takes(j.options.exact))
        return tare__fail(
            err, TARE_INVALID_ARGUMENT,
            "analyze: the model `exact` is neither a float model nor a reference form");
    set_defaults(&j.options);
    j.brief = (brief_time){.limit = j.options.seconds};
    j.budget = (cache_budget){j.options.memory_bytes, j.options.disk_bytes};
    j.a = tare__alloc_zeroed(1, sizeof *j.a);
    if (j.a == NULL) return tare__out_of_memory(err);
    const tare_status status = run(&j, reference);
    close_job(&j);
    if (status == TARE_OK)
        *out = j.a;
    else
        tare_analysis_destroy(j.a);
    return status;
}

void tare_analysis_destroy(tare_analysis *a) {
    if (a == NULL) return;
    tare__free(a->findings.items);
    tare__ranges_end(&a->ranges);
    tare__probe_end(&a->probe);
    tare__free(a->measures);
    tare__free(a->ranking);
    tare__arena_release(&a->memory);
    tare__free(a);
}

// --- what is shown ---

void tare_analysis_get_verdict(const tare_analysis *a, tare_verdict *out) {
    *out = a->verdict;
}

double tare_analysis_preparation_db(const tare_analysis *a) {
    return a->exact_signal > 0 ? tare__measure_db(a->exact_signal, a->preparation_noise)
                               : (double)NAN;
}

size_t tare_analysis_layer_count(const tare_analysis *a) {
    return a->probe.layer_count;
}

// The layer's first finding of those that cost accuracy.
static const tare_finding *worst_finding(const tare_analysis *a, const char *layer) {
    for (size_t i = 0; i < a->findings.count; i++)
        if (strcmp(a->findings.items[i].shown.layer, layer) == 0 &&
            a->findings.items[i].shown.db < INFINITY)
            return &a->findings.items[i].shown;
    return NULL;
}

bool tare_analysis_get_layer(const tare_analysis *a, size_t index, tare_layer_error *out) {
    if (index >= a->probe.layer_count) return false;
    const probe_layer *l = &a->probe.layers[index];
    const layer_measure *m = &a->measures[index];
    const tare_finding *f = worst_finding(a, l->node->name);
    const double length = sqrt(m->signal) * sqrt(m->reference);
    *out = (tare_layer_error){
        .struct_size = sizeof *out,
        .node = l->node->name,
        .float_node = l->float_node,
        .op = l->op,
        .local_db = tare__measure_local_db(m, LOCAL_BOTH),
        .weights_db = tare__measure_local_db(m, LOCAL_WEIGHTS),
        .activations_db = tare__measure_local_db(m, LOCAL_ACTIVATIONS),
        .cumulative_db = tare__measure_db(m->signal, m->noise),
        .cumulative_cosine = length > 0 ? m->product / length : (double)NAN,
        .alone_db = tare__measure_alone_db(m),
        .without_db = m->is_alone_measured ? tare__measure_db(m->without_signal, m->without_noise)
                                           : (double)NAN,
        .cause = f != NULL ? f->cause : "",
        .remedy = f != NULL ? f->remedy : "",
        .reads_db = reads_db(a, index)};
    return true;
}

bool tare_analysis_get_worst(const tare_analysis *a, size_t rank, tare_layer_error *out) {
    return rank < a->probe.layer_count && tare_analysis_get_layer(a, a->ranking[rank], out);
}

size_t tare_analysis_range_count(const tare_analysis *a) {
    return a->ranges.count;
}

bool tare_analysis_get_range(const tare_analysis *a, size_t index, tare_tensor_range *out) {
    if (index >= a->ranges.count) return false;
    tare__range_show(&a->ranges.items[index], out);
    return true;
}

size_t tare_analysis_finding_count(const tare_analysis *a) {
    return a->findings.count;
}

bool tare_analysis_get_finding(const tare_analysis *a, size_t index, tare_finding *out) {
    if (index >= a->findings.count) return false;
    *out = a->findings.items[index].shown;
    return true;
}
