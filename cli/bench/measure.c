// SPDX-License-Identifier: Apache-2.0
// Times the runs of a model, alone or alternating with another model's.
#include "bench/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "support/report.h"
#include "tare/memory.h"

enum {
    LEAST_RUNS = 15, // of each model, however slow
    MOST_RUNS = 20000,
    WARM_UP_RUNS = 3,
    TURN_MS = 60,
    RANDOM_BATCHES = 64,
    OUTPUT_CAPACITY = 64,
};

static double now_ms(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static bool is_onnx(const char *path) {
    const char *ending = strrchr(path, '.');
    return ending != NULL && strcmp(ending, ".onnx") == 0;
}

// Sizes are for ONNX files; for other files reading refuses them.
static size_options sizes_of(const bench_job *j, const bench_subject *s) {
    size_options sizes = *j->settings.sizes;
    bool is_mixed = false;
    for (size_t i = 0; i < j->subject_count; i++) is_mixed |= is_onnx(j->subjects[i].path);
    if (is_mixed && !is_onnx(s->path)) sizes.dims = sizes.shapes = NULL;
    return sizes;
}

// Block-wise quantized weights (MatMulNBits) involve no conversions: they are multiplied as they
// are.
static bool computes_between_conversions(const tare_model *model) {
    tare_coverage c = {.struct_size = sizeof c};
    return tare_model_get_stage(model) == TARE_STAGE_REFERENCE &&
           tare_model_coverage(model, &c, NULL) == TARE_OK && c.conversion_count > 0;
}

static tare_status load(bench_job *j, bench_subject *s) {
    const double begin = now_ms();
    const size_options sizes = sizes_of(j, s);
    if (s->model == NULL) {
        TRY(read_model(s->path, &sizes, &s->own, j->err));
        s->model = s->own;
    }
    if (computes_between_conversions(s->model))
        (void)fprintf(
            stderr,
            "tare bench: note: %s is quantized, but computes in floats between quantize and "
            "dequantize;\n'tare quantize %s -o OUT' lowers it to integers\n",
            s->path, s->path);
    s->load_ms = now_ms() - begin;
    s->run_ms = tare_memory_allocate(MOST_RUNS, sizeof *s->run_ms);
    return s->run_ms != NULL ? TARE_OK : TARE_OUT_OF_MEMORY;
}

int bench_thread_count(const bench_job *j) {
    return tare_session_thread_count(j->subjects[0].session);
}

bool bench_tells_layers(const bench_job *j) {
    return j->settings.layers || j->settings.has_roofline;
}

static tare_status start(bench_job *j, bench_subject *s) {
    const double begin = now_ms();
    TRY(tare_session_create(s->model, &j->setting, &s->session, j->err));
    s->start_ms = now_ms() - begin;
    return bench_tells_layers(j) ? tare_session_profile(s->session, true, j->err) : TARE_OK;
}

/// Reads the next whole batch, starting again at the end. With constant inputs the branch predictor
/// could learn them, which would flatter code with branches.
static tare_status next_batch(bench_job *j) {
    const int64_t size = j->settings.batch;
    int64_t found = 0;
    for (int round = 0; round < 2; round++) {
        bool done = false;
        TRY(tare_data_next(j->data, &j->batch, &done, j->err));
        if (!done && j->batch.size >= size) return TARE_OK;
        if (!done) found = j->batch.size;
        TRY(tare_data_rewind(j->data, j->err));
    }
    const char *input = j->settings.input != NULL ? j->settings.input : "random";
    if (found == 0) return fail_here(input, "name data that has samples", "no data");
    return fail_here(input, "lower --batch, or name more data",
                     "a batch of %lld samples asked for, but there are only %lld", (long long)size,
                     (long long)found);
}

static tare_status open_data(bench_job *j) {
    char spec[64];
    const long long size = j->settings.batch;
    const long long batches = size <= INT32_MAX / RANDOM_BATCHES ? RANDOM_BATCHES : 1;
    (void)snprintf(spec, sizeof spec, "random:%lld", batches * size);
    const char *input = j->settings.input != NULL ? j->settings.input : spec;
    const tare_data_options options = {.batch_size = size};
    TRY(tare_data_open(input, j->subjects[0].model, &options, &j->data, j->err));
    return next_batch(j);
}

static tare_status run_once(bench_job *j, bench_subject *s, double *ms) {
    tare_tensor *outputs[OUTPUT_CAPACITY] = {NULL};
    size_t count = 0;
    const double begin = now_ms();
    TRY(tare_session_run(s->session, j->batch.inputs, j->batch.input_count, outputs,
                         OUTPUT_CAPACITY, &count, j->err));
    *ms = now_ms() - begin;
    for (size_t i = 0; i < count; i++) tare_tensor_release(outputs[i]);
    return TARE_OK;
}

/// The turn of a model: at least one run. When two models alternate, the first run of a turn brings
/// the model's data back into the caches, and is not counted.
static tare_status take_turn(bench_job *j, bench_subject *s) {
    double unused = 0;
    const double begin = now_ms();
    if (j->subject_count > 1) TRY(run_once(j, s, &unused));
    do {
        TRY(next_batch(j));
        TRY(run_once(j, s, &s->run_ms[s->run_count]));
        s->run_count++;
    } while (s->run_count < MOST_RUNS && now_ms() - begin < TURN_MS);
    return TARE_OK;
}

static bool is_enough(const bench_job *j, double ms) {
    const double budget_ms = 1e3 * (double)j->settings.seconds;
    bool is_full = false, is_short = false;
    for (size_t s = 0; s < j->subject_count; s++) {
        is_full = is_full || j->subjects[s].run_count == MOST_RUNS;
        is_short = is_short || j->subjects[s].run_count < LEAST_RUNS;
    }
    return is_full || (!is_short && ms > budget_ms);
}

/// The models run alternately, so that changes of the machine's speed affect both.
static tare_status time_runs(bench_job *j) {
    double unused = 0;
    for (int i = 0; i < WARM_UP_RUNS; i++)
        for (size_t s = 0; s < j->subject_count; s++) TRY(run_once(j, &j->subjects[s], &unused));
    const double begin = now_ms();
    while (!is_enough(j, now_ms() - begin)) {
        const int64_t runs = (int64_t)j->subjects[0].run_count;
        show_progress("timing", runs * j->batch.size, 0); // between turns, not during them
        for (size_t s = 0; s < j->subject_count; s++) TRY(take_turn(j, &j->subjects[s]));
    }
    return TARE_OK;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(const bench_subject *s, double fraction) {
    return s->run_ms[(size_t)(fraction * (double)(s->run_count - 1) + 0.5)];
}

uint64_t bench_peak_bytes(void) {
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss * 1024;
}

double bench_speed_ratio(const bench_job *j) {
    return bench_quantile(&j->subjects[1], 0.5) / bench_quantile(&j->subjects[0], 0.5);
}

static tare_status read_layers(bench_job *j) {
    if (!bench_tells_layers(j)) return TARE_OK;
    const bool has_other = j->subject_count > 1;
    const tare_session *first = j->subjects[0].session;
    const tare_session *other = has_other ? j->subjects[1].session : NULL;
    TRY(layer_list_read(&j->layers, first, other));
    return has_other ? layer_list_read(&j->other_layers, other, first) : TARE_OK;
}

tare_status bench_run(bench_job *j) {
    for (size_t i = 0; i < j->subject_count; i++) TRY(load(j, &j->subjects[i]));
    TRY(open_data(j));
    for (size_t i = 0; i < j->subject_count; i++) TRY(start(j, &j->subjects[i]));
    if (bench_tells_layers(j)) TRY(tare_machine_measure(bench_thread_count(j), &j->peak, j->err));
    // Threads that are created later would inherit the affinity.
    TRY(keep_thread(j->settings.session, j->err));
    TRY(time_runs(j));
    end_progress();
    for (size_t i = 0; i < j->subject_count; i++)
        qsort(j->subjects[i].run_ms, j->subjects[i].run_count, sizeof(double), by_size);
    return read_layers(j);
}

void bench_release(bench_job *j) {
    layer_list_release(&j->layers);
    layer_list_release(&j->other_layers);
    tare_data_close(j->data);
    for (size_t i = 0; i < 2; i++) {
        tare_session_destroy(j->subjects[i].session);
        tare_model_destroy(j->subjects[i].own);
        tare_memory_release(j->subjects[i].run_ms);
    }
}

// --- JSON ---

static void write_subject(const bench_subject *s, int64_t batch, json_out *json, const char *key) {
    json_out_open(json, key, '{');
    json_out_string(json, "file", s->path);
    json_out_number(json, "load_ms", s->load_ms);
    json_out_number(json, "start_ms", s->start_ms);
    json_out_integer(json, "runs", s->run_count);
    json_out_number(json, "median_ms", bench_quantile(s, 0.5));
    json_out_number(json, "lower_ms", bench_quantile(s, 0.25));
    json_out_number(json, "upper_ms", bench_quantile(s, 0.75));
    json_out_number(json, "p10_ms", bench_quantile(s, 0.1));
    json_out_number(json, "p90_ms", bench_quantile(s, 0.9));
    json_out_number(json, "samples_per_second", 1e3 * (double)batch / bench_quantile(s, 0.5));
    json_out_close(json, '}');
}

void bench_write(const bench_job *j, json_out *json) {
    const bool has_other = j->subject_count > 1;
    json_out_string(json, "isa", tare_isa_name());
    json_out_integer(json, "batch", (uint64_t)j->batch.size);
    json_out_integer(json, "threads", (uint64_t)bench_thread_count(j));
    print_threads_json(j->settings.session, json);
    print_machine_json(bench_tells_layers(j) ? &j->peak : NULL, json);
    write_subject(&j->subjects[0], j->batch.size, json, "model");
    if (has_other) {
        write_subject(&j->subjects[1], j->batch.size, json, "against");
        json_out_number(json, "speed_ratio", bench_speed_ratio(j));
    }
    if (j->settings.layers) print_layers_json(&j->layers, &j->peak, "layers", json);
    if (j->settings.layers && has_other)
        print_layers_json(&j->other_layers, &j->peak, "against_layers", json);
    if (!j->settings.memory) return;
    json_out_integer(json, "peak_bytes", bench_peak_bytes());
    print_plan_memory_json(j->subjects[0].session, "memory", json);
    if (has_other) print_plan_memory_json(j->subjects[1].session, "against_memory", json);
}
